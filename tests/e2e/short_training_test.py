#!/usr/bin/env python3
"""Trains the documented Multi30k configuration for a few hundred updates on real
text, checks how far the validation loss has come, and translates with the
result.

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
# bits and the frequencies of words alone about 9; this run measured 7.75.
BOUND = 7.9
SIDES = {
    "train_source": "train.de",
    "train_target": "train.en",
    "valid_source": "val.de",
    "valid_target": "val.en",
}


def unpack(folder, data):
    for name in SIDES.values():
        with lzma.open(folder / f"{name}.xz") as packed:
            (data / name).write_bytes(packed.read())


def train(program, source_dir, data, model):
    settings = {f"data.{key}": data / name for key, name in SIDES.items()}
    settings.update(
        {
            "text.lowercase": "true",
            "training.max_epochs": 0,
            "training.max_updates": UPDATES,
        }
    )
    config = source_dir / "configs" / "multi30k_dynamicconv.toml"
    command = [program, "train", config, "--output", model]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    subprocess.run(command, check=True)


def last_validation(model):
    lines = (model / "training" / "metrics.jsonl").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    return [r for r in records if r["kind"] == "validation"][-1]


def check_translation(program, model, lines):
    done = subprocess.run(
        [program, "translate", "--model", model],
        input="\n".join(lines) + "\n",
        capture_output=True,
        check=True,
        encoding="utf-8",
    )
    found = done.stdout.splitlines()
    assert len(found) == len(lines), f"{len(lines)} lines in, {len(found)} out"
    assert all(found), "a translation is empty"


def main():
    program, source_dir = sys.argv[1], pathlib.Path(sys.argv[2])
    default = source_dir / ".." / "shared" / "data"
    folder = pathlib.Path(os.environ.get("SEQCONV_DATA", default)) / "multi30k"
    if not folder.is_dir():
        print(f"no text: {folder} is not a folder")
        return 1 if os.environ.get("SEQCONV_GOLDEN_REQUIRED") == "1" else 77
    with tempfile.TemporaryDirectory(prefix="seqconv-short-") as name:
        data = pathlib.Path(name)
        model = data / "model"
        unpack(folder, data)
        train(program, source_dir, data, model)
        found = last_validation(model)
        loss = found["loss_base2"]
        print(f"validation loss after {found['update']} updates: {loss:.3f}")
        assert found["update"] == UPDATES, f"wanted {UPDATES} updates"
        assert loss < BOUND, f"loss must be below {BOUND} bits, but is {loss}"
        source = (data / "val.de").read_text(encoding="utf-8")
        check_translation(program, model, source.splitlines()[:20])
    return 0


if __name__ == "__main__":
    sys.exit(main())
