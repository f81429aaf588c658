"""The library for other programs, installed, moved and used: docs/embedding.md.

SEQCONV_BINARY_DIR names the build folder.
"""

import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import support

FOLDERS = support.ROOT / "tests" / "model" / "folders"
MODEL = FOLDERS / "translation_2"
LANGUAGE_MODEL = FOLDERS / "language_1"
STRICT = ["-std=c++20", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Werror"]
STRICT_C = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wstrict-prototypes",
            "-Wconversion", "-Werror"]  # fmt: skip
# Programs are linked with these names: some are added and none goes (docs/versioning.md).
EXPORTED = {
    *("seqconv_" + name for name in (
        "cancel", "cancel_token_free", "cancel_token_new", "close", "detokenize", "evaluate",
        "free", "generate", "generate_async", "info", "is_cancelled", "last_error", "open",
        "queue_descriptor", "queue_free", "queue_new", "queue_take", "result_free", "score",
        "score_async", "scores_free", "status_name", "summarise", "summarise_async", "tokenize",
        "translate", "translate_async", "translate_text", "version")),
    "seqconv::version()",
}  # fmt: skip


def output(*command, **options):
    done = subprocess.run(
        [os.fspath(part) for part in command], stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=support.TIMEOUT, check=False, **options,
    )  # fmt: skip
    if done.returncode != 0:
        raise AssertionError(f"{command} ends with {done.returncode}:\n{done.stdout.decode()}")
    return done.stdout.decode()


def compiler():
    cache = (support.BUILD / "CMakeCache.txt").read_text()
    return re.search(r"^CMAKE_CXX_COMPILER:\w+=(.+)$", cache, re.MULTILINE)[1]


def library():
    return support.installation() / "lib" / "libseqconv_runtime.so"


@functools.cache
def programs():
    """The installed examples, copied and compiled."""
    folder = support.scratch() / "programs"
    shutil.copytree(support.installation() / "share/seqconv/examples", folder)
    build = folder / "build"
    output("cmake", "-S", folder, "-B", build, f"-DCMAKE_CXX_COMPILER={compiler()}",
           f"-DCMAKE_PREFIX_PATH={support.installation()}",
           f"-DCMAKE_CXX_FLAGS={' '.join(STRICT)}")  # fmt: skip
    output("cmake", "--build", build, "-j", "2")
    return build


def run(name, *arguments, stdin=b""):
    """An example; nothing of the build is in its environment."""
    done = subprocess.run(
        [programs() / name, *map(os.fspath, arguments)], input=stdin, env={}, cwd="/",
        capture_output=True, timeout=support.TIMEOUT, check=False,
    )  # fmt: skip
    return support.Result(done.returncode, done.stdout, done.stderr)


