"""An installation: moved, run from / with an empty environment.

SEQCONV_BINARY_DIR names the build folder, whose CMakeCache.txt says where the
build found LibTorch.
"""

import concurrent.futures
import functools
import gzip
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support

LIBTORCH = ["--backend", "libtorch"]
HEADERS = {
    *(f"seqconv/{name}.h" for name in (
        "ops", "requests", "runtime", "runtime_inline", "seqconv", "version")),
    *(f"seqconv/ops/{name}.h" for name in (
        "activation", "conv_options", "cumulative_average", "dynamicconv", "lightconv",
        "normalization", "short_conv", "talk")),
}


def run(*arguments, program=None, stdin=b"", **environment):
    """Runs the installed program; nothing is set but what is given."""
    program = program or support.installation() / "bin" / "seqconv"
    done = subprocess.run(
        [os.fspath(program), *map(os.fspath, arguments)],
        input=stdin, env=environment, cwd="/", capture_output=True,
        timeout=support.TIMEOUT, check=False,
    )  # fmt: skip
    return support.Result(done.returncode, done.stdout, done.stderr)


@functools.cache
def torch_of_build():
    cache = (support.BUILD / "CMakeCache.txt").read_text()
    named = re.search(r"^SEQCONV_TORCH_DIR:PATH=(.+)$", cache, re.MULTILINE)
    if named:
        return pathlib.Path(named[1])
    (found,) = support.ROOT.glob(".venv/lib/python3*/site-packages/torch")
    return found


@functools.cache
def model():
    """Five updates on the tiny text, by the installed program."""
    folder = support.scratch() / "model of the installed"
    done = run(
        "train", support.config(), "--output", folder,
        "--set", "training.max_updates=5",
    )  # fmt: skip
    if done.code != 0:
        raise AssertionError(done.message)
    return folder


def compiler():
    cache = (support.BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]


def packed_size(file):
    """Megabytes of a stripped file, packed."""
    stripped = support.scratch() / "stripped"
    subprocess.run(["strip", "-o", stripped, file], check=True)
    return len(gzip.compress(stripped.read_bytes(), 9)) / 1e6


def libraries_of(file):
    """All that a file needs but the C library, which every GNU/Linux has."""
    loaded = subprocess.run(["ldd", file], capture_output=True, text=True, check=True).stdout
    return [found for found in re.findall(r"=> (/\S+) ", loaded)
            if not re.search(r"/(libc|libm|ld-linux[^/]*)\.so", found)]


class Size(unittest.TestCase):
    """Sizes are those of docs/installing.md, and the runtime's within 4 MB."""

    def assert_documented(self, name):
        table = (support.ROOT / "docs/installing.md").read_text()
        row = re.search(rf"^\| `{re.escape(name)}`.*$", table, re.MULTILINE)[0]
        alone, all_of_it = map(float, row.split("|")[3:5])
        file = support.installation() / name
        measured = packed_size(file)
        whole = measured + sum(map(packed_size, libraries_of(file)))
        for size, documented in ((measured, alone), (whole, all_of_it)):
            # Compilers differ, and so does -O3.
            self.assertLessEqual(size, 1.2 * documented)
            self.assertGreaterEqual(size, 0.8 * documented)
        return whole

    def test_the_runtime_is_small(self):
        self.assertLessEqual(self.assert_documented("lib/libseqconv_runtime.so"), 4)

    def test_the_program_is_as_large_as_documented(self):
        self.assert_documented("bin/seqconv")

    def test_neither_needs_icu_nor_a_trainer(self):
        for name in ("lib/libseqconv_runtime.so", "bin/seqconv"):
            needed = " ".join(libraries_of(support.installation() / name))
            self.assertIn("libsentencepiece.so", needed)
            self.assertNotRegex(needed, "libicu|sentencepiece_train|torch")


