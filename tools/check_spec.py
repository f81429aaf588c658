#!/usr/bin/env python3
"""Lets schemathesis try `seqconv serve` by its own document, GET /spec.

    python3 tools/check_spec.py PROGRAM [--examples 200] [--schemathesis .venv/bin/schemathesis]

Serves the tests' models and a language model of bytes, which takes any prompt and is trained here
in seconds. The exit code is that of schemathesis (pip install schemathesis==4.32.5).
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ROOT / "tests" / "model" / "folders"
CONFIG = """
task = "language_model"
[data]
train = "{folder}/text"
[text]
subword = "bytes"
[model]
dim = 16
ffn_dim = 32
[model.decoder]
layers = 1
block = "lightconv"
kernel_sizes = 3
heads = 2
[training]
max_updates = 2
threads = 1
device = "cpu"
"""


def language_model(program, folder):
    # Characters whose bytes are all there are; controls but the line's end, too.
    points = [*range(1, 0x800), *range(0x800, 0xD800, 61), *range(0xE000, 0x110000, 4093)]
    line = "".join(chr(point) for point in points if point not in (10, 13))
    (folder / "text").write_text(f"{line}\n" * 3, encoding="utf-8", newline="")
    config = folder / "config.toml"
    config.write_text(CONFIG.format(folder=folder))
    subprocess.run([program, "train", config, "--output", folder / "model", "--quiet"], check=True)
    return folder / "model"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("program")
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--schemathesis", default=ROOT / ".venv" / "bin" / "schemathesis")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="seqconv-spec-") as name:
        model = language_model(options.program, pathlib.Path(name))
        server = subprocess.Popen(
            [options.program, "serve", "--port", "0", "--max-length", "100",
             "--model", f"de-en={FOLDERS / 'translation_1'}",
             "--model", f"en-de={FOLDERS / 'translation_2'}",
             "--language-model", f"book={model}"], stderr=subprocess.PIPE, text=True)  # fmt: skip
        try:
            port = re.search(r":(\d+)$", server.stderr.readline().strip())[1]
            return subprocess.run(
                [options.schemathesis, "run", f"http://127.0.0.1:{port}/spec",
                 "--max-examples", str(options.examples)], cwd=name, check=False).returncode  # fmt: skip
        finally:
            server.kill()


if __name__ == "__main__":
    sys.exit(main())
