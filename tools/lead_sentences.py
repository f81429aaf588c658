#!/usr/bin/env python3
"""The baseline of summarisation: a document's first sentences as its summary.

    python tools/lead_sentences.py --key dialogue --sentences 3 < in > out

Reads JSON lines and adds "summary_text". A document's lines are its sentences; a
document of one line is split behind full stops, question and exclamation marks.
"""
import argparse
import json
import re
import sys


def sentences_of(document):
    lines = [" ".join(line.split()) for line in document.splitlines()]
    lines = [line for line in lines if line]
    return re.split(r"(?<=[.!?]) ", lines[0]) if len(lines) == 1 else lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--key", required=True, help="of the document")
    parser.add_argument("--sentences", type=int, default=3)
    arguments = parser.parse_args()
    for line in sys.stdin.buffer:
        sample = json.loads(line)
        lead = sentences_of(sample[arguments.key])[: arguments.sentences]
        sample["summary_text"] = "\n".join(lead)
        print(json.dumps(sample, ensure_ascii=False))


if __name__ == "__main__":
    main()
