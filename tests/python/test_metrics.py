"""BLEU, chrF, TER, intervals and tests against the sacrebleu package."""

import functools
import importlib.util
import itertools
import json
import os
import pathlib
import random
import re
import subprocess
import sys

import pytest
import sacrebleu
import sacrebleu.significance
import sacrebleu.tokenizers.tokenizer_spm
import sentencepiece

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))
import made_up_text  # noqa: E402
import real_text  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/metrics"))
import make_made_up  # noqa: E402
import make_rouge  # noqa: E402
import rouge_programs  # noqa: E402

BIN = pathlib.Path(os.environ.get("SEQCONV_BIN", ROOT / "build/release/bin"))

TOKENIZERS = ("13a", "none", "intl", "char", "zh")


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


@functools.lru_cache(maxsize=None)
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


def check(metric, hypotheses, references, tmp_path, verb, *options, order=4):
    files = []
    for i, lines in enumerate(references):
        files.append(tmp_path / f"ref{i}")
        files[-1].write_bytes(("\n".join(lines) + "\n").encode())
    got = tool("\n".join(hypotheses) + "\n", verb, *options, *files).strip()
    score = metric.corpus_score(hypotheses, references)
    signature = str(metric.get_signature())
    if order != 4:  # which sacreBLEU does not tell
        signature = signature.replace("|version:", f"|order:{order}|version:")
    want = score.format(width=9, signature=signature)
    assert got == re.sub(r"version:[^ ]*", "version:seqconv-0.1.0", want)


def spell(options):
    """Options as text_tool takes them."""
    return [f"{key}={str(value).lower()}" for key, value in options.items()]


def corpora(*seed):
    """Hypotheses and their references: other lines for other seeds, with three references, two and one."""
    lines = nasty_lines(f"{seed}", 60)
    yield related(lines, f"{seed}"), [lines, related(lines, f"{seed} again"), nasty_lines(f"{seed} other", 60)]
    one, *more = random.Random(str(seed)).sample(sorted(made_up_text.SCRIPTS), 4)
    lines = [line for script in more for line in made_up_text.lines(script, 8, seed)]
    yield made_up_text.worse(lines, 0.3, seed), [lines, made_up_text.worse(lines, 0.1, f"{seed} again")]
    lines = made_up_text.lines(one, 8, seed)
    yield made_up_text.worse(lines, 0.3, seed), [lines]
    yield [""] * 3, [["a b", "", "c"]]
    yield [""] * 2, [["a b", ""], ["", "c d"]]
    yield ["a b c d e", ""], [["", ""]]
    yield ["a b c"], [["a b c"]]
    yield ["x y z w"], [["a b c d"]]
    yield ["a x b y c"], [["c z a w b"]]  # several orders without a match


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


SMOOTHINGS = ({"smooth_method": "floor"}, {"smooth_method": "floor", "smooth_value": 0.37}, {"smooth_method": "add-k"},
              {"smooth_method": "add-k", "smooth_value": 2.5}, {"smooth_method": "none"}, {})


@pytest.mark.parametrize("smoothing", SMOOTHINGS)
@pytest.mark.parametrize("order", (1, 2, 4, 6, 9))
@pytest.mark.parametrize("effective", (False, True))
def test_bleu_equals_sacrebleu_however_it_is_smoothed(smoothing, order, effective, tmp_path):
    names = {"smooth_method": "smoothing", "smooth_value": "smoothing_value"}
    options = [f"{names[key]}={value!r}" for key, value in smoothing.items()]
    options += [f"order={order}", f"effective_order={str(effective).lower()}"]
    for hypotheses, references in corpora(str(smoothing), order, effective):
        metric = sacrebleu.BLEU(**smoothing, max_ngram_order=order, effective_order=effective)
        check(metric, hypotheses, references, tmp_path, "bleu", *options, order=order)


