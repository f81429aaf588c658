#!/usr/bin/env python3
"""Terms of a trained model: how many come, as whole words, and what that does to chrF and time.

    python3 tools/check_terms.py --model DIR --test test.de test.en --train train.de train.en
        [--program build/release/bin/seqconv] [--lines 1000]

Pairs of words are found in the training text by how often they stand in the same lines (Dice).
Three lists of terms: a dictionary of words with capitals, given as a file; words of the references
that the model misses; and two and more words of each reference. Fails where under 98 % of terms
come, or chrF falls by more than 0.5. Files may be packed by xz.
"""
import argparse
import collections
import json
import lzma
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

import sacrebleu

WORD = re.compile(r"\w+")
LEAST_LETTERS = 4


def read(path, most=None):
    opened = lzma.open if str(path).endswith(".xz") else open
    with opened(path, "rt", encoding="utf-8") as file:
        return file.read().splitlines()[:most]


def likely_pairs(sources, targets):
    """{word: [(Dice, word of the other language), …]}, best first."""
    one, other, both = (collections.Counter() for _ in range(3))
    for source, target in zip(sources, targets):
        words, others = set(WORD.findall(source)), set(WORD.findall(target))
        one.update(words)
        other.update(others)
        both.update((a, b) for a in words if len(a) >= LEAST_LETTERS
                    for b in others if len(b) >= LEAST_LETTERS)  # fmt: skip
    pairs = collections.defaultdict(list)
    for (a, b), count in both.items():
        if count >= 2:
            pairs[a].append((2 * count / (one[a] + other[b]), b))
    return {word: sorted(found, reverse=True) for word, found in pairs.items()}, one


class Program:
    def __init__(self, options):
        self.command = [options.program, "translate", "--model", options.model, "--json-input",
                        "--format", "json", "--quiet"]  # fmt: skip

    def translate(self, requests, *flags):
        """The translations, and the processor seconds that they took."""
        lines = "".join(json.dumps(request) + "\n" for request in requests)
        before = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])
        run = subprocess.run([*self.command, *flags], input=lines, text=True, check=True,
                             stdout=subprocess.PIPE)  # fmt: skip
        seconds = sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2]) - before
        return [json.loads(line)["translations"][0]["text"] for line in run.stdout.splitlines()], seconds


def count(word, text):
    return len(re.findall(rf"\b{re.escape(word)}\b", text))


def share(terms, sources, translations):
    wanted = came = 0
    for own, source, translation in zip(terms, sources, translations):
        for word, target in own.items():
            wanted += count(word, source)
            came += min(count(word, source), count(target, translation))
    return 100 * came / wanted, wanted


def chrf(translations, references):
    return sacrebleu.corpus_chrf(translations, [references]).score


def judge(name, program, test, terms, file=None):
    """Prints a row; True where enough terms come and chrF is no worse."""
    kept = [i for i, own in enumerate(terms) if own]
    terms = [terms[i] for i in kept]
    sources, references, plain = ([side[i] for i in kept] for side in test)
    _, before = program.translate([{"text": text} for text in sources])
    if file:
        found, after = program.translate([{"text": text} for text in sources],
                                         "--terminology", file)  # fmt: skip
    else:
        found, after = program.translate(
            [{"text": text, "terms": own} for text, own in zip(sources, terms)])
    came, wanted = share(terms, sources, found)
    scores = chrf(plain, references), chrf(found, references)
    print(f"{name}: {len(kept)} lines, {wanted} terms, {share(terms, sources, plain)[0]:.1f} % come "
          f"without, {came:.1f} % with; chrF {scores[0]:.1f}, {scores[1]:.1f}; processor time x "
          f"{after / before:.2f}", flush=True)  # fmt: skip
    return came >= 98 and scores[1] >= scores[0] - 0.5


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--program", default="build/release/bin/seqconv")
    parser.add_argument("--model", required=True)
    parser.add_argument("--test", nargs=2, type=pathlib.Path, required=True)
    parser.add_argument("--train", nargs=2, type=pathlib.Path, required=True)
    parser.add_argument("--lines", type=int, default=1000)
    options = parser.parse_args()
    program = Program(options)
    pairs, counts = likely_pairs(*map(read, options.train))
    sources, references = (read(path, options.lines) for path in options.test)
    plain, _ = program.translate([{"text": text} for text in sources])
    test = sources, references, plain

    def of_references(most, least_dice, is_wanted):
        lists = []
        for source, reference, translation in zip(*test):
            words, there = set(WORD.findall(reference)), set(WORD.findall(translation))
            own = {}
            for word in dict.fromkeys(WORD.findall(source)):
                for dice, target in pairs.get(word, [])[:most]:
                    if dice >= least_dice and target in words and target not in own.values() and \
                            is_wanted(target, there):  # fmt: skip
                        own[word] = target
                        break
            lists.append(own)
        return lists

    lexicon = {word: found[0][1] for word, found in pairs.items()
               if found[0][0] >= 0.4 and word[0].isupper() and counts[word] >= 3}  # fmt: skip
    dictionary = [{word: lexicon[word] for word in WORD.findall(source) if word in lexicon}
                  for source in sources]  # fmt: skip
    with tempfile.NamedTemporaryFile("w", suffix=".tsv", encoding="utf-8") as file:
        file.writelines(f"{word}\t{target}\n" for word, target in lexicon.items())
        file.flush()
        fine = judge(f"dictionary of {len(lexicon)}", program, test, dictionary, file.name)
    missed = of_references(8, 0.08, lambda target, there: target not in there)
    fine &= judge("missed words of references", program, test, missed)
    several = [own if len(own) >= 2 else {} for own in of_references(4, 0.15, lambda *_: True)]
    fine &= judge("two and more words of references", program, test, several)
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
