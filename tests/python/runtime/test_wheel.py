"""The wheel that pip made: its contents, the program, and how the package loads."""

import os
import pathlib
import re
import subprocess
import sys
import zipfile

import pytest

import seqconv
from conftest import MODEL

ROOT = pathlib.Path(__file__).parents[3]
WHEEL = pathlib.Path(os.environ["SEQCONV_WHEEL"])
VENV = pathlib.Path(os.environ["SEQCONV_VENV"])


@pytest.fixture(scope="module")
def names():
    with zipfile.ZipFile(WHEEL) as archive:
        return {name: archive.getinfo(name).file_size for name in archive.namelist()}


def version():
    text = (ROOT / "include/seqconv/version.h").read_text(encoding="utf-8")
    return re.search(r'SEQCONV_VERSION "([\d.]+)"', text)[1]


def test_it_holds_the_package_the_library_and_the_program(names):
    own = {name for name in names if ".dist-info/" not in name and "/configs/" not in name}
    sources = {f"seqconv/{path.name}" for path in (ROOT / "python/seqconv").iterdir()
               if path.is_file()}
    data = f"seqconv-{version()}.data"
    assert own == sources | {"seqconv/_version.py", "seqconv/lib/libseqconv_runtime.so.1",
                             f"{data}/scripts/seqconv"}
    assert f"{data}/data/share/seqconv/configs/lightconv_iwslt_de_en.toml" in names
    assert WHEEL.name.startswith(f"seqconv-{version()}-py3-none-")
    # Packages of a release bring what of others they hold (tools/package.sh).
    assert f"seqconv-{version()}.dist-info/licenses/parts" in names
    # Both with what they need of the system's are 6 MB: docs/installing.md.
    assert WHEEL.stat().st_size < 4e6


def test_library_and_program_look_nowhere_for_what_they_need():
    """Programs are moved when a wheel is installed: a path to others would lead to nothing."""
    for file in (VENV / "bin/seqconv", pathlib.Path(seqconv.__file__).parent /
                 "lib/libseqconv_runtime.so.1"):  # fmt: skip
        done = run("readelf", "-dW", file)
        assert "(NEEDED)" in done.stdout, done.stderr
        assert not re.search("RPATH|RUNPATH", done.stdout)


def test_it_needs_nothing():
    with zipfile.ZipFile(WHEEL) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        metadata = archive.read(name).decode()
    assert "Requires-Dist" not in metadata
    assert f"\nVersion: {version()}\n" in metadata
    assert seqconv.__version__ == version()


def test_the_package_under_test_is_the_installed_one():
    assert VENV in pathlib.Path(seqconv.__file__).parents


def run(*arguments, **options):
    return subprocess.run([os.fspath(argument) for argument in arguments], capture_output=True,
                          text=True, timeout=120, check=False, **options)  # fmt: skip


def test_the_program_runs(translator):
    done = run(VENV / "bin/seqconv", "translate", "--model", MODEL, input="dalan mira\n")
    assert done.stdout == translator.translate("dalan mira").text + "\n", done.stderr
    draws = translator.translate(["dalan"] * 5, sample=True, temperature=2.0)
    done = run(VENV / "bin/seqconv", "translate", "--model", MODEL, "--sample",
               "--temperature", "2", input="dalan\n" * 5)  # fmt: skip
    assert done.stdout.splitlines() == [one.text for one in draws], done.stderr
    assert run(VENV / "bin/seqconv", "--version").stdout.startswith(f"seqconv {version()}\n")
    # Configurations lie where the program looks for them.
    done = run(VENV / "bin/seqconv", "import", "--checkpoint", "/nowhere", "--output", "/nowhere/x",
               "--preset", "nothing")
    assert "lightconv_iwslt_de_en" in done.stderr, done.stderr


def test_the_program_runs_as_a_module_too(translator):
    program = [VENV / "bin/python", "-m", "seqconv"]
    done = run(*program, "translate", "--model", MODEL, input="dalan mira\n")
    assert done.stdout == translator.translate("dalan mira").text + "\n", done.stderr
    assert run(*program, "translate", "--bem").returncode == 2


