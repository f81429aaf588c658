"""Bad command lines of every verb that needs no model."""

import os
import tempfile

import support
from hostile.case import GARBAGE, LONG, Case, written

SHORTLIST = ["--model", "m", "--source", "a", "--target", "b", "--output", "c"]


def usage():
    model = ["--model", "nowhere"]
    table = [
        (["frobnicate"], "frobnicate"),
        (["trian"], "train"),
        (["--frob"], "--frob"),
        (["translate"], "--model"),
        (["translate", "--model"], "--model"),
        (["translate", *model, "--baem", "3"], "--beam"),
        (["translate", *model, "extra"], "extra"),
        (["translate", *model, "--format", "xml"], "xml"),
        (["translate", *model, "--format", ""], "--format"),
        (["translate", *model, "--backend", "libtorc"], "libtorch"),
        (["generate", *model, "--backend", ""], "runtime"),
        (["translate", *model, "--beam", "2", "--n-best", "3"], "--n-best"),
        (["translate", *model, "--top-k", "3"], "--sample"),
        (["translate", *model, "--seed", "3"], "--sample"),
        (["translate", *model, "--sample", "--beam", "3"], "--beam"),
        (["translate", *model, "--sample", "--stepwise-length-penalty"],
         "--stepwise-length-penalty"),
        (["translate", *model, "--stepwise-length-penalty=often"], "often"),
        (["translate", *model, "--stepwise-length-penalti"],
         "--stepwise-length-penalty"),
        (["translate", *model, "--sample", "--top-p", "0"], "--top-p"),
        (["translate", *model, "--sample", "--temperature", "-1"], "--temperature"),
        (["translate", *model, "--shortlist"], "--shortlist"),
        (["translate", *model, "--shortlist", ""], "--shortlist"),
        (["translate", *model, "--shortlist", "s", "--backend", "libtorch"],
         "--backend"),
        (["score", *model, "--source", "a", "--target", "b", "--shortlist", "s"],
         "--shortlist"),
        (["shortlist", *model, "--source", "a", "--target", "b"], "--output"),
        (["shortlist", *model, "--source", "a", "--output", "b"], "--target"),
        (["shortlist", *SHORTLIST, "--per-word", "0"], "--per-word"),
        (["shortlist", *SHORTLIST, "--per-word", "10001"], "--per-word"),
        (["shortlist", *SHORTLIST, "--common", "1000001"], "--common"),
        (["shortlist", *SHORTLIST, "--common=-1"], "--common"),
        (["shortlist", *SHORTLIST, "--iterations", "0"], "--iterations"),
        (["shortlist", *SHORTLIST, "--iterations", "101"], "--iterations"),
        (["score", *model], "--source"),
        (["score", *model, "--source", "a"], "--target"),
        (["score", *model, "--source", "a", "--target"], "--target"),
        (["evaluate"], "bleu"),
        (["evaluate", "blue"], "did you mean 'bleu'"),
        (["evaluate", "rouge1", "-r", "a"], "did you mean 'rouge'"),
        (["evaluate", "chrF", "-r", "a"], "did you mean 'chrf'"),
        (["evaluate", "exakt", "-r", "a"], "did you mean 'exact'"),
        (["evaluate", "tre", "-r", "a"], "did you mean 'ter'"),
        (["evaluate", "bleu", "rouge", "-r", "a"], "rouge"),
        (["evaluate", "bleu"], "--reference"),
        (["evaluate", "bleu", "--reference", "a", "--tokenize", "zh2"], "zh2"),
        (["evaluate", "bleu", "--reference", "a", "--style", "x"], "--style"),
        (["evaluate", "bleu", "--reference", "a", "--smooth", "add"], "add"),
        (["evaluate", "bleu", "-r", "a", "--compound-split"], "--compound-split"),
        (["evaluate", "chrf", "-r", "a", "--word-order", "99"], "--word-order"),
        (["evaluate", "chrf", "-r", "a", "--char-order", "0"], "--char-order"),
        (["average"], "--output"),
        (["average", "--output", "x"], "CHECKPOINT"),
        (["quantize", "--output", "x"], "--model"),
        (["quantize", *model], "--output"),
        (["translate", *model, "--compute-type", "int4"], "int4", "bfloat16"),
        (["translate", *model, "--compute-type", "int8", "--backend", "libtorch"],
         "--compute-type int8", "runtime"),
        (["bpe"], "learn"),
        (["bpe", "lern"], "learn"),
        (["bpe", "learn"], "--merges"),
        (["bpe", "apply"], "--codes"),
        (["info"], "DIR"),
        (["text", "a.bin"], "--dictionary"),
        (["text", "--dictionary", "d"], "FILE"),
        (["translate", *model, "--input"], "--input"),
        (["train"], "CONFIG"),
        (["train", support.config(), "--set"], "--set"),
        (["train", support.config(), "--resume", "--init-from", "x"],
         "--init-from"),
        (["train", support.config(), "second.toml"], "second.toml"),
    ]
    for arguments, *wanted in table:
        yield Case(f"usage {arguments}", arguments, 2, *wanted)


