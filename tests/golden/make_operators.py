#!/usr/bin/env python3
"""Writes the golden cases of operators: inputs, outputs and gradients.

    python make_operators.py [--out DIR] [--check]

DIR is operators/ beside this file. --check writes nothing: it makes the cases
in memory and compares them with those in DIR; inputs must agree bit for bit,
outputs within 1e-12 of each tensor's largest value. README.md describes the
files. Needs PyTorch and NumPy.
"""
import argparse
import pathlib
import re
import sys

import numpy as np
import torch

import other_operators
import sequence_operators
import talk_operators
from golden_format import Case, GoldenError, check, write
from operator_cases import CASES, HAND
from sequence_operators import NORMALIZATIONS

MAKERS = {**vars(sequence_operators), **vars(talk_operators), **vars(other_operators)}


class Spec(dict):
    """The words of a case; what is not said is 0."""

    def __missing__(self, key):
        return 0


def number(text):
    return float(text) if "." in text else int(text)


def parse(words):
    """"k3 drop0.5 bands-8-20 bias" -> {k: 3, drop: 0.5, bands: [8, 20], bias: True}"""
    spec = Spec()
    for word in words.split():
        sized = re.fullmatch(r"([a-z]+)([0-9.]+)", word)
        if word in NORMALIZATIONS or not (sized or "-" in word):
            spec[word] = True
        elif sized:
            spec[sized[1]] = number(sized[2])
        else:
            name, *entries = word.split("-")
            spec[name] = [int(entry) for entry in entries]
    return spec


def make(op, words, presets=None):
    case = Case(op, words, presets)
    MAKERS["make_" + op](case, parse(words))
    return case


def make_by_hand(op, words, presets, wanted):
    """A case whose outputs must be the numbers found by hand."""
    case = make(op, words, presets)
    for name, values in wanted.items():
        got = case.outputs[name].reshape(-1)
        assert np.abs(got - values).max() < 1e-12 * np.abs(values).max(), f"{case.name}: {name} is {got}"
    return case


def make_all():
    """Every case, in the order of the tables."""
    cases = [make(op, words) for op, table in CASES.items()
             for words in map(str.strip, table.strip().splitlines())]
    cases += [make_by_hand(op, words, *values) for (op, words), values in HAND.items()]
    assert len({case.name for case in cases}) == len(cases), "two cases have the same name"
    return cases


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path(__file__).parent / "operators")
    parser.add_argument("--check", action="store_true", help="compare with what lies there")
    arguments = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cases = make_all()
    if not arguments.check:
        write(cases, arguments.out)
        return 0
    try:
        check(cases, arguments.out)
    except GoldenError as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
