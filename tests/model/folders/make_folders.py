#!/usr/bin/env python3
"""Writes the model folders and training states of every format version that
the tests read (docs/model_folder.md), and what the program of that day said
about them, as expected.json.

    python make_folders.py PROGRAM OUTPUT [NAME ...]

PROGRAM is the seqconv that writes the version. Folders that lie here stay as
they are: whoever raises a version adds folders that the last program of the
version before has written. Needs the Python package sentencepiece. Signals stop
the runs, so that the states stand somewhere else each time.
"""

import argparse
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import sentencepiece

WORDS = (
    "mira tolu kebana so vi Lurat pelim onda tarkes ubi nemola sifar "
    "gelto hamiru zo dalan"
).split()
# What tokenisation and cleaning may treat in more than one way.
ODD_LINES = [
    "L'onda d'Ubi, c'est-à-dire n'importe-quoi: « zo! »",
    "M. Lurat a 3,5 % & 1.000 <zo> [vi] | (so)...",
    "ÉTÉ  straße\tİpel ΣΑΣ ﬁne o\u0301nda ónda",
    "non\u00a0break\u2003em \u2581low 你好 世界 𝄞",
    "http://so.example/ubi?x=1 a_b a--b 'vi' \"so\" don't",
]

COMMON = """
[training]
max_updates = 50
accumulate = 3
validate_every = 10
log_every = 1
keep_last = 0
threads = 1

[schedule]
learning_rate = 0.02
warmup_updates = 10

[batching]
max_tokens = 150
"""

PAIRS = """
[data]
train_source = "text/train.source"
train_target = "text/train.target"
valid_source = "text/valid.source"
valid_target = "text/valid.target"
"""
STREAM = """
task = "language_model"
[data]
train = "text/train.source"
valid = "text/valid.source"
"""