def numbers_on_the_command_line():
    model = ["translate", "--model", "nowhere"]
    bad = ["x", "-1", "1.5", "", "99999999999999999999", "1e3", "0x10", " 3"]
    for flag in ("--beam", "--n-best", "--max-length-b", "--min-length",
                 "--no-repeat-ngram", "--batch-tokens", "--buffer-lines",
                 "--threads"):
        for value in bad:
            yield Case(f"{flag} {value!r}", [*model, f"{flag}={value}"], 2, flag)
    for flag in ("--length-penalty", "--max-length-a", "--unknown-penalty"):
        for value in ("x", "nan", "inf", "1e999", "", "1,5"):
            yield Case(f"{flag} {value!r}", [*model, f"{flag}={value}"], 2, flag)
    for value in ("0", "-3", "x", "1e9"):
        yield Case(f"--merges {value}", ["bpe", "learn", f"--merges={value}"],
                   2, "--merges")
    apply = ["bpe", "apply", "--codes", written("codes", "#version: 0.2\na b\n")]
    for value in ("-0.1", "1.5", "nan", "x"):
        yield Case(f"--dropout {value}", [*apply, f"--dropout={value}"], 2,
                   "--dropout")
    yield Case("--seed without --dropout", [*apply, "--seed", "3"], 2,
               "--dropout")
    yield Case("dropout of odd lines", [*apply, "--dropout", "0.5"], 0,
               stdin="ab\n\n  ab  ba \u3000\r\nx".encode() + b"ab" * 2000)