def test_scores_by_sentence_and_with_other_numbers_of_references_equal_sacrebleus(tmp_path):
    lines = short(made_up_text.lines("english", 40, "sentences")) + ["a", "a b", ""]
    hypotheses = made_up_text.worse(lines, 0.3, "sentences")
    draw = random.Random(7)
    references = [[line, *made_up_text.worse([line] * draw.randrange(3), 0.2, line)] for line in lines]
    (tmp_path / "refs").write_text("".join(json.dumps({"r": row}) + "\n" for row in references))
    streams = [[row[i] if i < len(row) else None for row in references] for i in range(3)]
    for verb, metric in (("bleu", sacrebleu.BLEU(effective_order=True)), ("chrf", sacrebleu.CHRF()), ("ter", sacrebleu.TER())):
        def evaluate(*flags):
            run = subprocess.run([BIN / "seqconv", "evaluate", verb, "--reference", tmp_path / "refs", "--reference-key", "r",
                                  "--format", "json", *flags], input="".join(line + "\n" for line in hypotheses).encode(),
                                 capture_output=True, check=True)
            return [json.loads(line) for line in run.stdout.splitlines()]
        found = evaluate("--sentence")
        assert [one["line"] for one in found] == list(range(1, len(lines) + 1))
        for one, hypothesis, row in zip(found, hypotheses, references, strict=True):
            assert one["score"] == pytest.approx(metric.sentence_score(hypothesis, row).score, abs=1e-9)
        corpus = evaluate(*(["--effective-order"] if verb == "bleu" else []))[0]
        assert corpus["score"] == pytest.approx(metric.corpus_score(hypotheses, streams).score, abs=1e-9)
        want = str(metric.get_signature())
        assert want.startswith("nrefs:var|")
        assert corpus["signature"] == re.sub(r"version:[^ ]*", "version:seqconv-0.1.0", want)


@pytest.mark.parametrize("characters,words", ((6, 0), (6, 2), (3, 1), (1, 4)))
@pytest.mark.parametrize("lowercase", (False, True))
@pytest.mark.parametrize("whitespace", (False, True))
@pytest.mark.parametrize("eps_smoothing", (False, True))
def test_chrf_equals_sacrebleu(characters, words, lowercase, whitespace, eps_smoothing, tmp_path):
    for hypotheses, references in corpora(characters, words, lowercase, whitespace, eps_smoothing):
        options = {"char_order": characters, "word_order": words, "lowercase": lowercase, "whitespace": whitespace,
                   "eps_smoothing": eps_smoothing}
        check(sacrebleu.CHRF(**options), hypotheses, references, tmp_path, "chrf", *spell(options))


TER_OPTIONS = [dict(zip(("normalized", "no_punct", "asian_support", "case_sensitive"), values))
               for values in itertools.product((False, True), repeat=4) if not (values[2] and not any(values[:2]))]


@pytest.mark.parametrize("options", TER_OPTIONS, ids=lambda options: "-".join(name for name in options if options[name]))
def test_ter_equals_sacrebleu(options, tmp_path):
    for hypotheses, references in corpora(*options.values()):
        hypotheses, references = short(hypotheses), list(map(short, references))
        check(sacrebleu.TER(**options), hypotheses, references, tmp_path, "ter", *spell(options))


def short(lines, words=20):
    """The lines with their first words, and letters where words have no blanks: sacrebleu takes seconds for a longer one."""
    return [" ".join(line.split(" ")[:words])[:6 * words] for line in lines]


def moved(words, rng, moves):
    """The words with some runs of them elsewhere and some exchanged."""
    words = list(words)
    for _ in range(moves):
        start, length, target = rng.randrange(len(words)), rng.randint(1, 14), rng.randrange(len(words))
        run, words = words[start:start + length], words[:start] + words[start + length:]
        words[target:target] = run
    return [rng.choice(words) if rng.random() < 0.1 else word for word in words]


def test_ter_of_long_lines_with_moves_equals_sacrebleus(tmp_path):
    """Lines of few kinds of words: moves further than 50 words, more than 1,000 of them to try, edit distances beyond
    the beam, and lines of very different length."""
    rng = random.Random(9)
    for kinds, length in ((2, 3), (2, 30), (3, 40), (20, 60), (90, 90), (90, 1)):
        words = [str(rng.randrange(kinds)) for _ in range(length)]
        others = [str(rng.randrange(kinds)) for _ in range(rng.randint(1, 90))]
        for hypothesis in (moved(words, rng, 4), words[:rng.randint(0, 5)], others):
            check(sacrebleu.TER(), [" ".join(hypothesis)], [[" ".join(words)]], tmp_path, "ter")


@pytest.mark.parametrize("run, distance", ((8, 50), (8, 51), (10, 20), (11, 20)))
def test_ter_moves_no_more_words_and_no_further_than_sacrebleu(run, distance, tmp_path):
    words = [str(i) for i in range(70)]
    hypothesis = words[distance:distance + run] + words[:distance] + words[distance + run:]
    check(sacrebleu.TER(), [" ".join(hypothesis)], [[" ".join(words)]], tmp_path, "ter")


