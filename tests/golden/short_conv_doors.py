#!/usr/bin/env python3
"""Writes the golden numbers of short convolutions under the names of other packages.

    python short_conv_doors.py [--check]

The file is short_conv_doors.safetensors beside this one: of each case every output, or
KEPT numbers of it that its name draws. Inputs follow from names alone and are not
stored. Formulas are those that the packages define, in float64, tap by tap; the
grids of shapes are those of their own tests, with fewer channels and rows. No line of
seqconv is called. --check compares, within 1e-12. Needs PyTorch and NumPy.
"""
import argparse
import pathlib
import sys

import numpy as np
import torch
from torch.nn import functional

from golden_format import Case, from_bytes, integers, largest_error, to_bytes

FILE = pathlib.Path(__file__).with_suffix(".safetensors")
KEPT = 48
BOUND = 1e-12


def silu(z):
    return z / (1 + (-z).exp())


def convolve(x, taps, history, numbers=None):
    """y[t] = sum_j taps[t, j] all[t + j], where all is `history` [B, W-1, C] with x [B, T, C]
    behind it, and taps are [B or 1, T or 1, C, W]. With `numbers` [B, T] a product
    counts where both positions have the same number; history has each row's first."""
    everything, T = torch.cat([history, x], 1), x.shape[1]
    y = torch.zeros_like(x)
    for j in range(taps.shape[-1]):
        product = taps[..., j] * everything[:, j : j + T]
        if numbers is not None:
            before = numbers[:, :1].expand(-1, history.shape[1])
            same = torch.cat([before, numbers], 1)[:, j : j + T] == numbers
            product = product * same[:, :, None]
        y = y + product
    return y


def last(columns, count):
    """The last `count` of [B, T, C], zeros before them."""
    T = columns.shape[1]
    return functional.pad(columns, (0, 0, max(0, count - T), 0))[:, max(0, T - count) :]


class Draw:
    """Inputs that follow from the name of a case, exact in bfloat16."""

    def __init__(self, name):
        self.case = Case("doors", name)

    def __call__(self, name, *shape):
        return torch.from_numpy(self.case.draw(name, shape))

    def integers(self, name, count, limit):
        return torch.from_numpy(self.case.integers(name, count, limit))

    def taps(self, C, W, bias):
        """weight [C, W] and bias [C] or None."""
        return {"weight": self("weight", C, W), "bias": self("bias", C) if bias else None}


def finish(z, spec):
    return silu(z) if spec.get("silu") else z


def static(inputs, x, history, spec, numbers=None):
    """x [B, T, C] through weight [C, W] and bias."""
    z = convolve(x, inputs["weight"][None, None], history, numbers)
    z = z if inputs["bias"] is None else z + inputs["bias"]
    return finish(z, spec)


# causal-conv1d: tensors are [B, C, T], states [B, C, W-1 or more], newest last.


