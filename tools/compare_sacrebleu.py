#!/usr/bin/env python3
"""Compares scores with the sacrebleu package on text that is made up at random.

    python tools/compare_sacrebleu.py build/release/bin/text_tool [--cases N]

Each case draws a metric (BLEU, chrF, TER) with its options, 1 to 6 lines of one or
several languages, of nasty or empty lines, of few words in any order, and 1 to 4
references; every twentieth case also the interval of a score, or a test of two
systems. What is printed is compared: scores to nine digits with their signatures,
intervals and p-values to ten. Exit code 1 when a case differs.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

import sacrebleu
import sacrebleu.significance

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))
import made_up_text  # noqa: E402

FLAGS = {
    "bleu": ("lowercase",),
    "chrf": ("lowercase", "whitespace", "eps_smoothing"),
    "ter": ("normalized", "no_punct", "asian_support", "case_sensitive"),
}
METRICS = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}
PIECES = ["a", "B", "é", "İ", "ΣΑΣ", "漢", "字。", "、", "カナ", "😀", "1", "٣", "½", ".", ",", "-", "&quot;", "&amp;lt;",
          "<skipped>", "<unk>", "'s ", "'", "€", "«", "…", "(", "[", "~", "_", "/", "!", "?", " ", " ", " ", "\u00a0",
          "\u3000", "\t", "\x1f", "\u200b", "\u2028", "\u0301", "hello"]


def make_lines(draw, count):
    """Lines without an order."""
    kind = draw.random()
    if kind < 0.3:
        return ["".join(draw.choice(PIECES) for _ in range(draw.randint(0, 40))) for _ in range(count)]
    if kind < 0.5:
        words = [str(i) for i in range(draw.choice((2, 5, 20, 60)))]
        return [" ".join(draw.choice(words) for _ in range(draw.randint(0, 70))) for _ in range(count)]
    return made_up_text.lines(draw.choice(sorted(made_up_text.SCRIPTS)), count, draw.random())


def change(draw, line):
    """The line as another person or system might have it."""
    words = line.split(" ")
    for _ in range(draw.randrange(4)):
        start, length, target = draw.randrange(len(words) + 1), draw.randint(1, 12), draw.randrange(len(words) + 1)
        run, words = words[start:start + length], words[:start] + words[start + length:]
        words[target:target] = run
    changed = made_up_text.worse([" ".join(words)], draw.choice((0, 0.1, 0.3)), draw.random())[0]
    return "" if draw.random() < 0.03 else changed


def make_case(draw):
    """(metric's name, its options, references, two systems)."""
    name = draw.choice(sorted(METRICS))
    options = {flag: draw.random() < 0.4 for flag in FLAGS[name]}
    if name == "bleu":
        options |= {"tokenize": draw.choice(("13a", "none", "intl", "char", "zh")),
                    "smooth_method": draw.choice(("exp", "none", "floor", "add-k")), "effective_order": draw.random() < 0.3,
                    "max_ngram_order": draw.choice((4, 4, 4, 1, 2, 7))}
        if options["smooth_method"] in ("floor", "add-k") and draw.random() < 0.5:
            options["smooth_value"] = draw.choice((0.0, 0.01, 0.5, 1.0, 3.25))
    if name == "chrf":
        options |= {"char_order": draw.randint(1, 6), "word_order": draw.randint(0, 4), "beta": draw.randint(1, 4)}
    if name == "ter" and not options["normalized"] and not options["no_punct"]:
        options["asian_support"] = False
    lines = make_lines(draw, draw.randint(1, 6))
    references = [[change(draw, line) for line in lines] for _ in range(draw.choice((1, 1, 2, 3, 4)))]
    systems = [[change(draw, line) for line in lines] for _ in range(2)]
    return name, options, references, systems


def clean(text):
    """As sacrebleu's program reads the lines of a file, which here have 70 words at
    most: the package takes many seconds for TER of longer ones."""
    lines = [line.replace("\n", " ").replace("\r", " ") for line in text]
    return [" ".join(line.split(" ")[:70]).rstrip() for line in lines]


class Program:
    def __init__(self, path):
        self.path, self.folder = path, pathlib.Path(tempfile.mkdtemp())

    def write(self, name, lines):
        file = self.folder / name
        file.write_bytes("".join(line + "\n" for line in lines).encode())
        return file

    def run(self, hypotheses, *arguments):
        text = "".join(line + "\n" for line in hypotheses).encode()
        run = subprocess.run([self.path, *map(str, arguments)], input=text, capture_output=True, check=False)
        return run.stdout.decode() if run.returncode == 0 else f"failed: {run.stderr.decode()}"


def spell(options):
    names = {"tokenize": "tokenizer", "smooth_method": "smoothing", "smooth_value": "smoothing_value",
             "max_ngram_order": "order"}
    return [f"{names.get(key, key)}={str(value).lower() if isinstance(value, bool) else repr(value)}"
            for key, value in options.items()]


def compare_score(program, case, files):
    name, options, references, systems = case
    metric = METRICS[name](**options, **({"force": True} if name == "bleu" else {}))
    score = metric.corpus_score(systems[0], references)
    signature, order = str(metric.get_signature()), options.get("max_ngram_order", 4)
    if order != 4:  # which sacreBLEU does not tell
        signature = signature.replace("|version:", f"|order:{order}|version:")
    want = score.format(width=9, signature=signature)
    got = program.run(systems[0], name, *spell(options), *files).strip()
    return got, re.sub(r"version:[^ ]*", "version:seqconv-0.1.0", want)


def show(values):
    return " ".join("-" if value is None or value == "-" else f"{float(value):.10g}" for value in values)


def compare_significance(program, case, files, draw):
    name, options, references, systems = case
    test, samples = draw.choice(("bs", "ar")), draw.randint(2, 300)
    if options.get("smooth_method") == "add-k" and options.get("smooth_value", 1) % 1:
        test = "bs"  # the package adds to whole numbers in the other one, and cuts off what is added
    intervals = draw.choice((0, draw.randint(2, 200)))
    metric = METRICS[name](**options, **({"force": True} if name == "bleu" else {}))
    _, columns = sacrebleu.significance.PairedTest(
        [("baseline", systems[0]), ("system", systems[1])], {name: metric}, references, test, samples, intervals or -1)()
    results = next(column for title, column in columns.items() if title != "System")
    first, second = (metric._extract_corpus_statistics(system, references) for system in systems)
    if first == second:  # the package says that such systems differ
        results[1].p_value = 1
    want = "\n".join(show((result.score, result.p_value, result.mean, result.ci)) for result in results)
    other = program.write("system", systems[1])
    text = program.run(systems[0], "compare", test, samples, intervals, other, name, *spell(options), *files)
    got = text if text.startswith("failed") else "\n".join(show(line.split()) for line in text.splitlines())
    return got, want


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program", help="text_tool of a build")
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--show", type=int, default=5, help="differing cases to print")
    arguments = parser.parse_args()
    program, different = Program(arguments.program), 0
    for number in range(arguments.cases):
        draw = random.Random(f"{arguments.seed} {number}")
        name, options, references, systems = make_case(draw)
        case = name, options, list(map(clean, references)), list(map(clean, systems))
        files = [program.write(f"ref{i}", lines) for i, lines in enumerate(case[2])]
        pairs = [compare_score(program, case, files)]
        if number % 20 == 0:
            pairs.append(compare_significance(program, case, files, draw))
        for got, want in pairs:
            different += got != want
            if got != want and different <= arguments.show:
                print(f"case {number}: {name} {options}\n  got  {got!r}\n  want {want!r}", flush=True)
    print(f"{arguments.cases} cases, {different} differ")
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
