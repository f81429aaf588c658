#!/usr/bin/env python3
"""How long an update of many processes takes, and what is lost to slow and lost ones.

    python3 benchmarks/scaling_model.py            # prints the tables
    python3 benchmarks/scaling_model.py --plots docs

A model of compute, sums of gradients and input, whose constants are measured
(benchmarks/processes.json, written by processes_bench.py) or published. The tables are
those of docs/scaling_model.md, which says what the model leaves out.
"""
import argparse
import bisect
import dataclasses
import json
import math
import pathlib
import random
import statistics
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "benchmarks"))
from svg_plot import plot  # noqa: E402

MEASURED = json.loads((ROOT / "benchmarks" / "processes.json").read_text())

# Seconds to make a pair ready (docs/results.md: 5 % of ten million in 0.9 s).
INPUT_A_PAIR = 0.9 / 500_000
TOKENS_A_PAIR = 25
ADAM_BYTES = 28  # an element's: four read, three written
BACKWARD_SHARE = 2 / 3  # of a batch's time


# --- Time of an update ---------------------------------------------------------------


def largest_of(count):
    """Mean of the largest of so many standard normal numbers, within 2 %."""
    if count == 1:
        return 0.0
    # Blom's place of the largest among the quantiles.
    return statistics.NormalDist().inv_cdf((count - 0.375) / (count + 0.25))


def slowest_share(batch_seconds, spread, batches, processes):
    """Time of the slowest process, each with so many batches of its own."""
    mean = batches * batch_seconds
    return mean + largest_of(processes) * spread * batch_seconds * math.sqrt(batches)


def ring_seconds(processes, bytes_, rate, latency=0.0):
    """A sum over a ring: each byte but one share goes around twice."""
    if processes == 1:
        return 0.0
    return 2 * (processes - 1) * (bytes_ / processes / rate + latency)


def measured_sum(processes, bytes_):
    """Between the measured sizes, straight; beyond them, by the last rate."""
    if processes == 1:
        return 0.0
    rows = sorted((row["bytes"], row["sum_ms"] / 1e3) for row in MEASURED["messages"]
                  if row["processes"] == processes)
    index = min(max(bisect.bisect_left(rows, (bytes_,)), 1), len(rows) - 1)
    (x0, y0), (x1, y1) = rows[index - 1], rows[index]
    return y0 + (y1 - y0) * (bytes_ - x0) / (x1 - x0)


def measured_update(model, processes, shared=False):
    """The measured row of one thread a process."""
    return next(row for row in MEASURED["updates"]
                if (row["model"], row["processes"], row["threads"], row["shared"])
                == (model, processes, 1, shared))


def predict_cpu(model, processes, cores=2, batches=4):
    """Seconds an update, from those of one process and the messages' times. On a CPU
    sums are made by the cores that compute: nothing of them is hidden."""
    base = measured_update(model, 1)
    step = base["parameters"] * ADAM_BYTES / MEASURED["copy_rate"]
    batch = (base["seconds"] - step) / batches
    workers = min(processes, cores)  # more processes take turns on the cores
    compute = slowest_share(batch, MEASURED["spread"], batches / workers, workers)
    steps = step * max(1, processes / cores)
    return compute + steps + measured_sum(processes, 4 * base["parameters"])


@dataclasses.dataclass(frozen=True)
class Cluster:
    """GPUs in machines of eight."""
    name: str
    tokens: float  # a second of one GPU, of a big model
    inside: float  # bytes a second of a ring within a machine
    between: float  # of one between machines
    copy: float  # bytes a second of a GPU's memory
    spread: float  # of batches' times
    overlap: bool = True  # sums go on during the backward pass
    latency: float = 5e-6

    def sum_seconds(self, gpus, bytes_):
        rate = self.inside if gpus <= 8 else self.between
        return ring_seconds(gpus, bytes_, rate, self.latency)


@dataclasses.dataclass(frozen=True)
class Recipe:
    name: str
    parameters: float
    batch: int  # tokens
    batches: int  # an update
    updates: int


def predict_gpu(cluster, recipe, gpus, element=2):
    """Seconds an update; `element` is the size of a gradient as it is sent."""
    own = math.ceil(recipe.batches / gpus)
    batch = recipe.batch / cluster.tokens
    pairs = recipe.batch / TOKENS_A_PAIR
    batch = max(batch, pairs * INPUT_A_PAIR)  # input is made beside the last batch
    sums = cluster.sum_seconds(gpus, element * recipe.parameters)
    if cluster.overlap:
        sums = max(sums - BACKWARD_SHARE * batch, sums * (4 << 20) / (element * recipe.parameters))
    step = recipe.parameters * ADAM_BYTES / cluster.copy
    return slowest_share(batch, cluster.spread, own, gpus) + sums + step


# Ott et al., 2018, table 1 (Transformer big, WMT En-De): tokens a second. Two of its rows
# give a GPU's rate and the spread of batches; the two others are witnesses.
BIG = 209e6
PUBLISHED = (  # GPUs, tokens of an update, batches a GPU, overlap, tokens/s, witness
    (8, 402e3, 16, False, 195e3, False),
    (128, 402e3, 1, True, 1.82e6, False),
    (8, 25e3, 1, False, 143e3, True),
    (128, 402e3, 1, False, 1.53e6, True))
