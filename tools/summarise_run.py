#!/usr/bin/env python3
"""Sums a training run up: validation by epoch, and one row for docs/results.md.

    python tools/summarise_run.py runs/multi30k/dynamicconv --bleu 41.4

Reads MODEL/model.safetensors (sizes only) and MODEL/training/metrics.jsonl.
"""
import argparse
import json
import math
import pathlib
import statistics
import struct
import sys


def count_parameters(model):
    """Elements of all tensors of a safetensors file, from its header."""
    with open(model, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
    return sum(
        math.prod(tensor["shape"])
        for name, tensor in header.items()
        if name != "__metadata__"
    )


def read_metrics(path):
    """(validation records by update, training speeds) of a metrics file."""
    validations, speeds = {}, []
    with open(path, encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            if record.get("kind") == "validation":
                # A resumed run may repeat an update: its last word counts.
                validations[record["update"]] = record
            elif record.get("kind") == "train":
                speeds.append(record["target_tokens_per_second"])
    return [validations[update] for update in sorted(validations)], speeds


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=pathlib.Path, help="model folder")
    parser.add_argument("--name", help="name in the row (default: the folder's)")
    parser.add_argument("--bleu", default="-", help="test score to put in the row")
    arguments = parser.parse_args()

    metrics = arguments.model / "training" / "metrics.jsonl"
    validations, speeds = read_metrics(metrics)
    if not validations:
        sys.exit(f"summarise_run: no validation record in {metrics}")
    best = min(validations, key=lambda record: record["loss_base2"])

    print("validation, base 2:")
    for record in validations:
        mark = "  <- best" if record is best else ""
        print(
            f"  epoch {record['epoch']:>3}  update {record['update']:>6}"
            f"  loss {record['loss_base2']:.3f}  nll {record['nll_base2']:.3f}{mark}"
        )
    parameters = count_parameters(arguments.model / "model.safetensors")
    speed = f"{statistics.median(speeds):,.0f}" if speeds else "-"
    name = arguments.name or arguments.model.name
    print("| model | parameters | best epoch | loss | nll | BLEU | tokens/s |")
    print("|---|---|---|---|---|---|---|")
    print(
        f"| {name} | {parameters:,} | {best['epoch']} | {best['loss_base2']:.3f}"
        f" | {best['nll_base2']:.3f} | {arguments.bleu} | {speed} |"
    )


if __name__ == "__main__":
    main()
