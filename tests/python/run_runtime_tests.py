"""Builds the wheel of the runtime's package, installs it into a folder and tests it.

    run_runtime_tests.py BUILD FOLDER [PYTEST ARGUMENTS]

BUILD is a build folder of the project: the wheel takes library and program from there
(SEQCONV_PREBUILT_RUNTIME), so that packing costs seconds. FOLDER is emptied; the package goes to
a virtual environment FOLDER/venv without any other. SEQCONV_PRELOAD names libraries for the tests
alone to load first (a sanitizer). Exits with 77 (skipped) when a module is missing, as
run_pytest.py does.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import venv

import run_pytest
from run_package_tests import HERE, ROOT, pip


def build_wheel(build, folder):
    """The wheel, in FOLDER/dist."""
    prebuilt = folder / "prebuilt"
    subprocess.run(
        ["cmake", "--install", build, "--component", "python_runtime", "--strip", "--prefix",
         prebuilt], check=True, stdout=subprocess.DEVNULL)  # fmt: skip
    # As tools/package.sh does it, but for what the library and program are linked with.
    parts = folder / "parts"
    subprocess.run([sys.executable, ROOT / "tools/make_bom.py", "licences", parts], check=True)
    pip("wheel", "--no-build-isolation", "--no-deps", "--no-index",
        f"--wheel-dir={folder / 'dist'}",
        f"--config-settings=cmake.define.SEQCONV_PREBUILT_RUNTIME={prebuilt}",
        f"--config-settings=cmake.define.SEQCONV_PARTS_FILE={parts}",
        str(ROOT))  # fmt: skip
    (wheel,) = (folder / "dist").glob("*.whl")
    return wheel


def main():
    build, folder, *arguments = sys.argv[1:]
    missing = run_pytest.missing_modules("sacrebleu", "scikit_build_core", "mypy")
    if missing:
        return missing
    folder = pathlib.Path(folder).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    wheel = build_wheel(build, folder)
    environment = folder / "venv"
    venv.create(environment, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    site = environment / "lib" / version / "site-packages"
    python = environment / "bin" / "python"
    subprocess.run(
        [sys.executable, "-m", "pip", f"--python={python}", "--disable-pip-version-check",
         "--quiet", "install", "--no-deps", "--no-index", wheel], check=True)  # fmt: skip
    os.environ["SEQCONV_WHEEL"] = str(wheel)
    os.environ["SEQCONV_VENV"] = str(environment)
    os.environ["PYTHONPATH"] = str(site)
    if "SEQCONV_PRELOAD" in os.environ:
        os.environ["LD_PRELOAD"] = os.environ["SEQCONV_PRELOAD"]
    tests = [str(HERE / "runtime"), *arguments]
    command = [sys.executable, str(HERE / "run_pytest.py"), "sacrebleu", *tests]
    return subprocess.run(command, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