# Small, but with as many kinds of layers and text as fit.
CONFIGURATIONS = {
    # Adam, tied matrices, BPE with unknown symbols.
    "translation_1": PAIRS + """[text]
subword = "bpe"
subword_size = 40
min_count = 2
[model]
dim = 8
ffn_dim = 8
dropout = 0.1
input_dropout = 0.1
weight_dropout = 0.1
[model.encoder]
layers = 2
block = ["lightconv", "talk"]
kernel_sizes = [3, 0]
max_offsets = [0, 3]
heads = 2
[model.decoder]
layers = 2
block = ["dynamicconv", "self_attention"]
kernel_sizes = [4, 0]
glu = [true, false]
heads = 2
[optimizer]
clip_norm = 5.0
[decoding]
beam = 3
max_length_b = 12
""",
    # Moses tokens and small letters, two vocabularies.
    "translation_2": PAIRS + """[text]
tokenizer = "moses"
source_language = "fr"
target_language = "en"
moses_escape = true
moses_split_dashes = true
lowercase = true
subword = "none"
joined = false
[model]
dim = 8
ffn_dim = 8
norm = "pre"
positions = "learned"
max_positions = 48
tie = "decoder"
[model.encoder]
layers = 2
block = ["dynamicconv", "cnn"]
kernel_sizes = 3
glu = [true, false]
filter_bias = [true, false]
query = ["block_input", "conv_input"]
heads = 2
[model.decoder]
layers = 2
block = ["average_attention", "lightconv"]
kernel_sizes = [0, 3]
glu = [false, true]
normalization = ["softmax", "tanh"]
conv_bias = [false, true]
heads = 2
[decoding]
beam = 3
max_length_b = 12
""",
    # Widths and norms of their own.
    "widths_3": PAIRS + """[text]
subword = "none"
[model]
dim = 8
ffn_dim = 8
input_dim = 6
output_dim = 6
tie = "decoder"
norm = "pre"
[model.encoder]
layers = 2
block = ["lightconv", "talk"]
kernel_sizes = [3, 0]
max_offsets = [0, 3]
conv_dim = [0, 10]
heads = 2
[model.decoder]
layers = 2
block = "dynamicconv"
kernel_sizes = 3
query = ["conv_input", "block_input"]
conv_dim = 4
heads = 2
norm = "post"
[decoding]
beam = 3
max_length_b = 12
""",
    # Nesterov's momentum, adaptive input and softmax, characters.
    "language_1": STREAM + """samples = "blocks"
block_tokens = 24
[text]
subword = "characters"
[model]
dim = 8
ffn_dim = 8
dropout = 0.1
weight_dropout = 0.1
[model.decoder]
layers = 3
block = ["talk", "lightconv", "self_attention"]
kernel_sizes = [0, 3, 4]
max_offsets = [3, 0, 0]
glu = [true, true, false]
heads = 2
[model.adaptive]
softmax_cutoffs = [12, 40]
softmax_factor = 2.0
input_cutoffs = [12, 40]
input_factor = 2.0
[optimizer]
kind = "nag"
momentum = 0.9
weight_decay = 0.001
clip_norm = 1.0
""",
    # Bytes, samples that are lines.
    "bytes_1": STREAM + """samples = "lines"
[text]
subword = "bytes"
[model]
dim = 8
ffn_dim = 8
[model.decoder]
layers = 1
block = "dynamicconv"
kernel_sizes = 3
heads = 2
""",
    # Short convolutions at every place, of all taps.
    "short_convs_3": STREAM + """samples = "lines"
[text]
subword = "characters"
[model]
dim = 8
ffn_dim = 12
[model.decoder]
layers = 3
block = ["self_attention", "dynamicconv", "self_attention"]
kernel_sizes = [0, 3, 0]
glu = false
heads = 2
[model.decoder.short_conv]
place = ["qkv", "block", "linear"]
taps = ["dynamic", "static", "low_rank"]
kernel_size = [4, 3, 2]
group_channels = [1, 2, 4]
head_channels = [4, 0, 2]
rank = [16, 16, 3]
activation = ["silu", "none", "none"]
residual = [true, true, false]
bias = [false, true, false]
""",
    # SentencePiece.
    "pieces_1": STREAM + """samples = "document_blocks"
block_tokens = 24
[text]
subword = "sentencepiece"
sentencepiece_model = "pieces.model"
[model]
dim = 8
ffn_dim = 8
[model.decoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2
""",
    # BPE whose pieces are split again, two vocabularies.
    "fallback_3": PAIRS + """[text]
subword = "bpe"
subword_size = 40
min_count = 2
joined = false
[model]
dim = 8
ffn_dim = 8
tie = "decoder"
[model.encoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2
[model.decoder]
layers = 1
block = "dynamicconv"
kernel_sizes = 3
heads = 2
[decoding]
beam = 3
max_length_b = 12
""",
    # SentencePiece with bytes and symbols of the user's.
    "byte_pieces_3": STREAM + """samples = "blocks"
block_tokens = 24
[text]
subword = "sentencepiece"
sentencepiece_model = "byte_pieces.model"
[model]
dim = 8
ffn_dim = 8
[model.decoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2
""",
}
# Every kind of matrix that is rounded, and what is not.
CONFIGURATIONS["int8_4"] = PAIRS + """[text]
subword = "none"
[model]
dim = 8
ffn_dim = 8
positions = "learned"
[model.encoder]
layers = 2
block = ["lightconv", "talk"]
kernel_sizes = [3, 0]
max_offsets = [0, 3]
heads = 2
max_positions = 40
[model.decoder]
layers = 2
block = ["dynamicconv", "self_attention"]
kernel_sizes = [3, 0]
glu = [true, false]
heads = 2
max_positions = 40
[decoding]
beam = 3
max_length_b = 12
"""
# Long sources are cut.
CONFIGURATIONS["cut_5"] = CONFIGURATIONS["fallback_3"].replace(
    "[data]", "[data]\nmax_source_tokens = 7", 1)
# Placeholders, URLs, e-mail addresses and numbers are slots.
CONFIGURATIONS["protected_6"] = STREAM + """samples = "lines"
[text]
subword = "bpe"
subword_size = 40
protect = ["placeholders", "urls", "emails", "numbers"]
[model]
dim = 8
ffn_dim = 8
[model.decoder]
layers = 1
block = "dynamicconv"
kernel_sizes = 3
heads = 2
"""
CONFIGURATIONS["protected_pairs_6"] = CONFIGURATIONS["fallback_3"].replace(
    "[text]", """[text]
protect = ["placeholders", "urls", "emails", "numbers"]""", 1).replace("min_count = 2\n", "", 1)
QUANTIZED = ("int8_4",)
WITH_STATE = ("translation_1", "language_1")


