"""Folders of golden data: those of the folder that SEQCONV_GOLDEN names, default
tests/golden, and of its models/. No data is an error, never nothing to test.
"""

import os
import pathlib

ROOT = pathlib.Path(
    os.environ.get("SEQCONV_GOLDEN") or pathlib.Path(__file__).resolve().parents[1] / "golden"
)


def with_files(*names):
    """Folders that hold all of these files (patterns may match several)."""
    found = sorted(
        path
        for part in ("*", "models/*")
        for path in ROOT.glob(part)
        if path.is_dir() and all(any(path.glob(name)) for name in names)
    )
    if not found:
        raise FileNotFoundError(
            f"no golden data: no folder of {ROOT} or of its models/ has {' and '.join(names)}"
        )
    return found


def dictionaries(folder):
    """Options of `seqconv import` that name the dictionaries of a folder."""
    if (folder / "dict.txt").exists():
        return ["--dictionary", folder / "dict.txt"]
    source, target = sorted(folder.glob("dict.*.txt"))  # de and en, xa and xb
    return ["--source-dictionary", source, "--target-dictionary", target]
