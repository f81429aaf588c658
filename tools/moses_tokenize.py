#!/usr/bin/env python3
"""Tokenises and lower-cases text for the Multi30k experiments.

    python tools/moses_tokenize.py de < raw > tokenised

Moses tokens as sacremoses makes them, without XML escapes and without splitting
at hyphens; then lower case, one blank between tokens. One line in, one line out.
"""
import argparse
import io
import sys

from sacremoses import MosesTokenizer


def tokenised_lines(lines, language):
    """Yields every line of `lines` as lower-cased Moses tokens."""
    tokenizer = MosesTokenizer(lang=language)
    for line in lines:
        tokens = tokenizer.tokenize(
            line.rstrip("\n"), escape=False, aggressive_dash_splits=False
        )
        # Lower-casing can yield blanks of its own kind, hence the second split.
        yield " ".join(" ".join(tokens).lower().split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("language", help="ISO code, for example de or en")
    language = parser.parse_args().language
    # Only a line feed ends a line: form feeds and the like are text.
    source = io.TextIOWrapper(sys.stdin.buffer, encoding="utf-8", newline="\n")
    target = io.TextIOWrapper(sys.stdout.buffer, encoding="utf-8", newline="\n")
    for line in tokenised_lines(source, language):
        target.write(line + "\n")
    target.flush()


if __name__ == "__main__":
    main()