class Installation(unittest.TestCase):
    def assert_translates(self, *flags, **environment):
        done = run("translate", "--model", model(), *flags, stdin=b"1 2 3\n4\n", **environment)
        self.assertEqual(done.code, 0, done.message)
        self.assertEqual(len(done.lines), 2)
        return done

    def assert_refuses(self, *wanted, **options):
        done = run("translate", "--model", model(), *LIBTORCH, stdin=b"1\n", **options)
        self.assertEqual((done.code, done.out), (1, b""), done.message)
        for text in wanted:
            self.assertIn(os.fspath(text), done.message)

    def test_nothing_is_installed_that_is_not_needed(self):
        files = {
            os.fspath(path.relative_to(support.installation()))
            for path in support.installation().rglob("*") if path.is_file()
        }  # fmt: skip
        rest = {
            name for name in files
            if not re.match(r"(include/seqconv|share/(doc/)?seqconv|share/man/man1)/", name)
            and not name.endswith("/libseqconv_ops_cuda.so")
        }  # fmt: skip
        self.assertEqual(rest, {
            "bin/seqconv",
            "lib/libseqconv_engine.so",
            # where MPI was found, and NCCL beside CUDA
            *(f"lib/{path.name}" for library in ("mpi", "nccl")
              for path in (support.BUILD / "lib").glob(f"libseqconv_{library}.so")),
            "lib/libseqconv_ops.so",
            *(f"lib/libseqconv_runtime.so{end}" for end in ("", ".1", ".0.1.0")),
            "lib/cmake/seqconv/seqconvConfig.cmake",
            "lib/cmake/seqconv/seqconvConfigVersion.cmake",
            "lib/pkgconfig/seqconv_runtime.pc",
            "share/bash-completion/completions/seqconv",
        })  # fmt: skip
        for config in (support.ROOT / "configs").rglob("*.toml"):
            self.assertIn(f"share/seqconv/{config.relative_to(support.ROOT)}", files)

    def test_each_header_compiles_alone(self):
        include = support.installation() / "include"
        names = {os.fspath(path.relative_to(include)) for path in include.rglob("*.*")}
        self.assertEqual(names, HEADERS)
        torch = torch_of_build() / "include"

        def compile_alone(name):
            flags = ["-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-"]
            folders = ["-I", include]
            if name.startswith("seqconv/ops"):
                folders += ["-isystem", torch, "-isystem", torch / "torch/csrc/api/include"]
            return name, subprocess.run(
                [compiler(), *folders, *flags], input=f'#include "{name}"\n' * 2,
                capture_output=True, text=True, check=False)  # fmt: skip

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for name, done in pool.map(compile_alone, sorted(names)):
                self.assertEqual((done.returncode, done.stderr), (0, ""), name)

    def test_version_says_what_it_is_and_where_libtorch_is(self):
        start = time.perf_counter()
        done = run("--version")
        self.assertLess(time.perf_counter() - start, 1)
        self.assertEqual((done.code, done.err), (0, b""))
        self.assertRegex(
            done.out.decode(),
            r"seqconv \d+\.\d+\.\d+\ncompiler: \S+ [\d.]+\nbuild: \w+\n"
            r"instruction sets: baseline.* \(this processor runs \w+\)\n"
            r"libtorch: 2\.\d+\.\S+ in "
            + re.escape(os.fspath(torch_of_build().resolve())),
        )

    def test_it_translates_with_nothing_of_the_build(self):
        done = self.assert_translates(LD_DEBUG="files")
        self.assertNotRegex(done.message, "libtorch|libc10|seqconv_engine")
        self.assertNotIn(os.fspath(support.BUILD.resolve()) + "/", done.message)
        done = self.assert_translates(*LIBTORCH, LD_DEBUG="files")
        for library in ("seqconv_engine", "seqconv_ops"):
            self.assertIn(f"calling init: {support.installation()}/lib/lib{library}.so", done.message)
        self.assertNotIn(os.fspath(support.BUILD.resolve()) + "/", done.message)

    def test_configurations_go_by_name(self):
        flags = ["--dry-run", "--output", support.scratch() / "named"]
        done = run("train", "multi30k_sentencepiece", *flags)
        self.assertEqual(done.code, 1)
        self.assertIn("runs/multi30k/data/train.raw.de", done.message)
        own = support.scratch() / "own.toml"
        own.write_text('include = "demo_numbers"\n[data]\ntrain_source = "not/there"\n')
        done = run("train", own, *flags)
        self.assertEqual(done.code, 1)
        self.assertIn("not/there", done.message)
        done = run("train", "demo_number", *flags)
        self.assertEqual(done.code, 2)
        self.assertIn("but got 'demo_number'; did you mean 'demo_numbers'?", done.message)
        self.assertIn("demo_numbers, dynamicconv_cnndm", done.message)

    def test_libtorch_may_lie_behind_a_link(self):
        link = support.scratch() / "a torch"
        link.symlink_to(torch_of_build())
        self.assert_translates(*LIBTORCH, SEQCONV_TORCH_DIR=os.fspath(link))

    def test_it_translates_without_libtorch(self):
        self.assert_translates(SEQCONV_TORCH_DIR="/nowhere")

    def test_a_folder_without_libtorch_is_named(self):
        wrong = os.fspath(support.scratch())
        self.assert_refuses(
            f"no lib/libtorch_cpu.so in {wrong} (SEQCONV_TORCH_DIR)",
            f"unset it for the one of the build, {torch_of_build()}",
            SEQCONV_TORCH_DIR=wrong,
        )
        version = run("--version", SEQCONV_TORCH_DIR=wrong)
        self.assertEqual(version.code, 0)
        self.assertIn(f"libtorch: not found: ", version.out.decode())

    def fake_torch(self, name, **files):
        folder = support.scratch() / name
        (folder / "lib").mkdir(parents=True)
        (folder / "lib" / "libtorch_cpu.so").write_text("no library\n")
        for file, text in files.items():
            (folder / file.replace("_py", ".py").replace("_", "-")).write_text(text)
        return os.fspath(folder)

    def test_libtorch_of_another_series_is_refused(self):
        for name, file in {
            "package": {"version_py": "from x import y\n__version__ = '1.13.1+cpu'\n"},
            "archive": {"build_version": "1.13.1+cpu\n"},
        }.items():
            folder = self.fake_torch(name, **file)
            self.assert_refuses(
                "built against LibTorch 2.", f"found 1.13.1+cpu in {folder}",
                SEQCONV_TORCH_DIR=folder,
            )  # fmt: skip

    def test_a_library_that_is_none_is_an_error(self):
        folder = self.fake_torch("broken")
        self.assert_refuses(
            "cannot load LibTorch", f"{folder}/lib/libtorch_cpu.so",
            SEQCONV_TORCH_DIR=folder,
        )  # fmt: skip

    def test_the_place_of_the_build_may_be_gone(self):
        # It lies elsewhere in a namespace of its own.
        place, elsewhere = torch_of_build().resolve(), support.scratch() / "elsewhere"
        elsewhere.mkdir()
        move = 'mount --bind "$0" "$1" && mount -t tmpfs none "$0" && shift && exec "$@"'
        moved = ["-rm", "sh", "-c", move, place, elsewhere]
        unshare = shutil.which("unshare") or "unshare"
        if subprocess.run([unshare, *moved, "true"], check=False).returncode != 0:
            self.skipTest("no right to make namespaces")
        command = [*moved, support.installation() / "bin" / "seqconv", "translate", "--model", model(), *LIBTORCH]
        done = run(*command, program=unshare, stdin=b"1\n")
        self.assertEqual((done.code, done.out), (1, b""), done.message)
        self.assertIn("(where it was at the build)", done.message)
        self.assertIn(
            "Set SEQCONV_TORCH_DIR to the folder of an installed torch 2.", done.message)
        done = run(*command, program=unshare, stdin=b"1\n",
                   SEQCONV_TORCH_DIR=os.fspath(elsewhere))  # fmt: skip
        self.assertEqual(done.code, 0, done.message)


