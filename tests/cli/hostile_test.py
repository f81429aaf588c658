"""Bad input of every kind. Whatever comes, the program ends with the exit code
that the table states, kills nobody, and names on standard error what is wrong.

A family is a function that yields cases; to add one, add a line to a table.
"""

import concurrent.futures
import json
import os
import pathlib
import random
import resource
import shutil
import struct
import sys
import tomllib
import unittest

sys.path.insert(0, os.fspath(pathlib.Path(__file__).parent))
import binarised
import support
from support import run

FEWEST_CASES = 200
LONG = 100_000


class Case:
    """One run. `code`: the exit code, or several that are right; `wanted`:
    words that the message must hold (only asked for when the run fails)."""

    def __init__(self, name, arguments, code, *wanted, stdin=b"", **options):
        self.name = name
        self.arguments = arguments
        self.codes = (code,) if isinstance(code, int) else code
        self.wanted = wanted
        self.stdin = stdin
        self.options = options

    def complaint(self):
        """What is wrong with the program's answer, or None."""
        result = run(*self.arguments, stdin=self.stdin, **self.options)
        message = result.message
        said = f"{self.name}: exit code {result.code}, said: {message[-600:]}"
        if result.code not in self.codes:
            return f"{said}\nwanted exit code {self.codes}"
        if "terminate called" in message or "Sanitizer" in message:
            return said
        if "internal error" in message:
            return f"{said}\nan error of ours must have a message of ours"
        if result.code == 0:
            return None
        if "error: " not in message:
            return f"{said}\nwanted a line with 'error: '"
        if len(message) > 20_000:
            return f"{self.name}: a message of {len(message)} characters"
        for word in self.wanted:
            if word not in message:
                return f"{said}\nwanted {word!r} in the message"
        return None


def written(name, content):
    """A file of the scratch folder with this content."""
    path = support.scratch() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, str):
        content = content.encode()
    path.write_bytes(content)
    return path


GARBAGE = random.Random(7).randbytes(4096)
TRANSLATE = ["--max-length-b", "5", "--beam", "2"]


# The command line

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
        (["translate", *model, "--beam", "2", "--n-best", "3"], "n_best"),
        (["score", *model], "--source"),
        (["score", *model, "--source", "a"], "--target"),
        (["score", *model, "--source", "a", "--target"], "--target"),
        (["evaluate"], "bleu"),
        (["evaluate", "blue"], "bleu"),
        (["evaluate", "bleu"], "--reference"),
        (["evaluate", "bleu", "--reference", "a", "--tokenize", "zh"], "zh"),
        (["evaluate", "bleu", "--reference", "a", "--style", "x"], "--style"),
        (["evaluate", "bleu", "--reference", "a", "--smooth", "add"], "add"),
        (["evaluate", "bleu", "-r", "a", "--compound-split"], "compound_split"),
        (["evaluate", "chrf", "-r", "a", "--word-order", "99"], "word_order"),
        (["evaluate", "chrf", "-r", "a", "--char-order", "0"], "char_order"),
        (["average"], "--output"),
        (["average", "--output", "x"], "CHECKPOINT"),
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


# Torch-free verbs

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
        for metric in ("bleu", "chrf"):
            yield Case(f"{metric} of {name}",
                       ["evaluate", metric, "-r", good], 0, stdin=stdin)
    for tokenizer in ("13a", "none", "intl", "char"):
        yield Case(f"tokenizer {tokenizer}, odd Unicode",
                   [*bleu, good, "--tokenize", tokenizer], 0,
                   stdin="\u2028 \U0001F600\u0301 \u202e\nß ﬁ Ⅷ\n".encode())


def tokenize():
    verb = ["tokenize", "--language"]
    yield Case("no language", ["tokenize"], 2, "--language")
    for language in ("", "german", "DE", "de-DE", "d"):
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


# Configurations

