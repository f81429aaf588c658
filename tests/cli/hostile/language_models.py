"""Bad input of language models."""

import json
import os

import support
from hostile.case import GARBAGE, Case, written


def language_model_flags():
    model = ["--model", "nowhere"]
    for verb in ("perplexity", "generate"):
        yield Case(f"{verb} alone", [verb], 2, "--model")
        yield Case(f"{verb} extra", [verb, *model, "extra"], 2, "extra")
    bad = ["x", "-1", "1.5", "", "99999999999999999999", "1e3", " 3"]
    for verb, *flags in (
        ("perplexity", "--block", "--context-window", "--batch-tokens"),
        ("generate", "--length", "--seed", "--top-k"),
    ):
        for flag in flags:
            for value in bad:
                yield Case(f"{verb} {flag} {value!r}",
                           [verb, *model, f"{flag}={value}"], 2, flag)
    for flag, values in (
        ("--temperature", ("x", "nan", "inf", "-1", "")),
        ("--top-p", ("x", "nan", "0", "1.1", "-1", "")),
        ("--length", ("0",)),
    ):
        for value in values:
            yield Case(f"generate {flag} {value!r}",
                       ["generate", *model, f"{flag}={value}"], 2)


def texts_to_measure():
    base = ["perplexity", "--model", support.language_model()]
    for name, stdin, code, *wanted in (
        ("nothing", b"", 1, "no text to measure"),
        ("blank lines", b"\n \n\n", 1, "no text to measure", "blank"),
        ("an unknown symbol", b"eins\neins Q\n", 1, "standard input:2", "'Q'"),
        ("invalid UTF-8", b"eins\n\xff\n", 1, "standard input:2"),
        ("garbage", GARBAGE, 1, "standard input:"),
        ("NUL", b"eins\0zwei\n", 0), ("CRLF", b"eins\r\nzwei\r\n", 0),
        ("no newline", b"eins", 0),
        ("a byte-order mark", b"\xef\xbb\xbfeins\n", 0),
        ("a long line", b"eins " * 4000 + b"\n", 0),
    ):
        yield Case(f"measure {name}", base, code, *wanted, stdin=stdin)
    for flags, code, *wanted in (
        (["--context-window", "32"], 2, "block of 32"),
        (["--block", "5", "--context-window", "5"], 2, "block of 5"),
        (["--context-window", "2000000000"], 2, "2000000000"),
        (["--block", "2000000000"], 0), (["--batch-tokens", "2000000000"], 0),
        (["--block", "1"], 0), (["--context-window", "31"], 0),
    ):
        yield Case(f"measure with {flags}", [*base, *flags], code, *wanted,
                   stdin=b"eins zwei\n")


def texts_to_generate():
    base = ["generate", "--model", support.language_model()]
    short = [*base, "--length", "3"]
    prompt = written("prompt", "eins")
    for flags, code, *wanted in (
        (["--prompt", "Q"], 1, "the prompt", "'Q'"),
        (["--prompt-file", "nowhere"], 1, "nowhere"),
        (["--prompt-file", support.scratch()], 1),
        (["--prompt-file", written("prompt-garbage", GARBAGE)], 1),
        (["--prompt", "eins", "--prompt-file", prompt], 2, "--prompt-file"),
        (["--prompt-file", prompt], 0), (["--prompt", ""], 0),
        (["--prompt", "\n\n"], 0), (["--prompt", "eins " * 2000], 0),
        (["--top-k", "2000000000"], 0), (["--temperature", "1e300"], 0),
        (["--temperature", "1e-300"], 0), (["--top-p", "1e-300"], 0),
        (["--seed", "2147483647"], 0), (["--ban-unknown"], 0),
    ):
        yield Case(f"generate with {flags}"[:200], [*short, *flags], code,
                   *wanted)
    full = os.open("/dev/full", os.O_WRONLY)
    yield Case("no room for text", short, 1, "standard output", stdout=full)