def test_training_says_what_it_wants():
    done = run(VENV / "bin/seqconv", "train", "demo_numbers", "--output", "/nowhere")
    assert done.returncode == 1
    assert "install the Python package seqconv-torch beside torch" in done.stderr


def python(program, **environment):
    return run(VENV / "bin/python", "-c", program,
               env={"PATH": os.environ["PATH"], **environment})  # fmt: skip


def test_nothing_but_the_standard_library_is_imported():
    done = python("import sys, seqconv; print(*sys.modules)")
    modules = set(done.stdout.split())
    assert done.returncode == 0, done.stderr
    assert not modules & {"asyncio", "json", "torch", "numpy", "pathlib", "seqconv.metrics"}
    # Each of them takes about as long as all of the package.
    assert not modules & {"typing", "dataclasses", "inspect", "re"}


def test_old_names_say_where_they_are():
    for name in ("LightConv", "nn", "dynamicconv"):
        done = python(f"from seqconv import {name}")
        assert "ImportError: cannot import name" in done.stderr
        with pytest.raises(AttributeError, match=f"seqconv_torch.{name} now"):
            getattr(seqconv, name)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        seqconv.nothing


def test_another_library_is_refused(tmp_path):
    done = python("import seqconv", SEQCONV_RUNTIME_LIBRARY="/nowhere/lib.so")
    assert "ImportError: the library of seqconv cannot be loaded" in done.stderr
    done = python("import seqconv", SEQCONV_RUNTIME_LIBRARY="libc.so.6")
    assert "must be the library of seqconv" in done.stderr
    package = tmp_path / "seqconv"
    package.symlink_to(pathlib.Path(seqconv.__file__).parent)
    changed = "import seqconv._version as v; v.__version__ = '9.9.9'; import seqconv"
    done = python("import sys, types\nm = types.ModuleType('seqconv._version')\n"
                  "m.__version__ = '9.9.9'\nsys.modules['seqconv._version'] = m\nimport seqconv")
    assert f"library of seqconv 9.9.9, but is that of {version()}" in done.stderr, changed


def test_types_are_strict(tmp_path):
    program = tmp_path / "typed.py"
    program.write_text("""
import asyncio
from seqconv import Generator, Scorer, Summarizer, Tokens, Translation, Translator, metrics

translator = Translator("m", threads=2)
one: Translation = translator.translate("a", beam=4, target_prefix=Tokens(["b"]))
several: list[Translation] = translator.translate(["a", Tokens(["b"])])
text: str = one.best.alignment.source_tokens[0] if one.best.alignment else one.text
for part in translator.stream("a"):
    text = part.text
async def main() -> None:
    found: Translation = await translator.translate_async("a")
    async for result in translator.translate_iter_async(["a"]):
        print(result.text, found)
    async for more in Generator("m").stream_async("a", length=3):
        print(more.added)
asyncio.run(main())
number: float = Scorer("m").score("a", "b").log_probability + metrics.bleu(["a"], ["b"]).score
summary: Translation = Summarizer("m").summarize("a")
""", encoding="utf-8")
    wrong = tmp_path / "wrong.py"
    wrong.write_text('from seqconv import Translator\nTranslator("m").translate("a", bem=3)\n'
                     'Translator("m").translate(3)\n', encoding="utf-8")  # fmt: skip
    site = pathlib.Path(seqconv.__file__).parents[1]
    mypy = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary",
            f"--cache-dir={tmp_path}", f"--python-executable={VENV / 'bin/python'}"]  # fmt: skip
    environment = {**os.environ, "MYPYPATH": ""}
    for what in ([program], ["-p", "seqconv"]):
        done = run(*mypy, *what, cwd=site, env=environment)
        assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr
    done = run(*mypy, wrong, cwd=tmp_path, env=environment)
    assert len(done.stdout.splitlines()) >= 2 and "bem" in done.stdout, done.stdout


def test_the_code_of_the_documentation_runs(monkeypatch, capsys):
    """One block after the other, on another model."""
    text = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 6
    names = {}
    for block in blocks:
        code = block.replace('"demo/model"', repr(os.fspath(MODEL)))
        exec(compile(code, "docs/python.md", "exec"), names)
    assert capsys.readouterr().out.count("\n") > 8