def configuration_files():
    nested = "x = " + "[" * 5000 + "]" * 5000
    tables = "[" + ".".join("a" * 3000) + "]\n"
    itself = support.scratch() / "itself.toml"
    for name, content, code, wanted in (
        ("empty", "", 2, "train_source"),
        ("garbage", GARBAGE, 2, "garbage"),
        ("no TOML", "[data\n", 2, ":1"),
        ("unknown section", "[dta]\n", 2, "data"),
        ("unknown key", "[model]\ndimm = 3\n", 2, "model.dim"),
        ("a table for a number", "[model]\ndim = {a = 1}\n", 2, "model.dim"),
        ("a number for a table", "model = 3\n", 2, "model"),
        ("twice", "[model]\ndim = 1\ndim = 2\n", 2, ":3"),
        ("a date", "[model]\ndim = 2020-01-01\n", 2, "date"),
        ("deep lists", nested, 2, "deep lists"),
        ("deep tables", tables, 2, ""),
        ("include of nothing", 'include = "nowhere.toml"\n', 1, "nowhere.toml"),
        ("include of itself", f'include = "{itself}"\n', 2, "include"),
        ("include of a number", "include = 3\n", 2, "include"),
        ("invalid UTF-8", b'[data]\ntrain_source = "\xff"\n', 2, ""),
        ("NUL", b"[data]\n\0\n", 2, ""),
        ("a long line", "# " + "x" * LONG + "\n[model]\ndim = []\n", 2, "dim"),
    ):
        path = written(f"config {name}.toml", content)
        if "itself" in name:
            path = written("itself.toml", content)
        yield Case(f"configuration: {name}", ["train", path, "--dry-run"], code,
                   wanted)
    yield Case("configuration missing", ["train", "nowhere.toml"], 1,
               "nowhere.toml")
    yield Case("configuration is a folder", ["train", support.scratch()], 1)
    for assignment in ("", "=", "model.dim", "=3", "model..dim=3", ".=1",
                       "model.dim.x=3", "nonsense=1", "model.dmi=3"):
        yield Case(f"--set {assignment!r}",
                   ["train", support.config(), "--set", assignment,
                    "--dry-run"], 2)


def leaves(table, path=""):
    for key, value in table.items():
        where = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from leaves(value, where)
        else:
            yield where, value


def configuration_values():
    """Every key with values of the wrong type or size."""
    keys = tomllib.loads(run("train", "--help-config").out.decode())
    output = support.scratch() / "never"
    base = ["train", support.config(), "--dry-run", "--output", output, "--set"]
    for key, value in leaves(keys):
        wrong = '"x"' if isinstance(value, (bool, int, float)) else "7"
        if key.endswith(("kernel_sizes", "max_offsets")):
            wrong = '"x"'
        yield Case(f"{key} of the wrong type", [*base, f"{key}={wrong}"],
                   2, key)
        if isinstance(value, bool) or isinstance(value, (str, list)):
            continue
        for number in ("-5", str(2**62), "nan"):
            # Some of these are values that a key may have.
            yield Case(f"{key} = {number}", [*base, f"{key}={number}"],
                       (0, 1, 2))


