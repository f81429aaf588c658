"""Builds the wheel of the operators' package, installs it into a folder and tests it.

    run_package_tests.py BUILD FOLDER [PYTEST ARGUMENTS]

BUILD is a build folder of the project: the wheel takes libraries and program from there
(SEQCONV_PREBUILT_TORCH), so that packing costs seconds. FOLDER is
emptied; the package goes to FOLDER/site, beside no other. What torch.compile makes of
the tests' graphs is kept in BUILD, as it takes half of their time. Exits with 77
(skipped) when a module is missing, as run_pytest.py does.
"""

import os
import pathlib
import shutil
import subprocess
import sys

import run_pytest

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]


def build_wheel(build, folder):
    """The wheel, in FOLDER/dist."""
    prebuilt = folder / "prebuilt"
    subprocess.run(
        ["cmake", "--install", build, "--component", "python", "--strip",
         "--prefix", prebuilt],
        check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    pip(
        "wheel", "--no-build-isolation", "--no-deps", "--no-index",
        f"--wheel-dir={folder / 'dist'}",
        f"--config-settings=cmake.define.SEQCONV_PREBUILT_TORCH={prebuilt / 'seqconv_torch'}",
        str(ROOT / "python/torch"),
    )  # fmt: skip
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def pip(*arguments):
    options = ["--disable-pip-version-check", "--quiet"]
    command = [sys.executable, "-m", "pip", *options, *arguments]
    subprocess.run(command, check=True)


def main():
    build, folder, *arguments = sys.argv[1:]
    missing = run_pytest.missing_modules("torch", "scikit_build_core", "mypy")
    if missing:
        return missing
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    wheel = build_wheel(build, folder)
    site = folder / "site"
    pip("install", "--no-deps", "--no-index", f"--target={site}", str(wheel))
    os.environ["SEQCONV_WHEEL"] = str(wheel)
    os.environ["SEQCONV_BINARY_DIR"] = str(pathlib.Path(build).resolve())
    os.environ["PYTHONPATH"] = str(site)
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(pathlib.Path(build).resolve() / "inductor")
    # Torch's own kernels without vectors, and no processes that compile: each asks
    # Python programs that import torch.
    os.environ["TORCHINDUCTOR_VEC_ISA_OK"] = "0"
    os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
    tests = [str(HERE / "package"), *arguments]
    command = [sys.executable, str(HERE / "run_pytest.py"), "torch", *tests]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
