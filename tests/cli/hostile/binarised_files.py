"""Bad binarised data of fairseq."""

import struct

import binarised
import support
from hostile.case import GARBAGE, TRANSLATE, Case, written


def spoiled_pair(name, index=None, data=None):
    """A good pair of files, one of which is changed; None removes it."""
    stem = support.scratch() / f"spoiled-{name.replace(' ', '-')}"
    path = binarised.mapped(stem, [[4, 5, 2], [6, 2]])
    for file, change in ((path.with_suffix(".idx"), index), (path, data)):
        if change is None:
            continue
        content = change(file.read_bytes())
        file.unlink()
        if content is not None:
            file.write_bytes(content)
    return path


def put(position, kind, *values):
    def change(content):
        content = bytearray(content)
        struct.pack_into(kind, content, position, *values)
        return bytes(content)
    return change


def binarised_files():
    """Names, files and what is said of them."""
    return [
        ("no index", spoiled_pair("no index", index=lambda x: None),
         "no-index.idx'"),
        ("no data", spoiled_pair("no data", data=lambda x: None),
         "no-data.bin'"),
        ("empty index", spoiled_pair("empty index", index=lambda x: b""),
         "first bytes"),
        ("garbage", spoiled_pair("garbage", index=lambda x: GARBAGE),
         "first bytes"),
        ("cut", spoiled_pair("cut", index=lambda x: x[:-1]), "truncated"),
        ("data cut", spoiled_pair("data cut", data=lambda x: x[:-1]),
         "sentence 2 has 2 ids"),
        ("huge count",
         spoiled_pair("huge count", index=put(18, "<Q", 2**64 - 1)),
         "does not fit"),
        ("floats", spoiled_pair("floats", index=put(17, "<B", 6)),
         "floating-point"),
        ("version 2", spoiled_pair("version 2", index=put(9, "<Q", 2)),
         "version 1 was wanted"),
        ("negative length", spoiled_pair("negative", index=put(26, "<i", -1)),
         "sentence 1 has -1 ids"),
        ("far away", spoiled_pair("far", index=put(42, "<q", 2**63 - 2)),
         "sentence 2 has 2 ids from"),
        ("negative place", spoiled_pair("before", index=put(34, "<q", -2)),
         "from id -1"),
        ("odd place", spoiled_pair("odd", index=put(34, "<q", 1)),
         "not a multiple"),
        ("another dictionary", spoiled_pair("ids", data=put(2, "<H", 60000)),
         "wrong dictionary for this data: sentence 1"),
        ("padding", spoiled_pair("padding", data=put(6, "<H", 1)),
         "sentence 2 holds <pad>"),
    ]


def binarised_data():
    dictionary = support.model() / "dict.txt"
    good = spoiled_pair("not at all")
    translate = ["translate", "--model", support.model(), *TRANSLATE]
    perplexity = ["perplexity", "--model", support.language_model()]
    score = ["score", "--model", support.model(), "--source"]
    text = ["text", "--dictionary", dictionary]
    yield Case("good pair", [*text, good], 0)
    for name, file, wanted in binarised_files():
        for verb in ([*translate, "--input"], [*perplexity, "--input"],
                     [*score, good, "--target"], text):
            yield Case(f"{verb[0]}, {name}", [*verb, file], 1, wanted)
    nothing = binarised.mapped(support.scratch() / "nothing", [])
    yield Case("translate nothing", [*translate, "--input", nothing], 0)
    yield Case("text of nothing", [*text, nothing], 0)
    yield Case("measure nothing", [*perplexity, "--input", nothing], 1,
               "no text to measure")
    yield Case("scores of unequal data", [*score, good, "--target", nothing],
               1, "as many lines")
    yield Case("JSON in data",
               [*translate, "--json-input", "--input", good], 2,
               "--json-input")
    yield Case("text of text", [*text, support.data() / "valid.src"], 1,
               "end in .bin or .idx")
    yield Case("input that is missing", [*translate, "--input", "nowhere"], 1,
               "nowhere")
    yield Case("input that is a folder",
               [*perplexity, "--input", support.scratch()], 1, "folder")
    yield Case("another dictionary.txt",
               ["text", "--dictionary", written("two.dict", "a 1\n"), good],
               1, "wrong dictionary for this data: sentence 1")
    yield Case("no dictionary", ["text", "--dictionary", "nowhere", good], 1,
               "nowhere")


def binarised_training():
    base = ["train", support.config(), "--output"]
    dictionary = support.model() / "dict.txt"
    given = ["--set", f"text.source_dictionary={dictionary}"]

    def sides(source, target):
        return ["--set", f"data.train_source={source}",
                "--set", f"data.train_target={target}"]

    good = spoiled_pair("train")
    for name, file, wanted in binarised_files():
        yield Case(f"train on {name}",
                   [*base, support.scratch() / f"b-{name}", *given,
                    *sides(good, file)], 1, wanted)
    yield Case("ids without a dictionary",
               [*base, support.scratch() / "b-ids", *sides(good, good)],
               2, "text.source_dictionary must name")
    yield Case("ids and text",
               [*base, support.scratch() / "b-ids-and-text", *given,
                *sides(good, support.data() / "train.tgt")], 2,
               "must both be binarised")
    other = binarised.mapped(support.scratch() / "three", [[4, 2]] * 3)
    yield Case("unequal data",
               [*base, support.scratch() / "b-unequal", *given,
                *sides(good, other)], 1,
               "same number of lines", "has 2", "has 3")
    empty = binarised.mapped(support.scratch() / "empty-lines", [[2]] * 2)
    yield Case("empty sentences",
               [*base, support.scratch() / "b-empty", *given,
                *sides(good, empty)], 1, "2 have an empty side")


FAMILIES = [
    binarised_data,
    binarised_training,
]