class Examples(unittest.TestCase):
    def test_lines_are_translated_as_by_the_program(self):
        lines = b"dalan mira\n\ndalan zzz\n"
        wanted = support.run("translate", "--model", MODEL, stdin=lines)
        done = run("translate", MODEL, stdin=lines)
        self.assertEqual((done.code, done.out), (0, wanted.out), done.message)
        self.assertIn("3: 1 of the 2 symbols of the text are unknown", done.message)

    def test_a_bad_line_fails_alone(self):
        done = run("translate", MODEL, stdin=b"dalan\n\xff\n")
        self.assertEqual((done.code, len(done.lines)), (1, 2))
        self.assertIn("2: a line must be UTF-8", done.message)
        self.assertNotEqual(done.lines[0], "")

    def test_requests_may_be_given_up(self):
        lines = b"dalan mira\nzo\n"
        wanted = run("translate", MODEL, stdin=lines)
        done = run("translate_async", MODEL, "60000", stdin=lines)
        self.assertEqual((done.code, done.out), (0, wanted.out), done.message)
        done = run("translate_async", MODEL, "0", stdin=b"dalan mira zo\n" * 3000)
        self.assertEqual(done.code, 0, done.message)
        self.assertEqual(len(done.lines), 3000)
        self.assertIn("(given up)", done.lines)

    def test_pieces_of_both_texts_are_told(self):
        line = "dalan  mira\n"
        wanted = support.run("translate", "--model", MODEL, "--alignments", stdin=line.encode())
        text, pairs = wanted.lines[0].split(" ||| ")
        done = run("align", MODEL, stdin=line.encode())
        self.assertEqual((done.code, done.lines[0]), (0, text), done.message)
        self.assertEqual(done.lines[1:], [
            "\t" + line.split()[int(source)] + "\t" + text.split()[int(target)]
            for source, target in (pair.split("-") for pair in pairs.split())
        ])  # fmt: skip

    def test_pairs_are_scored_as_by_the_program(self):
        sides = support.scratch() / "sides"
        sides.write_text("dalan mira\n")
        wanted = support.run("score", "--model", MODEL, "--source", sides, "--target", sides)
        done = run("score", MODEL, stdin=b"dalan mira\tdalan mira\n\xff\tdalan\n")
        self.assertAlmostEqual(float(done.lines[0]), float(wanted.lines[0]), places=3)
        self.assertIn("the source must be UTF-8", done.lines[1])

    def test_a_text_is_gone_on_with_to_the_end_of_its_line(self):
        flags = ["--prompt", "dalan", "--length", "80", "--seed", "7"]
        wanted = support.run("generate", "--model", LANGUAGE_MODEL, *flags)
        done = run("generate", LANGUAGE_MODEL, "dalan", "7")
        self.assertEqual((done.code, done.lines), (0, wanted.lines[:1]), done.message)

    def test_errors_are_said(self):
        for name, *rest in (["translate"], ["translate_async", "9"], ["score"]):
            done = run(name, "/nowhere", *rest)
            self.assertEqual(done.code, 1)
            self.assertIn("/nowhere", done.message)

    def test_pkg_config_tells_what_compiling_takes(self):
        package = library().parent / "pkgconfig"
        flags = shlex.split(output("pkg-config", "--cflags", "--libs", "seqconv_runtime",
                                   env={**os.environ, "PKG_CONFIG_PATH": package}))
        program = support.scratch() / "by_pkg_config"
        output("gcc", *STRICT_C, support.ROOT / "examples/translate_text.c", "-o", program, *flags)
        wanted = support.run("translate", "--model", MODEL, stdin=b"dalan mira\n")
        said = output(program, MODEL, "dalan mira", env={"LD_LIBRARY_PATH": library().parent})
        self.assertEqual(said.encode(), wanted.out)

    def test_no_libtorch_is_loaded(self):
        for name in ("translate", "translate_async", "align", "score", "generate", "translate_c"):
            loaded = output("ldd", programs() / name, env={"PATH": os.environ["PATH"]})
            self.assertIn(f"{library()}.", loaded)
            self.assertNotRegex(loaded, "torch|libc10|gomp|seqconv_(ops|engine)|not found")

    def test_c_answers_lines_as_the_program_does(self):
        lines = b"dalan mira\n\ndalan zzz\n" * 20
        wanted = support.run("translate", "--model", MODEL, stdin=lines)
        done = run("translate_c", MODEL, stdin=lines)
        self.assertEqual((done.code, done.out), (0, wanted.out), done.message)
        done = run("translate_c", MODEL, stdin=b"dalan\n\xff\n")
        self.assertEqual((done.code, len(done.lines)), (1, 2))
        self.assertIn("2: a line must be UTF-8", done.message)
        self.assertIn("/nowhere", run("translate_c", "/nowhere").message)
        done = run("translate_text_c", MODEL, "dalan mira")
        self.assertEqual((done.code, done.lines), (0, wanted.lines[:1]), done.message)
        self.assertEqual(run("translate_text_c", "/nowhere", "a").code, 1)

    def test_a_compiler_of_c_alone_suffices(self):
        installed, program = support.installation(), support.scratch() / "alone_c"
        output("cc", *STRICT_C, programs().parent / "translate.c", "-o", program,
               f"-I{installed}/include", f"-L{installed}/lib", "-lseqconv_runtime",
               f"-Wl,-rpath,{installed}/lib")  # fmt: skip
        self.assertNotEqual(output(program, MODEL, input=b"dalan\n"), "\n")
        folder = support.scratch() / "a project in C"
        folder.mkdir()
        shutil.copy(programs().parent / "translate.c", folder)
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x C)\n"
            "find_package(seqconv REQUIRED COMPONENTS runtime)\n"
            "add_executable(x translate.c)\ntarget_link_libraries(x PRIVATE seqconv::runtime)\n")
        output("cmake", "-S", folder, "-B", folder / "build",
               f"-DCMAKE_PREFIX_PATH={support.installation()}")  # fmt: skip
        output("cmake", "--build", folder / "build")

    def test_a_compiler_alone_suffices(self):
        installed, program = support.installation(), support.scratch() / "alone"
        output(compiler(), *STRICT, programs().parent / "translate.cpp", "-o", program,
               f"-I{installed}/include", f"-L{installed}/lib", "-lseqconv_runtime",
               f"-Wl,-rpath,{installed}/lib")  # fmt: skip
        self.assertNotEqual(output(program, MODEL, input=b"dalan\n"), "\n")

    def test_a_model_takes_little_memory(self):
        program = support.scratch() / "embedded_bench"
        output(compiler(), "-std=c++20", "-O1", support.ROOT / "benchmarks/embedded_bench.cpp", "-o",
               program, f"-I{support.installation()}/include", library(),
               f"-Wl,-rpath,{library().parent}")  # fmt: skip
        # Megabytes at the start, opened, after 100 sentences and after as many together.
        found = list(map(float, re.findall(r"([\d.]+) MB", output(program, MODEL))))
        self.assertEqual(len(found), 4)
        self.assertLess(found[2], 20)
        self.assertLess(found[3], 30)

    def test_a_wrong_component_is_named(self):
        folder = support.scratch() / "wrong component"
        folder.mkdir()
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(x NONE)\n"
            "find_package(seqconv REQUIRED COMPONENTS runtimes)\n")
        with self.assertRaisesRegex(AssertionError, "components are runtime and ops, but\\s+runtimes"):
            output("cmake", "-S", folder, "-B", folder / "build",
                   f"-DCMAKE_PREFIX_PATH={support.installation()}")  # fmt: skip


