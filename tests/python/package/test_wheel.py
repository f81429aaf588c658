"""What pip made: the wheel's contents, and how the package loads."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import venv
import zipfile

import pytest
import torch

import seqconv_torch

ROOT = pathlib.Path(__file__).parents[3]
WHEEL = pathlib.Path(os.environ["SEQCONV_WHEEL"])
BUILD = pathlib.Path(os.environ["SEQCONV_BINARY_DIR"])
LIBRARY = "seqconv_torch/lib/libseqconv_ops.so"
FINDER = ROOT / "python/torch/torch_location.py"


@pytest.fixture(scope="module")
def wheel():
    with zipfile.ZipFile(WHEEL) as archive:
        yield archive


def project_version():
    text = (ROOT / "include/seqconv/version.h").read_text(encoding="utf-8")
    return re.search(r'SEQCONV_VERSION "([\d.]+)"', text)[1]


def torch_series():
    return ".".join(torch.__version__.split(".")[:2])


def metadata(wheel):
    (name,) = (n for n in wheel.namelist() if n.endswith("/METADATA"))
    return wheel.read(name).decode()


def test_the_wheel_holds_operators_and_training_and_nothing_else(wheel):
    names = {n for n in wheel.namelist() if ".dist-info/" not in n}
    sources = (ROOT / "python/torch/seqconv_torch").iterdir()
    wanted = {f"seqconv_torch/{p.name}" for p in sources if p.is_file()}
    libraries = {f"seqconv_torch/lib/{p.name}"
                 for name in ("ops", "ops_cuda", "engine", "mpi", "nccl")
                 for p in BUILD.glob(f"lib/libseqconv_{name}.so")}  # fmt: skip
    assert LIBRARY in libraries and "seqconv_torch/lib/libseqconv_engine.so" in libraries
    configs = {f"seqconv_torch/share/seqconv/{p.relative_to(ROOT)}"
               for p in (ROOT / "configs").rglob("*.toml")}  # fmt: skip
    added = {"_build.py", "LICENSE", "NOTICE", "bin/seqconv"}
    assert names == wanted | libraries | configs | {f"seqconv_torch/{name}" for name in added}


def test_versions_agree(wheel):
    version = project_version()
    assert seqconv_torch.__version__ == version
    assert f"\nVersion: {version}\n" in metadata(wheel)
    assert WHEEL.name.startswith(f"seqconv_torch-{version}-py3-none-")


def test_the_wheel_wants_the_torch_that_it_was_built_against(wheel):
    wanted = re.findall(r"^Requires-Dist: (.*)$", metadata(wheel), re.M)
    assert wanted == [f"torch=={torch_series()}.*"]


def test_the_package_under_test_is_the_installed_one():
    assert ROOT / "python" not in pathlib.Path(seqconv_torch.__file__).parents


def dynamic_section(library):
    output = subprocess.run(
        ["readelf", "-d", "-W", library],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return re.findall(r"\((\w+)\)[^\[\n]*\[(.*)\]", output)


@pytest.mark.parametrize("name", [LIBRARY, "seqconv_torch/lib/libseqconv_engine.so"])
def test_libraries_name_no_folder_of_this_machine(name, wheel, tmp_path):
    library = pathlib.Path(wheel.extract(name, tmp_path))
    entries = dynamic_section(library)
    paths = [v for tag, v in entries if tag in ("RPATH", "RUNPATH")]
    assert len(paths) == 1 and paths[0].startswith("$ORIGIN:$ORIGIN/../../torch/lib")
    assert all(path.startswith("$ORIGIN") for path in paths[0].split(":"))
    needed = [value for tag, value in entries if tag == "NEEDED"]
    assert "libtorch_cpu.so" in needed
    assert not [name for name in needed if "/" in name]
    content = library.read_bytes()
    for folder in (ROOT, pathlib.Path(torch.__file__).parent):
        assert str(folder).encode() not in content


def test_one_openmp_is_loaded():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        files = {line.split()[-1] for line in maps if "gomp" in line}
    assert len(files) == 1, files


def test_the_operators_need_no_library_of_the_program():
    """What the three layers include, ours followed: LibTorch and Highway."""
    layers = ("base/error.cpp", "kernels/**/*.cpp", "libtorch/ops/**/*.cpp")
    waiting = [p for layer in layers for p in (ROOT / "src").glob(layer)]
    seen, foreign = set(waiting), set()
    assert len(waiting) > 20
    while waiting:
        file = waiting.pop()
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r'^ *# *include *["<]([^">]+)', text, re.M):
            places = [file.parent, ROOT / "include", ROOT / "src"]
            found = [p / name for p in places if (p / name).is_file()]
            if found and found[0] not in seen:
                seen.add(found[0])
                waiting.append(found[0])
            elif not found and "/" in name:
                foreign.add(name.split("/")[0])
    assert foreign <= {"ATen", "c10", "hwy", "sys", "torch"}, foreign


def run_python(*arguments, python=sys.executable, **environment):
    return subprocess.run(
        [python, *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )


# Imports torch, then runs each line's program in a process forked from this one.
FORKING = """
import json, os, sys, torch
for line in sys.stdin:
    folder, program, output = json.loads(line)
    child = os.fork()
    if not child:
        files = os.open(output, os.O_WRONLY | os.O_CREAT)
        os.dup2(files, 1)
        os.dup2(files, 2)
        sys.path.insert(0, folder)
        exec(program)
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def with_torch():
    """Runs a program that finds modules in a folder first, behind `import torch`:
    its exit code and output."""
    process = subprocess.Popen(
        [sys.executable, "-c", FORKING],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )

    def run(folder, program):
        output = folder / "output.txt"
        line = json.dumps([str(folder), program, str(output)])
        process.stdin.write(line + "\n")
        process.stdin.flush()
        return int(process.stdout.readline()), output.read_text()

    yield run
    process.communicate()
    assert process.returncode == 0


