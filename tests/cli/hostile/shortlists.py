"""Bad shortlists, and bad text to learn one from."""

import functools
import os

import support
from hostile.case import GARBAGE, TRANSLATE, Case, written


@functools.cache
def pairs():
    return (written("shortlist.source", "1 2\n3\n4 5\n"),
            written("shortlist.target", "eins zwei\ndrei\nvier fünf\n"))


def learn(model, output, source=None, target=None):
    return ["shortlist", "--model", model, "--output", output,
            "--source", source or pairs()[0], "--target", target or pairs()[1]]


@functools.cache
def good():
    path = support.scratch() / "good.shortlist"
    result = support.run(*learn(support.model(), path))
    assert result.code == 0, result.message
    return path.read_bytes()


def shortlist_files():
    content = good()
    other = support.copy_model("other-words")
    dictionary = other / "dict.txt"
    dictionary.write_bytes(dictionary.read_bytes() + b"extra 0\n")
    missing = support.scratch() / "no.shortlist"
    flipped = bytearray(content)
    flipped[-3] ^= 4
    for name, path, *wanted in (
        ("missing", missing, "no.shortlist"),
        ("a folder", support.scratch(), os.fspath(support.scratch())),
        ("empty", written("s0", b""), "s0"),
        ("garbage", written("s1", GARBAGE), "s1"),
        ("text", written("s2", "eins zwei\n"), "s2"),
        ("cut", written("s3", content[:-1]), "s3"),
        ("longer", written("s4", content + b"\0"), "s4"),
        ("a bit changed", written("s5", flipped), "s5: the shortlist is damaged"),
        ("of a later version",
         written("s6", content.replace(b"shortlist-1", b"shortlist-9")),
         "s6: this program reads shortlists of version 1"),
        ("of control characters",
         written("s8", content.replace(b"seqconv-shortlist-1",
                                       rb"\u001b[31m\u000aabc")),
         "s8: no shortlist, its format is"),
        ("of metadata that are no text",
         written("s9", content.replace(b'"seqconv-shortlist-1"',
                                       b'[["seqconv-short"],1]')), "s9"),
        ("a model's parameters", support.model() / "model.safetensors",
         "model.safetensors: no shortlist"),
    ):
        yield Case(f"shortlist: {name}",
                   ["translate", "--model", support.model(), *TRANSLATE,
                    "--shortlist", path], 1, *wanted, stdin=b"1 2\n")
    yield Case("shortlist: a good one",
               ["translate", "--model", support.model(), *TRANSLATE,
                "--shortlist", written("s7", content)], 0, stdin=b"1 2\n")


def texts_to_learn_a_shortlist_from():
    model = support.model()
    output = support.scratch() / "new.shortlist"
    source, target = pairs()
    kept = written("kept.source", "1\n2\n3\n")
    for name, arguments, code, *wanted in (
        ("no model", learn("nowhere", output), 1, "nowhere"),
        ("no text", learn(model, output, "nowhere.text"), 1, "nowhere.text"),
        ("another length", learn(model, output, written("t1", "1\n")), 1,
         "has 1 and"),
        ("empty texts",
         learn(model, output, written("t2", ""), written("t3", "")), 1,
         "no pairs to learn from"),
        ("blank lines", learn(model, output, written("t4", "\n \n\n")), 1,
         "3 have an empty side"),
        ("bad bytes", learn(model, output, written("t5", b"1\n\xff\n3\n")), 1,
         "t5:2: "),
        ("garbage", learn(model, output, written("t6", GARBAGE)), 1, "t6:"),
        ("two sources", [*learn(model, output), "--source", source], 1,
         "2 and 1"),
        ("its text as output", learn(model, kept, kept), 1,
         "names a file that --source reads"),
        ("a model's file as output", learn(model, model / "model.safetensors"),
         1, "a file of the folder that --model reads"),
        ("no folder for the output", learn(model, "/nowhere/at/all"), 1,
         "/nowhere/at/all"),
        ("a folder as output", learn(model, support.scratch()), 1,
         os.fspath(support.scratch())),
    ):
        yield Case(f"learn a shortlist: {name}", arguments, code, *wanted)


def shortlists_and_language_models():
    model = support.language_model()
    path = written("language.shortlist", good())
    new = support.scratch() / "language-new.shortlist"
    for verb in ("generate", "perplexity"):
        yield Case(f"{verb} with a shortlist",
                   [verb, "--model", model, "--shortlist", path], 2,
                   "--shortlist", stdin=b"eins\n")
    # Whatever the shortlist is: the model is the wrong one.
    for name, file in (("a good", path), ("no", support.scratch() / "no")):
        yield Case(f"translate with a language model and {name} shortlist",
                   ["translate", "--model", model, "--shortlist", file], 1,
                   "seqconv perplexity", os.fspath(model), stdin=b"eins\n")
    yield Case("learn a shortlist for a language model", learn(model, new), 1,
               "seqconv perplexity", os.fspath(model))


FAMILIES = [
    shortlist_files,
    texts_to_learn_a_shortlist_from,
    shortlists_and_language_models,
]
