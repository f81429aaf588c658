#!/usr/bin/env python3
"""Updates a second of one and of several processes, and their messages' times.

    SEQCONV_DATA=... bash tools/prepare_multi30k.sh
    python3 benchmarks/processes_bench.py runs/multi30k/data --json processes.json

All runs do the same updates, of four batches of Multi30k's DynamicConv. They take
turns, and a figure is the best of the turns: what disturbs a run makes it slower.
Build with -DSEQCONV_BENCHMARKS=ON. What it writes, benchmarks/scaling_model.py reads.
"""
import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Processes, threads in each, whether the optimiser's state is shared out.
CASES = [(1, 1, False), (1, 2, False), (2, 1, False), (2, 1, True), (4, 1, False), (4, 1, True)]
MODELS = {"tiny": ["model.dim=64", "model.ffn_dim=128"], "multi30k": []}
WARM_UP = 5  # updates that are not counted


def mpirun(size):
    return ["mpirun", "--oversubscribe", "--allow-run-as-root", "--bind-to", "none",
            "-np", str(size)]


def train(options, model, case, updates, *more):
    """The records of a run: the first of its start, the others of training."""
    size, threads, shared = case
    settings = [*MODELS[model], "training.accumulate=4", f"training.max_updates={updates}",
                f"training.log_every={WARM_UP}",
                f"training.threads={threads}", f"training.shard_optimizer={str(shared).lower()}",
                "data.valid_source=", "data.valid_target=", "text.subword=none",
                "text.max_vocabulary=6000",
                *(f"data.train_{side}={options.data / 'train'}.{language}"
                  for side, language in (("source", "de"), ("target", "en"))), *more]
    with tempfile.TemporaryDirectory() as folder:
        command = [*(mpirun(size) if size > 1 else []), options.build / "bin" / "seqconv",
                   "train", ROOT / "configs" / "multi30k_dynamicconv.toml", "--output", folder]
        for setting in settings:
            command += ["--set", setting]
        done = subprocess.run(command, check=False, stderr=subprocess.PIPE)
        if done.returncode != 0:
            sys.exit(done.stderr.decode())
        lines = (pathlib.Path(folder) / "training" / "metrics.jsonl").read_text().splitlines()
    return [record for record in map(json.loads, lines) if record["kind"] in ("start", "train")]


def update_time(records):
    """Seconds an update after the warm-up, and target tokens an update."""
    first, *rest = records[1:]
    count = rest[-1]["update"] - first["update"]
    seconds = rest[-1]["elapsed_seconds"] - first["elapsed_seconds"]
    return seconds / count, sum(record["target_tokens"] for record in rest) / count


def measure_spread(options):
    """Standard deviation of the times of batches, as a share of their mean."""
    records = train(options, "multi30k", (1, 1, False), 60 + WARM_UP,
                    "training.accumulate=1", "training.log_every=1")
    ends = [record["elapsed_seconds"] for record in records[WARM_UP:]]
    times = [after - before for before, after in zip(ends, ends[1:])]
    return statistics.stdev(times) / statistics.mean(times)


def measure_copy():
    """Bytes a second that one core reads and writes, of more than a cache holds."""
    source, target = bytearray(1 << 28), bytearray(1 << 28)
    times = []
    for _ in range(5):
        begin = time.perf_counter()
        target[:] = source
        times.append(time.perf_counter() - begin)
    return 2 * len(source) / min(times)


def measure_updates(options):
    best = {}
    for turn in range(options.turns):
        for model in MODELS:
            for case in CASES:
                records = train(options, model, case, options.updates)
                seconds, tokens = update_time(records)
                old = best.get((model, case), {"seconds": float("inf")})
                if seconds < old["seconds"]:
                    best[model, case] = {
                        "model": model, "parameters": records[0]["parameters"], "processes": case[0],
                        "threads": case[1], "shared": case[2],
                        "seconds": seconds, "tokens": tokens}
                print(turn, model, *case, f"{1 / seconds:.2f} updates/s", file=sys.stderr)
    return list(best.values())


def measure_messages(options):
    """By the best of the turns, as the updates."""
    best = {}
    for _ in range(options.turns):
        for size in (2, 4):
            done = subprocess.run([*mpirun(size), options.build / "bin" / "message_bench"],
                                  check=True, stdout=subprocess.PIPE)
            for row in map(json.loads, done.stdout.splitlines()):
                old = best.setdefault((row["processes"], row["bytes"]), row)
                for key in ("sum_ms", "share_ms"):
                    old[key] = min(old[key], row[key])
    return list(best.values())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data", type=pathlib.Path, help="folder of tools/prepare_multi30k.sh")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release")
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--json", type=pathlib.Path, required=True, help="file to write")
    options = parser.parse_args()
    results = {
        "spread": min(measure_spread(options) for _ in range(options.turns)),
        "copy_rate": measure_copy(),
        "updates": measure_updates(options),
        "messages": measure_messages(options)}
    options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