def contradictions():
    base = ["train", support.config(), "--dry-run", "--set"]
    for assignments, *wanted in (
        (["model.encoder.kernel_sizes=[3,3,3]"], "kernel_sizes"),
        (["model.encoder.kernel_sizes=[]"], "kernel_sizes"),
        (["model.encoder.kernel_sizes=[3,-3]"], "kernel_sizes"),
        (["model.encoder.kernel_sizes=0"], "kernel_sizes"),
        (["model.decoder.max_offsets=[0,0]"], "max_offsets"),
        (["model.decoder.max_offsets=[0,-3]"], "max_offsets"),
        (["model.decoder.max_offsets=[1,2,3]"], "max_offsets"),
        (["model.encoder.heads=3"], "heads"),
        (["model.encoder.heads=0"], "heads"),
        (["model.decoder.conv_heads=5"], "heads"),
        (["model.encoder.block=[\"talk\"]"], "max_offsets"),
        (["model.encoder.block=[\"talk\",\"talk\",\"talk\"]"], "block"),
        (["model.encoder.block=\"transformer\""], "self_attention"),
        (["model.encoder.block=self_attention"], "glu"),
        (["model.encoder.block=[\"cnn\",\"lightconv\"]"], "glu"),
        (["model.encoder.block=average_attention"], "kernel_sizes"),
        (["model.encoder.glu=[true,true,true]"], "glu"),
        (["model.decoder.normalization=[\"softmax\",\"l2\"]"], "talk"),
        (["model.encoder.normalization=softmin"], "normalization"),
        (["model.encoder.normalization=[]"], "normalization"),
        (["model.encoder.normalization=tanh",
          "model.encoder.renormalize_edges=true"], "renormalize_edges"),
        (["model.encoder.conv_heads=[2,5]"], "conv_heads"),
        (["model.encoder.average_ffn=false"], "average_ffn"),
        (["model.encoder.query=[\"conv_input\",\"block_input\"]"], "query"),
        (["model.encoder.layers=0"], "layers"),
        (["model.dim=15"], ""),
        (["model.dim=2"], "dim"),
        (["text.joined=false"], "tie"),
        (["model.dropout=1.5"], "model.dropout"),
        (["model.dropout=-0.1"], "model.dropout"),
        (["schedule.warmup_updates=0"], "warmup_updates"),
        (["training.max_updates=0"], "max_updates"),
        (["training.label_smoothing=1"], "label_smoothing"),
        (["training.accumulate=0"], "accumulate"),
        (["batching.max_tokens=0"], "max_tokens"),
        (["decoding.beam=0"], "beam"),
        (["decoding.n_best=9"], "n_best"),
        (["decoding.length_penalty=nan"], "length_penalty"),
        (["optimizer.beta1=1"], "beta1"),
        (["optimizer.kind=\"sgd\""], "adam"),
        (["text.subword=wordpiece"], "sentencepiece"),
        (["text.subword=bpe", "text.subword_size=0"], "subword_size"),
        (["text.tokenizer=mosse"], "moses"),
        (["text.tokenizer=moses"], "text.source_language"),
        (["text.tokenizer=moses", "text.source_language=de"],
         "text.target_language"),
        (["text.tokenizer=moses", "text.source_language=german",
          "text.target_language=en"], "text.source_language", "'german'"),
        (["text.tokenizer=moses", "text.source_language=de",
          "text.target_language=en", "text.subword=characters"], "characters"),
        (["text.source_language=de"], "text.tokenizer"),
        (["text.moses_escape=true"], "text.tokenizer"),
    ):
        arguments = list(base)
        for assignment in assignments:
            arguments += [assignment, "--set"]
        yield Case(f"contradiction {assignments}", arguments[:-1], 2, *wanted)


# Training data

def training_data():
    source = support.data() / "train.src"
    lines = source.read_bytes().splitlines(keepends=True)
    output = support.scratch() / "data-output"

    def case(name, code, *wanted, key="train_source", value=None,
             content=None, more=()):
        if content is not None:
            value = written(f"corpus-{name}", content)
        assignments = [f"data.{key}={json.dumps(os.fspath(value))}", *more]
        arguments = ["train", support.config(), "--output",
                     f"{output}-{name.replace(' ', '-')}"]
        for assignment in assignments:
            arguments += ["--set", assignment]
        return Case(f"training data: {name}", arguments, code, *wanted)

    yield case("missing", 1, "nowhere", value="nowhere")
    yield case("missing target", 1, "nowhere", key="train_target",
               value="nowhere")
    yield case("missing validation", 1, "nowhere", key="valid_source",
               value="nowhere")
    yield case("a folder", 1, value=support.scratch())
    yield case("one line short", 1, "199", "200", content=b"".join(lines[1:]))
    yield case("one line long", 1, "201", "200",
               content=b"".join(lines + lines[:1]))
    yield case("empty file", 1, content=b"")
    yield case("blank lines", 1, content=b"\n" * 200)
    yield case("invalid UTF-8", 1, ":3",
               content=b"".join(lines[:2] + [b"1 \xff\n"] + lines[3:]))
    yield case("NUL", 1, ":2",
               content=b"".join(lines[:1] + [b"1 \0 2\n"] + lines[2:]))
    yield case("garbage", 1, "garbage", content=GARBAGE)
    yield case("UTF-16", 1, ":1",
               content=b"".join(lines).decode().encode("utf-16"))
    yield case("CRLF", 0, content=b"".join(l[:-1] + b"\r\n" for l in lines))
    yield case("byte-order mark", 0,
               content=b"\xef\xbb\xbf" + b"".join(lines))
    yield case("no final newline", 0, content=b"".join(lines)[:-1])
    yield case("a long word", 0,
               content=b"".join([b"x" * LONG + b"\n"] + lines[1:]))
    yield case("a long line", 0,
               content=b"".join([b"1 " * LONG + b"\n"] + lines[1:]))
    yield case("everything too long", 1, content=b"1 2 3\n" * 200,
               more=["model.max_positions=2"])
    # As many pieces as the text gives, and a warning.
    yield case("SentencePiece too large", 0,
               value=source,
               more=["text.subword=sentencepiece", "text.subword_size=30000"])
    yield case("codes missing", 1, "nowhere", value=source,
               more=["text.subword=bpe", "text.bpe_codes=nowhere"])
    yield case("garbage SentencePiece", 1, "garbage.spm", value=source,
               more=["text.subword=sentencepiece",
                     f"text.sentencepiece_model={written('garbage.spm', GARBAGE)}"])
    yield case("garbage dictionary", 1, "garbage.dict", value=source,
               more=[f"text.source_dictionary={written('garbage.dict', GARBAGE)}"])
    yield case("dictionary without counts", 1, ":1", value=source,
               more=[f"text.source_dictionary={written('nocount.dict', 'a')}"])
    yield case("dictionary with twins", 1, ":2", value=source,
               more=["text.source_dictionary="
                     f"{written('twins.dict', 'a 1' + chr(10) + 'a 1')}"])


