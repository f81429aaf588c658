#!/usr/bin/env python3
"""How fast `seqconv evaluate` is beside sacrebleu and rouge-score-rs.

    pip install sacrebleu==2.5.1 rouge-score-rs
    python benchmarks/metrics_bench.py build/release/bin/seqconv TEXT... \\
        [--lines 100000] [--rounds 3] [--threads 1 2] [--metrics bleu chrf ...]

References are lines of the texts (also packed with xz), different ones where there are
enough; the system's output is made of them by leaving out, exchanging, doubling and
changing words. Ours is timed as a whole command, from its start to its end, with files
that are read and checked. Of a rival only the scoring counts, in a process of its own
with one thread, its text in memory: starting Python, imports and files are free. They
take turns, and medians are told. The scores must be the same.
"""
import argparse
import json
import lzma
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests/support"))
import made_up_text  # noqa: E402

METRICS = {
    "bleu": ["bleu"],
    "chrf": ["chrf"],
    "chrf++": ["chrf", "--word-order", "2"],
    "ter": ["ter"],
    "rouge": ["rouge", "--style", "rouge_score"],
}
MEASURES = ["rouge1", "rouge2", "rougeL", "rougeLsum"]


def read(path):
    opened = lzma.open(path, "rt", encoding="utf-8") if path.suffix == ".xz" else path.open(encoding="utf-8")
    with opened as file:
        return [line.strip() for line in file]


def references(paths, count):
    """So many lines with words; those of the texts again, rotated, where they are too few."""
    lines = [line for line in dict.fromkeys(line for path in paths for line in read(path)) if line.split()]
    found, turn = [], 0
    while len(found) < count:
        for line in lines[:count - len(found)]:
            words = line.split()
            at = turn % len(words)
            found.append(" ".join(words[at:] + words[:at]))
        turn += 1
    return found


def sacrebleu_score(name, hypotheses, wanted):
    import sacrebleu

    metrics = {"bleu": sacrebleu.BLEU, "chrf": sacrebleu.CHRF, "ter": sacrebleu.TER,
               "chrf++": lambda: sacrebleu.CHRF(word_order=2)}
    metric = metrics[name]()
    start = time.perf_counter()
    score = metric.corpus_score(hypotheses, [wanted]).score
    return time.perf_counter() - start, [score]


def rouge_score(hypotheses, wanted):
    import rouge_score_rs

    scorer = rouge_score_rs.RougeScorer(MEASURES, use_stemmer=True)
    start = time.perf_counter()
    scores = scorer.score_batch(wanted, hypotheses)
    means = [100 * statistics.fmean(score[name].fmeasure for score in scores) for name in MEASURES]
    return time.perf_counter() - start, means


def be_rival(name, folder):
    hypotheses, wanted = (pathlib.Path(folder, file).read_text(encoding="utf-8").split("\n")[:-1] for file in ("system", "reference"))
    seconds, scores = rouge_score(hypotheses, wanted) if name == "rouge" else sacrebleu_score(name, hypotheses, wanted)
    print(json.dumps({"seconds": seconds, "scores": scores}))


def time_rival(name, folder):
    environment = {**os.environ, "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    run = subprocess.run([sys.executable, __file__, "--rival", name, folder], capture_output=True, check=True, env=environment)
    found = json.loads(run.stdout)
    return found["seconds"], found["scores"]


def time_ours(program, name, folder, threads):
    command = [program, "evaluate", *METRICS[name], "--threads", str(threads), "--format", "json",
               "-r", f"{folder}/reference", "--hypotheses", f"{folder}/system"]
    start = time.perf_counter()
    run = subprocess.run(command, capture_output=True, check=True)
    seconds = time.perf_counter() - start
    found = json.loads(run.stdout)
    return seconds, [one["score"] for one in found.get("scores", [found])]


def compare(name, folder, arguments):
    """Prints a row: our seconds by the number of threads, the rival's, and how many times as many."""
    ours, theirs = {threads: [] for threads in arguments.threads}, []
    for _ in range(arguments.rounds):
        for threads in arguments.threads:
            seconds, scores = time_ours(arguments.program, name, folder, threads)
            ours[threads].append(seconds)
        seconds, wanted = time_rival(name, folder)
        theirs.append(seconds)
        if any(abs(a - b) > 1e-6 for a, b in zip(scores, wanted, strict=True)):
            sys.exit(f"{name}: scores must be the rival's {wanted}, but are {scores}")
    rival = statistics.median(theirs)
    medians = [statistics.median(own) for own in ours.values()]
    cells = [f"{seconds:.2f}" for seconds in [*medians, rival]] + [f"{rival / seconds:.0f}" if rival / seconds >= 10 else
                                                                   f"{rival / seconds:.1f}" for seconds in medians]
    print("| " + " | ".join([name, *cells]) + " |", flush=True)


def main():
    if sys.argv[1:2] == ["--rival"]:
        return be_rival(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("program")
    parser.add_argument("texts", nargs="+", type=pathlib.Path)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--metrics", nargs="+", default=list(METRICS), choices=METRICS)
    arguments = parser.parse_args()
    wanted = references(arguments.texts, arguments.lines)
    with tempfile.TemporaryDirectory() as folder:
        for name, lines in (("reference", wanted), ("system", made_up_text.worse(wanted, 0.25))):
            pathlib.Path(folder, name).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        words = sum(len(line.split()) for line in wanted)
        print(f"{len(wanted)} lines, {words / len(wanted):.1f} words each, median of {arguments.rounds}, seconds")
        threads = [f"seqconv, {count} thread{'s' if count > 1 else ''}" for count in arguments.threads]
        head = ["metric", *threads, "rival", *(f"times, {count}" for count in arguments.threads)]
        print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
        for name in arguments.metrics:
            compare(name, folder, arguments)
    return None


if __name__ == "__main__":
    main()
