#!/usr/bin/env python3
"""Sums up a summariser's run as one row for docs/results.md.

    python tools/summarise_summaries.py runs/summaries/samsum/dynamicconv dialogue

Reads what tools/reproduce_summaries.sh left in the folder: the metrics of
training, if there was one, and the scores and summaries of the test set. The
last column is how many of 100 names and other capitalised words of the summaries
(three letters and more, each once a summary) stand in the document.
"""
import argparse
import json
import pathlib
import re

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


def copied_names(path, source_key):
    names = copied = 0
    with path.open(encoding="utf-8") as lines:
        for sample in map(json.loads, lines):
            document = set(re.findall(r"\w+", sample[source_key]))
            written = set(re.findall(r"\b[A-Z]\w{2,}", sample["summary_text"]))
            names += len(written)
            copied += len(written & document)
    return f"{100 * copied / names:.0f}" if names else ""


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
    parser.add_argument("source_key", help="key of the document in a sample")
    arguments = parser.parse_args()
    folder = arguments.run
    files = {name: folder / f"{stem}.json" for name, stem in FILES.items()}
    files = {name: path for name, path in files.items() if path.exists()}
    cells = [folder.name, *training_cells(folder), *map(scores, files.values())]
    cells.append(
        copied_names(folder / "test.summaries.jsonl", arguments.source_key))
    heads = ["model", "parameters", "training", "best update", "nll", *files]
    heads.append("copied names")
    print("| " + " | ".join(heads) + " |")
    print("| " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
