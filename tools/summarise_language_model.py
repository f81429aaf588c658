#!/usr/bin/env python3
"""Sums up a language model's run as one row for docs/results.md.

    python tools/summarise_language_model.py runs/lm/shakespeare/dynamicconv

Reads what tools/reproduce_language_models.sh left in the folder: the metrics of
training, valid.json, test.json and generation.txt.
"""
import argparse
import json
import pathlib
import re
import statistics
import sys

from summarise_run import count_parameters, read_metrics

ROW = "| model | parameters | training | tokens/s | valid | test | {} |"


def generation_rates(text):
    """{tokens generated: tokens a second} from lines of `generate --stats`."""
    found = re.findall(r"generated (\d+) in [\d.]+ s: ([\d.]+) tokens/s", text)
    return {int(tokens): float(rate) for tokens, rate in found}


def cost(path):
    """What a text costs: bits a character, or perplexity a word."""
    result = json.loads(path.read_text(encoding="utf-8"))
    if result["tokens"] == result["characters"]:
        return f"{result['bits_per_character']:.3f} bits"
    return f"{result['perplexity_per_word']:.1f}"


def seconds_of_training(path):
    """Seconds that the updates took, without validation."""
    last = path.read_text(encoding="utf-8").splitlines()[-1]
    return json.loads(last)["elapsed_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("model", type=pathlib.Path, help="model folder")
    folder = parser.parse_args().model
    metrics = folder / "training" / "metrics.jsonl"
    _, speeds = read_metrics(metrics)
    rates = generation_rates((folder / "generation.txt").read_text())
    if not speeds or not rates:
        sys.exit(f"summarise_language_model: {folder} is not a finished run")
    print(ROW.format(" | ".join(f"{n} tokens" for n in rates)))
    cells = [
        folder.name,
        f"{count_parameters(folder / 'model.safetensors'):,}",
        f"{seconds_of_training(metrics) / 60:.1f} min",
        f"{statistics.median(speeds):,.0f}",
        cost(folder / "valid.json"),
        cost(folder / "test.json"),
        *(f"{rate:,.0f}" for rate in rates.values()),
    ]
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
