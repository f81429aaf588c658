#!/usr/bin/env python3
"""Trains the documented Multi30k configuration for a few hundred updates on real
text and checks that the validation loss falls as it should, that translating
with the result works, and that a second run gives the same bytes.

    python3 short_training_test.py PROGRAM SOURCE_DIR

Text: $SEQCONV_DATA, default ../shared/data beside the source folder. Without it
the test is skipped (exit code 77), or fails where SEQCONV_GOLDEN_REQUIRED=1.
"""
import json
import lzma
import os
import pathlib
import subprocess
import sys
import tempfile

UPDATES = 300
# Bits per token, label smoothing included. Knowing nothing is log2(V) = 12.6
# bits and the frequency of words alone about 9; 514 updates of the reference
# run reach 6.2 on tokenised text.
BOUND = 7.6


def unpack(source, target, lines=None):
    with lzma.open(source, "rt", encoding="utf-8", newline="\n") as packed:
        text = packed.readlines()
    target.write_text("".join(text[:lines]), encoding="utf-8")


def train(program, source_dir, data, output, updates):
    pairs = {
        "train_source": "train.de",
        "train_target": "train.en",
        "valid_source": "val.de",
        "valid_target": "val.en",
    }
    command = [
        program,
        "train",
        str(source_dir / "configs" / "multi30k_dynamicconv.toml"),
        "--output",
        str(output),
    ]
    settings = {f"data.{key}": data / name for key, name in pairs.items()}
    settings.update(
        {
            "text.lowercase": "true",
            "training.max_epochs": 0,
            "training.max_updates": updates,
        }
    )
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True)


def last_validation(output):
    records = (output / "training" / "metrics.jsonl").read_text().splitlines()
    found = [json.loads(record) for record in records]
    return [r for r in found if r["kind"] == "validation"][-1]


def main():
    program, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    default = source_dir / ".." / "shared" / "data"
    folder = pathlib.Path(os.environ.get("SEQCONV_DATA", default)) / "multi30k"
    if not folder.is_dir():
        print(f"no text: {folder} is not a folder")
        return 1 if os.environ.get("SEQCONV_GOLDEN_REQUIRED") == "1" else 77
    with tempfile.TemporaryDirectory(prefix="seqconv-short-") as name:
        data = pathlib.Path(name)
        for stem in ("train", "val"):
            for language in ("de", "en"):
                unpack(
                    folder / f"{stem}.{language}.xz",
                    data / f"{stem}.{language}",
                )
        train(program, source_dir, data, data / "model", UPDATES)
        loss = last_validation(data / "model")["loss_base2"]
        print(f"validation loss after {UPDATES} updates: {loss:.3f} bits")
        assert loss < BOUND, f"loss must be below {BOUND}, but is {loss}"
        lines = (data / "val.de").read_text(encoding="utf-8").splitlines()[:20]
        done = subprocess.run(
            [program, "translate", "--model", str(data / "model")],
            input="\n".join(lines) + "\n",
            capture_output=True,
            check=True,
            encoding="utf-8",
        )
        assert len(done.stdout.splitlines()) == len(lines)
        for output in ("one", "two"):
            train(program, source_dir, data, data / output, 5)
        one, two = (
            (data / output / "model.safetensors").read_bytes()
            for output in ("one", "two")
        )
        assert one == two, "two runs of one seed must give the same bytes"
    return 0


if __name__ == "__main__":
    sys.exit(main())
