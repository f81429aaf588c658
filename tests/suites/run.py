#!/usr/bin/env python3
"""Runs the tests of other projects' packages on this program.

    python tests/suites/run.py build/release/bin [SUITE ...]

What is in packages is downloaded with pip into build/suites, which is kept. For each
suite a plugin of pytest beside this file puts our program in the place of the
package's own code (subword_nmt_plugin.py, ...). Prints for each how many tests
passed, failed, and do not apply, with the reasons. Exit code 1 when a test failed or
could not be run.
"""
import argparse
import collections
import os
import pathlib
import subprocess
import sys
import tarfile
import venv
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
FOLDER = ROOT / "build" / "suites"
PACKAGES = ("pytest==8.4.2", "mock==5.2.0", "absl-py==2.3.1", "numpy==2.2.6", "sacrebleu==2.6.0", "subword-nmt==0.3.8",
            "rouge-score==0.1.2")
# Suite: what brings it ("" where the installed package has its tests), and where they are.
SUITES = {
    "sacrebleu": ("sacrebleu==2.6.0", "test"),
    "rouge_score": ("rouge-score==0.1.2", "rouge_score"),
    "subword_nmt": ("", "subword_nmt/tests"),
}
WITHOUT = {
    "sacremoses": "its package has no tests; `check_long.sh moses` compares tokens with it",
    "sentencepiece": "its tests are of its own C++ library, which we use; tests/python/test_text.py compares with the package",
}


def python():
    """An environment with the packages, made when it is first needed."""
    program, done = FOLDER / "venv/bin/python", FOLDER / "venv/packages"
    wanted = "\n".join(PACKAGES)
    if not done.exists() or done.read_text() != wanted:
        venv.create(FOLDER / "venv", with_pip=True, clear=True)
        subprocess.run([program, "-m", "pip", "install", "-q", *PACKAGES], check=True)
        done.write_text(wanted)
    return program


def tests_of(suite):
    """The folder that holds the tests of a suite, and the one to run them in."""
    package, place = SUITES[suite]
    if not package:
        site = subprocess.run([python(), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], check=True,
                              capture_output=True, text=True).stdout.strip()
        return pathlib.Path(site) / place, pathlib.Path(site)
    target = FOLDER / package
    if not target.exists():
        subprocess.run([python(), "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "-d", FOLDER / "archives",
                        package], check=True)
        name = package.split("==")[0]
        archive, = (file for file in (FOLDER / "archives").glob("*.tar.gz")
                    if file.name.lower().replace("_", "-").startswith(name + "-"))
        partial = FOLDER / (package + ".partial")
        with tarfile.open(archive) as files:
            files.extractall(partial, filter="data")
        inner, = partial.iterdir()
        inner.rename(target)
        partial.rmdir()
    return target / place, target


def run(suite, binaries):
    """Counts of results, and reasons with theirs."""
    tests, folder = tests_of(suite)
    report = FOLDER / f"{suite}.xml"
    report.unlink(missing_ok=True)
    environment = {**os.environ, "SEQCONV_BIN": str(binaries), "PYTHONPATH": str(HERE), "PYTHONDONTWRITEBYTECODE": "1"}
    files = sorted(file for file in tests.iterdir() if file.name.startswith("test_") or file.name.endswith("_test.py"))
    run = subprocess.run(
        [python(), "-m", "pytest", "-q", "--no-header", "-p", f"{suite}_plugin", "-p", "no:cacheprovider", "--tb=short",
         "-o", "addopts=", f"--junitxml={report}", *(file for file in files if file.suffix == ".py" and file.name != "test_util.py")],
        cwd=folder, env=environment, capture_output=True, text=True)
    counts, reasons = collections.Counter(), collections.Counter()
    for case in xml.etree.ElementTree.parse(report).iter("testcase") if report.exists() else ():
        skipped = case.find("skipped")
        if skipped is not None:
            counts["not applicable"] += 1
            reasons[skipped.get("message")] += 1
        else:
            counts["failed" if len(case.findall("failure") + case.findall("error")) else "passed"] += 1
    if counts["failed"] or not counts["passed"] or run.returncode not in (0, 1):
        counts["failed"] += not counts["failed"]
        print(run.stdout[-6000:], run.stderr[-2000:])
    return counts, reasons


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("binaries", type=pathlib.Path, help="folder of seqconv and text_tool")
    parser.add_argument("suites", nargs="*", choices=[*SUITES, []], help="default: all")
    arguments = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    failed = False
    for suite in arguments.suites or SUITES:
        counts, reasons = run(suite, arguments.binaries.resolve())
        failed = failed or counts["failed"] > 0
        print(f"{suite}: {counts['passed']} passed, {counts['failed']} failed, {counts['not applicable']} do not apply")
        for reason, count in reasons.most_common():
            print(f"  {count} do not apply: {reason}", flush=True)
    for name, reason in WITHOUT.items() if not arguments.suites else ():
        print(f"{name}: none, {reason}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
