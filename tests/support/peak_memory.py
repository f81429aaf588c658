"""Peak memory of a program. It is started by a small process: one that is started
inherits the peak of its starter."""
import subprocess
import sys

STARTER = """
import os, sys
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(process, 0)
print(usage.ru_maxrss, file=sys.stderr)
sys.exit(abs(os.waitstatus_to_exitcode(status)))
"""


def measured(command):
    """A command that runs this one and ends standard error with its peak, in kB, after
    what the program itself wrote there: `peak_of` reads it."""
    return [sys.executable, "-I", "-S", "-c", STARTER, *map(str, command)]


def peak_of(errors):
    return int(errors.split()[-1])


def peak_kilobytes(command, stdin=None):
    """Runs a command; AssertionError with what it wrote if it fails."""
    done = subprocess.run(
        measured(command), stdin=stdin, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, encoding="utf-8", check=False)
    assert done.returncode == 0, f"{command} ended with {done.returncode}: {done.stderr}"
    return peak_of(done.stderr)
