#!/usr/bin/env python3
"""Sums up a summariser's run as one row for docs/results.md.

    python tools/summarise_summaries.py runs/summaries/samsum/dynamicconv

Reads what tools/reproduce_summaries.sh left in the folder: the metrics of
training, if there was one, and the scores of the test set.
"""
import argparse
import json
import pathlib

from summarise_language_model import seconds_of_training
from summarise_run import count_parameters, read_metrics

FILES = {
    "rouge-1.5.5": "rouge-1.5.5",
    "rouge_score": "rouge_score",
    "BLEU": "bleu",
    "annotations": "annotations",
}


def scores(path):
    found = json.loads(path.read_text(encoding="utf-8"))
    return " / ".join(
        f"{score['score']:.2f}" for score in found.get("scores", [found])
    )


def training_cells(folder):
    """Parameters, minutes of training, the best update and its nll."""
    metrics = folder / "training" / "metrics.jsonl"
    if not metrics.exists():
        return ["", "", "", ""]
    validations, _ = read_metrics(metrics)
    best = [record for record in validations if record.get("best")][-1]
    return [
        f"{count_parameters(folder / 'model.safetensors'):,}",
        f"{seconds_of_training(metrics) / 60:.0f} min",
        f"{best['update']:,}",
        f"{best['nll_base2']:.3f}",
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("run", type=pathlib.Path, help="folder of the run")
    folder = parser.parse_args().run
    files = {name: folder / f"{stem}.json" for name, stem in FILES.items()}
    files = {name: path for name, path in files.items() if path.exists()}
    cells = [folder.name, *training_cells(folder), *map(scores, files.values())]
    heads = ["model", "parameters", "training", "best update", "nll", *files]
    print("| " + " | ".join(heads) + " |")
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
