"""TORCH_CUDA_ARCH_LIST as cmake/SeqconvCudaArchitectures.cmake reads it."""
import os
import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = f'cmake_minimum_required(VERSION 3.25)\ninclude("{ROOT}/cmake/SeqconvCudaArchitectures.cmake")\nmessage("got ${{CMAKE_CUDA_ARCHITECTURES}}")\n'


def read(named):
    """The script's exit code and what it says, on one line."""
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "read.cmake"
        file.write_text(SCRIPT)
        run = subprocess.run(["cmake", "-P", file], capture_output=True, text=True, check=False,
                             env={**os.environ, "TORCH_CUDA_ARCH_LIST": named})
    return run.returncode, " ".join(run.stderr.split())


class CudaArchitectures(unittest.TestCase):
    def test_capabilities_stand_between_semicolons_or_blanks(self):
        for named, wanted in (("7.5;8.6+PTX", "75-real;86"), ("8.0 9.0", "80-real;90-real"), (" 9.0a; ", "90a-real"),
                              ("12.0+PTX", "120"), ("", "75-real;80-real;90"), (" ", "75-real;80-real;90")):
            with self.subTest(named=named):
                self.assertEqual(read(named), (0, f"got {wanted}"))

    def test_others_are_named(self):
        for named, told in (("Volta", "as 7.5 or 8.6+PTX, but got 'Volta'"), ("8", "but got '8'"),
                            ("7.0", "7.5 or later, but got '70-real'")):
            with self.subTest(named=named):
                code, text = read(named)
                self.assertEqual(code, 1)
                self.assertIn(told, text)


if __name__ == "__main__":
    unittest.main()
