#!/usr/bin/env python3
"""Makes the tables of src/text/sentences.cpp from Unicode's and CLDR's data.

    python3 tools/make_sentence_table.py DATABASE VERSION CLDR OUTPUT

DATABASE is the folder of auxiliary/SentenceBreakProperty.txt (Debian: unicode-data), which must
be of Unicode VERSION; CLDR that of common/segments/de.xml and its neighbours (Debian:
unicode-cldr-core). OUTPUT becomes C++: the class of each code point, numbered as CLASSES, in
blocks of 128 of which equal ones are there once; and the abbreviations of each language, CLDR's
and some more, sorted.
"""
import pathlib
import sys
import xml.etree.ElementTree as xml

from make_character_table import BLOCK, CODE_POINTS, read_ranges, write_array

# As enum Class numbers them.
CLASSES = ["Other", "CR", "LF", "Sep", "Extend", "Format", "Sp", "Lower", "Upper", "OLetter",
           "Numeric", "ATerm", "STerm", "Close", "SContinue"]


# Frequent ones that CLDR 41 lacks.
MORE = {"en": "Dr. St. Jr. Sr. Gen. Gov. Sen. Hon. Fig. Figs. Eq. e.g. i.e. cf. approx.".split(),
        "de": "Bd. Prof. bzw. ca. d.h. i.d.R. o.ä. u.s.w. vs.".split()}  # fmt: skip


def read_classes(database, version):
    classes = [0] * CODE_POINTS
    file = pathlib.Path(database) / "auxiliary" / "SentenceBreakProperty.txt"
    for points, name in read_ranges(file, version):
        for c in points:
            classes[c] = CLASSES.index(name)
    return classes


def read_abbreviations(cldr):
    """The languages that have some, in order, and their abbreviations, each ending in '.'."""
    for file in sorted((pathlib.Path(cldr) / "common" / "segments").glob("*.xml")):
        found = {one.text for one in xml.parse(file).iter("suppression")}
        found.update(MORE.get(file.stem, ()))
        if found:
            yield file.stem, sorted((one for one in found if one.endswith(".")),
                                    key=lambda one: one.encode())  # fmt: skip


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    database, version, cldr, output = sys.argv[1:]
    classes = read_classes(database, version)
    blocks, numbers = [], {}
    for start in range(0, CODE_POINTS, BLOCK):
        block = tuple(classes[start:start + BLOCK])
        blocks.append(numbers.setdefault(block, len(numbers)))
    with open(output, "w", encoding="utf-8") as out:
        out.write("// Made by tools/make_sentence_table.py.\n#include <cstdint>\n"
                  "#include <span>\n#include <string_view>\n")
        out.write(f"constexpr char32_t kSentenceBlockSize = {BLOCK};\n")
        write_array(out, "uint8_t", "kSentenceBlocks", blocks)
        write_array(out, "uint8_t", "kSentenceClasses", [c for block in numbers for c in block])
        languages = list(read_abbreviations(cldr))
        for language, abbreviations in languages:
            texts = ",\n".join(f'"{one}"' for one in abbreviations)
            out.write(f"constexpr std::string_view kAbbreviations_{language}[] = {{\n{texts}}};\n")
        out.write("struct Abbreviations {\n  std::string_view language;\n"
                  "  std::span<const std::string_view> texts;\n};\n"
                  "constexpr Abbreviations kAbbreviations[] = {\n")
        for language, _ in languages:
            out.write(f'{{"{language}", kAbbreviations_{language}}},\n')
        out.write("};\n")


if __name__ == "__main__":
    main()
