"""`python -m seqconv` runs the program that was installed with the package."""

from __future__ import annotations

import importlib.metadata
import os
import sys


def main() -> None:
    """Becomes the program: signals, streams and the exit code are its own."""
    for file in importlib.metadata.files("seqconv") or ():
        if file.parent.name == "bin" and file.name == "seqconv":
            program = os.fspath(file.locate())
            os.execv(program, [program, *sys.argv[1:]])
    sys.exit("python -m seqconv: the package was installed without its program")


if __name__ == "__main__":
    main()