# Where results go

def output_folders():
    a_file = written("a-file", "here")
    for output in (a_file, a_file / "below", "/proc/seqconv", "/dev/null/x"):
        yield Case(f"train into {output}",
                   ["train", support.config(), "--output", output], 1,
                   os.fspath(output).split("/")[-1])
        yield Case(f"average into {output}",
                   ["average", "--output", output, support.model()], 1)
    yield Case("train over a model",
               ["train", support.config(), "--output", support.model()],
               (1, 2), "--resume")
    yield Case("resume nothing",
               ["train", support.config(), "--resume", "--output",
                support.scratch() / "not-there"], (1, 2), "resume")
    yield Case("start from nothing",
               ["train", support.config(), "--init-from", "nowhere", "--output",
                support.scratch() / "from-nothing"], 1, "nowhere")
    yield Case("average into itself",
               ["average", "--output", support.model(), support.model()], 1,
               "--output")


# Models

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
        ("a device", "/dev/null"), ("an empty name", ""),
    ):
        yield from opens(path, f"model is {name}", 1)
        yield Case(f"score, model is {name}",
                   ["score", "--model", path, "--source", support.config(),
                    "--target", support.config()], 1)
        yield Case(f"average, model is {name}",
                   ["average", "--output", support.scratch() / "m", path], 1)


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
    for i in range(3):  # numbers may be any numbers: the answer is nonsense
        place = 8 + length + (len(good) - 8 - length - 64) * i // 3
        folder = spoiled(
            f"data{i}", "model.safetensors",
            lambda b: b[:place] + b"\xff" * 64 + b[place + 64:])
        yield from opens(folder, f"data byte {place} is NaN", (0, 1))


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
        ("a later version", changed(["format_version"], 3), "version"),
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
    ):
        folder = spoiled(f"described-{name.replace(' ', '-')}", "config.json",
                         lambda b: content if isinstance(content, bytes)
                         else content.encode())
        yield from opens(folder, f"config.json: {name}", (1, 2), *wanted)


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
    folder = support.copy_model("resume-other")
    for assignment, wanted in (("model.dim=32", "model.dim"),
                               ("training.seed=9", "seed")):
        yield Case(f"resume with {assignment}",
                   ["train", support.config(), "--resume", "--output", folder,
                    "--set", assignment], (1, 2), wanted)


# Input of translate and score