class NewMixer(unittest.TestCase):
    """The installed examples/new_mixer, which checks itself."""

    def build(self):
        folder = support.scratch() / "new_mixer"
        shutil.copytree(support.installation() / "share/seqconv/examples/new_mixer", folder)
        # Both files as one, for half the time: LibTorch's headers are what takes it.
        configure = ["cmake", "-S", folder, "-B", folder / "build", "-DCMAKE_UNITY_BUILD=ON",
                     f"-DCMAKE_CXX_COMPILER={compiler()}",
                     f"-DCMAKE_PREFIX_PATH={support.installation()}",
                     "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Wpedantic -Wshadow -Werror"]  # fmt: skip
        for command in configure, ["cmake", "--build", folder / "build"]:
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stdout)
        return folder / "build" / "new_mixer"

    def test_it_holds_and_learns(self):
        done = run(program=self.build())
        self.assertEqual((done.code, done.message), (0, ""), done.lines)
        self.assertRegex(
            "\n".join(done.lines),
            r"^steps of 1 and 3 equal the whole sequence: \S+\npadding changes nothing\n"
            r"reorder picks the right rows\ngradients equal central differences: \S+\n"
            r"loss 2\.\d+ before, 0\.0[01]\d+ after \d+ updates\n"
            r"(\d+) of \1 new tokens right, step by step$")


if __name__ == "__main__":
    unittest.main(verbosity=2)
