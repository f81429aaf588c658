"""Runs pytest on a file for ctest: run_pytest.py MODULE FILE [ARGUMENTS].

Exits with 77 (skipped) when the module that the tests need cannot be
imported, unless SEQCONV_PYTHON_REQUIRED=1.
"""

import importlib
import os
import sys

SKIPPED = 77


def missing_modules(*names):
    """0 when pytest and the named modules are there, else the exit code."""
    for module in ("pytest", *names):
        try:
            importlib.import_module(module)
        except ImportError as error:
            print(f"{sys.executable} cannot import {module}: {error}")
            required = os.environ.get("SEQCONV_PYTHON_REQUIRED") == "1"
            return 1 if required else SKIPPED
    return 0


def main():
    needed, arguments = sys.argv[1], sys.argv[2:]
    missing = missing_modules(needed)
    if missing:
        return missing
    import pytest

    return int(pytest.main(["-q", "-p", "no:cacheprovider", *arguments]))


if __name__ == "__main__":
    sys.exit(main())
