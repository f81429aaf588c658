#!/usr/bin/env python3
"""Searches settings for a corpus of some size and some minutes of training.

    python3 tools/tune_presets.py --source train.de --target train.en \
        --test-source valid.de --test-target valid.en --pairs 20000 --minutes 5 \
        --output build/tune --try "" --try "model.dim=192" \
        --try "model.dim=192 schedule.learning_rate=1e-3"

Each --try is a candidate: keys that differ from --config (default: what the program
chooses for the data by itself). Candidates are trained for a quarter of the minutes, the
better half for half of them, the best quarter to the end (--rounds 1: all to the end). They
are compared by BLEU of the test text, with beam search.

Minutes are those of one thread of a quiet machine: first a hundred updates of every
candidate are timed (OUTPUT/paces.json), which wants the machine for itself; then the
updates that fit are trained, whatever else goes on. Results go to OUTPUT/results.jsonl, one
a line; candidates that were timed or trained before are not again.
"""

import argparse
import json
import pathlib
import random
import shutil
import subprocess
import time


def options():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = parser.add_argument
    for name in ("source", "target", "test-source", "test-target"):
        add("--" + name, required=True, type=pathlib.Path)
    add("--pairs", type=int, default=0, help="random pairs of the corpus (default: all)")
    add("--minutes", type=float, default=5)
    add("--time-only", action="store_true", help="train nothing, time the candidates")
    add("--rounds", type=int, default=3)
    add("--seed", type=int, default=1, help="of pairs and of training")
    add("--lines", type=int, default=1000, help="of the test text (default: 1000)")
    add("--config", default="", help="settings that candidates change")
    add("--try", dest="candidates", action="append", default=[], help="KEY=VALUE ...")
    add("--output", required=True, type=pathlib.Path)
    add("--seqconv", default="build/release/bin/seqconv")
    return parser.parse_args()


