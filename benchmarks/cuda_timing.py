"""Timing on a CUDA device, and results that survive what comes after them."""

import contextlib
import json
import os
import statistics

import torch

GRAPH_CALLS = 20  # at least, unless they are long: a launch costs some us


class Clock:
    """Times calls on a stream of its own, by events."""

    def __init__(self):
        self.stream = torch.cuda.Stream()
        self.ways = set()  # "graph", "calls": how the last ones were timed

    def seconds(self, calls, repeats=7, shortest=0.02):
        """Median seconds of one call, the calls taken in turn."""
        self.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.stream):
            for call in (calls * 3)[:3]:
                call()

            def plain():
                for call in calls:
                    call()

            copies = -(-GRAPH_CALLS // len(calls))
            taken = max(timed(plain, 1), 1e-6)
            copies = min(copies, 1 + int(shortest / taken))
            graph = captured(self.stream, plain, copies)
            self.ways.add("graph" if graph else "calls")
            run, each = (graph.replay, copies) if graph else (plain, 1)
            run()
            rounds = 1
            while True:
                taken = timed(run, rounds)
                if taken >= shortest or rounds > 1000:
                    break
                more = int(rounds * 1.3 * shortest / max(taken, 1e-6))
                rounds = max(rounds + 1, more)
            times = [timed(run, rounds) for _ in range(repeats)]
        torch.cuda.current_stream().wait_stream(self.stream)
        return statistics.median(times) / (rounds * each * len(calls))


def captured(stream, function, copies):
    """A graph that runs a function some times, or None where it cannot."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(copies):
                function()
    except RuntimeError as failure:
        print(f"timed without a graph: {brief(failure)}", flush=True)
        return None
    return graph


def timed(function, rounds):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(rounds):
        function()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / 1e3


def brief(failure):
    lines = str(failure).splitlines() or [""]
    return f"{type(failure).__name__}: {lines[0]}"


@contextlib.contextmanager
def noted(row, what):
    """An exception of this part of a row becomes its "error"."""
    try:
        yield
    except Exception as failure:
        before = row["error"] + "; " if "error" in row else ""
        row["error"] = f"{before}{what}: {brief(failure)}"


class Results:
    """Tables of rows, printed and written to a file as they grow."""

    def __init__(self, path, clock, facts):
        self.path, self.clock, self.tables = path, clock, dict(facts)
        self.errors = 0

    def row(self, table, keys, fill):
        """A row of these keys and of what fill(row) adds."""
        row = dict(keys)
        self.clock.ways.clear()
        with noted(row, "row"):
            torch.cuda.empty_cache()
            fill(row)
        if self.clock.ways:
            row["timed"] = " and ".join(sorted(self.clock.ways))
        self.errors += "error" in row
        self.tables.setdefault(table, []).append(row)
        print(
            "  ".join(
                f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}"
                for k, v in row.items()
            ),
            flush=True,
        )
        self.write()

    def write(self):
        """The file holds whole results at any time: it is replaced."""
        if self.path:
            beside = self.path.with_name(self.path.name + ".new")
            beside.write_text(json.dumps(self.tables, indent=1) + "\n")
            os.replace(beside, self.path)


def copy_rate(clock):
    """Bytes read and written each second by a copy of 1 GiB."""
    source = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / clock.seconds([lambda: target.copy_(source)])
