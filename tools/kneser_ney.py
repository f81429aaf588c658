#!/usr/bin/env python3
"""Perplexity of an interpolated Kneser-Ney n-gram model: a reference.

    python3 tools/kneser_ney.py --order 5 --train TRAIN.txt --test TEST.txt
        [--valid VALID.txt] [--characters] [--discount auto|X]
        [--format text|json]

A text is one stream, as language models here see it: words (or, with
--characters, the code points of a line), and after each line </s>, which is
predicted and counted like any word. Histories reach across line ends; before
the first symbol there are only </s>. A word that training never had is <unk>
if training spells that.

The model (Chen and Goodman 1999): interpolated, continuation counts below the
highest order, the unigrams interpolated with the uniform distribution over the
vocabulary. `auto` is modified Kneser-Ney, three discounts an order estimated
from counts of counts; where these do not allow it, one discount
n1 / (n1 + 2 n2), and a note says so. X is one discount for all orders.

Needs NumPy. Two million words of order 5 take seconds.
"""
from __future__ import annotations

import argparse
import json
import pathlib
import sys
from collections.abc import Sequence

import numpy as np

END = "</s>"
UNKNOWN = "<unk>"
BLIND_DISCOUNT = 0.5  # where no n-gram comes once, nothing can be estimated


class UnknownSymbol(ValueError):
    """A symbol that training had not, with no <unk> to stand for it."""

    def __init__(self, symbol: str, position: int):
        super().__init__(
            f"{symbol!r} is not in the training text, nor is {UNKNOWN}")
        self.position = position


