"""Model folders that are damaged, or were made to do harm."""

import json
import random
import struct

import support
from hostile.case import GARBAGE, TRANSLATE, Case, written


def spoiled(name, file, change):
    """A copy of the model with one file changed."""
    folder = support.copy_model(f"spoiled-{name}")
    path = folder / file
    path.write_bytes(change(path.read_bytes()))
    return folder


def opens(folder, name, codes, *wanted):
    yield Case(f"translate, {name}",
               ["translate", *TRANSLATE, "--model", folder], codes, *wanted,
               stdin=b"1 2\n")
    shown = (0, 1) if 1 in ((codes,) if isinstance(codes, int) else codes) else 0
    yield Case(f"info, {name}", ["info", folder], shown)


def no_models():
    for name, path in (
        ("nothing", "nowhere"), ("an empty folder", written("e/x", "").parent),
        ("a text file", written("text.safetensors", "hello")),
        ("a device", "/dev/null"),
    ):
        yield from opens(path, f"model is {name}", 1)
        yield Case(f"score, model is {name}",
                   ["score", "--model", path, "--source", support.config(),
                    "--target", support.config()], 1)
        yield Case(f"average, model is {name}",
                   ["average", "--output", support.scratch() / "m", path], 1)
    for command in (["translate", *TRANSLATE, "--model", ""], ["info", ""],
                    ["average", "--output", support.scratch() / "m", ""]):
        yield Case(f"{command[0]}, model is an empty name", command, 2,
                   "must have a value")


