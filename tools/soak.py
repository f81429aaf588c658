#!/usr/bin/env python3
"""Translates a great many random lines in one process, and looks at what a
long run might lose: memory, lines, their order.

    python3 tools/soak.py PROGRAM [--lines 100000] [--seed 1] [--int8]

Lines hold any Unicode but line breaks; one in a thousand has 1,000 tokens, some
are empty. The model is of the size that docs/runtime.md calls tiny, with the
weights of one update. Every 97th line is translated once more, among these
alone: its output must have the same bytes. Resident memory must not grow by
more than a tenth between a fifth of the lines and the last.
"""
import argparse
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program", type=os.path.abspath)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--int8", action="store_true")
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


if __name__ == "__main__":
    main()
