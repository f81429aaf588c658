#!/usr/bin/env python3
"""Writes parallel number words, English and German: data for the demo.

    python3 tools/number_words.py --output DIR [--train 20000] [--valid 500]
                                  [--test 1000] [--seed 1]

DIR/{train,valid,test}.{en,de} hold one number a line, 0 to 999,999:

    three hundred and forty-two thousand and seven
    dreihundertzweiundvierzigtausendsieben

No number comes in two of the three sets. Short numbers are scarce (there are
ten of one digit, ninety of two), so a uniform draw would never show them. Here
every number of digits has its share of each set; a fifth of the short numbers
is held out, and the others come several times in the training set. Each word
of the language comes in it: one_of_each() is never held out.
"""
import argparse
import pathlib
import random
import sys

ENGLISH = (
    "zero one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen nineteen").split()
ENGLISH_TENS = (
    "_ _ twenty thirty forty fifty sixty seventy eighty ninety").split()
GERMAN = (
    "null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf "
    "dreizehn vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn").split()
GERMAN_TENS = (
    "_ _ zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig "
    "neunzig").split()

DIGITS = range(1, 7)
# Shares of the digit counts 1 to 6: what is longer is harder to learn.
TRAIN_SHARES = {1: 0.01, 2: 0.03, 3: 0.08, 4: 0.17, 5: 0.29, 6: 0.42}
TEST_SHARES = {1: 0.002, 2: 0.018, 3: 0.15, 4: 0.2, 5: 0.28, 6: 0.35}
HELD_OUT = 5  # at most one number of this many goes to valid and test


def english_below_100(n):
    if n < 20:
        return ENGLISH[n]
    tens, ones = divmod(n, 10)
    return ENGLISH_TENS[tens] + ("-" + ENGLISH[ones] if ones else "")


def english_below_1000(n):
    hundreds, rest = divmod(n, 100)
    parts = [ENGLISH[hundreds] + " hundred"] if hundreds else []
    if rest or not hundreds:
        parts.append(english_below_100(rest))
    return " and ".join(parts)


def english(n):
    """British: 'and' before the last part below a hundred."""
    thousands, rest = divmod(n, 1000)
    if not thousands:
        return english_below_1000(rest)
    words = english_below_1000(thousands) + " thousand"
    if not rest:
        return words
    return words + (" and " if rest < 100 else " ") + english_below_1000(rest)


def german_below_100(n):
    """'ein' for 1: what follows decides whether it stays so."""
    if n < 20:
        return GERMAN[n]
    tens, ones = divmod(n, 10)
    return (GERMAN[ones] + "und" if ones else "") + GERMAN_TENS[tens]


def german_below_1000(n):
    hundreds, rest = divmod(n, 100)
    return ((GERMAN[hundreds] + "hundert" if hundreds else "") +
            (german_below_100(rest) if rest else ""))


def german(n):
    if n == 0:
        return GERMAN[0]
    thousands, rest = divmod(n, 1000)
    word = german_below_1000(thousands) + "tausend" if thousands else ""
    word += german_below_1000(rest)
    return word + "s" if rest % 100 == 1 else word  # only a last ein is eins


def of_digits(digits):
    """All numbers of so many digits."""
    return range(10**(digits - 1) if digits > 1 else 0, 10**digits)


def one_of_each():
    """Numbers that must be learnt by heart: the only ones with 'null' and with
    'eins' alone, and the round ones that nothing shorter explains."""
    return {0, 1, 10, 11, 12, 16, 17, 20, 30, 60, 70, 100, 1000}


def split_by_shares(total, shares):
    """Whole numbers in proportion to the shares, with sum `total`."""
    counts = {d: int(total * share) for d, share in shares.items()}
    counts[6] += total - sum(counts.values())
    return counts


def sample(train, valid, test, seed):
    """Three lists of numbers. Held-out ones come once, in no other list; short
    ones come several times in training."""
    draw = random.Random(seed)
    kept = one_of_each()
    sets = {"train": [], "valid": [], "test": []}
    counts = {
        "train": split_by_shares(train, TRAIN_SHARES),
        "valid": split_by_shares(valid, TEST_SHARES),
        "test": split_by_shares(test, TEST_SHARES),
    }
    for digits in DIGITS:
        numbers = list(of_digits(digits))
        draw.shuffle(numbers)
        candidates = [n for n in numbers if n not in kept]
        for name in ("test", "valid"):
            # What the scarce numbers cannot give, longer ones do.
            wanted = counts[name][digits] + counts[name].get("more", 0)
            limit = len(numbers) // HELD_OUT // (1 if name == "test" else 2)
            taken = min(wanted, max(limit, 1))
            sets[name] += candidates[:taken]
            candidates = candidates[taken:]
            counts[name]["more"] = wanted - taken
        held_out = set(sets["test"]) | set(sets["valid"])
        left = [n for n in numbers if n not in held_out]
        left.sort(key=lambda n: n not in kept)  # stable: these come first
        wanted = counts["train"][digits]
        sets["train"] += [left[i % len(left)] for i in range(wanted)]
    for name in ("test", "valid"):
        if counts[name]["more"]:
            raise ValueError(f"{name}: so many numbers cannot be held out")
    for numbers in sets.values():
        draw.shuffle(numbers)
    return sets


def write(folder, sets):
    folder.mkdir(parents=True, exist_ok=True)
    for name, numbers in sets.items():
        for suffix, words in (("en", english), ("de", german)):
            text = "".join(words(n) + "\n" for n in numbers)
            path = folder / f"{name}.{suffix}"
            path.write_text(text, encoding="utf-8", newline="\n")


def main(arguments):
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--output", type=pathlib.Path, required=True)
    parser.add_argument("--train", type=int, default=20000)
    parser.add_argument("--valid", type=int, default=500)
    parser.add_argument("--test", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    for name in ("train", "valid", "test"):
        if getattr(options, name) < 1:
            parser.error(f"--{name} must be at least 1")
    try:
        sets = sample(options.train, options.valid, options.test, options.seed)
        write(options.output, sets)
    except (OSError, ValueError) as error:
        sys.exit(f"number_words.py: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
