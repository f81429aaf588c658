#!/usr/bin/env python3
"""Fails when a test was skipped for anything but what the machine lacks.

    python3 tools/check_skips.py BUILD ...

Reads what ctest ran last in each folder of a build: entries that ended as skipped,
and single tests of GoogleTest and pytest within entries that passed. A device, a
feature of the processor or a right that this machine does not have is a reason, and
is listed; missing data or packages are none.
"""
import collections
import pathlib
import re
import sys

MACHINE_LACKS = re.compile(
    r"no CUDA|CUDA device|\bGPU\b|AVX|bf16|compute capability|namespaces|/dev/full"
    r"|/proc/self/maps|sparse files",
    re.IGNORECASE)
ENTRY = re.compile(r"^\s*\d+/\d+ Testing: (\S+)$")
GTEST = re.compile(r"^\[  SKIPPED \] (\S+\.\S+?)(?:, where .*)?(?: \(\d+ ms\))$")
REASON = re.compile(r"Skipped (.*)$")
PYTEST = re.compile(r"^SKIPPED \[\d+\] (.*)$")


def skips_of(log):
    """(test, reason) of all that was skipped, as the log of ctest tells it."""
    entry, lines = "", []
    for line in log.read_text(errors="replace").splitlines():
        if match := ENTRY.match(line):
            entry, lines = match[1], []
        elif match := GTEST.match(line):
            told = REASON.search(" ".join(lines[-3:]))
            yield entry, told[1] if told else " ".join(lines[-3:])
        elif match := PYTEST.match(line):
            yield entry, match[1]
        elif line == "Test Skipped.":
            yield entry, " ".join(lines[-8:])
        lines.append(line)


def main():
    builds = [pathlib.Path(name) for name in sys.argv[1:]]
    if not builds:
        sys.exit(__doc__)
    allowed, forbidden = collections.Counter(), collections.Counter()
    for build in builds:
        log = build / "Testing/Temporary/LastTest.log"
        if not log.exists():
            sys.exit(f"check_skips.py: no {log}: ctest has not run there")
        for test, reason in skips_of(log):
            known = allowed if MACHINE_LACKS.search(reason) else forbidden
            known[f"  {test}: {reason.strip()}"] += 1
    for title, skips in (
        ("Skipped, for this machine lacks what they need:", allowed),
        ("Skipped without such a reason, which is a failure:", forbidden),
    ):
        if skips:
            print(title)
        for skip, times in skips.items():
            print(skip + (f" ({times} times)" if times > 1 else ""))
    return 1 if forbidden else 0


if __name__ == "__main__":
    sys.exit(main())