def truncated_checkpoints():
    size = (support.model() / "model.safetensors").stat().st_size
    for keep in (0, 1, 7, 8, 9, 50, 500, size // 2, size - 1):
        folder = spoiled(f"cut{keep}", "model.safetensors", lambda b: b[:keep])
        yield from opens(folder, f"checkpoint cut to {keep}", 1,
                         "model.safetensors")
    folder = spoiled("longer", "model.safetensors", lambda b: b + b"\0" * 9)
    yield from opens(folder, "checkpoint with a tail", 1, "model.safetensors")
    folder = support.copy_model("spoiled-gone")
    (folder / "model.safetensors").unlink()
    yield from opens(folder, "checkpoint gone", 1, "model.safetensors")


def corrupted_checkpoints():
    good = (support.model() / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", good[:8])
    for value in (0, 1, length - 1, length + 1, 10**8, 2**63, 2**64 - 1):
        folder = spoiled(f"length{value}", "model.safetensors",
                         lambda b: struct.pack("<Q", value) + b[8:])
        yield from opens(folder, f"header length {value}", 1,
                         "model.safetensors")
    generator = random.Random(3)
    for i in range(16):  # every region of the header
        place = 8 + length * i // 16 + generator.randrange(length // 16)
        byte = generator.randrange(256)
        folder = spoiled(
            f"header{i}", "model.safetensors",
            lambda b: b[:place] + bytes([byte]) + b[place + 1:])
        yield from opens(folder, f"header byte {place} is {byte}", (0, 1))
    for i in range(3):
        place = 8 + length + (len(good) - 8 - length - 64) * i // 3
        folder = spoiled(
            f"data{i}", "model.safetensors",
            lambda b: b[:place] + b"\xff" * 64 + b[place + 64:])
        yield Case(f"translate, data byte {place} is NaN",
                   ["translate", *TRANSLATE, "--model", folder], 1,
                   "model.safetensors: parameter '", "NaN", stdin=b"1 2\n")
        yield Case(f"start from data with NaN at byte {place}",
                   ["train", support.config(), "--init-from", folder,
                    "--output", support.scratch() / f"from-nan-{i}"], 1, "NaN")
        yield Case(f"export, data byte {place} is NaN",
                   ["export", "--format", "pytorch", folder,
                    support.scratch() / f"nan-{i}.pt"], 1, "parameter '", "NaN")
        yield Case(f"info, data byte {place} is NaN", ["info", folder], 1,
                   "the model cannot be used: ", "parameter '", "NaN")


def rewritten_checkpoints():
    """Headers that are JSON, but not what they should be."""
    good = (support.model() / "model.safetensors").read_bytes()
    (length,) = struct.unpack("<Q", good[:8])
    header = json.loads(good[8 : 8 + length])
    body = good[8 + length :]
    names = [name for name in header if name != "__metadata__"]
    first, second = names[0], names[1]

    def build(change):
        table = json.loads(json.dumps(header))
        replaced = change(table)
        text = json.dumps(table if replaced is None else replaced).encode()
        return struct.pack("<Q", len(text)) + text + body

    def entry(key, value):
        return lambda table: table[first].__setitem__(key, value)

    for name, change in {
        "a list": lambda t: [],
        "empty": lambda t: {},
        "without a tensor": lambda t: t.pop(first) and None,
        "renamed": lambda t: t.__setitem__("frob", t.pop(first)),
        "an unknown type": entry("dtype", "F99"),
        "whole numbers": entry("dtype", "I32"),
        "a number for a type": entry("dtype", 3),
        "another shape": entry("shape", header[first]["shape"][::-1] + [1]),
        "a negative shape": entry("shape", [-1]),
        "a huge shape": entry("shape", [2**62, 8]),
        "a text shape": entry("shape", "x"),
        "no shape": lambda t: t[first].pop("shape") and None,
        "offsets swapped": entry(
            "data_offsets", header[first]["data_offsets"][::-1]),
        "offsets outside": entry("data_offsets", [0, 2**60]),
        "negative offsets": entry("data_offsets", [-8, 0]),
        "one offset": entry("data_offsets", [0]),
        "an overlap": entry("data_offsets", header[second]["data_offsets"]),
        "metadata of numbers": lambda t: t.__setitem__("__metadata__", {"a": 1}),
        "a list for a tensor": lambda t: t.__setitem__(first, []),
    }.items():
        folder = spoiled(f"rewritten-{name.replace(' ', '-')}",
                         "model.safetensors", lambda b: build(change))
        yield from opens(folder, f"header: {name}", 1, "model.safetensors")
    deep = b'{"a":' * 20000 + b"1" + b"}" * 20000
    folder = spoiled("deep", "model.safetensors",
                     lambda b: struct.pack("<Q", len(deep)) + deep)
    yield from opens(folder, "a deep header", 1, "model.safetensors")


def model_descriptions():
    good = json.loads((support.model() / "config.json").read_text())

    def changed(path, value):
        table = json.loads(json.dumps(good))
        inner = table
        for key in path[:-1]:
            inner = inner[key]
        if value is None:
            del inner[path[-1]]
        else:
            inner[path[-1]] = value
        return json.dumps(table)

    for name, content, *wanted in (
        ("empty", ""), ("garbage", GARBAGE), ("a list", "[]"),
        ("a number", "3"), ("deep", "[" * 100_000 + "]" * 100_000),
        ("cut", json.dumps(good)[:200]),
        ("invalid UTF-8", b'{"format": "\xff"}'),
        ("another format", changed(["format"], "else"), "format"),
        ("a later version", changed(["format_version"], 7), "version"),
        ("a huge version", changed(["format_version"], 2**70), "version"),
        ("no format", changed(["format"], None), "format"),
        ("no version", changed(["format_version"], None), "format_version"),
        ("no architecture", changed(["architecture"], None), "architecture"),
        ("no text", changed(["text"], None), "text"),
        ("text is a list", changed(["text"], [])),
        ("architecture is a list", changed(["architecture"], [])),
        ("unknown key", changed(["architecture", "dimm"], 3), "dim"),
        ("another width", changed(["architecture", "dim"], 32), "shape"),
        ("a huge width", changed(["architecture", "dim"], 2**40), ""),
        ("more layers",
         changed(["architecture", "encoder", "layers"], 3), ""),
        ("a million layers",
         changed(["architecture", "encoder", "layers"], 10**6), ""),
        ("a later key", changed(["architecture", "input_dim"], 16),
         "format_version"),
        ("a later key of a side",
         changed(["architecture", "decoder", "conv_dim"], [32]),
         "format_version"),
        ("a later key of the text",
         changed(["text", "max_source_tokens"], 9), "format_version 5"),
        ("a cut of nothing", changed(["text", "max_source_tokens"], 0),
         "from 2 on"),
        ("pieces without slots", changed(["text", "protect"], ["urls"]), "'<slot:1>' is missing"),
        ("pieces of no kind", changed(["text", "protect"], ["names"]), "placeholders"),
        ("pieces that are a number", changed(["text", "protect"], 3), "protect"),
        ("pieces of numbers", changed(["text", "protect"], [3]), "placeholders"),
        ("wrong heads", changed(["architecture", "encoder", "heads"], 3),
         "heads"),
        ("no subword", changed(["text", "subword"], None), ""),
        ("unknown subword", changed(["text", "subword"], "x"), "subword"),
        ("no source", changed(["text", "source"], None), ""),
        ("dictionary above", changed(["text", "source", "dictionary"],
                                     "../dict.txt"), "inside"),
        ("dictionary elsewhere", changed(["text", "source", "dictionary"],
                                         "/etc/passwd"), "inside"),
        ("dictionary is a number",
         changed(["text", "source", "dictionary"], 3), ""),
        ("wrong sample", changed(["text", "source", "samples", 0, "ids"],
                                 [4, 4, 4]), "wrong vocabulary"),
        ("samples are text", changed(["text", "source", "samples"], "x"), ""),
        ("beam 0", changed(["decoding", "beam"], 0), "beam"),
        ("unknown task", changed(["task"], "x"), "task must be", "'x'"),
        ("task is a number", changed(["task"], 3), "task must be"),
        ("cutoffs above the vocabulary", changed(["architecture"], {
            **good["architecture"], "tie": "none",
            "adaptive": {"softmax_cutoffs": [10**6]}}), "softmax_cutoffs"),
    ):
        folder = spoiled(f"described-{name.replace(' ', '-')}", "config.json",
                         lambda b: content if isinstance(content, bytes)
                         else content.encode())
        yield from opens(folder, f"config.json: {name}", 1, *wanted)
        for command in (
            ["score", "--source", support.config(), "--target",
             support.config(), "--model", folder],
            ["average", "--output", support.scratch() / "m", folder],
            ["quantize", "--output", support.scratch() / "m", "--model", folder],
            ["export", "--format", "pytorch", folder, support.scratch() / "m.pt"],
        ):
            yield Case(f"{command[0]}, config.json: {name}", command, 1,
                       *wanted)


def vocabularies():
    good = (support.model() / "dict.txt").read_bytes()
    lines = good.splitlines(keepends=True)
    for name, content, *wanted in (
        ("empty", b""), ("garbage", GARBAGE, "dict.txt"),
        ("swapped", b"".join([lines[1], lines[0]] + lines[2:]),
         "wrong vocabulary"),
        ("reversed", b"".join(lines[::-1]), "wrong vocabulary"),
        ("of another model", b"hello 3\nworld 2\n" * 1, "vocabulary"),
        ("cut", good[:-20]), ("one more", good + b"extra 1\n" * 1),
        ("twins", lines[0] + good, "dict.txt"),
        ("without counts", b"a\nb\n", "dict.txt:1"),
        ("invalid UTF-8", b"\xff 1\n" + good, "dict.txt:1"),
    ):
        folder = spoiled(f"dict-{name.replace(' ', '-')}", "dict.txt",
                         lambda b: content)
        yield from opens(folder, f"dict.txt: {name}", 1, *wanted)
    folder = support.copy_model("spoiled-no-dict")
    (folder / "dict.txt").unlink()
    yield from opens(folder, "dict.txt: gone", 1, "dict.txt")


def training_states():
    def case(name, change, *wanted):
        folder = spoiled(f"state-{name.replace(' ', '-')}",
                         "training/state.safetensors", change)
        return Case(f"resume, state {name}",
                    ["train", support.config(), "--resume", "--output", folder,
                     "--set", "training.max_updates=6"], 1, *wanted)

    size = (support.model() / "training/state.safetensors").stat().st_size
    for keep in (0, 8, 300, size // 2, size - 1):
        yield case(f"cut to {keep}", lambda b: b[:keep], "state.safetensors")
    for place in (size // 2, size - 5):
        yield case(f"changed at {place}",
                   lambda b: b[:place] + b"\x55\xaa" + b[place + 2:],
                   "state.safetensors")
    yield case("garbage", lambda b: GARBAGE, "state.safetensors")
    for name, content in (
        ("empty", b""), ("cut", (support.model() / "config.json").read_bytes()[:99]),
        ("a list", b"[1]"), ("an empty object", b"{}"), ("garbage", GARBAGE),
        ("separators", b'{"text": "\xe2\x80\xa8\xc2\x85" "\xff\n"}'),
    ):
        folder = spoiled(f"resume-config-{name.replace(' ', '-')}", "config.json",
                         lambda b: content)
        yield Case(f"resume, config.json is {name}",
                   ["train", support.config(), "--resume", "--output", folder,
                    "--set", "training.max_updates=6"], 1, "config.json: ")
    for assignment, wanted in (("model.dim=32", "model.dim"),
                               ("training.seed=9", "seed")):
        folder = support.copy_model(f"resume-other-{wanted}")
        yield Case(f"resume with {assignment}",
                   ["train", support.config(), "--resume", "--output", folder,
                    "--set", assignment], (1, 2), wanted)


def settings_of_runs():
    """A warning says that they cannot be read; the model is whole without them."""
    for name, content in (
        ("garbage", GARBAGE), ("empty", b""), ("without text", b"[model]\ndim = 4\n"),
        ("a list", b"text = []\n"), ("of other types", b"[text]\njoined = 3\n"),
    ):
        stem = f"run-settings-{name.replace(' ', '-')}"
        folder = spoiled(stem, "training/config.toml", lambda b: content)
        yield Case(f"start from a run, config.toml is {name}",
                   ["train", support.config(), "--init-from", folder, "--output",
                    support.scratch() / f"from-{stem}", "--set",
                    "training.max_updates=1"], 0)


FAMILIES = [
    no_models,
    truncated_checkpoints,
    corrupted_checkpoints,
    rewritten_checkpoints,
    model_descriptions,
    vocabularies,
    training_states,
    settings_of_runs,
]