def test_bleu_with_a_sentencepiece_model_equals_sacrebleus(tmp_path, monkeypatch):
    lines = made_up_text.lines("japanese", 300, seed=1) + made_up_text.lines("german", 300, seed=1)
    (tmp_path / "models").mkdir()
    model = tmp_path / "models/sacrebleu_tokenizer_spm.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_prefix=str(model.with_suffix("")), vocab_size=900, hard_vocab_limit=False)
    monkeypatch.setattr(sacrebleu.tokenizers.tokenizer_spm, "SACREBLEU_DIR", str(tmp_path))
    for hypotheses, references in corpora("spm"):
        check(sacrebleu.BLEU(tokenize="flores101"), hypotheses, references, tmp_path, "bleu-spm", model,
              "tokenizer='spm'")


def mecab_is_missing():
    """Whether the build is without MeCab, or Python without that of sacrebleu[ja]."""
    run = subprocess.run([BIN / "text_tool", "mecab", "nowhere"], capture_output=True, check=False)
    return b"SEQCONV_MECAB" in run.stderr or not all(map(importlib.util.find_spec, ("MeCab", "ipadic")))


if not mecab_is_missing():
    JAPANESE = ["", " ", "すもももももももものうち。", "　先週、東京から大阪まで新幹線で行きました。 ", "A4の紙を３枚 ください（笑）",
                "彼女は「はい」と答えた…", "ｶﾀｶﾅとひらがな\u3000と漢字", "😀 Hello, World! 1,000円", "ヴェネツィア・ビエンナーレ2025"]

    @pytest.mark.parametrize("name", ["own", "japanese", *(file for file in REAL if file.endswith(".ja.xz"))])
    def test_bleu_with_mecab_equals_sacrebleus(name, tmp_path):
        import ipadic

        lines = JAPANESE if name == "own" else text_lines(name)
        metric = sacrebleu.BLEU(tokenize="ja-mecab")
        want = [" ".join(metric.tokenizer(line).split()) for line in lines]
        got = [" ".join(line.split()) for line in tool("\n".join(lines) + "\n", "mecab", ipadic.DICDIR).split("\n")[:-1]]
        assert got == want
        hypotheses = [line[len(line) // 4:] + line[:len(line) // 4] for line in lines]
        check(metric, hypotheses, [lines], tmp_path, "bleu-mecab", ipadic.DICDIR, "tokenizer='ja-mecab'")


SIGNIFICANCE_METRICS = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER}


def systems(count, seed):
    """References, and two systems of nearly the same quality."""
    lines = short((line for language in ("german", "russian", "chinese", "english")
                   for line in made_up_text.lines(language, count // 4, seed)), words=10)
    references = [lines, made_up_text.worse(lines, 0.1, seed)]
    return references, *(made_up_text.worse(lines, rate, f"{seed} {rate}") for rate in (0.3, 0.27))


def write_lines(path, lines):
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    return path


@pytest.mark.parametrize("verb", SIGNIFICANCE_METRICS)
@pytest.mark.parametrize("count,samples", ((8, 1000), (100, 157), (200, 1000)))
def test_intervals_equal_sacrebleus(verb, count, samples, tmp_path):
    references, hypotheses, _ = systems(count, f"{verb} {count}")
    files = [write_lines(tmp_path / f"ref{i}", lines) for i, lines in enumerate(references)]
    score = SIGNIFICANCE_METRICS[verb]().corpus_score(hypotheses, references, n_bootstrap=samples)
    got = tool("\n".join(hypotheses) + "\n", "interval", samples, verb, *files).split()
    assert list(map(float, got)) == pytest.approx([float(score._mean), float(score._ci)], rel=1e-12)


@pytest.mark.parametrize("verb", SIGNIFICANCE_METRICS)
@pytest.mark.parametrize("test,samples,intervals", (("bs", 500, 0), ("ar", 600, 0), ("ar", 500, 300)))
def test_paired_tests_equal_sacrebleus(verb, test, samples, intervals, tmp_path):
    for count in (4, 20, 120):
        references, baseline, system = systems(count, f"{verb} {test} {count}")
        files = [write_lines(tmp_path / f"ref{i}", lines) for i, lines in enumerate(references)]
        file = write_lines(tmp_path / "system", system)
        _, scores = sacrebleu.significance.PairedTest(
            [("baseline", baseline), ("system", system)], {verb: SIGNIFICANCE_METRICS[verb]()}, references, test,
            samples, intervals or -1)()
        want = [["-" if value is None else float(value) for value in (result.score, result.p_value, result.mean, result.ci)]
                for result in next(value for name, value in scores.items() if name != "System")]
        text = tool("\n".join(baseline) + "\n", "compare", test, samples, intervals, file, verb, *files)
        got = [[value if value == "-" else float(value) for value in line.split()] for line in text.splitlines()]
        assert got == want


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
