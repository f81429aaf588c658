"""`seqconv quantize`, and what can be done with a model of int8."""

import json
import os
import pathlib
import resource
import shutil
import signal
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support
from support import run

TEXT = "1 2 3\n4 5\n6\n"


def quantized(name="int8", of=None):
    folder = support.scratch() / name
    if not folder.exists():
        result = run("quantize", "--model", of or support.model(),
                     "--output", folder)
        assert result.code == 0, result.message
    return folder


class Quantize(unittest.TestCase):
    def test_the_folder_is_a_model_of_int8(self):
        folder = quantized()
        config = json.loads((folder / "config.json").read_text("utf-8"))
        self.assertEqual((config["format_version"], config["weights"]), (4, "int8"))
        self.assertEqual(sorted(os.listdir(folder)),
                         ["config.json", "dict.txt", "model.safetensors"])
        parameters = [
            next(line for line in run("info", model).out.decode().splitlines()
                 if line.startswith("parameters: "))
            for model in (support.model(), folder)
        ]
        self.assertEqual(parameters[0], parameters[1], "scales are none")
        self.assertIn(b"int8", run("info", folder).out)

    def test_what_a_killed_process_left_goes_even_if_this_one_fails(self):
        folder = support.scratch() / "left over"
        folder.mkdir()
        left = folder / f"config.json.tmp-{2**22 + 1}"  # more than a process's number may be
        left.write_text("{")

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))

        done = subprocess.run(
            [support.PROGRAM, "quantize", "--model", support.model(), "--output", folder],
            preexec_fn=limit, capture_output=True, check=False)  # fmt: skip
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(b"File too large", done.stderr)
        self.assertEqual(list(folder.iterdir()), [])

    def test_it_translates_scores_and_says_its_type(self):
        for model, flags, type in (
            (quantized(), [], "int8"),
            (quantized(), ["--compute-type", "auto"], "int8"),
            (quantized(), ["--compute-type", "bfloat16"], "bfloat16"),
            (support.model(), ["--compute-type", "int8"], "int8"),
            (support.model(), [], "float32"),
        ):
            with self.subTest(type=type, flags=flags):
                result = run("translate", "--model", model, "--stats", *flags,
                             stdin=TEXT)
                self.assertEqual(result.code, 0, result.message)
                self.assertEqual(len(result.out.splitlines()), 3)
                self.assertIn(f"(runtime, {type})", result.message)
        source = support.scratch() / "int8-source"
        source.write_text(TEXT)
        result = run("score", "--model", quantized(), "--source", source,
                     "--target", source)
        self.assertEqual((result.code, len(result.out.splitlines())), (0, 4))

    def test_threads_and_batches_change_no_byte(self):
        flags = ["--model", quantized(), "--format", "json", "--n-best", "2"]
        wanted = run("translate", *flags, "--threads", "1", stdin=TEXT).out
        for more in (["--threads", "3", "--buffer-lines", "1"],
                     ["--batch-tokens", "1"]):
            self.assertEqual(run("translate", *flags, *more, stdin=TEXT).out, wanted)

    def test_a_language_model_reads_and_writes(self):
        model = quantized("language-int8", support.language_model())
        result = run("perplexity", "--model", model, stdin="eins zwei\n")
        self.assertEqual(result.code, 0, result.message)
        result = run("generate", "--model", model, "--length", "4", "--stats")
        self.assertEqual(result.code, 0, result.message)
        self.assertIn("(runtime, int8)", result.message)

    def test_what_cannot_use_it_refuses_it_by_name(self):
        folder, scratch = quantized(), support.scratch()
        for verb, name in (
            (["average", "--output", scratch / "int8-mean", folder], "average"),
            (["export", "--format", "pytorch", folder, scratch / "int8.pt"], "export"),
            (["quantize", "--model", folder, "--output", scratch / "twice"], "quantize"),
            (["train", support.config(), "--init-from", folder, "--output",
              scratch / "from-int8"], "LibTorch"),
            (["translate", "--model", folder, "--backend", "libtorch"], "LibTorch"),
        ):
            with self.subTest(verb=verb[0]):
                result = run(*verb, stdin=TEXT)
                self.assertEqual((result.code, result.out), (1, b""))
                self.assertIn(f"is int8 (seqconv quantize), which {name} cannot use",
                              result.message)
                self.assertIn(str(folder), result.message)
        for output in ("int8-mean", "int8.pt", "twice"):
            self.assertFalse((scratch / output).exists(), output)

    def test_a_model_is_not_written_over(self):
        folder = support.copy_model("quantize-itself")
        before = (folder / "model.safetensors").read_bytes()
        for output, words in ((folder, "another folder than the model's own"),
                              (folder / "training", "holds its training")):
            result = run("quantize", "--model", folder, "--output", output)
            self.assertEqual(result.code, 1)
            self.assertIn(words, result.message)
        self.assertEqual((folder / "model.safetensors").read_bytes(), before)

    def test_a_file_that_is_damaged_is_refused(self):
        folder = support.scratch() / "int8-damaged"
        shutil.copytree(quantized(), folder)
        data = (folder / "model.safetensors").read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        header = json.loads(data[8:8 + length])
        scale = next(name for name in header if name.endswith(".weight.scale"))
        at = 8 + length + header[scale]["data_offsets"][0]
        nan = data[:at] + struct.pack("<f", float("nan")) + data[at + 4:]
        (folder / "model.safetensors").write_bytes(nan)
        result = run("translate", "--model", folder, stdin=TEXT)
        self.assertEqual(result.code, 1)
        self.assertIn(f"parameter '{scale}' must hold finite numbers", result.message)


if __name__ == "__main__":
    unittest.main()
