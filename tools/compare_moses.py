#!/usr/bin/env python3
"""Compares `seqconv tokenize` with the sacremoses package, line by line.

    python tools/compare_moses.py build/release/bin/seqconv [TEXT ...]

Takes text files (also packed with xz; of JSON lines the strings) and folders;
without any, the folder that the environment variable SEQCONV_DATA names.
A file's language is the ending of its name (train.de.xz), else --language.
Tokenises every line in all four combinations of escape and split_dashes, then
puts sacremoses' own tokens together again with both, and prints how many lines
are equal, how long both took (processor time, for the program all of it, reading
and writing too), and the first lines that differ. Tokens are
compared with single blanks between them. Exit code 1 when less than --wanted
percent of a row are equal.
"""
import argparse
import collections
import json
import lzma
import os
import pathlib
import resource
import subprocess
import sys
import time

from sacremoses import MosesDetokenizer, MosesTokenizer

OPTIONS = [(escape, dashes) for escape in (False, True) for dashes in (False, True)]
ENDINGS = {"txt", "jsonl"}


def strings_of(value):
    """Every string within a JSON value, by lines."""
    if isinstance(value, str):
        yield from value.split("\n")
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings_of(item)


def read_lines(path):
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rb") as file:
        lines = file.read().decode("utf-8").removesuffix("\n").split("\n")
    if ".jsonl" in path.suffixes:
        lines = [line for row in lines if row for line in strings_of(json.loads(row))]
    # What the program does before it looks at a line; NUL is no text to it.
    return [line.removesuffix("\r").replace("\0", " ") for line in lines]


def find_files(paths, default, only):
    """Files by language."""
    files = collections.defaultdict(list)
    for path in map(pathlib.Path, paths):
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in filter(pathlib.Path.is_file, found):
            ending = file.name.removesuffix(".xz").rpartition(".")[2]
            is_language = len(ending) in (2, 3) and ending not in ENDINGS | {"md", "tsv"}
            if path.is_dir() and not is_language and ending not in ENDINGS:
                continue
            language = ending if is_language else default
            if not only or language in only:
                files[language].append(file)
    return files


def children_seconds():
    """Processor time of the programs that have been run."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def run_program(program, lines, language, *flags):
    """Output lines of the program, and its seconds."""
    text = "".join(line + "\n" for line in lines).encode()
    start = children_seconds()
    run = subprocess.run(
        [program, "tokenize", "--language", language, *flags], input=text, capture_output=True
    )
    seconds = children_seconds() - start
    if run.returncode:
        sys.exit(f"{program}: {run.stderr.decode()}")
    return run.stdout.decode().split("\n")[:-1], seconds


def run_package(function, lines):
    start = time.process_time()
    results = [function(line) for line in lines]
    return results, time.process_time() - start


class Report:
    def __init__(self, show, wanted):
        self.show, self.wanted, self.good = show, wanted, True

    def add(self, name, lines, package, program):
        (theirs, their_seconds), (ours, our_seconds) = package, program
        if len(theirs) != len(ours):
            sys.exit(f"{name}: {len(theirs)} lines went in, but {len(ours)} came out")
        different = [row for row in zip(lines, theirs, ours) if row[1] != row[2]]
        percent = 100 * (1 - len(different) / max(len(lines), 1))
        self.good = self.good and percent >= self.wanted
        print(
            f"{name:32} {len(lines):8} lines {len(different):6} differ {percent:9.4f} % equal"
            f"  sacremoses {their_seconds:7.2f} s  seqconv {our_seconds:6.2f} s"
            f"  {their_seconds / our_seconds:5.0f} times",
            flush=True,
        )
        for line, their, our in different[: self.show]:
            print(f"    line       {line!r}\n    sacremoses {their!r}\n    seqconv    {our!r}")


def compare(program, language, lines, report):
    tokenizer, detokenizer = MosesTokenizer(language), MosesDetokenizer(language)
    for escape, dashes in OPTIONS:
        flags = ["--escape"] * escape + ["--split-dashes"] * dashes
        name = " ".join([language, *flags])

        def tokenize(line):
            return tokenizer.tokenize(line, escape=escape, aggressive_dash_splits=dashes)

        tokens, seconds = run_package(tokenize, lines)
        joined = [" ".join(row) for row in tokens]
        report.add(name, lines, (joined, seconds), run_program(program, lines, language, *flags))
        texts = run_package(detokenizer.detokenize, tokens)
        undone = run_program(program, joined, language, "--undo")
        report.add(name + " --undo", joined, texts, undone)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program", help="the seqconv program")
    parser.add_argument("text", nargs="*", help="files or folders, else $SEQCONV_DATA")
    parser.add_argument("--language", default="en", help="of files whose name has none")
    parser.add_argument("--only", nargs="*", help="languages to compare, else all")
    parser.add_argument("--show", type=int, default=5, help="differing lines to print")
    parser.add_argument("--wanted", type=float, default=99.9, help="percent of equal lines")
    arguments = parser.parse_args()
    texts = arguments.text or list(filter(None, [os.environ.get("SEQCONV_DATA")]))
    if not texts:
        parser.error("name text files or folders, or set SEQCONV_DATA to a folder")
    files = find_files(texts, arguments.language, arguments.only)
    if not files:
        sys.exit(f"compare_moses.py: no text files in {' '.join(texts)}")
    report = Report(arguments.show, arguments.wanted)
    for language, paths in sorted(files.items()):
        lines = [line for path in paths for line in read_lines(path)]
        compare(arguments.program, language, lines, report)
    sys.exit(0 if report.good else 1)


if __name__ == "__main__":
    main()
