#!/usr/bin/env python3
"""Where the time of tools/test.sh goes: a table from the logs of ninja and ctest.

    python3 tools/build_times.py [--rows N | --budget] [BUILD ...]
                                                  default build/release build/dev

For each folder of a build the core seconds of each part of the sources and of the
N dearest files (of what ninja built last; a file from the compiler cache counts
for what that took), then the tests that took longest, in seconds of a clock, from
what ctest ran last there. As Markdown, for CONTRIBUTING.md.

With --budget only what exceeds its share, which fails nothing: BUDGET says of how much.
"""
import argparse
import collections
import pathlib
import re
import sys

TEST = re.compile(r"^\s*\d+/\d+ Testing: (\S+)$")
TOOK = re.compile(r"^Test time =\s+([\d.]+) sec")
# Seconds: of all that a build compiles and of one step, of all tests and of one.
BUDGET = {
    "release": {"build": 700, "step": 45, "tests": 400, "test": 40},
    "dev": {"build": 450, "step": 75, "tests": 130, "test": 40},
}


def steps_of(build):
    """What ninja made last under each name, with its seconds."""
    log = build / ".ninja_log"
    if not log.exists():
        sys.exit(f"build_times.py: {build} has no .ninja_log: build there first")
    seconds = {}
    for line in log.read_text().splitlines():
        fields = line.split("\t")
        if line.startswith("#") or len(fields) != 5:
            continue
        begin, end, _, name, _ = fields
        seconds[name] = (int(end) - int(begin)) / 1000
    return seconds


def part_of(step):
    """src/kernels of src/kernels/CMakeFiles/...; what links has no such folder."""
    folder, found, _ = step.partition("/CMakeFiles/")
    if found:
        return folder
    return "shared headers" if step.startswith("CMakeFiles/") else "links"


def file_of(step):
    path = pathlib.PurePosixPath(step)
    target = re.search(r"CMakeFiles/(?:seqconv_)?([^/]+)\.dir/", step)
    return f"{target[1]}: {path.stem}" if target else path.name


def tests_of(build):
    """Seconds of each test that ctest ran last, dearest first."""
    log = build / "Testing/Temporary/LastTest.log"
    times, name = {}, None
    for line in log.read_text(errors="replace").splitlines() if log.exists() else []:
        if match := TEST.match(line):
            name = match[1]
        elif (match := TOOK.match(line)) and name:
            times[name] = float(match[1])
    return sorted(times.items(), key=lambda entry: -entry[1])


def row(what, seconds):
    print(f"| {what} | {seconds:.0f} |")


def report(build, rows):
    steps = steps_of(build)
    parts = collections.Counter()
    for step, seconds in steps.items():
        parts[part_of(step)] += seconds
    print(f"\n| {build}: compiled | core s |\n|---|---|")
    row("everything", sum(steps.values()))
    for part, seconds in parts.most_common(rows):
        row(part, seconds)
    print(f"\n| {build}: dearest files | core s |\n|---|---|")
    for step, seconds in sorted(steps.items(), key=lambda entry: -entry[1])[:rows]:
        row(file_of(step), seconds)
    if tests := tests_of(build):
        print(f"\n| {build}: tests | s |\n|---|---|")
        row("everything, one after another", sum(seconds for _, seconds in tests))
        for name, seconds in tests[:rows]:
            row(name, seconds)


def excesses(budget, steps, tests):
    """(what, seconds, the seconds that it may take) of what takes longer."""
    sums = {"build": sum(steps.values()), "tests": sum(seconds for _, seconds in tests)}
    for kind, seconds in sums.items():
        yield f"all of the {kind}", seconds, budget[kind]
    for step, seconds in steps.items():
        yield file_of(step), seconds, budget["step"]
    for name, seconds in tests:
        yield name, seconds, budget["test"]


def report_excesses(build):
    budget = BUDGET.get(build.name)
    if budget is None:
        sys.exit(f"build_times.py: no budget for {build.name}, only for {', '.join(BUDGET)}")
    for what, seconds, most in excesses(budget, steps_of(build), tests_of(build)):
        if seconds > most:
            print(f"{build.name}: {what} took {seconds:.0f} s, more than {most} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=10)
    parser.add_argument("--budget", action="store_true")
    parser.add_argument("builds", nargs="*", default=["build/release", "build/dev"])
    arguments = parser.parse_args()
    for build in map(pathlib.Path, arguments.builds):
        if arguments.budget:
            report_excesses(build)
        else:
            report(build, arguments.rows)


if __name__ == "__main__":
    main()
