#!/usr/bin/env python3
"""Translates a great many random lines in one process, and looks at what a
long run might lose: memory, lines, their order.

    python3 tools/soak.py PROGRAM [--lines 100000] [--seed 1] [--int8]

Lines hold any Unicode but line breaks; one in a thousand has 1,000 tokens, some
are empty. The model is of the size that docs/runtime.md calls tiny, with the
weights of one update. Every 97th line is translated once more, among these
alone: its output must have the same bytes. Resident memory must not grow by
more than a tenth between a fifth of the lines and the last.

Then, for models of every mixer with 8,000 words: calls of --in-one-call lines.
Translations of all are held at a time, searched for, among a shortlist's words
too, or drawn; pairs are scored; the perplexity of texts is measured, and one of
as many words is generated. Such a call may take a fifth more than one of 1,000
lines, which fills batches as large, and 3 kB for each line that it holds, or
1 kB for each word that attention looks back on.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

sys.path.insert(
    0, os.fspath(pathlib.Path(__file__).resolve().parents[1] / "tests/support"))
from peak_memory import peak_kilobytes

WORDS = 8_000
MIXERS = {
    "lightconv": "kernel_sizes = [3]",
    "dynamicconv": "kernel_sizes = [3]",
    "talk": "max_offsets = [3]",
    "self_attention": "kernel_sizes = [0]\nglu = false",
    "average_attention": "glu = false",
    "cnn": "kernel_sizes = [3]\nglu = false",
}
MIXER_CONFIGURATION = """
[text]
subword = "none"
[model]
dim = 32
ffn_dim = 32
[model.decoder]
{side}
[training]
max_updates = 1
"""
TRANSLATION = MIXER_CONFIGURATION + """
[model.encoder]
{side}
[data]
train_source = "words.txt"
train_target = "words.txt"
valid_source = "words.txt"
valid_target = "words.txt"
[decoding]
max_length_a = 0
max_length_b = 4
"""
LANGUAGE_MODEL = 'task = "language_model"' + MIXER_CONFIGURATION + """
[data]
train = "words.txt"
valid = "words.txt"
samples = "document_blocks"
"""
CONFIGURATION = """
[data]
train_source = "train.txt"
train_target = "train.txt"
valid_source = "train.txt"
valid_target = "train.txt"
[text]
subword = "bytes"
[model]
dim = 256
ffn_dim = 512
[model.encoder]
layers = 3
block = "dynamicconv"
kernel_sizes = [3, 7, 15]
heads = 4
[model.decoder]
layers = 3
block = "dynamicconv"
kernel_sizes = [3, 7, 15]
heads = 4
[training]
max_updates = 1
[decoding]
max_length_a = 0
max_length_b = 12
"""
TWINS_EVERY = 97


def make_model(program, folder, int8):
    (folder / "train.txt").write_text("ab cd\nef\n" * 4)
    (folder / "soak.toml").write_text(CONFIGURATION)
    run = lambda *arguments: subprocess.run(
        [program, "--quiet", *arguments], cwd=folder, check=True)
    run("train", "soak.toml", "--output", "model")
    if not int8:
        return folder / "model"
    run("quantize", "--model", "model", "--output", "int8")
    return folder / "int8"


def random_line(generator):
    """Bytes of UTF-8; most are short."""
    if generator.random() < 0.001:
        return bytes(generator.choices(range(0x20, 0x7F), k=1000))
    def character():
        kind = generator.random()
        if kind < 0.6:
            return chr(generator.randrange(0x20, 0x7F))
        code = generator.randrange(1, 0x3000 if kind < 0.9 else 0x110000)
        ends = code in (0x0A, 0x0D) or 0xD800 <= code < 0xE000
        return "\ufffd" if ends else chr(code)
    length = generator.randrange(12)
    return "".join(character() for _ in range(length)).encode()


class Translation:
    """A process, its output line by line, and its memory on the way."""

    def __init__(self, program, model, lines):
        self.process = subprocess.Popen(
            [program, "--quiet", "translate", "--model", model, "--beam", "1",
             "--format", "json"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.writer = threading.Thread(target=self.write, args=(lines,))
        self.writer.start()

    def write(self, lines):
        with self.process.stdin as stdin:
            for line in lines:
                stdin.write(line + b"\n")

    def resident_kilobytes(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.split("VmRSS:")[1].split()[0])

    def finish(self):
        self.writer.join()
        if code := self.process.wait():
            sys.exit(f"soak.py: the program ended with code {code}")


def write_texts(folder, generator, count):
    """All words, and lines of them, few and many; for language models each line
    is a document."""
    words = [f"w{i}" for i in range(WORDS)]
    (folder / "words.txt").write_text("".join(
        " ".join(words[i:i + 10]) + "\n" for i in range(0, WORDS, 10)))
    lines = [" ".join(generator.choices(words, k=generator.randrange(5, 40)))
             for _ in range(count)]
    for name, size in (("few", 1000), ("many", count)):
        (folder / name).write_text("\n".join(lines[:size]) + "\n")
        (folder / f"{name}.documents").write_text("\n\n".join(lines[:size]) + "\n")


class Calls:
    """Two models of a mixer, and what is asked of them."""

    def __init__(self, program, folder, mixer, count):
        self.program, self.folder, self.count = program, folder, count
        self.mixer = mixer
        self.translation = self.train(TRANSLATION, f"{mixer}.translation")
        self.language_model = self.train(LANGUAGE_MODEL, f"{mixer}.language")
        self.shortlist = folder / f"{mixer}.shortlist"
        subprocess.run(
            [program, "--quiet", "shortlist", "--model", self.translation,
             "--source", "words.txt", "--target", "words.txt",
             "--output", self.shortlist], cwd=folder, check=True)

    def train(self, configuration, name):
        side = f'layers = 1\nblock = "{self.mixer}"\nheads = 4\n{MIXERS[self.mixer]}'
        (self.folder / "mixer.toml").write_text(configuration.format(side=side))
        subprocess.run([self.program, "--quiet", "train", "mixer.toml",
                        "--output", name], cwd=self.folder, check=True)
        return self.folder / name

    def commands(self, name, size):
        """Those of few or many lines, with the kB that each may take more."""
        def call(verb, model, *options):
            return [self.program, "--quiet", verb, "--model", model,
                    "--threads", "2", *options]
        batches = ("--batch-tokens", "512")
        text = self.folder / name
        translate = call("translate", self.translation, *batches,
                         "--buffer-lines", str(self.count), "--input", text)
        score = call("score", self.translation, *batches,
                     "--source", text, "--target", text)
        perplexity = call("perplexity", self.language_model, *batches,
                          "--input", f"{text}.documents")
        generate = call("generate", self.language_model, "--length", str(size))
        looks_back = self.mixer == "self_attention"
        return {"search": ([*translate, "--beam", "5"], 3),
                "sample": ([*translate, "--sample"], 3),
                "shortlist": ([*translate, "--shortlist", self.shortlist], 3),
                "score": (score, 3),
                "perplexity": (perplexity, 0),
                "generate": (generate, 1 if looks_back else 0)}


def check_calls(program, folder, generator, count):
    write_texts(folder, generator, count)
    grown = []
    for mixer in MIXERS:
        calls = Calls(program, folder, mixer, count)
        many = calls.commands("many", count)
        for kind, (command, own) in calls.commands("few", 1000).items():
            few_peak = peak_kilobytes(command)
            many_peak = peak_kilobytes(many[kind][0])
            print(f"{mixer}, {kind}: peak {few_peak} kB of 1000 lines, "
                  f"{many_peak} kB of {count}", flush=True)
            if many_peak > 1.2 * few_peak + own * (count - 1000):
                grown.append(f"{mixer}, {kind}")
    if grown:
        sys.exit(f"soak.py: calls grew with their lines: {'; '.join(grown)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--int8", action="store_true")
    parser.add_argument("--in-one-call", type=int, default=16_000)
    arguments = parser.parse_args()
    generator = random.Random(arguments.seed)
    lines = [random_line(generator) for _ in range(arguments.lines)]
    with tempfile.TemporaryDirectory() as scratch:
        model = make_model(
            arguments.program, pathlib.Path(scratch), arguments.int8)
        long_run = Translation(arguments.program, model, lines)
        twins, early, late, count = [], 0, 0, 0
        for line in long_run.process.stdout:
            if count % TWINS_EVERY == 0:
                twins.append(line)
            count += 1
            if count == arguments.lines // 5:
                early = long_run.resident_kilobytes()
            if count == arguments.lines * 99 // 100:
                late = long_run.resident_kilobytes()
        long_run.finish()
        alone = Translation(arguments.program, model, lines[::TWINS_EVERY])
        found = list(alone.process.stdout)
        alone.finish()
    differ = sum(a != b for a, b in zip(twins, found))
    print(f"{count} of {arguments.lines} lines, {differ} of {len(found)} twins "
          f"differ, resident {early} kB, then {late} kB")
    if count != arguments.lines or len(twins) != len(found) or differ:
        sys.exit("soak.py: lines were lost, changed or reordered")
    if late > early * 1.1:
        sys.exit("soak.py: memory grew")
    if not arguments.int8:
        with tempfile.TemporaryDirectory() as scratch:
            check_calls(arguments.program, pathlib.Path(scratch), generator,
                        arguments.in_one_call)


if __name__ == "__main__":
    main()
