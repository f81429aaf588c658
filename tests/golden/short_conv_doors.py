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


# Dynamic taps: tensors are [B, T, C]; tap k is that of the input k positions before.


def before(x, k):
    """x [B, T, C], k positions later."""
    return functional.pad(x, (0, 0, k, 0))[:, : x.shape[1]]


def backwards(inputs, taps, spec):
    """x through taps [B, T, C, W]."""
    x = inputs["x"]
    if spec["static"]:
        taps = taps + inputs["static_w"].mT
    y = sum(taps[..., k] * before(x, k) for k in range(taps.shape[-1]))
    return {"y": y + x if spec["residual"] else y}


def inputs_headwise(draw, spec):
    B, T, C, W = 2, spec["t"], spec["c"], spec["w"]
    inputs = {"x": draw("x", B, T, C), "taps": draw("taps", B, T, C // spec["size"], W)}
    return inputs | ({"static_w": draw("static_w", W, C)} if spec["static"] else {})


def formula_headwise(inputs, spec):
    return backwards(inputs, inputs["taps"].repeat_interleave(spec["size"], 2), spec)


def inputs_lowrank(draw, spec):
    B, T, C, W, R = 2, spec["t"], spec["c"], spec["w"], spec["r"]
    inputs = {"x": draw("x", B, T, C), "z": draw("z", B, T, R), "U": draw("U", R, W * C)}
    return inputs | ({"static_w": draw("static_w", W, C)} if spec["static"] else {})


def formula_lowrank(inputs, spec):
    z, u = inputs["z"], inputs["U"].view(spec["r"], spec["w"], spec["c"])
    taps = sum(z[:, :, r, None, None] * u[r] for r in range(spec["r"]))  # [B, T, W, C]
    return backwards(inputs, taps.mT, spec)


def inputs_dflash(draw, spec):
    N, C, W = spec["blocks"] * spec["block"], spec["c"], spec["w"]
    groups = C // spec["group"]
    return {"x": draw("x", N, C), "base": draw("base", W, C), "delta": draw("delta", N, W, groups)}


def formula_dflash(inputs, spec):
    """A block does not see the one before."""
    x, delta = inputs["x"], inputs["delta"].repeat_interleave(spec["group"], 2)  # [N, W, C]
    y, place = torch.zeros_like(x), torch.arange(len(x)) % spec["block"]
    for k in range(spec["w"]):
        product = (inputs["base"][k] + delta[:, k]) * before(x[None], k)[0]
        y = y + torch.where(place[:, None] < k, 0.0, product)
    return {"y": y}


# Jet-Nemotron: tensors are [B, T, C], caches [N, C, W], newest last.


def inputs_jet(draw, spec):
    B, C, T, W, units = 2, spec["c"], spec["t"], spec["w"], spec["c"] // spec["reduction"]
    size = spec["g"] or C
    inputs = {"x": draw("x", B, T, C), "w1": draw("w1", units, size), "w2": draw("w2", C * W, units),
              "w2_bias": draw("w2_bias", C * W)}
    if spec["g"]:
        inputs["g"] = draw("g", B, T, size)
    if spec["cache"]:
        inputs["cache"] = draw("cache", B, C, W)
    return inputs


def formula_jet(inputs, spec):
    x, W = inputs["x"], spec["w"]
    units = silu((inputs.get("g", x).unsqueeze(-2) * inputs["w1"]).sum(-1))
    kernel = (units.unsqueeze(-2) * inputs["w2"]).sum(-1) + inputs["w2_bias"]
    cache = inputs["cache"].mT if spec["cache"] else x.new_zeros(len(x), W, spec["c"])
    y = convolve(x, kernel.unflatten(-1, (spec["c"], W)), cache[:, 1:])
    return {"y": finish(y, spec), "final": last(torch.cat([cache, x], 1), W).mT}


def dynamic_cases():
    for W in (2, 4):
        for residual in (0, 1):
            for static_w in (0, 1):
                both = {"w": W, "static": static_w, "residual": residual}
                for size in (1, 16):
                    yield "headwise", {"t": 33, "c": 32, "size": size, **both}
                yield "lowrank", {"t": 32, "c": 32, "r": 16 - static_w, **both}
    for T in (1, 2, 3):
        yield "headwise", {"t": T, "c": 6, "size": 3, "w": 4, "static": 1, "residual": 1}
        yield "lowrank", {"t": T, "c": 6, "r": 3, "w": 4, "static": 1, "residual": 1}
    for block, W in ((8, 2), (5, 4), (2, 3), (1, 2)):
        yield "dflash", {"blocks": 4, "block": block, "c": 32, "group": 16, "w": W}
    for T in (1, 2, 3, 4, 33):
        for W in (3, 4):
            yield "jet", {"t": T, "c": 16, "w": W, "reduction": 8, "g": T % 2 * 6, "cache": W % 2, "silu": 1}
    yield "jet", {"t": 9, "c": 4, "w": 5, "reduction": 1, "g": 0, "cache": 1, "silu": 0}


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


CASES = [*causal_conv1d_cases(), *fla_cases(), *dynamic_cases()]


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