def write_text(folder):
    """Sentences of made-up words; their translation is the words backwards."""
    generator = random.Random(7)
    folder.mkdir(exist_ok=True)
    for name, count in (("train", 60), ("valid", 8)):
        sources, targets = [], []
        for i in range(count):
            words = generator.choices(WORDS, k=generator.randint(2, 7))
            end = generator.choice([".", "!", ""])
            sources.append(" ".join(words) + end)
            targets.append(" ".join(words[::-1]).lower() + end)
            if name == "train" and i % 10 == 5 and i // 10 < len(ODD_LINES):
                sources.append(ODD_LINES[i // 10])
                targets.append(ODD_LINES[-1 - i // 10])
        for side, lines in (("source", sources), ("target", targets)):
            text = "".join(line + "\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")


def train_pieces(name, **options):
    """A SentencePiece model without normalisation, which is small."""
    sentencepiece.SentencePieceTrainer.train(
        input="text/train.source", model_prefix=name,
        normalization_rule_name="identity", hard_vocab_limit=False,
        unk_id=0, bos_id=-1, eos_id=-1, pad_id=-1, minloglevel=2, **options)


class Maker:
    def __init__(self, program, root):
        self.program = str(program)
        self.root = root

    def run(self, *arguments, text=None):
        return subprocess.run(
            [self.program, *map(str, arguments)], cwd=self.root, input=text,
            check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8",
        ).stdout

    def train_to_the_end(self, name):
        self.run("train", f"{name}.toml", "--output", f"{name}.whole")
        return self.root / f"{name}.whole"

    def train_to_the_middle(self, name):
        """Stops a run between update 36 and 46, in the middle of an update."""
        folder = self.root / name
        while True:
            shutil.rmtree(folder, ignore_errors=True)
            process = subprocess.Popen(
                [self.program, "train", f"{name}.toml", "--output", name],
                cwd=self.root)
            metrics = folder / "training/metrics.jsonl"
            while process.poll() is None and not (
                metrics.exists() and len(metrics.read_bytes().splitlines()) > 42
            ):
                time.sleep(0.0005)
            process.send_signal(signal.SIGTERM)
            process.wait()
            position = state_position(folder / "training/state.safetensors")
            if position["micro_batch"] > 0 and 36 <= position["update"] <= 46:
                return position

    def expectations(self, name):
        toml = CONFIGURATIONS[name]
        lines = (self.root / "text/valid.source").read_text("utf-8").splitlines()
        if "language_model" in toml:
            bits = [
                json.loads(self.run("perplexity", "--model", name, "--format",
                                    "json", text=line + "\n"))["bits"]
                for line in lines
            ]
            text = self.run("generate", "--model", name, "--prompt", lines[0],
                            "--length", 40, "--seed", 5)
            return {"bits": bits, "generated": text}
        scores = self.run("score", "--model", name, "--source",
                          "text/valid.source", "--target", "text/valid.target")
        translated = self.run(
            "translate", "--model", name, "--n-best", 2, "--format", "json",
            text="".join(line + "\n" for line in lines))
        return {
            "log_probabilities": [float(x) for x in scores.splitlines()[:-1]],
            "translations": [
                json.loads(line)["translations"]
                for line in translated.splitlines()
            ],
        }

    def make(self, name):
        (self.root / f"{name}.toml").write_text(
            CONFIGURATIONS[name].replace("[data]", COMMON + "[data]", 1))
        whole = self.train_to_the_end(name)
        expected = {}
        folder = self.root / name
        if name in WITH_STATE:
            position = self.train_to_the_middle(name)
            expected["training"] = records_after(whole, position["update"])
        elif name in QUANTIZED:
            shutil.rmtree(folder, ignore_errors=True)
            self.run("quantize", "--model", whole, "--output", folder)
            shutil.copytree(whole / "training/data", folder / "training/data")
        else:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(whole, folder)
            (folder / "training/state.safetensors").unlink()
            (folder / "training/config.toml").unlink()
        if name not in QUANTIZED:
            (folder / "training/metrics.jsonl").unlink()
            (folder / "training/checkpoints").rmdir()
        (folder / "training/lock").unlink(missing_ok=True)
        shutil.rmtree(whole)
        (self.root / f"{name}.toml").unlink()
        expected.update(self.expectations(name))
        (folder / "expected.json").write_text(
            json.dumps(expected, indent=1, ensure_ascii=False) + "\n",
            encoding="utf-8")


def state_position(file):
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8:8 + length])
    return json.loads(header["__metadata__"]["position"])


def records_after(run, update):
    """The records of the run that never stopped."""
    keep = ("kind", "epoch", "update", "loss_base2", "nll_base2",
            "learning_rate", "gradient_norm", "target_tokens")
    records = []
    for line in (run / "training/metrics.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["kind"] in ("train", "validation") and record["update"] > update:
            records.append({key: record[key] for key in keep if key in record})
    return records


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("output", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=CONFIGURATIONS)
    arguments = parser.parse_args()
    root = arguments.output.resolve()
    maker = Maker(arguments.program.resolve(), root)
    root.mkdir(parents=True, exist_ok=True)
    write_text(root / "text")
    os.chdir(root)  # models of SentencePiece name the files that they are from
    train_pieces("pieces", vocab_size=90, character_coverage=1.0)
    train_pieces("byte_pieces", vocab_size=330, character_coverage=0.98,
                 byte_fallback=True, user_defined_symbols=["<2de>", "ubi"])
    for name in arguments.names:
        maker.make(name)
    for name in ("pieces", "byte_pieces"):
        for ending in (".model", ".vocab"):
            (root / (name + ending)).unlink()


if __name__ == "__main__":
    main()