# NVLink 2: 150 GB/s a direction. EDR InfiniBand: 100 Gbit/s.
V100_START = Cluster("V100", 25e3, 150e9, 12.5e9, 900e9, 0.2)


def published_rate(cluster, row):
    gpus, tokens, own, overlap, _, _ = row
    recipe = Recipe("", BIG, int(tokens / gpus / own), gpus * own, 1)
    cluster = dataclasses.replace(cluster, overlap=overlap)
    return tokens / predict_gpu(cluster, recipe, gpus)


def fitted(cluster):
    """Rate and spread with which the model gives the first two rows."""
    for _ in range(100):
        rate = cluster.tokens * PUBLISHED[0][4] / published_rate(cluster, PUBLISHED[0])
        cluster = dataclasses.replace(cluster, tokens=rate)
        low, high = 0.0, 2.0
        for _ in range(40):
            spread = (low + high) / 2
            trial = dataclasses.replace(cluster, spread=spread)
            if published_rate(trial, PUBLISHED[1]) > PUBLISHED[1][4]:
                low = spread
            else:
                high = spread
        cluster = dataclasses.replace(cluster, spread=spread)
    return cluster


V100 = fitted(V100_START)
# The same share of the peak (125 and 989 Tflop/s in 16 bits). NVLink 4: 450 GB/s a
# direction; a port of 400 Gbit/s a GPU.
H100 = dataclasses.replace(
    V100, name="H100", tokens=V100.tokens * 989 / 125, inside=450e9, between=50e9, copy=3.35e12)

RECIPES = (  # configs/lightconv_wmt_en_de_big.toml, configs/lightconv_wmt_en_fr_big.toml
    Recipe("En-De big", BIG, 3584, 128, 30_000),
    Recipe("En-Fr big", 220e6, 5120, 128, 80_000))


# --- What is lost ----------------------------------------------------------------------


def simulate_updates(processes, spread, slow, updates=400, seed=1):
    """Mean time of an update, in batches: the slowest of all, one of which takes the
    share `slow` longer than the others."""
    draw = random.Random(seed)
    total = 0.0
    for _ in range(updates):
        times = [max(0.05, draw.gauss(1, spread)) for _ in range(processes)]
        times[0] *= 1 + slow
        total += max(times)
    return total / updates


@dataclasses.dataclass(frozen=True)
class Job:
    machines: int
    machine_between_failures: float  # seconds
    save: float  # seconds for which training waits
    restart: float  # until it trains again, finding out included

    @property
    def between_failures(self):
        return self.machine_between_failures / self.machines


