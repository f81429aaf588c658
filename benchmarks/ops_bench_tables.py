#!/usr/bin/env python3
"""Writes what ops_bench has measured as the tables of docs/benchmarks.md.

    build/release/bin/ops_bench --json ops.json
    python3 benchmarks/ops_bench_tables.py ops.json
"""

import json
import sys


def table(head, rows):
    """Markdown of a list of rows of strings."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join(lines)


def floor_tables(rows):
    """Percent of the floor, one row a kernel size, one column a length."""
    groups = {}
    for row in rows:
        name = (row["op"], row["pass"], row["type"], row["C"])
        groups.setdefault(name, {}).setdefault(row["K"], {})[row["T"]] = row
    lengths = sorted({row["T"] for row in rows})
    out = []
    for (op, which, dtype, channels), sizes in groups.items():
        for size, cells in sizes.items():
            out.append(
                [op, which, dtype, str(channels), str(size)]
                + [
                    f"{cells[t]['percent_of_floor']:.0f} "
                    f"({cells[t]['ms']:.2f} ms)"
                    for t in lengths
                ]
            )
    head = ["operator", "pass", "type", "C", "K"]
    return table(head + [f"T = {t}" for t in lengths], out)


def rival_tables(rows):
    """Milliseconds, and how many times ours that is."""
    groups = {}
    for row in rows:
        name = (row["op"], row["K"], row["pass"], row["what"])
        groups.setdefault(name, {})[row["T"]] = row
    lengths = sorted({row["T"] for row in rows})
    out = []
    for (op, size, which, what), cells in groups.items():
        ours = what == "seqconv"
        out.append(
            [op, str(size), which, what]
            + [
                f"{cells[t]['ms']:.2f} ms"
                + ("" if ours else f" ({cells[t]['times_ours']:.1f}x)")
                for t in lengths
            ]
        )
    head = ["operator", "K", "pass", "what"]
    return table(head + [f"T = {t}" for t in lengths], out)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        report = json.load(file)
    print(f"{report['tokens']} tokens, {report['threads']} threads\n")
    if report["floors"]:
        print("Percent of the floor (milliseconds):\n")
        print(floor_tables(report["floors"]) + "\n")
    if report["rivals"]:
        print("Beside rivals (times ours):\n")
        print(rival_tables(report["rivals"]))


if __name__ == "__main__":
    main()