def inputs_fn(draw, spec):
    B, C, T, W = 2, spec["c"], spec["t"], spec["w"]
    inputs = {"x": draw("x", B, C, T), **draw.taps(C, W, spec["bias"])}
    if spec["initial"]:
        inputs["initial"] = draw("initial", B, C, W - 1)
    if spec.get("packed"):
        # Pieces of W and more, the first row's last one padding; numbers do not begin at 0.
        piece = torch.arange(T) // max(W, T // 3)
        inputs["seq_idx"] = torch.stack([piece + 3, piece * 2 + 5])
        inputs["seq_idx"][0, T - T // 4 :] = -1
    return inputs


def formula_fn(inputs, spec):
    x = inputs["x"].mT
    before = x.new_zeros(len(x), spec["w"] - 1, spec["c"])
    if "initial" in inputs:
        before = inputs["initial"].mT
    numbers = inputs.get("seq_idx")
    if numbers is None:
        y = static(inputs, x, before, spec)
        return {"y": y.mT, "final": last(torch.cat([before, x], 1), spec["w"] - 1).mT}
    y = static(inputs, x, before, spec, numbers)
    return {"y": torch.where(numbers[:, :, None] < 0, 0.0, y).mT}


def inputs_update(draw, spec):
    B, C, T, W = 4, spec["c"], spec["t"], spec["w"]
    S = W - 1 + int(draw.integers("width", 1, 11))
    entries = 9 if spec["rows"] else B
    inputs = {"x": draw("x", B, C, T), "state": draw("state", entries, C, S)}
    if spec["ring"]:
        inputs["seen"] = draw.integers("seen", B, 3 * S + 1).int()
    if spec["rows"]:
        inputs["rows"] = torch.tensor([7, -1, 2, -5], dtype=torch.int32)
    return inputs | draw.taps(C, W, spec["bias"])


def formula_update(inputs, spec):
    """Row by row, column by column."""
    x, W, state = inputs["x"], spec["w"], inputs["state"].clone()
    rows = inputs.get("rows", torch.arange(len(x)))
    y, S = torch.zeros_like(x), state.shape[2]
    for b, row in enumerate(rows.tolist()):
        if row < 0:
            continue
        old, at = state[row].clone(), int(inputs["seen"][b]) if spec["ring"] else 0
        columns = [(at - W + 1 + i) % S if spec["ring"] else S - W + 1 + i for i in range(W - 1)]
        y[b] = static(inputs, x[b : b + 1].mT, old[:, columns].mT[None], spec)[0].mT
        for t in range(x.shape[2]):
            if spec["ring"]:
                state[row, :, (at + t) % S] = x[b, :, t]
            else:
                state[row] = torch.cat([state[row, :, 1:], x[b, :, t : t + 1]], 1)
    return {"y": y, "state": state}


def inputs_states(draw, spec):
    lengths = 1 + draw.integers("lengths", spec["rows"], 31)
    offsets = functional.pad(lengths.cumsum(0), (1, 0))
    return {"x": draw("x", int(offsets[-1]), 4), "cu_seqlens": offsets}


def formula_states(inputs, spec):
    ends = inputs["cu_seqlens"].tolist()
    rows = [inputs["x"][None, a:b] for a, b in zip(ends, ends[1:])]
    return {"states": torch.cat([last(row, spec["kept"]) for row in rows]).mT}


# fla: tensors are [B, T, C], caches [N, C, W], newest last.


def inputs_fla(draw, spec):
    B, C, T, W = spec["b"], spec["c"], spec["t"], spec["w"]
    inputs = {"x": draw("x", B, T, C), **draw.taps(C, W, spec["bias"])}
    if spec["residual"]:
        inputs["residual"] = draw("residual", B, T, C)
    if spec["packed"]:
        # Four sequences or as many as there are positions, of unequal lengths.
        count = min(4, T)
        cuts = torch.arange(1, count) * T // count - torch.arange(1, count) % 2 * (T // count // 2)
        inputs["cu_seqlens"] = torch.tensor([0, *cuts.tolist(), T], dtype=torch.int32)
    if spec["cache"]:
        rows = len(inputs["cu_seqlens"]) - 1 if spec["packed"] else B
        inputs["cache"] = draw("cache", rows, C, W)
    if spec["mask"]:
        inputs["mask"] = draw.integers("mask", B * T, 3).clamp(max=1).view(B, T)
    return inputs


def formula_fla(inputs, spec):
    x, W = inputs["x"], spec["w"]
    if spec["mask"]:
        x = x * inputs["mask"][:, :, None]
    ends = inputs["cu_seqlens"].tolist() if spec["packed"] else None
    rows = x.split(1) if ends is None else [x[:, a:b] for a, b in zip(ends, ends[1:])]
    caches = inputs["cache"].mT.split(1) if spec["cache"] else [x.new_zeros(1, W, spec["c"])] * len(rows)
    y = torch.cat([static(inputs, row, cache[:, 1:], spec) for row, cache in zip(rows, caches)],
                  0 if ends is None else 1)
    y = y + inputs["residual"] if spec["residual"] else y
    finals = [last(torch.cat([cache, row], 1), W) for row, cache in zip(rows, caches)]
    return {"y": y, "final": torch.cat(finals).mT}


def fla_cases():
    plain = {"bias": 0, "silu": 0, "residual": 0, "packed": 0, "cache": 0, "mask": 0}
    rows = [(2, 64, 16, 3, "silu bias residual"), (2, 128, 16, 4, "silu residual"), (2, 128, 16, 4, "silu"),
            (2, 100, 24, 3, "bias residual"), (2, 130, 24, 4, "residual"), (2, 64, 8, 3, "bias"), (2, 128, 8, 4, "")]
    rows += [(2, T, 6, W, "silu bias cache") for T, W in ((1, 2), (1, 4), (2, 3), (2, 4), (3, 4), (4, 4), (64, 3))]
    rows += [(1, T, 6, W, f"silu packed {more}") for T, W in ((3, 4), (64, 3), (128, 4), (200, 4))
             for more in ("", "bias cache", "residual cache")]
    rows += [(3, 20, 5, 4, "silu bias mask"), (3, 20, 5, 4, "residual mask cache"), (2, 5, 3, 1, "bias cache")]
    for b, t, c, w, words in rows:
        yield "fla", {"b": b, "t": t, "c": c, "w": w, **plain, **dict.fromkeys(words.split(), 1)}


def causal_conv1d_cases():
    lengths = (1, 2, 8, 16, 32, 64, 128, 129, 130, 151)
    for i, T in enumerate(lengths):
        for W in (2, 3, 4):
            for C in (64, 5):
                n = i + W + C
                yield "fn", {"t": T, "c": C, "w": W, "bias": n % 2, "silu": n // 2 % 2, "initial": i % 2}
    for W in (1, 7):
        yield "fn", {"t": 5, "c": 3, "w": W, "bias": 1, "silu": 1, "initial": 1}
    for T in (8, 64, 151):
        for W in (2, 3, 4):
            for initial in (0, 1):
                yield "fn", {"t": T, "c": 6, "w": W, "bias": 1, "silu": initial, "initial": initial, "packed": 1}
    for T in (1, 4, 5, 16):
        for W in (2, 3, 4):
            for ring in (0, 1):
                for rows in (0, 1):
                    n = T + W + ring
                    yield "update", {"t": T, "c": 12, "w": W, "bias": n % 2, "silu": rows, "ring": ring, "rows": rows}
    for kept in (1, 20):
        yield "states", {"rows": 20, "kept": kept}


CASES = [*causal_conv1d_cases(), *fla_cases()]


def name_of(op, spec):
    return "_".join([op, *(f"{key}{value}" for key, value in spec.items())])


def inputs_of(op, spec):
    return globals()["inputs_" + op](Draw(name_of(op, spec)), spec)


def outputs_of(op, spec, inputs):
    return globals()["formula_" + op](inputs, spec)


def kept(name, values):
    """The numbers of an output that are stored: all, or KEPT of them."""
    flat = values.detach().double().numpy().reshape(-1)
    return flat if flat.size <= KEPT else flat[integers(name, KEPT, flat.size)]


def make():
    """{output: its numbers} of all cases."""
    made = {}
    for op, spec in CASES:
        for name, values in outputs_of(op, spec, inputs_of(op, spec)).items():
            full = f"{name_of(op, spec)}.{name}"
            assert full not in made, f"two cases are called {full}"
            made[full] = kept(full, values)
    return made


def stored():
    return from_bytes(FILE.read_bytes())[1]


def differences(found, wanted):
    """A line for each output that differs."""
    for name in sorted(set(found) ^ set(wanted)):
        yield f"{name} is in one of the two only"
    for name in sorted(set(found) & set(wanted)):
        if found[name].shape != wanted[name].shape:
            yield f"{name} has another size"
        elif not largest_error(found[name], wanted[name]) <= BOUND:
            yield f"{name} is off by {largest_error(found[name], wanted[name]):.1e}"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with what lies there")
    arguments = parser.parse_args(arguments)
    torch.set_num_threads(1)
    made = make()
    if not arguments.check:
        FILE.write_bytes(to_bytes({"op": "short_conv_doors", "seed": "1"}, made))
        return 0
    wrong = list(differences(stored(), made))
    print("".join(line + "\n" for line in wrong), end="")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
