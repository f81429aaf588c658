"""Real text beside the made-up one: packed files of the folder that SEQCONV_DATA
names. Without that variable there is none, and tests do with made-up text.
"""
import lzma
import os
import pathlib

FOLDER = os.environ.get("SEQCONV_DATA")


def find(name):
    """The path of a file or folder, None without SEQCONV_DATA."""
    return pathlib.Path(FOLDER) / name if FOLDER else None


def present(names):
    """Those that are there. A folder that has none of them is a mistake."""
    if not FOLDER:
        return []
    found = [name for name in names if find(name).exists()]
    if not found:
        raise FileNotFoundError(f"SEQCONV_DATA names {FOLDER}, but it has none of {', '.join(names)}")
    return found


def read(name):
    with lzma.open(find(name), "rt", encoding="utf-8", newline="\n") as file:
        return file.read()