class Library(unittest.TestCase):
    def test_it_shows_its_own_functions_and_nothing_else(self):
        lines = output("nm", "-D", "-C", "--defined-only", library()).splitlines()
        names = {re.split(r"^\S+ \w ", line)[1] for line in lines}
        self.assertEqual(names, EXPORTED)
        header = (support.installation() / "include/seqconv/seqconv.h").read_text()
        declared = set(re.findall(r"^SEQCONV_API [^;(]*?\b(seqconv_\w+)\(", header, re.MULTILINE))
        self.assertEqual(declared, names - {"seqconv::version()"})

    def test_no_variable_of_a_function_has_a_lock(self):
        # A child process of fork() might find it held.
        needed = output("nm", "-D", "--undefined-only", library())
        self.assertIn("__register_atfork", needed)
        self.assertNotIn("__cxa_guard_acquire", needed)

    def test_it_has_a_name_with_a_version(self):
        told = output("readelf", "-d", library())
        name = re.search(r"SONAME.*\[(.*)\]", told)[1]
        self.assertEqual(name, "libseqconv_runtime.so.1")
        self.assertEqual((library().parent / name).resolve(), library().resolve())
        self.assertNotRegex(told, "RPATH|RUNPATH")

    def test_its_headers_include_the_standard_library_alone(self):
        for name in ("requests.h", "runtime.h", "runtime_inline.h", "seqconv.h", "version.h"):
            text = (support.installation() / "include/seqconv" / name).read_text()
            for included in re.findall(r"^\s*#\s*include\s*(.*)$", text, re.MULTILINE):
                self.assertRegex(included, r'^(<[a-z_]+(\.h)?>|"seqconv/\w+\.h")$')
            self.assertNotRegex(text, r"#\s*define\s+(?!SEQCONV_)")

    def test_it_says_its_version(self):
        program = support.scratch() / "version"
        source = support.scratch() / "version.cpp"
        source.write_text(
            "#include <seqconv/version.h>\n#include <cstdio>\n"
            'int main() { std::printf("%s %d.%d.%d", seqconv::version(), SEQCONV_VERSION_MAJOR,\n'
            "    SEQCONV_VERSION_MINOR, SEQCONV_VERSION_PATCH); }\n")  # fmt: skip
        output(compiler(), *STRICT, "-I", support.installation() / "include", source, "-o", program,
               library(), f"-Wl,-rpath,{library().parent}")  # fmt: skip
        said, macros = output(program).split()
        self.assertEqual(said, macros)
        self.assertIn(f"seqconv {said}\n", output(support.installation() / "bin/seqconv", "--version"))


class Documents(unittest.TestCase):
    def test_they_show_what_stands_in_the_examples(self):
        words = lambda text: " ".join(text.split())
        examples = [words(path.read_text()) for path in (support.ROOT / "examples").glob("*.c*")]
        for name, language in (("embedding", "cpp"), ("c_interface", "c")):
            document = (support.ROOT / f"docs/{name}.md").read_text()
            blocks = re.findall(rf"^```{language}\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
            self.assertGreater(len(blocks), 2)
            for block in blocks:
                self.assertTrue(any(words(block) in text for text in examples), block)


if __name__ == "__main__":
    unittest.main(verbosity=2)
