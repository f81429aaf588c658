"""A character language model of dynamic convolutions: learns a text and goes on with it.

    python char_lm.py [--text FILE_OR_FOLDER] [--updates 1000]
"""

import argparse
import pathlib

import torch
from torch import Tensor, nn
from torch.nn import functional

import seqconv_torch

LICENCES = pathlib.Path("/usr/share/common-licenses")  # of every Debian


def read(path: pathlib.Path) -> Tensor:
    """The bytes of a file, or of all files of a folder, [n]."""
    files = sorted(file for file in [path, *path.rglob("*")] if file.is_file())
    text = b"".join(file.read_bytes() for file in files if not file.is_symlink())
    if len(text) < 1000:
        raise SystemExit(f"--text must name a text of 1000 bytes and more, but got {path}")
    return torch.tensor(list(text))


class Block(nn.Module):
    def __init__(self, channels: int, kernel_size: int) -> None:
        super().__init__()
        C = channels
        conv = seqconv_torch.DynamicConv(C, C // 16, kernel_size, causal=True)
        self.mix = nn.Sequential(
            nn.LayerNorm(C), nn.Linear(C, 2 * C), nn.GLU(), conv, nn.Linear(C, C)
        )
        self.feed = nn.Sequential(
            nn.LayerNorm(C), nn.Linear(C, 4 * C), nn.GELU(), nn.Linear(4 * C, C)
        )

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.mix(x)
        return torch.add(x, self.feed(x))


class CharLM(nn.Sequential):
    """Bytes [B, T] -> logits of the next ones [B, T, 256]."""

    def __init__(self, channels: int, kernel_sizes: tuple[int, ...]) -> None:
        blocks = [Block(channels, kernel_size) for kernel_size in kernel_sizes]
        super().__init__(nn.Embedding(256, channels), *blocks, nn.Linear(channels, 256))


def train(model: nn.Module, text: Tensor, updates: int, rows: int = 16, length: int = 128) -> None:
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for update in range(updates):
        begins = torch.randint(len(text) - length, (rows, 1))
        piece = text[begins + torch.arange(length + 1)]  # [B, T + 1]
        loss = functional.cross_entropy(model(piece[:, :-1]).mT, piece[:, 1:])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if update % 100 == 0:
            print(f"update {update}: loss {loss.item():.2f}", flush=True)


@torch.no_grad()
def write(model: nn.Module, prompt: str, length: int) -> str:
    """The prompt and `length` more bytes, drawn one after the other."""
    state = seqconv_torch.ModuleState(model.eval(), rows=1)
    token = torch.tensor([list(prompt.encode())])  # [1, T], then [1, 1]
    written = token
    for _ in range(length):
        logits = state(token)[:, -1]  # [1, 256]
        token = torch.multinomial((1.5 * logits).softmax(-1), 1)
        written = torch.cat([written, token], 1)
    return bytes(written[0].tolist()).decode(errors="replace")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=pathlib.Path, default=LICENCES)
    parser.add_argument("--updates", type=int, default=1000)
    parser.add_argument("--length", type=int, default=400)
    options = parser.parse_args()
    torch.manual_seed(1)
    model = CharLM(128, (4, 8, 16, 32))
    train(model, read(options.text), options.updates)
    print(write(model, "You may ", options.length))