def test_another_torch_is_refused_with_a_reason(tmp_path, with_torch):
    installed = pathlib.Path(seqconv_torch.__file__).parent
    shutil.copytree(installed, tmp_path / "seqconv_torch")
    build = tmp_path / "seqconv_torch/_build.py"
    build.write_text('VERSION = "0"\nTORCH_VERSION = "1.13.1+cu117"\n')
    code, output = with_torch(tmp_path, "import seqconv_torch")
    assert code == 1
    assert (
        "ImportError: seqconv_torch was built against torch 1.13.1+cu117, but got "
        f"torch {torch.__version__}" in output
    )


def test_loading_again_is_harmless_also_through_a_link(tmp_path):
    (tmp_path / "seqconv_torch").symlink_to(pathlib.Path(seqconv_torch.__file__).parent)
    result = run_python(
        "-c",
        "import importlib, seqconv_torch; importlib.reload(seqconv_torch.ops)",
        PYTHONPATH=str(tmp_path),
    )
    assert result.returncode == 0, result.stderr


def test_a_second_library_is_refused_with_a_reason(
    wheel, tmp_path, with_torch
):
    library = wheel.extract(LIBRARY, tmp_path / "second")
    code, output = with_torch(
        tmp_path, f"torch.ops.load_library({library!r}); import seqconv_torch"
    )
    assert code == 1
    assert "ImportError: seqconv's operators are registered" in output


def test_a_library_for_cuda_devices_is_loaded_when_there_is_one(
    tmp_path, with_torch
):
    shutil.copytree(
        pathlib.Path(seqconv_torch.__file__).parent, tmp_path / "seqconv_torch"
    )
    some_library = "lib/libtorch_global_deps.so"  # stands for it
    shutil.copy(
        pathlib.Path(torch.__file__).parent / some_library,
        tmp_path / "seqconv_torch/lib/libseqconv_ops_cuda.so",
    )
    code, output = with_torch(
        tmp_path, "import seqconv_torch; print(torch.ops.loaded_libraries)"
    )
    assert code == 0
    assert "seqconv_torch/lib/libseqconv_ops_cuda.so" in output


def test_torch_is_found_without_importing_it():
    result = run_python("-X", "importtime", str(FINDER))
    assert result.stdout == str(pathlib.Path(torch.__file__).parent)
    assert "| torch\n" not in result.stderr
    # As under pip, which hides site-packages from the process that it starts.
    hidden = run_python("-S", str(FINDER), PYTHONPATH="/nowhere")
    assert hidden.stdout == result.stdout


def test_a_named_torch_is_taken(tmp_path):
    result = run_python(str(FINDER), SEQCONV_TORCH_DIR=str(tmp_path))
    assert result.stdout == str(tmp_path)


def test_without_torch_the_build_says_what_to_do(tmp_path):
    venv.create(tmp_path, with_pip=False, symlinks=True)
    python = tmp_path / "bin/python"
    result = run_python(str(FINDER), python=python, PYTHONPATH="")
    assert result.returncode == 1 and not result.stdout
    assert f"but {python} finds\nnone. Install torch first" in result.stderr
    assert "Traceback" not in result.stderr
