#!/usr/bin/env python3
"""Makes a C++ source of files that a program gives out as they are.

    python3 tools/make_assets.py OUTPUT FILE...

OUTPUT defines find_asset() of serve/assets.h for the names of these files, without folders.
"""
import hashlib
import pathlib
import sys

LONGEST = 8000  # characters of a literal, of which compilers take about 64,000


def literal(data):
    """C++ string literals that stand for the bytes."""
    rows = []
    for start in range(0, len(data), LONGEST):
        part = data[start : start + LONGEST]
        rows.append('"' + "".join(
            f"\\{byte:03o}" if byte < 32 or byte > 126 or byte in b'"\\?' else chr(byte)
            for byte in part) + '"')  # fmt: skip
    return "\n     ".join(rows) or '""'


def main():
    output, *files = map(pathlib.Path, sys.argv[1:])
    rows = []
    for file in files:
        data = file.read_bytes()
        tag = hashlib.sha256(data).hexdigest()[:32]
        rows.append(f'    {{"{file.name}", std::string_view(\n     {literal(data)}, {len(data)}),\n'
                    f'     "{tag}"}},')
    text = "\n".join([
        '#include "serve/assets.h"', "", "namespace seqconv::internal {", "namespace {", "",
        "constexpr Asset kAssets[] = {", *rows, "};", "", "}  // namespace", "",
        "const Asset* find_asset(std::string_view name) {",
        "  for (const Asset& asset : kAssets)", "    if (asset.name == name)",
        "      return &asset;", "  return nullptr;", "}", "",
        "}  // namespace seqconv::internal", ""])  # fmt: skip
    output.write_text(text, encoding="ascii")


if __name__ == "__main__":
    main()