def evaluate():
    good = written("ref.txt", "a b c d e\nf g h i j\n")
    pair = b"a b c d e\nf g h i j\n"
    bleu = ["evaluate", "bleu", "--reference"]
    yield Case("good", [*bleu, good], 0, stdin=pair)
    yield Case("no reference", [*bleu, "nowhere.txt"], 1, "nowhere.txt",
               stdin=pair)
    yield Case("reference is a folder", [*bleu, support.scratch()], 1, "folder",
               stdin=pair)
    yield Case("too few hypotheses", [*bleu, good], 1, "ref.txt", "2", "1",
               stdin=b"a\n")
    yield Case("too many hypotheses", [*bleu, good], 1, "ref.txt", "2", "3",
               stdin=pair + b"k\n")
    yield Case("nothing at all", [*bleu, written("empty", "")], 1,
               "no hypotheses")
    yield Case("one of two references short",
               [*bleu, good, written("short.txt", "a\n")], 1, "short.txt",
               stdin=pair)
    yield Case("garbage reference", [*bleu, written("garbage", GARBAGE)], 1,
               "garbage:", stdin=pair)
    yield Case("latin-1 reference",
               [*bleu, written("latin1", b"a\nf\xfcnf\n")], 1, "latin1:2",
               stdin=pair)
    for name, stdin in (
        ("invalid UTF-8", b"a \xff\nb\n"), ("NUL", b"a \0 b\nc\n"),
        ("CRLF", b"a b\r\nc\r\n"), ("mark", b"\xef\xbb\xbfa\nb\n"),
        ("no final newline", b"a\nb"), ("blank", b"\n\n"),
        ("long words", b"x" * LONG + b"\n" + b"y " * LONG + b"\n"),
    ):
        for metric in ("bleu", "chrf", "ter", "rouge", "exact"):
            yield Case(f"{metric} of {name}",
                       ["evaluate", metric, "-r", good], 0, stdin=stdin)
    for tokenizer, lack in (("spm", "SentencePiece model"),
                            ("ja-mecab", "MeCab")):
        yield Case(f"tokenizer {tokenizer}",
                   [*bleu, good, "--tokenizer", tokenizer], 2, tokenizer, lack,
                   stdin=pair)
    # Builds without MeCab refuse any dictionary, others what is none.
    for folder in (support.scratch() / "nowhere", support.scratch(), good):
        yield Case(f"MeCab's dictionary {folder}",
                   [*bleu, good, "--tokenizer", "ja-mecab",
                    "--mecab-dictionary", folder], (1, 2), "MeCab", stdin=pair)
    for tokenizer in ("13a", "none", "intl", "char", "zh"):
        yield Case(f"tokenizer {tokenizer}, odd Unicode",
                   [*bleu, good, "--tokenize", tokenizer], 0,
                   stdin="\u2028 \U0001F600\u0301 \u202e\nß ﬁ Ⅷ\n".encode())
    yield from evaluate_flags(good, pair)
    yield from evaluate_json(good, pair)


def evaluate_flags(good, pair):
    system = written("system.txt", pair)
    both = ["-r", good, "--hypotheses", system, written("other.txt", pair)]
    nowhere = support.scratch() / "nowhere"
    for metric, flags, code, *words in (
        ("bleu", ["-r", good, "--paired", "ar"], 2, "--hypotheses", "two"),
        ("bleu", ["-r", good, "--hypotheses", system, "--paired", "bs"], 2,
         "names 1"),
        ("bleu", [*both, "--paired", "t"], 2, "--paired", "'bs' or 'ar'"),
        ("bleu", [*both, "--baseline", system], 2, "--paired"),
        ("bleu", [*both, "--paired", "ar", "--baseline", "x"], 2,
         "--baseline", "'x'"),
        ("bleu", [*both, "--samples", "9"], 2, "--confidence"),
        ("bleu", [*both, "--seed", "9"], 2, "--seed", "--confidence"),
        ("bleu", [*both, "--confidence", "--samples", "1"], 2, "--samples"),
        ("bleu", [*both, "--confidence", "--seed", "-1"], 2, "--seed"),
        ("bleu", ["-r", good, "--hypotheses", nowhere], 1, "nowhere"),
        ("bleu", ["-r", good, "--hypotheses", support.scratch()], 1, "folder"),
        ("chrf", ["-r", good, "--hypotheses", written("one", "a\n")], 1,
         "one", "has 1"),
        ("bleu", ["-r", good, "--format", "xml"], 2, "--format"),
        ("bleu", ["-r", good, "--spm-model", good], 2, "--tokenizer spm"),
        ("bleu", ["-r", good, "--tokenizer", "spm", "--spm-model", nowhere], 1,
         "nowhere"),
        ("bleu", ["-r", good, "--tokenizer", "spm", "--spm-model", good], 1,
         "ref.txt"),
        ("bleu", ["-r", good, "--mecab-dictionary", nowhere], 2,
         "--tokenizer ja-mecab"),
        ("bleu", ["-r", good, "--tokenizer", "ja-mecab", "--spm-model", good],
         2, "--tokenizer spm"),
        ("bleu", ["-r", good, "--style", "multi-bleu", "--tokenizer",
                  "ja-mecab"], 2, "tokenizer", "multi-bleu"),
        ("bleu", ["-r", good, "--tokenizer", "mecab"], 2, "'ja-mecab'",
         "'mecab'"),
        ("bleu", ["-r", good, "--threads=-1"], 2, "--threads"),
        ("ter", ["-r", good, "--threads", "1025"], 2, "--threads", "1024"),
        ("rouge", ["-r", good, "--threads", "many"], 2, "--threads"),
        ("rouge", ["-r", good, "--values", "f1"], 2, "--values", "'recall'",
         "'f1'"),
        ("rouge", ["-r", good, "--values"], 2, "--values"),
        ("bleu", ["-r", good, "--values", "f"], 2, "--values"),
        ("bleu", [*both, "--sentence", "--paired", "bs"], 2, "--sentence"),
        ("bleu", ["-r", good, "--sentence", "--confidence"], 2, "--sentence"),
        ("bleu", ["-r", good, "--smooth-value", "1"], 2, "--smooth-value"),
        ("bleu", ["-r", good, "--order", "17"], 2, "--order", "16"),
        ("rouge", ["-r", good, "--max-words", "1", "--max-bytes", "1"], 2,
         "--max-words", "--max-bytes"),
        ("rouge", ["-r", good, "--order", "0"], 2, "order"),
        ("rouge", ["-r", good, "--order", "10"], 2, "order"),
        ("rouge", ["-r", good, "--alpha", "1.5"], 2, "alpha"),
        ("rouge", ["-r", good, "--combine", "worst"], 2, "--combine"),
        ("rouge", ["-r", good, "--exceptions", nowhere], 1, "nowhere"),
        ("rouge", ["-r", good, "--no-stem", "--exceptions", nowhere], 2,
         "exceptions"),
        ("rouge", ["-r", good, "--style", "rouge_score", "--combine", "best"],
         2, "combine"),
        ("meteor", ["-r", good], 2, "meteor"),
    ):
        yield Case(f"evaluate {metric} {flags[2:]}",
                   ["evaluate", metric, *flags], code, *words, stdin=pair)


