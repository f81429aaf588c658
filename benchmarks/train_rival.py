#!/usr/bin/env python3
"""The step of train_step_bench with torch.nn.Transformer in its place.

    python3 benchmarks/train_rival.py [--device cuda] [--tokens 864] [--length 16]

A translation model of the same widths and depths, the same label-smoothed loss over
6,000 words and Adam, on random sentences without padding; the same line of JSON.
"""
import argparse
import json
import math
import statistics
import time

import torch
from torch import nn

WORDS, WIDTH, HIDDEN, HEADS, LAYERS, DROPOUT = 6000, 256, 512, 4, 3, 0.1


class Translator(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH**-0.5)
        self.layers = nn.Transformer(
            WIDTH, HEADS, LAYERS, LAYERS, HIDDEN, DROPOUT, batch_first=True)
        self.dropout = nn.Dropout(DROPOUT)

    def embed(self, ids, positions):
        rows = math.sqrt(WIDTH) * self.table(ids) + positions[: ids.shape[1]]
        return self.dropout(rows)

    def forward(self, source, target, positions, causal):
        hidden = self.layers(
            self.embed(source, positions), self.embed(target, positions),
            tgt_mask=causal, tgt_is_causal=True)
        return hidden @ self.table.weight.T


def make_step(tokens, length, device):
    model = Translator().to(device)
    adam = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=device != "cpu")
    shape = (tokens // length, length)
    source, target = (torch.randint(4, WORDS, shape, device=device) for _ in range(2))
    angles = torch.arange(length, device=device)[:, None] * torch.exp(
        torch.arange(0, WIDTH, 2, device=device) * (-math.log(1e4) / WIDTH))
    positions = torch.cat([angles.sin(), angles.cos()], 1)
    causal = nn.Transformer.generate_square_subsequent_mask(length, device=device)

    def step():
        adam.zero_grad(set_to_none=True)
        logits = model(source, target, positions, causal)
        nn.functional.cross_entropy(
            logits.view(-1, WORDS), target.view(-1), label_smoothing=0.1).backward()
        adam.step()
        if device != "cpu":
            torch.cuda.synchronize()

    return step, shape[0] * length


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--tokens", type=int, default=864)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    step, tokens = make_step(flags.tokens, flags.length, flags.device)
    times = []
    for repeat in range(flags.repeats + 2):
        start = time.perf_counter()
        step()
        if repeat >= 2:
            times.append(time.perf_counter() - start)
    median = statistics.median(times)
    print(json.dumps({
        "rival": "torch.nn.Transformer", "tokens": tokens, "device": flags.device,
        "target_tokens_per_s": tokens / median, "ms": 1e3 * median,
        "spread_ms": [1e3 * min(times), 1e3 * max(times)]}))


if __name__ == "__main__":
    main()
