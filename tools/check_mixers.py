#!/usr/bin/env python3
"""Checks that a mixer is known to the files that the documents list, and no more.

    python3 tools/check_mixers.py [ROOT]

Reads the table under "A mixer that uses it" of docs/adding_an_operator.md of ROOT
(this repository). For each value of MixerKind it looks for the files under src/
that name it, for those of its module, and for those outside of nn that include the header
of a module that stands there alone. Prints FILE: what it knows,
for each that is not in the table, and when the table has more than 8 files.
Exit code 1 when there is one, else 0.
"""
import collections
import pathlib
import re
import sys

DOCUMENT = "docs/adding_an_operator.md"
HEADING = "## A mixer that uses it"
LIMIT = 8
# What a kind that others' checkpoints have needs besides.
THEIR_NAMES = "src/model/checkpoint/fairseq_mixers.cpp"
BLOCKS = "src/libtorch/models/mixer.cpp"
ENUM = re.compile(r"enum class MixerKind \{([^}]*)\}")


def listed_files(root):
    """Patterns of the files in the table; one that ends in / is one file there."""
    text = (root / DOCUMENT).read_text(encoding="utf-8")
    section = text.partition(HEADING)[2].partition("\n## ")[0]
    return re.findall(r"^\| `([^`]+)` \|", section, re.MULTILINE)


def pattern(name):
    file = r"[\w.-]+" if name.endswith("/") else ""
    return re.escape(name).replace("NOUN", r"\w+") + file + "$"


def modules(sources, kinds):
    """The header under nn/ of each kind, by what its case in BLOCKS makes."""
    headers = {}
    for path, text in sources.items():
        if path.startswith("src/libtorch/nn/"):
            for name in re.findall(r"TORCH_MODULE\((\w+)\)", text):
                headers[name] = path
    found = {}
    for case in re.split(r"\bcase MixerKind::", sources.get(BLOCKS, ""))[1:]:
        kind = re.match(r"\w+", case)[0]
        made = [m for m in re.findall(r"\b(\w+)\(", case) if m in headers]
        if kind in kinds and made:
            found[kind] = headers[made[0]]
    return found


def files_that_know(kind, header, sources):
    for path, text in sources.items():
        if re.search(rf"\bMixerKind::{kind}\b", text) or (
                "using enum MixerKind" in text
                and re.search(rf"\b{kind}\b", text)):
            yield path
        elif any(kind in body for body in ENUM.findall(text)):
            yield path
        elif header:
            stem = pathlib.PurePosixPath(header).stem
            alone = sources[header].count("TORCH_MODULE(") == 1
            if path in (header, f"src/libtorch/nn/{stem}.cpp") or (
                    path == "src/libtorch/CMakeLists.txt" and f" nn/{stem}.cpp" in text):
                yield path
            elif alone and "/nn/" not in path and (
                    f'"libtorch/nn/{stem}.h"' in text):
                yield path


def read_sources(root):
    sources = {}
    for path in sorted((root / "src").rglob("*")):
        if path.suffix in (".h", ".cpp", ".cu", ".cuh", ".inc", ".txt"):
            sources[path.relative_to(root).as_posix()] = path.read_text(encoding="utf-8")
    return sources


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                        pathlib.Path(__file__).resolve().parents[1])
    sources = read_sources(root)
    listed = listed_files(root)
    bodies = [b for text in sources.values() for b in ENUM.findall(text)]
    if not listed or not bodies:
        sys.exit(f"check_mixers.py: no list in {DOCUMENT}, or no MixerKind")
    errors = []
    if len(listed) > LIMIT:
        errors.append(f"{DOCUMENT}: a mixer may need {LIMIT} files, but the list "
                      f"has {len(listed)}")
    kinds = re.findall(r"\bk\w+", bodies[0])
    headers = modules(sources, kinds)
    for kind in kinds:
        room = collections.Counter(listed)
        for path in files_that_know(kind, headers.get(kind), sources):
            if path == THEIR_NAMES:
                continue
            names = [n for n in room if re.match(pattern(n), path) and room[n]]
            if names:  # the name of a file before that of a folder
                room[max(names, key=len)] -= 1
            else:
                errors.append(f"{path}: knows {kind}, but {DOCUMENT} does not "
                              "list it")
    print("\n".join(errors), end="\n" if errors else "")
    return 1 if errors else 0


if __name__ == "__main__":
    sys.exit(main())
