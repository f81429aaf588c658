#!/usr/bin/env python3
"""Holds comments, docstrings and documents to the rule for words of CONTRIBUTING.md.

    python3 tools/check_prose.py [--all] [ROOT]

A sentence begins with its subject or with a verb in the third person, never with one of
OPENINGS, but for questions; a rate has "per". Reads the files of ROOT (this repository)
and prints FILE:LINE of each sentence that does not, and begins on a line that is newer
than commit SINCE; with --all on any line. Checks nothing without --all where git does not
know that commit. Exit code 1 when there is such a sentence, else 0.
"""
import argparse
import ast
import pathlib
import re
import subprocess
import sys

SINCE = "8b8cc60ffd91c7917ebd6b744571f49adcfd0b1e"
OPENINGS = ("What", "Where", "Whether", "How", "Of", "That", "Whose", "The same")
OPENING = re.compile(
    rf"(?:^|[.!?:]\s+|\|\s*)[*_`(\"]*((?:{'|'.join(OPENINGS)})\b[^.!?|]*)(?P<end>[.!?|]|$)")
COUNTED = "tokens|words|lines|sentences|pairs|requests|updates|steps|samples|bytes|[kMGT]B|ms"
RATE = re.compile(
    rf"\b(?:{COUNTED}) an? (second|minute|hour|token|word|line|sentence|request|update|step)\b")
LINE_COMMENT = {
    **dict.fromkeys((".h", ".cpp", ".cu", ".cuh"), re.compile(r"^\s*(?://[/!]?<?|\*)(.*)$")),
    **dict.fromkeys((".py", ".sh", ".cmake", ".toml", ".txt"), re.compile(r"^\s*#(?!!)(.*)$")),
}
GENERATED = ("docs/reference/",)


def comment_lines(path, text):
    """(line number, words) of each line of a comment."""
    pattern = LINE_COMMENT[path.suffix]
    for number, line in enumerate(text.splitlines(), 1):
        if match := pattern.match(line):
            yield number, match[1].strip()


def docstring_lines(text):
    """(line number, words) of each line of a docstring."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef)) and node.body:
            first = node.body[0]
            if (isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                    and isinstance(first.value.value, str)):
                for i, line in enumerate(text.splitlines()[first.lineno - 1:first.end_lineno]):
                    yield first.lineno + i, line.strip().strip('"').strip()
                yield first.end_lineno, ""


def document_lines(text):
    """(line number, words) of a Markdown document without its code."""
    code = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            code = not code
        inside = code or line.startswith("    ") or line.lstrip().startswith("```")
        yield number, "" if inside else re.sub(r"^\s*(?:[-*>]|\d+\.|#+)\s+", "\0", line).strip()


def blocks(lines):
    """Lines that follow one another, as lists; a list's item begins a block."""
    block = []
    for number, words in lines:
        starts = words.startswith("\0") or words.startswith("- ")
        if block and (number != block[-1][0] + 1 or not words or starts):
            yield block
            block = []
        if words:
            block.append((number, words.strip("\0").removeprefix("- ").strip()))
    if block:
        yield block


def faults(block):
    """(line number, what is wrong) of the sentences of a block."""
    text, starts = "", []
    for number, words in block:
        starts.append((len(text), number))
        text += words + " "
    def line_at(position):
        return max(number for start, number in starts if start <= position)
    for match in OPENING.finditer(text):
        if match["end"] != "?":
            yield line_at(match.start(1)), f"begins with '{match[1][:40].strip()}'"
    for match in RATE.finditer(text):
        yield line_at(match.start()), f"'{match[0]}': a rate has \"per {match[1]}\""


def check(path):
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".md":
        found = [document_lines(text)]
    else:
        found = [comment_lines(path, text)]
        if path.suffix == ".py":
            found.append(docstring_lines(text))
    for lines in found:
        for block in blocks(lines):
            yield from faults(block)


def git(root, *arguments):
    done = subprocess.run(["git", "-C", root, *arguments], capture_output=True,
                          encoding="utf-8", check=False)
    return done.stdout if done.returncode == 0 else None


def newer_lines(root):
    """{file: numbers of its lines} that are not in SINCE as they are now."""
    newer, name = {}, None
    for line in (git(root, "diff", "-U0", "-M", "--no-color", SINCE) or "").splitlines():
        if line.startswith("+++ "):
            name = line.removeprefix("+++ ").removeprefix("b/")
        elif name and (match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line)):
            first, count = int(match[1]), int(match[2] or 1)
            newer.setdefault(name, set()).update(range(first, first + count))
    for name in (git(root, "ls-files", "--others", "--exclude-standard") or "").splitlines():
        newer[name] = range(1 << 30)
    return newer


def list_files(root):
    names = git(root, "ls-files", "--cached", "--others", "--exclude-standard")
    if names is None:  # an unpacked archive
        return [str(path.relative_to(root)) for path in sorted(root.rglob("*"))]
    return sorted(names.splitlines())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="old lines as well")
    parser.add_argument("root", nargs="?", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parents[1])
    arguments = parser.parse_args()
    newer = None if arguments.all else newer_lines(arguments.root)
    count = 0
    for name in list_files(arguments.root):
        path = arguments.root / name
        if (path.suffix not in (*LINE_COMMENT, ".md") or name.startswith(GENERATED)
                or not path.is_file() or (newer is not None and name not in newer)):
            continue
        for number, fault in check(path):
            if newer is None or number in newer[name]:
                print(f"{name}:{number}: {fault}")
                count += 1
    sys.exit(1 if count else 0)


if __name__ == "__main__":
    main()