def lines_to_translate():
    base = ["translate", "--model", support.model(), *TRANSLATE]
    for name, stdin in (
        ("nothing", b""), ("blank lines", b"\n" * 3000), ("NULs", b"\0\0\n"),
        ("garbage", GARBAGE), ("no newline", b"1 2"), ("CRLF", b"1\r\n\r\n"),
        ("a lone CR", b"1\r2\r3"), ("a byte-order mark", b"\xef\xbb\xbf1\n"),
        ("a mark twice", b"\xef\xbb\xbf\xef\xbb\xbf1\n"),
        ("a long word", b"x" * LONG + b"\n1\n"),
        ("a long line", b"1 " * (LONG // 2) + b"\n1\n"),
        ("overlong UTF-8", b"\xc0\xaf \xf5\x80\x80\x80\n"),
        ("surrogates", b"\xed\xa0\x80\xed\xb0\x80\n"),
        ("controls", bytes(range(1, 32)) + b"\n"),
        ("right to left", "\u202e1 2\u200f\u0301\n".encode()),
        ("unknown words", "日本語 русский 😀\n".encode()),
        ("special symbols", b"<s> </s> <pad> <unk> madeupword0000\n"),
        ("separators", "1\u20282\u20293\u00854\n".encode()),
    ):
        yield Case(f"translate {name}", base, 0, stdin=stdin)
        yield Case(f"translate {name} to JSON", [*base, "--format", "json"], 0,
                   stdin=stdin)


def json_requests():
    base = ["translate", "--model", support.model(), *TRANSLATE, "--json-input"]
    for name, line in (
        ("no JSON", "hello"), ("cut", '{"text": "1'), ("a list", "[1]"),
        ("a string", '"1"'), ("null", "null"), ("blank", ""),
        ("no text", "{}"), ("text of a number", '{"text": 1}'),
        ("prefix of a list", '{"text": "1", "target_prefix": []}'),
        ("two objects", '{"text": "1"} {"text": "2"}'),
        ("deep", '{"text": "1", "a": ' + "[" * LONG + "]" * LONG + "}"),
        ("deep text", "[" * LONG),
        ("half a surrogate", '{"text": "\\ud800"}'),
        ("NaN", '{"text": "1", "a": NaN}'),
        ("twins", '{"text": "1", "text": "2"}'),
        ("huge number", '{"text": "1", "a": 1e999}'),
    ):
        yield Case(f"request is {name}", base, 1, "standard input:2",
                   stdin=f'{{"text": "1"}}\n{line}\n'.encode())
    for name, line in (
        ("a NUL", '{"text": "1 \\u0000 2"}'),
        ("empty text", '{"text": ""}'),
        ("a prefix longer than allowed",
         '{"text": "1", "target_prefix": "' + "eins " * 50 + '"}'),
        ("an unknown prefix", '{"text": "1", "target_prefix": "日本"}'),
        ("a prefix of </s>", '{"text": "1", "target_prefix": "</s> eins"}'),
        ("invalid UTF-8", b'{"text": "\xff"}'),
        ("large numbers", '{"text": "1", "a": 123456789012345678901234567890}'),
    ):
        if isinstance(line, str):
            line = line.encode()
        yield Case(f"request with {name}", base, 0, stdin=line + b"\n")


def extreme_searches():
    base = ["translate", "--model", support.model()]
    for flags in (
        ["--beam", "200", "--max-length-b", "4"],
        ["--max-length-b", "0"], ["--max-length-a", "1e300"],
        ["--max-length-a", "0.5", "--max-length-b", "3"],
        ["--min-length", "2000000000"],
        ["--min-length", "50", "--max-length-b", "10"],
        ["--no-repeat-ngram", "1"], ["--no-repeat-ngram", "2000000000"],
        ["--length-penalty", "1e300"], ["--length-penalty", "-1e300"],
        ["--unknown-penalty", "1e300"], ["--unknown-penalty", "-1e300"],
        ["--batch-tokens", "1"], ["--buffer-lines", "1"],
        ["--threads", "1024"],
        ["--beam", "5", "--n-best", "5", "--max-length-b", "1"],
    ):
        codes = 2 if flags == ["--max-length-a", "1e300"] else 0
        yield Case(f"search {flags}", [*base, *flags], codes, stdin=b"1 2\n")


def scores():
    good = written("score-s", "1 2\n3\n")
    base = ["score", "--model", support.model()]
    for name, source, target, code, *wanted in (
        ("equal", good, good, 0),
        ("missing source", "nowhere", good, 1, "nowhere"),
        ("missing target", good, "nowhere", 1, "nowhere"),
        ("unequal", good, written("score-1", "1\n"), 1, "2", "1"),
        ("folder", good, support.scratch(), 1),
        ("invalid UTF-8", good, written("score-bad", b"1\n\xff\n"), 1, ":2"),
        ("empty files", written("z1", ""), written("z2", ""), (0, 1)),
        ("empty target lines", good, written("z3", "\n\n"), 0),
        ("empty source lines", written("z4", "\n\n"), good, 0),
        ("a long line", good, written("z5", "eins " * 20000 + "\n1\n"), 0),
        ("a long word", good, written("z6", "x" * LONG + "\n1\n"), 0),
    ):
        yield Case(f"score {name}",
                   [*base, "--source", source, "--target", target], code,
                   *wanted)


# Binarised data

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
    output = support.scratch() / "b-output"
    yield Case("ids without a dictionary", [*base, output, *sides(good, good)],
               2, "text.source_dictionary must name")
    yield Case("ids and text",
               [*base, output, *given,
                *sides(good, support.data() / "train.tgt")], 2,
               "must both be binarised")
    other = binarised.mapped(support.scratch() / "three", [[4, 2]] * 3)
    yield Case("unequal data", [*base, output, *given, *sides(good, other)], 1,
               "same number of lines", "has 2", "has 3")
    empty = binarised.mapped(support.scratch() / "empty-lines", [[2]] * 2)
    yield Case("empty sentences",
               [*base, support.scratch() / "b-empty", *given,
                *sides(good, empty)], 1, "2 have an empty side")


# Language models

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


def streams():
    base = ["translate", "--model", support.model(), *TRANSLATE]
    folder = os.open(support.scratch(), os.O_RDONLY)
    full = os.open("/dev/full", os.O_WRONLY)
    yield Case("no room for help", ["--help"], 1, "standard output",
               stdout=full)
    yield Case("no room for translations", base, 1, "standard output",
               stdin=b"1\n", stdout=full)
    yield Case("no room for codes", ["bpe", "learn", "--merges", "1"], 1,
               "standard output", stdin=b"ab ab\n", stdout=full)
    for arguments in (base, ["bpe", "learn", "--merges", "1"]):
        yield Case(
            f"{arguments[0]} reads a folder", arguments, 1, "standard input",
            preexec_fn=lambda: os.dup2(folder, 0))


FAMILIES = [
    usage, numbers_on_the_command_line, evaluate, tokenize, bpe,
    configuration_files, configuration_values, contradictions, training_data,
    output_folders,
    no_models, truncated_checkpoints, corrupted_checkpoints,
    rewritten_checkpoints, model_descriptions, vocabularies, training_states,
    lines_to_translate, json_requests, extreme_searches, scores, streams,
    binarised_data, binarised_training, language_model_flags, texts_to_measure, texts_to_generate,
    models_of_the_other_task, language_model_folders, language_model_training,
]


class HostileInput(unittest.TestCase):
    counted = 0

    def check(self, family):
        cases = list(family())
        HostileInput.counted += len(cases)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            complaints = [
                text for text in pool.map(Case.complaint, cases) if text
            ]
        if complaints:
            self.fail(f"{len(complaints)} of {len(cases)} cases:\n\n" +
                      "\n\n".join(complaints))

    @classmethod
    def tearDownClass(cls):
        print(f"{cls.counted} hostile cases", file=sys.stderr)

    def test_there_are_enough_cases(self):
        # Those that cost nothing to list; all are counted at the end.
        families = [usage, numbers_on_the_command_line, configuration_values]
        self.assertGreaterEqual(
            sum(len(list(family())) for family in families), FEWEST_CASES
        )


for one in FAMILIES:
    setattr(HostileInput, f"test_{one.__name__}",
            lambda self, family=one: self.check(family))


class FullDisk(unittest.TestCase):
    """A limit on the size of files stands for a disk without room."""

    def train(self, folder, limit, *flags):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

        return run("train", support.config(), "--output", folder, *flags,
                   preexec_fn=limited)

    def test_a_new_run_says_what_it_could_not_write(self):
        for limit in (0, 100, 2000, 20000):
            with self.subTest(limit=limit):
                folder = support.scratch() / f"full{limit}"
                result = self.train(folder, limit)
                self.assertEqual(result.code, 1, result.message)
                self.assertIn("File too large", result.message)
                self.assertFalse((folder / "model.safetensors").exists())
                shutil.rmtree(folder, ignore_errors=True)

    def test_the_last_good_checkpoint_stays(self):
        folder = support.copy_model("full-resumed")
        before = (folder / "model.safetensors").read_bytes()
        state = (folder / "training/state.safetensors").read_bytes()
        result = self.train(folder, 20000, "--resume",
                            "--set", "training.max_updates=8")
        self.assertEqual(result.code, 1, result.message)
        self.assertIn("File too large", result.message)
        self.assertEqual(before, (folder / "model.safetensors").read_bytes())
        self.assertEqual(
            state, (folder / "training/state.safetensors").read_bytes())
        self.assertEqual(list(folder.rglob("*.tmp*")), [])
        self.assertEqual(
            run("translate", "--model", folder, *TRANSLATE, stdin=b"1\n").code,
            0)
        again = run("train", support.config(), "--output", folder, "--resume",
                    "--set", "training.max_updates=8")
        self.assertEqual(again.code, 0, again.message)


if __name__ == "__main__":
    unittest.main(verbosity=2)
