#!/usr/bin/env python3
"""The step of train_step_bench with torch.nn.Transformer in its place.

    python3 benchmarks/train_rival.py [--device cuda] [--tokens 864] [--length 16]
    PYTHONPATH=FAIRSEQ python3 benchmarks/train_rival.py --model dynamicconv

A translation model of the same widths and depths, the same label-smoothed loss over
6,000 words and Adam, on random sentences without padding; the same line of JSON.
With --model dynamicconv it is built of fairseq's convolutions (a checkout of fairseq
that can be imported), without a gated linear unit: train_step_bench --no-glu.
"""
import argparse
import json
import math
import statistics
import time

import torch
from torch import nn

WORDS, WIDTH, HIDDEN, HEADS, LAYERS, DROPOUT = 6000, 256, 512, 4, 3, 0.1
KERNELS = (3, 7, 15)
RIVALS = {"transformer": "torch.nn.Transformer", "dynamicconv": "fairseq's DynamicConv"}


class ConvolutionLayer(nn.Module):
    """One layer around fairseq's convolution, on [T, B, C]; with attention to `memory`
    in a decoder's."""

    def __init__(self, kernel, causal):
        super().__init__()
        from fairseq.modules.dynamic_convolution import DynamicConv1dTBC
        self.before, self.after = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
        self.convolution = DynamicConv1dTBC(
            WIDTH, kernel_size=kernel, padding_l=kernel - 1 if causal else kernel // 2,
            num_heads=HEADS, weight_softmax=True, weight_dropout=DROPOUT)
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, DROPOUT) if causal else None
        self.expand, self.contract = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, WIDTH)
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(3))
        self.dropout = nn.Dropout(DROPOUT)

    def forward(self, x, memory=None):
        mixed = self.after(self.convolution(self.before(x)))
        x = self.norms[0](x + self.dropout(mixed))
        if self.attention is not None:
            found, _ = self.attention(x, memory, memory, need_weights=False)
            x = self.norms[1](x + self.dropout(found))
        hidden = self.dropout(nn.functional.relu(self.expand(x)))
        return self.norms[2](x + self.dropout(self.contract(hidden)))


class Convolutions(nn.Module):
    """In the place of torch.nn.Transformer."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = (
            nn.ModuleList(ConvolutionLayer(kernel, causal) for kernel in KERNELS)
            for causal in (False, True))

    def forward(self, source, target, **_):
        memory, hidden = source.transpose(0, 1), target.transpose(0, 1)
        for layer in self.encoder:
            memory = layer(memory)
        for layer in self.decoder:
            hidden = layer(hidden, memory)
        return hidden.transpose(0, 1)


class Translator(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.table = nn.Embedding(WORDS, WIDTH)
        nn.init.normal_(self.table.weight, std=WIDTH**-0.5)
        self.layers = Convolutions() if model == "dynamicconv" else nn.Transformer(
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


def make_step(model, tokens, length, device):
    model = Translator(model).to(device)
    adam = torch.optim.Adam(
        model.parameters(), lr=1e-4, betas=(0.9, 0.98), fused=True)
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
    parser.add_argument(
        "--model", default="transformer", choices=RIVALS)
    parser.add_argument("--tokens", type=int, default=864)
    parser.add_argument("--length", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    flags = parser.parse_args()
    torch.set_num_threads(flags.threads)
    step, tokens = make_step(flags.model, flags.tokens, flags.length, flags.device)
    times = []
    for repeat in range(flags.repeats + 2):
        start = time.perf_counter()
        step()
        if repeat >= 2:
            times.append(time.perf_counter() - start)
    median = statistics.median(times)
    print(json.dumps({
        "rival": RIVALS[flags.model], "tokens": tokens, "device": flags.device,
        "target_tokens_per_s": tokens / median, "ms": 1e3 * median,
        "spread_ms": [1e3 * min(times), 1e3 * max(times)]}))


if __name__ == "__main__":
    main()