def evaluate_json(good, pair):
    for name, line, *words in (
        ("no JSON", "{'t': 1}", "not valid JSON"),
        ("half of one", '{"t": "a"', "not valid JSON"),
        ("twins", '{"t": "a", "t": "b"}', "'t' comes twice"),
        ("a list", '["a"]', "JSON object"),
        ("two of them", '{"t": "a"} {"t": "b"}', "not valid JSON"),
        ("a comma too many", '{"t": "a",}', "not valid JSON"),
        ("a text alone", '"t"', "JSON object"),
        ("a name without quotes", '{t: "a"}', "not valid JSON"),
        ("a control character", '{"t": "a\tb"}', "not valid JSON"),
        ("not a number", '{"t": NaN}', "not valid JSON"),
        ("a key in other letters", '{"T": "a"}', 'no "t"'),
        ("true", '{"t": true}', "a text or a list of texts", "true"),
        ("an object", '{"t": {"t": "a"}}', "a text or a list of texts"),
        ("a list in a list", '{"t": [["a"]]}', "a text or a list of texts"),
        ("no key", '{"s": "a"}', 'no "t"'),
        ("a number", '{"t": 3}', "a text or a list of texts", "3"),
        ("no texts", '{"t": []}', "a text or a list of texts"),
        ("texts and numbers", '{"t": ["a", 1]}', "a text or a list of texts"),
        ("deep", '{"t":' * 300000 + "1" + "}" * 300000, "nested too deep"),
        ("invalid UTF-8 escaped", '{"t": "\\ud800"}', "not valid JSON"),
    ):
        file = f"{name.replace(' ', '_')}.jsonl"
        lines = written(file, '{"t": "a"}\n' + line + "\n")
        for side, flags in (
            ("references", ["-r", lines, "--reference-key", "t"]),
            ("hypotheses", ["-r", good, "--hypotheses", lines,
                            "--hypothesis-key", "t"]),
        ):
            yield Case(f"JSON {side}: {name}", ["evaluate", "bleu", *flags], 1,
                       f"{file}:2", *words, stdin=pair)
    for name, line in (("null", "null"), ("a list of null", "[null]")):
        nothing = written("nothing.jsonl",
                          f'{{"t": "a"}}\n\n{{"t": {line}}}\n')
        yield Case(f"references: {name}",
                   ["evaluate", "bleu", "-r", nothing, "--reference-key", "t"],
                   1, "nothing.jsonl:3", "at least one reference", stdin=pair)
        yield Case(f"hypotheses: {name}",
                   ["evaluate", "bleu", "-r", good, "--hypotheses", nothing,
                    "--hypothesis-key", "t"], 1, "nothing.jsonl:3",
                   "a text or a list of texts")
    uneven = written("uneven.jsonl", '{"t": ["a", "b"]}\n{"t": ["a", null]}\n')
    yield Case("references of another number",
               ["evaluate", "rouge", "-r", uneven, "--reference-key", "t"], 0,
               stdin=pair)
    yield Case("blank lines between objects",
               ["evaluate", "bleu", "-r", written(
                   "gaps.jsonl", '\n{"t": "a"}\n \n{"t": "b"}\n\n'),
                "--reference-key", "t"], 0, stdin=pair)
    several = written("several.jsonl", '{"t": ["a", "b"]}\n{"t": "a"}\n')
    yield Case("two hypotheses in a line",
               ["evaluate", "rouge", "-r", good, "--hypotheses", several,
                "--hypothesis-key", "t"], 1, "several.jsonl:1",
               "one hypothesis a line")
    lines = written("one.jsonl", '{"t": "a"}\n')
    two = written("two.txt", "a\nb\n")
    for name, flags, *words in (
        ("too few references in JSON", ["-r", lines, "--reference-key", "t"],
         "one.jsonl has 1", "has 2"),
        ("too few hypotheses in JSON",
         ["-r", two, "--hypotheses", lines, "--hypothesis-key", "t"],
         "two.txt has 2", "one.jsonl has 1"),
        ("text where there should be JSON",
         ["-r", two, "--reference-key", "t"], "two.txt:1", "not valid JSON"),
        ("one system of two is short",
         ["-r", two, "--hypotheses", two, written("short.txt", "a\n")],
         "two.txt has 2", "short.txt has 1"),
        ("a key with too many dots", ["-r", lines, "--reference-key", "t."],
         "one.jsonl:1", 'no "t."'),
        ("a key of dots", ["-r", lines, "--reference-key", ".."],
         "one.jsonl:1", 'no ".."'),
    ):
        yield Case(name, ["evaluate", "rouge", *flags], 1, *words, stdin=pair)
    yield Case("a key inside a text",
               ["evaluate", "bleu", "-r", uneven, "--reference-key", "t.x"], 1,
               "uneven.jsonl:1", 'no "t.x"', stdin=pair)


