#!/usr/bin/env python3
"""Attention with and without short convolutions: losses by update, and times.

    pip install ./python/torch
    short_conv_attention_bench.py [--updates 600] [--seeds 2] [--plot FILE.svg]

Times updates and the convolution of q, k and v beside torch.nn.Conv1d, in turns: medians. Then
trains the model of python/torch/examples/short_conv_attention.py on one thread, without a
convolution, with static taps and with dynamic ones, on the same pieces of text in the same
order; the last tenth of the text is held out. Prints parameters and bits per byte of the
held-out text, one for each seed, and writes the curves, the mean over seeds.
"""
import argparse
import math
import pathlib
import statistics
import sys
import time

import torch
from svg_plot import plot
from torch.nn import functional

import seqconv_torch

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python/torch/examples"))
from char_lm import LICENCES, read  # noqa: E402
from short_conv_attention import AttentionLM  # noqa: E402

ROWS, LENGTH, CHANNELS, LAYERS = 16, 128, 128, 3
NAMES = {"none": "no convolution", "static": "static taps", "dynamic": "dynamic taps"}


def bits(model, text):
    """Bits per byte of a text in pieces of LENGTH."""
    count = (len(text) - 1) // LENGTH
    inputs = text[: count * LENGTH].view(count, LENGTH)
    targets = text[1 : count * LENGTH + 1].view(count, LENGTH)
    with torch.no_grad():
        return functional.cross_entropy(model(inputs).mT, targets).item() / math.log(2)


def trained(taps, seed, text, held_out, updates, every):
    """[(update, bits)], parameters."""
    torch.manual_seed(seed)
    model = AttentionLM(CHANNELS, LAYERS, taps)
    torch.manual_seed(1000 + seed)  # the same pieces for every model
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    curve = []
    for update in range(1, updates + 1):
        begins = torch.randint(len(text) - LENGTH, (ROWS, 1))
        step(model, optimizer, text[begins + torch.arange(LENGTH + 1)])
        if update % every == 0:
            curve.append((update, bits(model, held_out)))
    return curve, sum(p.numel() for p in model.parameters())


def step(model, optimizer, piece):
    """An update on a piece [B, T + 1]."""
    loss = functional.cross_entropy(model(piece[:, :-1]).mT, piece[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def times_of_updates(rounds):
    models = [AttentionLM(CHANNELS, LAYERS, taps) for taps in NAMES]
    optimizers = [torch.optim.AdamW(model.parameters()) for model in models]
    times = {name: [] for name in NAMES.values()}
    for _ in range(rounds):
        piece = torch.randint(256, (ROWS, LENGTH + 1))
        for name, model, optimizer in zip(times, models, optimizers):
            begin = time.perf_counter()
            step(model, optimizer, piece)
            times[name].append(time.perf_counter() - begin)
    for name, seconds in times.items():
        print(f"{name:16s} {1e3 * statistics.median(seconds):.0f} ms an update")


def curves_of(options):
    text = read(options.text)
    cut = len(text) * 9 // 10
    text, held_out = text[:cut], text[cut:]
    print(f"{len(text):,} bytes of text, {len(held_out):,} held out")
    curves = {}
    for taps, name in NAMES.items():
        runs = [trained(taps, seed, text, held_out, options.updates, options.every)
                for seed in range(1, options.seeds + 1)]
        curves[name] = [(points[0][0], statistics.mean(y for _, y in points))
                        for points in zip(*(curve for curve, _ in runs))]
        ends = ", ".join(f"{curve[-1][1]:.3f}" for curve, _ in runs)
        print(f"{name:16s} {runs[0][1]:,} parameters, {ends} bits per byte", flush=True)
    return curves


def times_of_convolutions(rounds):
    """q, k and v of ROWS rows as [B, T, 3 C]: milliseconds of forward, and with backward."""
    T, C = 512, 3 * CHANNELS
    x = torch.randn(4, T, C, requires_grad=True)
    query = torch.randn(4, T, CHANNELS, requires_grad=True)
    conv = torch.nn.Conv1d(C, C, 4, groups=C, padding=3, bias=False)
    static = seqconv_torch.ShortConv(C, 4, residual=True)
    dynamic = seqconv_torch.ShortConv(
        C, 4, residual=True, heads=12, query_channels=CHANNELS)
    with torch.no_grad():
        conv.weight.copy_(static.weight.unsqueeze(1))
    calls = {
        "nn.Conv1d and +": lambda: conv(x.mT)[..., :T].mT + x,
        "static taps": lambda: static(x),
        "dynamic taps": lambda: dynamic(x, query=query),
    }
    torch.testing.assert_close(calls["nn.Conv1d and +"](), calls["static taps"]())
    forward, both = ({name: [] for name in calls} for _ in range(2))
    for _ in range(rounds):
        for name, call in calls.items():
            begin = time.perf_counter()
            y = call()
            middle = time.perf_counter()
            y.sum().backward()
            forward[name].append(middle - begin)
            both[name].append(time.perf_counter() - begin)
    for name in calls:
        print(f"{name:16s} forward {1e3 * statistics.median(forward[name]):.2f} ms, with backward "
              f"{1e3 * statistics.median(both[name]):.2f} ms")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--text", type=pathlib.Path, default=LICENCES)
    parser.add_argument("--updates", type=int, default=600)
    parser.add_argument("--every", type=int, default=50)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--plot", type=pathlib.Path, help="write the curves here as SVG")
    options = parser.parse_args()
    torch.set_num_threads(1)
    times_of_convolutions(options.rounds)
    times_of_updates(options.rounds // 5)
    if options.updates == 0:
        return
    curves = curves_of(options)
    if options.plot:
        plot(options.plot, "Bits per byte of held-out text", "updates of 2,048 bytes", curves,
             linear=True)


if __name__ == "__main__":
    main()