def simulate_goodput(job, interval, failures=4000, seed=1):
    """Share of the time that goes into updates that are kept."""
    draw = random.Random(seed)
    now = kept = 0.0
    for _ in range(failures):
        gap = draw.expovariate(1 / job.between_failures)
        kept += interval * (gap // (interval + job.save))
        now += gap
        while (gap := draw.expovariate(1 / job.between_failures)) < job.restart:
            now += gap  # it fails while it begins again
        now += job.restart
    return kept / now


def young(job):
    return math.sqrt(2 * job.save * job.between_failures)


def daly(job):
    ratio = job.save / (2 * job.between_failures)
    return young(job) * (1 + math.sqrt(ratio) / 3 + ratio / 9) - job.save


def best_interval(job, intervals):
    return max(intervals, key=lambda interval: simulate_goodput(job, interval))


# A state of 12 bytes a parameter at half a GB/s; 20 s to find out, the rest to begin.
SAVE = 12 * BIG / 0.5e9
RESTART = 120.0
DAY = 86400.0


# --- Tables and plots ----------------------------------------------------------------


def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return lines + ["| " + " | ".join(map(str, row)) + " |" for row in rows]


def percent(predicted, measured):
    return f"{100 * (predicted / measured - 1):+.0f} %"


def cpu_table():
    rows = []
    for model in "tiny", "multi30k":
        for processes in 1, 2, 4:
            measured = 1 / measured_update(model, processes)["seconds"]
            predicted = 1 / predict_cpu(model, processes)
            shares = "" if processes == 1 else (
                f"{1 / measured_update(model, processes, True)['seconds']:.2f}")
            rows.append((model, processes, f"{measured:.2f}", shares, f"{predicted:.2f}",
                         percent(predicted, measured)))
    return table(("model", "processes", "updates/s", "with shares", "predicted", "error"), rows)


def message_table():
    sizes = sorted({row["bytes"] for row in MEASURED["messages"]})
    rows = []
    for size in sizes:
        times = {row["processes"]: row for row in MEASURED["messages"] if row["bytes"] == size}
        rows.append((f"{size / 1e6:.2f}", *(f"{times[count][key]:.2f}"
                    for key in ("sum_ms", "share_ms") for count in (2, 4))))
    return table(("MB", "sum of 2, ms", "sum of 4, ms", "shares of 2, ms", "shares of 4, ms"), rows)


def published_table():
    rows = []
    for row in PUBLISHED:
        gpus, tokens, own, overlap, rate, witness = row
        predicted = published_rate(V100, row)
        rows.append((gpus, f"{tokens / 1e3:.0f}k", own, "yes" if overlap else "no",
                     f"{rate / 1e3:,.0f}k", f"{predicted / 1e3:,.0f}k",
                     percent(predicted, rate) if witness else "fitted"))
    return table(("GPUs", "tokens an update", "batches a GPU", "overlap", "published tokens/s",
                  "model", "error"), rows)


def recipe_table():
    rows = []
    for recipe in RECIPES:
        for cluster in V100, H100:
            for gpus in 8, 128:
                seconds = predict_gpu(cluster, recipe, gpus)
                tokens = recipe.batch * recipe.batches / seconds
                ideal = gpus * cluster.tokens
                rows.append((recipe.name, cluster.name, gpus, f"{seconds:.2f}",
                             f"{tokens / 1e3:,.0f}k", f"{100 * tokens / ideal:.0f} %",
                             f"{seconds * recipe.updates / 3600:.1f}"))
    return table(("recipe", "GPU", "GPUs", "s an update", "tokens/s", "of all GPUs' rate",
                  "hours"), rows)


# Output tokens a second of two cores, docs/runtime.md.
DECODING = (("big, float32, beam 5", 54), ("big, int8, greedy", 162),
            ("iwslt, float32, beam 5", 297), ("tiny, int8, beam 5", 1641))
SENTENCES = 1e10
LENGTH = 24


def decoding_table():
    rows = []
    for name, tokens in DECODING:
        a_core = tokens / 2 / LENGTH
        years = SENTENCES / a_core / DAY / 365
        rows.append((name, f"{a_core:.2f}", f"{years:,.0f}", f"{years * 365 / 10_000:.1f}"))
    return table(("model", "sentences/s of a core", "core years", "days on 10,000 cores"), rows)


def straggler_table():
    rows = []
    for processes in 2, 8, 128:
        alone = simulate_updates(processes, V100.spread, 0)
        formula = 1 + largest_of(processes) * V100.spread
        rows.append((processes, f"{alone:.2f}", f"{formula:.2f}", *(
            percent(simulate_updates(processes, V100.spread, slow), alone)
            for slow in (0.1, 0.5, 1.0))))
    return table(("processes", "an update, in batches", "by the formula", "one 10 % slower",
                  "50 %", "100 %"), rows)


def jobs():
    for machines in 1, 16, 128:
        for days in 30, 180:
            yield Job(machines, days * DAY, SAVE, RESTART), days


def goodput_table():
    rows = []
    for job, days in jobs():
        best = best_interval(job, [daly(job) * 2 ** (k / 4) for k in range(-8, 9)])
        rows.append((job.machines, days, f"{young(job) / 60:.0f}", f"{daly(job) / 60:.0f}",
                     f"{best / 60:.0f}", f"{100 * simulate_goodput(job, daly(job)):.1f} %",
                     f"{100 * simulate_goodput(job, 6 * 3600):.1f} %"))
    return table(("machines", "days between a machine's failures", "Young, min", "Daly, min",
                  "simulated best, min", "kept at Daly's", "saving every 6 h"), rows)


def draw_plots(folder):
    gpus = [2 ** k for k in range(8)]
    recipe = RECIPES[0]
    tokens = recipe.batch * recipe.batches / 1e6
    plot(folder / "scaling_updates.svg", "En-De big: million tokens a second", "GPUs (V100)",
         {"no loss": [(n, n * V100.tokens / 1e6) for n in gpus],
          "model": [(n, tokens / predict_gpu(V100, recipe, n)) for n in gpus],
          "no overlap": [(n, tokens / predict_gpu(dataclasses.replace(V100, overlap=False),
                                                  recipe, n)) for n in gpus]},
         [(128, 1.82, "published"), (128, 1.53, "published"), (8, 0.195, "published")])
    minutes = [2 ** k for k in range(1, 11)]
    plot(folder / "scaling_goodput.svg", "Share of the time that is kept",
         "minutes between saved states (a machine fails every 30 days)",
         {f"{machines} machine{'s' * (machines > 1)}": [
             (m, simulate_goodput(Job(machines, 30 * DAY, SAVE, RESTART), 60 * m))
             for m in minutes] for machines in (1, 16, 128)})


TABLES = {
    "Messages": message_table, "One to four processes": cpu_table,
    "Published rates": published_table, "Recipes": recipe_table,
    "Ten thousand million sentences": decoding_table, "Slow processes": straggler_table,
    "Lost processes": goodput_table}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--plots", type=pathlib.Path, help="folder for two SVG files")
    options = parser.parse_args()
    for title, make in TABLES.items():
        print(f"{title}\n", *make(), "", sep="\n")
    print(f"V100: {V100.tokens:,.0f} tokens/s of a GPU, spread of batches {V100.spread:.2f}")
    if options.plots:
        draw_plots(options.plots)


if __name__ == "__main__":
    main()
