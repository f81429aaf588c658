#!/usr/bin/env python3
"""Makes the table of src/base/characters.cpp from the Unicode Character Database.

    python3 tools/make_character_table.py DATABASE VERSION OUTPUT

DATABASE is the folder of DerivedAge.txt and its neighbours (Debian: unicode-data, in
/usr/share/unicode), which must be of Unicode VERSION, such as 15.0.0: utf8proc's, which
has what the table lacks. OUTPUT becomes C++: an entry of 16 bits for each code point, in
blocks of 128 of which equal ones are there once. An entry holds, from bit 0 on:
Alphabetic, Lowercase, Cased, Case_Ignorable, Default_Ignorable_Code_Point; use with Han,
kana, Hangul (Script_Extensions); at bit 8 the age (2: up to Unicode 7.0, 1: up to 9.0);
at bit 10 the script, numbered as SCRIPTS.
"""
import pathlib
import re
import sys

CODE_POINTS = 0x110000
BLOCK = 128
PROPERTIES = ["Alphabetic", "Lowercase", "Cased", "Case_Ignorable",
              "Default_Ignorable_Code_Point"]
USED_WITH_BIT, AGE_BIT, SCRIPT_BIT = 5, 8, 10
# As enum Script numbers them, with their short names.
SCRIPTS = {"Han": 1, "Hiragana": 2, "Katakana": 2, "Hangul": 3, "Thai": 4, "Lao": 5,
           "Khmer": 6, "Myanmar": 7, "Tibetan": 8}
SHORT = {"Hani": 1, "Hira": 2, "Kana": 2, "Hang": 3}


def read_lines(file, version):
    """The lines of a file of this version, which its first line says."""
    lines = file.read_text(encoding="utf-8").splitlines()
    wanted = f"# {file.stem}-{version}.txt"
    if lines[:1] != [wanted]:
        found = re.fullmatch(rf"# {file.stem}-([\d.]+)\.txt", lines[0]) if lines else None
        sys.exit(f"error: {file} must be of Unicode {version}, which utf8proc has, but "
                 + (f"is of {found[1]}" if found else f"does not begin with '{wanted}'"))
    return lines


def read_ranges(file, version):
    """Yields the code points and the value of each line."""
    for line in read_lines(file, version):
        fields = line.split("#")[0].split(";")
        if len(fields) != 2:
            continue
        first, _, last = fields[0].strip().partition("..")
        yield range(int(first, 16), int(last or first, 16) + 1), fields[1].strip()


def age_class(age):
    number = tuple(map(int, age.split(".")))
    return 2 if number <= (7, 0) else 1 if number <= (9, 0) else 0


def used_with(scripts):
    """The bits of the scripts' numbers, Han's first."""
    bits = 0
    for script in scripts:
        bits |= 1 << (USED_WITH_BIT + script - 1)
    return bits


def make_entries(folder, version):
    def ranges(name):
        return read_ranges(folder / name, version)

    entries = [0] * CODE_POINTS
    for points, name in ranges("DerivedCoreProperties.txt"):
        if name in PROPERTIES:
            for c in points:
                entries[c] |= 1 << PROPERTIES.index(name)
    for points, age in ranges("DerivedAge.txt"):
        for c in points:
            entries[c] |= age_class(age) << AGE_BIT
    extensions = {c: names.split() for points, names in
                  ranges("ScriptExtensions.txt") for c in points}
    for points, name in ranges("Scripts.txt"):
        number = SCRIPTS.get(name, 0)
        for c in points:
            entries[c] |= number << SCRIPT_BIT
            if c not in extensions and 1 <= number <= 3:
                entries[c] |= used_with([number])
    for c, names in extensions.items():
        entries[c] |= used_with(SHORT[name] for name in names if name in SHORT)
    return entries


def write_array(out, type_name, name, values):
    out.write(f"constexpr {type_name} {name}[] = {{\n")
    for start in range(0, len(values), 20):
        out.write(",".join(map(str, values[start:start + 20])) + ",\n")
    out.write("};\n")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    database, version, output = sys.argv[1:]
    entries = make_entries(pathlib.Path(database), version)
    blocks, numbers = [], {}
    for start in range(0, CODE_POINTS, BLOCK):
        block = tuple(entries[start:start + BLOCK])
        blocks.append(numbers.setdefault(block, len(numbers)))
    with open(output, "w", encoding="utf-8") as out:
        out.write("// Made by tools/make_character_table.py.\n#include <cstdint>\n")
        out.write(f"constexpr char32_t kCharacterBlockSize = {BLOCK};\n")
        write_array(out, "uint16_t", "kCharacterBlocks", blocks)
        write_array(out, "uint16_t", "kCharacterEntries", [e for block in numbers for e in block])


if __name__ == "__main__":
    main()
