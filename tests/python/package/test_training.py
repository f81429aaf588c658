"""Training by the package, as a program without LibTorch finds it: that of the package seqconv."""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

import pytest

import seqconv_torch

BUILD = pathlib.Path(os.environ["SEQCONV_BINARY_DIR"])
PACKAGE = pathlib.Path(seqconv_torch.__file__).parent
SITE = PACKAGE.parent


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """A program without the engine's library."""
    folder = tmp_path_factory.mktemp("program") / "bin"
    folder.mkdir()
    return pathlib.Path(shutil.copy(BUILD / "bin/seqconv", folder))


def run(program, *arguments, cwd=None, **environment):
    own = {name: value for name, value in os.environ.items() if name != "SEQCONV_TORCH_DIR"}
    return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=120,
                          check=False, cwd=cwd, env={**own, **environment})  # fmt: skip


@pytest.fixture(scope="module")
def trained(program, tmp_path_factory):
    """A folder with text and a model of it."""
    folder = tmp_path_factory.mktemp("trained")
    for name, words in (("source", "ein zwei drei"), ("target", "one two three")):
        (folder / name).write_text(f"{words}\n" * 200, encoding="utf-8")
    done = run(program, "train", "--source", folder / "source", "--target", folder / "target",
               "--output", folder / "model", "--set", "training.max_updates=3",
               "--set", "training.threads=1", "--set", "data.hold_out=0",
               SEQCONV_PYTHON=sys.executable)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_a_program_without_training_goes_on_as_that_of_the_package(program, trained):
    assert (trained / "model/model.safetensors").exists()
    done = run(program, "train", "--help-config", SEQCONV_PYTHON=sys.executable)
    assert done.returncode == 0 and "[training]" in done.stdout, done.stderr
    # The package's program has its configurations.
    done = run(PACKAGE / "bin/seqconv", "train", "no_such")
    assert done.returncode == 2 and "lightconv_iwslt_de_en" in done.stderr, done.stderr


def test_models_run_in_libtorch(program, trained):
    arguments = [program, "score", "--model", trained / "model", "--source", trained / "source",
                 "--target", trained / "target"]  # fmt: skip
    scores = []
    for more in ([], ["--backend", "libtorch"]):
        done = run(*arguments, *more, SEQCONV_PYTHON=sys.executable)
        assert done.returncode == 0, done.stderr
        scores.append([float(line.split()[-1]) for line in done.stdout.splitlines()])
    assert len(scores[0]) == 201 and scores[0] == pytest.approx(scores[1], rel=1e-3)


def test_another_version_is_refused(program, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "seqconv_torch", symlinks=True,
                    ignore=shutil.ignore_patterns("lib"))  # fmt: skip
    build = tmp_path / "seqconv_torch/_build.py"
    build.write_text('VERSION = "9.9.9"\nTORCH_VERSION = "2.11.0"\n', encoding="utf-8")
    done = run(program, "train", "--help-config", SEQCONV_PYTHON=sys.executable,
               PYTHONPATH=f"{tmp_path}:{SITE}")  # fmt: skip
    assert done.returncode == 1
    assert f"this is seqconv {seqconv_torch.__version__}, but {tmp_path}/seqconv_torch is of " \
        "seqconv-torch 9.9.9; install both of one version" in done.stderr


def test_a_package_without_the_engine_does_not_go_on_as_itself(tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "seqconv_torch", symlinks=True,
                    ignore=shutil.ignore_patterns("lib"))  # fmt: skip
    done = run(tmp_path / "seqconv_torch/bin/seqconv", "train", "--help-config",
               SEQCONV_PYTHON=sys.executable, PYTHONPATH=f"{tmp_path}:{SITE}")  # fmt: skip
    assert done.returncode == 1
    assert "libseqconv_engine.so, which is in none of these places" in done.stderr, done.stderr


def test_what_is_missing_is_said(program, tmp_path):
    arguments = [program, "train", "--help-config"]
    for python in ("/nowhere/python3", "/bin/false", sys.executable):
        done = run(*arguments, SEQCONV_PYTHON=python, PYTHONPATH="")
        assert done.returncode == 1
        assert "install the Python package seqconv-torch" in done.stderr, done.stderr
    # The working folder is no place for packages, and nothing runs in it.
    (tmp_path / "seqconv_torch").mkdir()
    (tmp_path / "seqconv_torch/__init__.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    done = run(*arguments, SEQCONV_PYTHON=sys.executable, PYTHONPATH="", cwd=tmp_path)
    assert "install the Python package seqconv-torch" in done.stderr, done.stderr
    # The operators alone, and a Python without torch.
    done = run(*arguments, SEQCONV_PYTHON=sys.executable, PYTHONPATH=str(tmp_path))
    assert f"seqconv-torch in {tmp_path}/seqconv_torch has the operators alone" in done.stderr
    venv.create(tmp_path / "venv", with_pip=False, symlinks=True)
    done = run(*arguments, SEQCONV_PYTHON=tmp_path / "venv/bin/python", PYTHONPATH=str(SITE))
    assert f"seqconv-torch in {PACKAGE} needs torch" in done.stderr, done.stderr
    assert done.returncode == 1


def test_the_interpreter_beside_the_program_is_asked(program):
    script = program.parent / "python3"
    script.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    script.chmod(0o755)
    try:
        done = run(program, "train", "--help-config", PYTHONPATH=str(SITE))
    finally:
        script.unlink()
    assert done.returncode == 0 and "[training]" in done.stdout, done.stderr
