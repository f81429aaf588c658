"""BLEU and chrF against the sacrebleu package."""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest
import sacrebleu

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import made_up_text  # noqa: E402
import real_text  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/metrics"))
import make_made_up  # noqa: E402
import make_rouge  # noqa: E402
import rouge_programs  # noqa: E402

BIN = pathlib.Path(os.environ.get("SEQCONV_BIN", ROOT / "build/release/bin"))

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


REAL = real_text.present(["multi30k/val.de.xz", "europarl-de-en-20k/test.de.xz", "enja-50k/test.ja.xz",
                          "iwslt15-en-vi-10k/tst2012.vi.xz", "ted-en-fr-30k/test.fr.xz"])


def text_lines(name):
    """200 sentences of a made-up language, or a packed text of the data folder."""
    if name in made_up_text.SCRIPTS:
        return made_up_text.lines(name, 200, seed=5)
    return real_text.read(name).split("\n")[:-1]


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


def corpora(*seed):
    """Hypotheses and their references: other lines for other seeds."""
    for mixture in ("nasty", *random.Random(str(seed)).sample(sorted(made_up_text.SCRIPTS), 3)):
        if mixture == "nasty":
            lines = nasty_lines(f"{seed}")
            yield related(lines, f"{seed}"), [lines, related(lines, f"{seed} again"), nasty_lines(f"{seed} other")]
        else:
            lines = made_up_text.lines(mixture, 40, seed)
            yield made_up_text.worse(lines, 0.3, seed), [lines, made_up_text.worse(lines, 0.1, f"{seed} again")]
            yield made_up_text.worse(lines, 0.3, seed), [lines]
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
@pytest.mark.parametrize("name", [*made_up_text.SCRIPTS, *REAL])
def test_tokenizers_equal_sacrebleus_on_text(tokenizer, name):
    lines = text_lines(name)
    own = sacrebleu.BLEU(tokenize=tokenizer).tokenizer
    want = [" ".join(own(line.rstrip()).split()) for line in lines]
    assert tool("\n".join(lines) + "\n", "tokenize", tokenizer).split("\n")[:-1] == want


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("smoothing", ("exp", "none"))
@pytest.mark.parametrize("lowercase", (False, True))
def test_bleu_equals_sacrebleu(tokenizer, smoothing, lowercase, tmp_path):
    for hypotheses, references in corpora(tokenizer, smoothing, lowercase):
        metric = sacrebleu.BLEU(tokenize=tokenizer, smooth_method=smoothing, lowercase=lowercase)
        options = [f"tokenizer='{tokenizer}'", f"smoothing='{smoothing}'", f"lowercase={str(lowercase).lower()}"]
        check(metric, hypotheses, references, tmp_path, "bleu", *options)


@pytest.mark.parametrize("characters,words", ((6, 0), (6, 2), (3, 1), (1, 4)))
@pytest.mark.parametrize("lowercase", (False, True))
@pytest.mark.parametrize("whitespace", (False, True))
def test_chrf_equals_sacrebleu(characters, words, lowercase, whitespace, tmp_path):
    for hypotheses, references in corpora(characters, words, lowercase, whitespace):
        metric = sacrebleu.CHRF(char_order=characters, word_order=words, lowercase=lowercase, whitespace=whitespace)
        options = [f"char_order={characters}", f"word_order={words}", f"lowercase={str(lowercase).lower()}",
                   f"whitespace={str(whitespace).lower()}"]
        check(metric, hypotheses, references, tmp_path, "chrf", *options)


def test_committed_texts_are_those_of_their_script():
    for name, lines in make_made_up.texts().items():
        committed = (ROOT / "tests/metrics/made_up" / name).read_bytes().decode()
        assert committed.split("\n")[:-1] == lines, name
    made_up = ROOT / "tests/metrics/made_up"
    assert (made_up / "rouge_cases.tsv").read_bytes().decode() == rouge_programs.to_lines(make_rouge.cases())
    for kind, text in rouge_programs.irregular_forms().items():
        assert (made_up / f"exceptions/{kind}.exc").read_text() == text


SYSTEM = "metric-checks/wmt22-en-de/hyp.OpenNMT.de.xz"
if real_text.FOLDER and real_text.find(SYSTEM).exists():

    def test_scores_of_a_real_system_equal_sacrebleus(tmp_path):
        hypotheses = text_lines(SYSTEM)
        references = [text_lines(f"metric-checks/wmt22-en-de/ref.{which}.de.xz") for which in "AB"]
        for tokenizer in TOKENIZERS:
            metric = sacrebleu.BLEU(tokenize=tokenizer)
            check(metric, hypotheses, references, tmp_path, "bleu", f"tokenizer='{tokenizer}'")
        check(sacrebleu.CHRF(word_order=2), hypotheses, references, tmp_path, "chrf", "word_order=2")