def tokenize():
    verb = ["tokenize", "--language"]
    yield Case("no language", ["tokenize"], 2, "--language")
    yield Case("language ''", [*verb, ""], 2, "--language must have a value")
    for language in ("german", "DE", "de-DE", "d"):
        yield Case(f"language '{language}'", [*verb, language], 2, "--language",
                   "two or three small letters", f"'{language}'")
    for flag in ("--escape", "--split-dashes", "--lowercase"):
        yield Case(f"undo with {flag}", [*verb, "en", "--undo", flag], 2, flag,
                   "--undo")
    yield Case("invalid UTF-8", [*verb, "en"], 1, "standard input:2",
               stdin=b"abc\n\xff\n")
    for undo in ([], ["--undo"]):
        for name, stdin in (
            ("nothing", b""), ("blank lines", b"\n \n\n"), ("CRLF", b"abc\r\n"),
            ("control characters", b"\x01\x1b\x7f.\n"),
            ("a long word", b"abc" * LONG), ("a long line", b"abc. " * LONG),
            ("dots", b"." * LONG), ("dashes", b"-" * LONG),
            ("ampersands", b"&" * LONG), ("quotes", b"'\" " * LONG),
        ):
            yield Case(f"{name} {undo}", [*verb, "en", *undo], 0, stdin=stdin)