def models_of_the_other_task():
    source = support.data() / "train.src"
    for verb in ("perplexity", "generate"):
        for name, path, *wanted in (
            ("nothing", "nowhere", "nowhere"),
            ("a translation model", support.model(), "a language model",
             "seqconv translate"),
        ):
            yield Case(f"{verb}, model is {name}", [verb, "--model", path], 1,
                       *wanted, stdin=b"eins\n")
    other = ["--model", support.language_model()]
    yield Case("translate with a language model", ["translate", *other], 1,
               "seqconv perplexity", stdin=b"1\n")
    yield Case("score with a language model",
               ["score", *other, "--source", source, "--target", source], 1,
               "seqconv perplexity")


def language_model_folders():
    good = json.loads((support.language_model() / "config.json").read_text())

    def spoil(name, file, content):
        folder = support.copy_model(f"language-{name.replace(' ', '-')}",
                                    of=support.language_model())
        (folder / file).write_text(content, encoding="utf-8")
        return folder

    def changed(path, value):
        table = json.loads(json.dumps(good))
        inner = table
        for key in path[:-1]:
            inner = inner[key]
        inner[path[-1]] = value
        return json.dumps(table)

    folders = [
        (name, spoil(name, "config.json", content), *wanted)
        for name, content, *wanted in (
            ("empty", ""), ("cut", json.dumps(good)[:300]),
            ("another task", changed(["task"], "parsing"), "task"),
            ("task of a number", changed(["task"], 3), "task must be"),
            ("no block", changed(["stream", "block_tokens"], 0), "block_tokens"),
            ("unknown samples", changed(["stream", "samples"], "x"), "samples"),
            ("stream is a list", changed(["stream"], [])),
            ("text is a list", changed(["text"], [])),
            ("another width", changed(["architecture", "dim"], 32), "shape"),
            ("post-norm", changed(["architecture", "norm"], "post"), "norm"),
            ("cutoffs", changed(["architecture", "adaptive", "softmax_cutoffs"],
                                [10**6]), "softmax_cutoffs"),
            ("unknown is text", changed(["text", "unknown"], "x")),
        )
    ]
    words = (support.language_model() / "dict.txt").read_text("utf-8")
    swapped = words.splitlines(keepends=True)
    swapped[0], swapped[1] = swapped[1], swapped[0]
    folders.append(("swapped words", spoil("swapped", "dict.txt",
                                           "".join(swapped)),
                    "wrong vocabulary"))
    for name, folder, *wanted in folders:
        for verb in ("perplexity", "generate"):
            yield Case(f"{verb}, {name}", [verb, "--model", folder], (1, 2),
                       *wanted, stdin=b"eins\n")


def language_model_training():
    empty = json.dumps(os.fspath(written("empty-text", "\n\n")))
    base = ["train", support.language_config(), "--dry-run"]
    for assignments, code, *wanted in (
        (["data.train=[]"], 2, "data.train"),
        (["data.train=nowhere"], 1, "data.train", "nowhere"),
        ([f"data.train={empty}"], 1, "blank"),
        (["data.block_tokens=0"], 2, "data.block_tokens"),
        (["data.samples=words"], 2, "data.samples"),
        (["task=parsing"], 2, "task"), (["task=translation"], 2, "data."),
        (["model.norm=post"], 2, "model.norm"),
        (["model.adaptive.softmax_cutoffs=[10,8]"], 2, "ascending"),
        (["model.adaptive.softmax_cutoffs=[2]"], 2, "at least 4"),
        (["model.adaptive.softmax_cutoffs=[100000]"], 2, "vocabulary"),
        (["model.adaptive.input_cutoffs=[100000]"], 2, "vocabulary"),
        (["model.adaptive.softmax_cutoffs=[8]",
          "model.adaptive.softmax_factor=1000"], 2, "softmax_factor"),
        (["model.adaptive.input_cutoffs=[8]",
          "model.adaptive.input_factor=0"], 2, "input_factor"),
        (["decoding.beam=3"], 2, "[decoding]"),
        (["training.validate_bleu=true"], 2, "validate_bleu"),
        (["model.positions=learned", "model.max_positions=16"], 2,
         "block_tokens"),
    ):
        arguments = list(base)
        for assignment in assignments:
            arguments += ["--set", assignment]
        yield Case(f"language model {assignments}", arguments, code, *wanted)


FAMILIES = [
    language_model_flags,
    texts_to_measure,
    texts_to_generate,
    models_of_the_other_task,
    language_model_folders,
    language_model_training,
]