def run(command, **options):
    """Seconds that it took, and standard output."""
    begun = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, **options)
    if done.returncode != 0:
        log = options.get("stderr")
        last = pathlib.Path(log.name).read_text()[-500:] if log else ""
        raise SystemExit(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{last}")
    return time.monotonic() - begun, done.stdout


class Corpus:
    """The pairs that candidates are trained on, and the text that judges them."""

    def __init__(self, given):
        folder = given.output / f"pairs-{given.pairs}-{given.seed}"
        folder.mkdir(parents=True, exist_ok=True)
        lines = [file.read_text().split("\n")[:-1] for file in (given.source, given.target)]
        pairs = list(zip(*lines))
        random.Random(given.seed).shuffle(pairs)
        if given.pairs:
            pairs = pairs[: given.pairs]
        self.pairs = len(pairs)
        test = list(
            zip(
                given.test_source.read_text().split("\n"),
                given.test_target.read_text().split("\n"),
            )
        )[: given.lines]
        for name, rows in (("train", pairs), ("test", test)):
            for side, column in (("source", 0), ("target", 1)):
                text = "".join(row[column] + "\n" for row in rows)
                (folder / f"{name}.{side}").write_text(text)
        self.folder = folder

    def file(self, name):
        return str((self.folder / name).resolve())


def train(given, corpus, config, keys, output):
    command = [given.seqconv, "train", *([config] if config else []), "--output", output]
    for side in ("source", "target"):
        command += [f"--{side}", corpus.file(f"train.{side}")]
    for key, value in keys.items():
        command += ["--set", f"{key}={value}"]
    shutil.rmtree(output, ignore_errors=True)
    with open(output.with_suffix(".log"), "w") as log:
        return run(list(map(str, command)), stderr=log)[0]


def train_candidate(given, corpus, config, candidate, updates, output):
    keys = {
        "training.max_updates": updates,
        "training.max_epochs": 0,
        "training.max_minutes": 0,
        "training.threads": 1,
        "training.seed": given.seed,
        "training.save_every": 1000000,
        "training.keep_last": 1,
        "training.validate_every": 0,
        "data.hold_out": 0,
    }
    keys.update(setting.split("=", 1) for setting in candidate.split())
    return train(given, corpus, config, keys, output)


def chosen_config(given, corpus, minutes):
    """The configuration that the program itself chooses for the pairs and the minutes."""
    file = given.output / f"auto-{corpus.pairs}-{minutes:g}.toml"
    if not file.exists():
        output = given.output / "auto"
        keys = {"training.max_minutes": minutes, "training.max_updates": 1, "training.threads": 1}
        train(given, corpus, "", keys, output)
        shutil.copy(output / "training" / "config.toml", file)
    return file


def pace(given, corpus, config, candidate):
    """Seconds before the first update, and of one."""
    output = given.output / "pace"
    few, many = (
        train_candidate(given, corpus, config, candidate, count, output) for count in (20, 120))
    seconds = (many - few) / 100
    return max(0.0, few - 20 * seconds), seconds


def judge(given, corpus, output):
    """BLEU and chrF of the test text, and how long the translation is beside it."""
    source = open(corpus.file("test.source"))
    _, text = run([given.seqconv, "translate", "--model", str(output), "--threads", "1"], stdin=source)
    scores = {}
    for metric in ("bleu", "chrf"):
        command = [given.seqconv, "evaluate", metric, "--format", "json"]
        command += ["--reference", corpus.file("test.target")]
        _, result = run(command, input=text)
        scores[metric] = json.loads(result)["score"]
    reference = pathlib.Path(corpus.file("test.target")).read_text()
    scores["length"] = len(text) / len(reference)
    return scores


class Trials:
    """The candidates that were trained so far."""

    def __init__(self, given, corpus):
        self.given, self.corpus = given, corpus
        self.file = given.output / "results.jsonl"
        self.rows = []
        if self.file.exists():
            self.rows = [json.loads(line) for line in self.file.read_text().splitlines()]
        self.pace_file = given.output / "paces.json"
        self.paces = {}
        if self.pace_file.exists():
            self.paces = json.loads(self.pace_file.read_text())

    def config(self, minutes):
        return self.given.config or chosen_config(self.given, self.corpus, minutes)

    def pace(self, candidate, minutes):
        """It depends on the minutes where the program chooses for them."""
        config = self.config(minutes)
        name = f"{self.corpus.pairs} {pathlib.Path(config).name} {candidate}"
        if name not in self.paces:
            self.paces[name] = pace(self.given, self.corpus, config, candidate)
            print(f"{self.paces[name][1]:.4f} s an update  {candidate}", flush=True)
            self.pace_file.write_text(json.dumps(self.paces))
        return self.paces[name]

    def score(self, candidate, minutes):
        given = self.given
        key = {
            "pairs": self.corpus.pairs,
            "minutes": minutes,
            "seed": given.seed,
            "config": given.config,
            "candidate": candidate,
        }
        for row in self.rows:
            if all(row[name] == value for name, value in key.items()):
                return row
        fixed, seconds = self.pace(candidate, minutes)
        updates = max(20, int((minutes * 60 - fixed) / seconds))
        output = given.output / "model"
        begun = time.time()
        train_candidate(given, self.corpus, self.config(minutes), candidate, updates, output)
        row = {**key, "updates": updates, "wall": time.time() - begun}
        row.update(judge(given, self.corpus, output))
        self.rows.append(row)
        with open(self.file, "a") as file:
            file.write(json.dumps(row) + "\n")
        print(
            f"{row['bleu']:6.2f} BLEU {row['chrf']:6.2f} chrF  {self.corpus.pairs} pairs "
            f"{minutes:g} min {updates} updates  {candidate}",
            flush=True,
        )
        return row


def main():
    given = options()
    trials = Trials(given, Corpus(given))
    candidates = given.candidates or [""]
    rounds = [given.minutes / 2**left for left in reversed(range(given.rounds))]
    for minutes in rounds:
        for candidate in candidates:
            trials.pace(candidate, minutes)
    if given.time_only:
        return
    for minutes in rounds:
        rows = [trials.score(candidate, minutes) for candidate in candidates]
        rows.sort(key=lambda row: -row["bleu"])
        candidates = [row["candidate"] for row in rows[: (len(rows) + 1) // 2]]
    print("best:", candidates[0] or "(no change)")


if __name__ == "__main__":
    main()