def read_stream(path: pathlib.Path, characters: bool = False) -> list[str]:
    """The symbols of a text, </s> after each line. ValueError when there is
    no line, or when a line spells </s> itself."""
    stream: list[str] = []
    with open(path, encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            line = line.removesuffix("\n")
            symbols = list(line) if characters else line.split()
            if END in symbols:
                raise ValueError(f"{path}:{number}: the text must not hold "
                                 f"{END}, which stands for a line's end")
            stream += symbols
            stream.append(END)
    if not stream:
        raise ValueError(f"{path}: wanted at least one line, but it is empty")
    return stream


def estimate_discounts(counts: np.ndarray) -> tuple[list[float], str | None]:
    """Discounts of the counts 1, 2 and 3 or more (Chen and Goodman 1999,
    equation 26), and a note when it had to be one for all three."""
    n1, n2, n3, n4 = (int((counts == k).sum()) for k in (1, 2, 3, 4))
    if n1 == 0:
        return [BLIND_DISCOUNT] * 3, (
            f"no count is 1: one discount {BLIND_DISCOUNT:g}")
    y = n1 / (n1 + 2 * n2)
    if n2 and n3 and n4:
        three = [1 - 2 * y * n2 / n1, 2 - 3 * y * n3 / n2, 3 - 4 * y * n4 / n3]
        if all(0 < d <= k for k, d in enumerate(three, 1)):
            return three, None
    return [y] * 3, (f"counts of counts {n1}, {n2}, {n3}, {n4} allow no three "
                     f"discounts: one discount {y:.4g}")


class Level:
    """The n-grams of one order. A row is an n-gram; a context is a row of the
    order below (0 for the empty history)."""

    def __init__(self, keys: np.ndarray, counts: np.ndarray, contexts: int,
                 discounts: Sequence[float], vocabulary: int):
        self.keys = keys  # ascending: context * vocabulary + word
        self.vocabulary = vocabulary
        discount = np.array([0.0, *discounts])[np.minimum(counts, 3)]
        context = keys // vocabulary
        self.total = np.bincount(context, counts, contexts)  # by context
        self.held_back = np.bincount(context, discount, contexts)
        self.discounted = counts - discount  # by row

    def find(self, contexts: np.ndarray, words: np.ndarray) -> np.ndarray:
        """Rows of the n-grams, -1 for those that training had not (nor any
        with a context of -1)."""
        wanted = contexts * self.vocabulary + words
        rows = np.searchsorted(self.keys, wanted)
        rows[rows == len(self.keys)] = 0
        return np.where(self.keys[rows] == wanted, rows, -1)

    def interpolate(self, contexts: np.ndarray, words: np.ndarray,
                    lower: np.ndarray) -> np.ndarray:
        """p(word | context) from p(word | shorter context); the same where the
        context is -1 or never came before a counted word."""
        known = (contexts >= 0) & (self.total[contexts] > 0)
        rows = self.find(contexts, words)
        own = np.where(rows >= 0, self.discounted[rows], 0)
        total = np.where(known, self.total[contexts], 1)
        shared = self.held_back[contexts] * lower
        return np.where(known, (own + shared) / total, lower)


def before(rows: np.ndarray) -> np.ndarray:
    """Per position what stands one earlier. The first position is </s> after
    endlessly many of them, so that what stands before it is the same."""
    return np.concatenate([rows[:1], rows[:-1]])


class KneserNey:
    """An n-gram model of symbols: KneserNey(5).fit(stream).perplexity(other).

    order: symbols of the longest n-grams, at least 1.
    discount: "auto" or a number above 0, at most 1.
    ValueError for other values.
    """

    def __init__(self, order: int, discount: float | str = "auto"):
        if order < 1:
            raise ValueError(f"the order must be at least 1, but got {order}")
        if discount != "auto" and not 0 < discount <= 1:
            raise ValueError("the discount must be 'auto' or above 0 and at "
                             f"most 1, but got {discount}")
        self.order = order
        self.discount = discount
        self.ids: dict[str, int] = {}  # the vocabulary; </s> is 0
        self.levels: list[Level] = []
        self.discounts: list[list[float]] = []  # by order, from 1
        self.notes: list[str] = []

    def fit(self, tokens: Sequence[str]) -> KneserNey:
        """Learns from a stream of symbols (see read_stream) and returns
        itself. ValueError when there is none."""
        if not tokens:
            raise ValueError("wanted at least one training symbol, got none")
        self.ids = {word: i for i, word in
                    enumerate(dict.fromkeys([END, *tokens]))}
        self.levels, self.discounts, self.notes = [], [], []
        contexts = 1
        for keys, counts in self._count(self._stream(tokens)):
            self.discounts.append(self._discounts(counts))
            self.levels.append(Level(
                keys, counts, contexts, self.discounts[-1], len(self.ids)))
            contexts = len(keys)
        return self

    def log2_probability(self, history: Sequence[str], word: str) -> float:
        """log2 p(word | history). A history that is shorter than the order
        allows is the beginning of a text: </s> stands before it."""
        (word_id,) = self._encode([word])
        return float(np.log2(self.distribution(history)[word_id]))

    def distribution(self, history: Sequence[str]) -> np.ndarray:
        """[vocabulary] p(. | history), in the order of `ids`."""
        last = list(history)[max(len(history) - self.order + 1, 0):]
        words = np.arange(len(self.ids))
        contexts = [np.repeat(rows[-1], len(words))
                    for rows in self._histories(self._stream(last))]
        return self._probabilities(contexts, words)

    def log2_probabilities(self, tokens: Sequence[str]) -> np.ndarray:
        """log2 p of each symbol of a stream, given those before it.
        UnknownSymbol when the model cannot know one of them."""
        stream = self._stream(tokens)
        contexts = [rows[:-1] for rows in self._histories(stream)]
        return np.log2(self._probabilities(contexts, stream[1:]))

    def perplexity(self, tokens: Sequence[str]) -> float:
        """Per symbol of a stream, each </s> counted. ValueError when there is
        no symbol."""
        if not tokens:
            raise ValueError("wanted at least one symbol to predict, got none")
        return float(2 ** -self.log2_probabilities(tokens).mean())

    def _encode(self, tokens: Sequence[str]) -> list[int]:
        unknown = self.ids.get(UNKNOWN)
        ids = [self.ids.get(token, unknown) for token in tokens]
        if unknown is None and None in ids:
            position = ids.index(None)
            raise UnknownSymbol(tokens[position], position)
        return ids

    def _stream(self, tokens: Sequence[str]) -> np.ndarray:
        """Ids after one </s>, the history of the first; see before()."""
        return np.array([0, *self._encode(tokens)], dtype=np.int64)

    def _count(self, stream: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
        """Keys and counts of all n-grams, by order: how often those of the
        highest order come, after how many different symbols the others do."""
        found: list[tuple[np.ndarray, np.ndarray]] = []
        rows = np.zeros_like(stream)  # of the n-gram that ends at a position
        for _ in range(self.order):
            keys, first, longer = np.unique(
                before(rows) * len(self.ids) + stream,
                return_index=True, return_inverse=True)
            # The </s> ahead is nobody's prediction: its n-gram does not count.
            counts = np.bincount(longer[1:], minlength=len(keys))
            if found:
                shorter = found[-1][0]
                endings = rows[first[counts > 0]]
                found[-1] = (shorter,
                             np.bincount(endings, minlength=len(shorter)))
            found.append((keys, counts))
            rows = longer
        return found

    def _discounts(self, counts: np.ndarray) -> list[float]:
        if self.discount != "auto":
            return [float(self.discount)] * 3
        discounts, note = estimate_discounts(counts)
        if note is not None:
            self.notes.append(f"order {len(self.levels) + 1}: {note}")
        return discounts

    def _histories(self, stream: np.ndarray) -> list[np.ndarray]:
        """Rows of the 0 to order - 1 symbols that end at each position."""
        histories = [np.zeros_like(stream)]
        for level in self.levels[:-1]:
            histories.append(level.find(before(histories[-1]), stream))
        return histories

    def _probabilities(self, contexts: Sequence[np.ndarray],
                       words: np.ndarray) -> np.ndarray:
        result = np.full(len(words), 1 / len(self.ids))
        for level, context in zip(self.levels, contexts):
            result = level.interpolate(context, words, result)
        return result


def measure(model: KneserNey, path: pathlib.Path, characters: bool) -> dict:
    """Tokens, perplexity and bits per token of a text."""
    stream = read_stream(path, characters)
    try:
        bits = -model.log2_probabilities(stream).mean()
    except UnknownSymbol as error:
        line = 1 + stream[:error.position].count(END)
        raise ValueError(f"{path}:{line}: {error}") from None
    return {"tokens": len(stream), "perplexity": float(2 ** bits),
            "bits_per_token": float(bits)}


def as_text(report: dict) -> str:
    lines = ["order {order}, vocabulary {vocabulary:,}".format(**report)]
    lines += ["{}: {tokens:,} tokens, perplexity {perplexity:.2f}, "
              "{bits_per_token:.4f} bits a token".format(name, **report[name])
              for name in ("valid", "test") if name in report]
    return "\n".join(lines)


def discount(text: str) -> float | str:
    return text if text == "auto" else float(text)


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--order", type=int, default=5)
    parser.add_argument("--train", type=pathlib.Path, required=True)
    parser.add_argument("--valid", type=pathlib.Path)
    parser.add_argument("--test", type=pathlib.Path, required=True)
    parser.add_argument("--characters", action="store_true")
    parser.add_argument("--discount", type=discount, default="auto",
                        metavar="auto|X")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str]) -> None:
    options = parse(arguments)
    try:
        model = KneserNey(options.order, options.discount)
        model.fit(read_stream(options.train, options.characters))
        report = {"order": options.order, "vocabulary": len(model.ids),
                  "discounts": model.discounts, "notes": model.notes}
        for name in ("valid", "test"):
            path = getattr(options, name)
            if path is not None:
                report[name] = measure(model, path, options.characters)
    except (OSError, ValueError) as error:
        sys.exit(f"kneser_ney.py: {error}")
    for note in model.notes:
        print(f"kneser_ney.py: {note}", file=sys.stderr)
    print(json.dumps(report) if options.format == "json" else as_text(report))


if __name__ == "__main__":
    main(sys.argv[1:])
