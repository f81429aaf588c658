"""A small attention language model of characters whose queries, keys and values pass dynamic
short convolutions ("Dynamic Short Convolutions Improve Transformers", arXiv 2606.03825).

    python short_conv_attention.py [--text FILE_OR_FOLDER] [--updates 1000] [--taps dynamic]
"""

import argparse
import pathlib

import torch
from char_lm import LICENCES, read, train
from torch import Tensor, nn
from torch.nn import functional

import seqconv_torch

Past = dict[nn.Module, tuple[Tensor, Tensor]]


class Attention(nn.Module):
    """Causal self-attention. With "dynamic" taps, each head of q, k and v has a kernel that
    the layer's input predicts, beside a static one for each channel."""

    def __init__(self, channels: int, heads: int, taps: str) -> None:
        super().__init__()
        self.heads, self.taps = heads, taps
        self.qkv = nn.Linear(channels, 3 * channels, bias=False)
        self.out = nn.Linear(channels, channels, bias=False)
        self.conv = seqconv_torch.ShortConv(
            3 * channels, 4, residual=True, heads=3 * heads if taps == "dynamic" else 0,
            query_channels=channels if taps == "dynamic" else 0,
        ) if taps != "none" else None  # fmt: skip
        if self.conv is not None and self.conv.predict is not None:
            for weight in self.conv.predict.parameters():
                nn.init.zeros_(weight)  # begins as the static one

    def forward(self, x: Tensor, past: Past | None = None) -> Tensor:
        qkv = self.qkv(x)  # [B, T, 3C]
        if self.conv is not None:
            qkv = self.conv(qkv, query=x if self.taps == "dynamic" else None)
        q, k, v = (of.unflatten(2, (self.heads, -1)).transpose(1, 2) for of in qkv.chunk(3, 2))
        if past is not None:
            if self in past:
                k, v = (torch.cat(pair, 2) for pair in zip(past[self], (k, v)))
            past[self] = k, v
        mask = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).tril(k.shape[2] - q.shape[2])
        y = functional.scaled_dot_product_attention(q, k, v, mask)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


class AttentionLM(nn.Module):
    """Bytes [B, T] from position `first` on -> logits of the next ones [B, T, 256]."""

    def __init__(self, channels: int, layers: int, taps: str) -> None:
        super().__init__()
        C = channels
        self.token, self.place = nn.Embedding(256, C), nn.Embedding(1024, C)
        self.attend = nn.ModuleList(Attention(C, C // 32, taps) for _ in range(layers))
        self.norm = nn.ModuleList(nn.LayerNorm(C) for _ in range(layers))
        self.feed = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(C), nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C))
            for _ in range(layers)
        )
        self.end = nn.Linear(C, 256)

    def forward(self, tokens: Tensor, first: int = 0, past: Past | None = None) -> Tensor:
        x = self.token(tokens) + self.place(torch.arange(first, first + tokens.shape[1]))
        for norm, attend, feed in zip(self.norm, self.attend, self.feed):
            x = x + attend(norm(x), past)
            x = x + feed(x)
        return torch.as_tensor(self.end(x))


@torch.no_grad()
def write(model: AttentionLM, prompt: str, length: int) -> str:
    """The prompt and the `length` likeliest bytes behind it."""
    state, past = seqconv_torch.ModuleState(model.eval(), rows=1), Past()
    token = torch.tensor([list(prompt.encode())])
    written = token
    for _ in range(length):
        token = state(token, state.position, past)[:, -1:].argmax(-1)
        written = torch.cat([written, token], 1)
    return bytes(written[0].tolist()).decode(errors="replace")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=pathlib.Path, default=LICENCES)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--length", type=int, default=400)
    parser.add_argument("--taps", choices=["static", "dynamic"], default="dynamic")
    options = parser.parse_args()
    torch.manual_seed(1)
    model = AttentionLM(128, 3, options.taps)
    train(model, read(options.text), options.updates)
    print(write(model, "You may ", options.length))