def bpe():
    apply = ["bpe", "apply", "--codes"]
    for name, content, wanted in (
        ("one column", "#version: 0.2\nab\n", ":2"),
        ("bad version", "#version: 9.9\na b\n", "9.9"),
        ("garbage", GARBAGE, "codes"),
        ("four columns", "#version: 0.2\na b c d\n", ":2"),
        ("invalid UTF-8", b"#version: 0.2\na \xff\n", ":2"),
    ):
        path = written(f"codes {name}", content)
        yield Case(f"codes: {name}", [*apply, path], 1, "codes", wanted)
    yield Case("codes missing", [*apply, "nowhere"], 1, "nowhere")
    yield Case("codes are a folder", [*apply, support.scratch()], 1)
    good = written("good codes", "#version: 0.2\na b\nab c\n")
    vocabulary = written("bad vocabulary", "a@@ 3\nb\n")
    for flags, code, *wanted in (
        (["--vocabulary", vocabulary], 1, "bad vocabulary:2", "symbol count"),
        (["--vocabulary", "nowhere"], 1, "nowhere"),
        (["--vocabulary-threshold", "3"], 2, "--vocabulary"),
        (["--glossaries", "ok", "(a"], 2, "'(a'", "regular expression"),
        (["--glossaries", "\\u12"], 2, "'\\u12'", "regular expression"),
        (["--merges", "-1"], 2, "--merges"),
    ):
        yield Case(f"apply {flags[0]}", [*apply, good, *flags], code, *wanted, stdin=b"abc\n")
    yield Case("invalid UTF-8", [*apply, good], 1, "standard input:2",
               stdin=b"abc\n\xff\n")
    for name, stdin in (
        ("nothing", b""), ("blank lines", b"\n \n\n"), ("CRLF", b"abc\r\n"),
        ("a long word", b"abc" * LONG), ("a long line", b"abc " * LONG),
    ):
        yield Case(f"apply to {name}", [*apply, good], 0, stdin=stdin)
    learn = ["bpe", "learn", "--merges", "10"]
    yield Case("learn from nothing", learn, 1)
    yield Case("learn from blanks", learn, 1, stdin=b"\n  \n")
    yield Case("learn from garbage", learn, 1, "standard input:",
               stdin=GARBAGE)
    yield Case("learn from a missing file", [*learn, "nowhere"], 1, "nowhere")
    yield Case("learn from a folder", [*learn, support.scratch()], 1)
    yield Case("learn from a long word", learn, 0, stdin=b"ab" * LONG)


def gone_working_folder():
    def enter_and_remove():
        folder = tempfile.mkdtemp(dir=support.scratch())
        os.chdir(folder)
        os.rmdir(folder)

    source, data = support.data() / "valid.src", support.data() / "valid.tgt"
    model, language = support.model(), support.language_model()
    for verb in (
        ["translate", "--model", model], ["translate", "--model", "nowhere"],
        ["score", "--model", model, "--source", source, "--target", data],
        ["perplexity", "--model", language], ["generate", "--model", language],
        ["train", support.config(), "--output", "run"], ["train", "--help-config"],
        ["train", support.config(), "--output", support.scratch() / "x", "--dry-run"],
        ["evaluate", "bleu", "--reference", "nowhere"],
        ["average", "--output", "mean", model],
        ["quantize", "--model", model, "--output", "int8"], ["tokenize", "--language", "de"],
        ["bpe", "learn", "--merges", "1"], ["info", "."],
        ["export", "--format", "fairseq", model, "out.pt"],
        ["reference", "configuration"], ["text", "--dictionary", "d", "x.bin"],
        ["import", "--checkpoint", "x", "--output", "y"],
    ):
        yield Case(f"{verb[:3]} in a folder that is gone", verb, 2, "working folder",
                   stdin=b"1\n", preexec_fn=enter_and_remove)
    for flag in ("--help", "--version"):
        yield Case(f"{flag} in a folder that is gone", [flag], 0,
                   preexec_fn=enter_and_remove)


FAMILIES = [
    usage,
    gone_working_folder,
    numbers_on_the_command_line,
    evaluate,
    tokenize,
    bpe,
]
