"""BLEU and chrF against the sacrebleu package."""

import lzma
import os
import pathlib
import random
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("SEQCONV_DATA", ROOT.parent / "shared/data"))
BIN = pathlib.Path(os.environ.get("SEQCONV_BIN", ROOT / "build/release/bin"))
REQUIRED = os.environ.get("SEQCONV_GOLDEN_REQUIRED") == "1"

if REQUIRED:
    import sacrebleu
else:
    sacrebleu = pytest.importorskip("sacrebleu")

TOKENIZERS = ("13a", "none", "intl", "char")


def tool(text, *arguments):
    """What text_tool prints for a text on its standard input."""
    run = subprocess.run(
        [BIN / "text_tool", *map(str, arguments)],
        input=text.encode(),
        capture_output=True,
    )
    assert run.returncode == 0, run.stderr.decode()
    return run.stdout.decode()


def read(name):
    """The lines of a packed text of the data folder."""
    path = DATA / name
    if not path.exists() and not REQUIRED:
        pytest.skip(f"no {path}")
    with lzma.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().split("\n")[:-1]


def nasty_lines(seed, count=300):
    rng = random.Random(seed)
    pieces = ["a", "B", "é", "É", "İ", "ΣΑΣ", "漢", "😀", "1", "23", "٣", "½", ".", ",", "-", "--", "&quot;",
              "&amp;lt;", "<skipped>", "<unk>", "'", "\"", "€", "$", "+", "«", "»", "…", "(", ")", "[", "`", "~",
              "{", "_", "/", ":", ";", "?", "!", "#", "%", "*", "@", "\\", "^", "|", "=", " ", " ", " ", "\u00a0",
              "\u3000", "\t", "\x1f", "\u200b", "\u2028", "\u0301", "hello", "World"]
    return ["".join(rng.choice(pieces) for _ in range(rng.randint(0, 25))) for _ in range(count)]


def related(lines, seed):
    """Lines with some parts of other lines and some changes."""
    rng = random.Random(seed)
    out = []
    for line in lines:
        words = line.split(" ")
        words = [w for w in words if rng.random() < 0.8] + [w for w in rng.choice(lines).split(" ") if rng.random() < 0.2]
        out.append(" ".join(words))
    return out


def check(metric, hypotheses, references, tmp_path, verb, *options):
    files = []
    for i, lines in enumerate(references):
        files.append(tmp_path / f"ref{i}")
        files[-1].write_bytes(("\n".join(lines) + "\n").encode())
    got = tool("\n".join(hypotheses) + "\n", verb, *options, *files).strip()
    score = metric.corpus_score(hypotheses, references)
    want = score.format(width=9, signature=str(metric.get_signature()))
    assert got == re.sub(r"version:[^ ]*", "version:seqconv-0.1.0", want)


def corpora():
    for seed in range(3):
        lines = nasty_lines(seed)
        yield related(lines, seed), [lines]
        yield related(lines, seed), [lines, related(lines, seed + 50), nasty_lines(seed + 9)]
    yield [""] * 3, [["a b", "", "c"]]
    yield ["a b c d e", ""], [["", ""]]
    yield ["a b c"], [["a b c"]]
    yield ["x y z w"], [["a b c d"]]


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_tokenizers_equal_sacrebleus_on_nasty_lines(tokenizer):
    for seed in range(10):
        lines = nasty_lines(seed)
        own = sacrebleu.BLEU(tokenize=tokenizer).tokenizer
        want = [" ".join(own(line.rstrip()).split()) for line in lines]
        assert tool("\n".join(lines) + "\n", "tokenize", tokenizer).split("\n")[:-1] == want


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize(
    "name",
    ["multi30k/val.de.xz", "europarl-de-en-20k/test.de.xz", "enja-50k/test.ja.xz", "iwslt15-en-vi-10k/tst2012.vi.xz",
     "ted-en-fr-30k/test.fr.xz"],
)
def test_tokenizers_equal_sacrebleus_on_real_text(tokenizer, name):
    lines = read(name)
    own = sacrebleu.BLEU(tokenize=tokenizer).tokenizer
    want = [" ".join(own(line.rstrip()).split()) for line in lines]
    assert tool("\n".join(lines) + "\n", "tokenize", tokenizer).split("\n")[:-1] == want


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("smoothing", ("exp", "none"))
@pytest.mark.parametrize("lowercase", (False, True))
def test_bleu_equals_sacrebleu(tokenizer, smoothing, lowercase, tmp_path):
    for hypotheses, references in corpora():
        metric = sacrebleu.BLEU(tokenize=tokenizer, smooth_method=smoothing, lowercase=lowercase)
        options = [f"tokenizer='{tokenizer}'", f"smoothing='{smoothing}'", f"lowercase={str(lowercase).lower()}"]
        check(metric, hypotheses, references, tmp_path, "bleu", *options)


@pytest.mark.parametrize("characters,words", ((6, 0), (6, 2), (3, 1), (1, 4)))
@pytest.mark.parametrize("lowercase", (False, True))
@pytest.mark.parametrize("whitespace", (False, True))
def test_chrf_equals_sacrebleu(characters, words, lowercase, whitespace, tmp_path):
    for hypotheses, references in corpora():
        metric = sacrebleu.CHRF(char_order=characters, word_order=words, lowercase=lowercase, whitespace=whitespace)
        options = [f"char_order={characters}", f"word_order={words}", f"lowercase={str(lowercase).lower()}",
                   f"whitespace={str(whitespace).lower()}"]
        check(metric, hypotheses, references, tmp_path, "chrf", *options)


def test_scores_of_a_real_system_equal_sacrebleus(tmp_path):
    folder = "metric-checks/wmt22-en-de"
    hypotheses = read(f"{folder}/hyp.OpenNMT.de.xz")
    references = [read(f"{folder}/ref.{which}.de.xz") for which in "AB"]
    for tokenizer in TOKENIZERS:
        metric = sacrebleu.BLEU(tokenize=tokenizer)
        check(metric, hypotheses, references, tmp_path, "bleu", f"tokenizer='{tokenizer}'")
    check(sacrebleu.CHRF(word_order=2), hypotheses, references, tmp_path, "chrf", "word_order=2")
