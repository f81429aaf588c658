"""Speculative decoding: a small model drafts, a large one checks the drafts in one step, and
both states take back what was not accepted. The text is that of the large model alone.

    python speculative.py [--text FILE_OR_FOLDER] [--updates 500] [--length 200] [--drafts 4]
"""

import argparse
import pathlib
import time

import torch
from char_lm import LICENCES, CharLM, read, train
from torch import Tensor, nn

from seqconv_torch import ModuleState


def plain(model: nn.Module, prompt: Tensor, length: int) -> Tensor:
    """The likeliest bytes behind prompt [N, T], one step for each: [N, length]."""
    state, written, token = ModuleState(model, len(prompt)), [], prompt
    for _ in range(length):
        token = state(token)[:, -1:].argmax(-1)
        written.append(token)
    return torch.cat(written, 1)


def speculative(
    model: nn.Module, drafter: nn.Module, prompt: Tensor, length: int, drafts: int
) -> tuple[Tensor, float]:
    """Writes those bytes [N, length] behind prompt [N, T], T > 1, by fewer steps of `model`.
    Returns also how many drafts of a step and row were accepted."""
    rows = len(prompt)
    state = ModuleState(model, rows, rollback=drafts)
    drafting = ModuleState(drafter, rows, rollback=drafts)
    token = state(prompt)[:, -1:].argmax(-1)  # [N, 1], of each row the last one written
    drafting(prompt[:, :-1])
    last = torch.cat([prompt[:, -1:], token], 1)  # [N, 2], unseen by the drafter
    written = [[int(byte)] for byte in token]
    steps, kept = 0, 0
    while min(map(len, written)) < length:
        guesses = [drafting(last)[:, -1:].argmax(-1)]
        for _ in range(drafts - 1):
            guesses.append(drafting(guesses[-1])[:, -1:].argmax(-1))
        pieces = torch.cat([token, *guesses], 1)  # [N, 1 + drafts]
        checked = state(pieces).argmax(-1)  # what the model itself writes behind each
        hits = (checked[:, :-1] == pieces[:, 1:]).long().cumprod(1).sum(1)  # [N]
        state.rollback(drafts - hits)
        drafting.rollback(drafts - hits)
        for row, own, count in zip(written, checked.tolist(), hits.tolist()):
            row += own[: count + 1]
        token = checked.gather(1, hits[:, None])
        last = torch.cat([pieces.gather(1, hits[:, None]), token], 1)
        steps, kept = steps + 1, kept + int(hits.sum())
    return torch.tensor([row[:length] for row in written]), kept / max(1, steps * rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--text", type=pathlib.Path, default=LICENCES)
    parser.add_argument("--updates", type=int, default=500)
    parser.add_argument("--length", type=int, default=200)
    parser.add_argument("--drafts", type=int, default=4)
    parser.add_argument("--rows", type=int, default=4)
    options = parser.parse_args()
    torch.manual_seed(1)
    text = read(options.text)
    drafter, model = CharLM(64, (12,)), CharLM(256, (4, 8, 16, 32))
    for each in (drafter, model):
        train(each, text, options.updates)
        each.double().eval()  # in float64 rounding decides no argmax
    for rows in sorted({1, options.rows}):
        begins = (torch.arange(rows)[:, None] + 1) * len(text) // (rows + 1)
        prompt = text[begins + torch.arange(64)]  # [N, 64]
        with torch.no_grad():
            begin = time.perf_counter()
            wanted = plain(model, prompt, options.length)
            middle = time.perf_counter()
            found, accepted = speculative(model, drafter, prompt, options.length, options.drafts)
            end = time.perf_counter()
        assert torch.equal(found, wanted)
        print(f"rows {rows}: {accepted:.2f} of {options.drafts} drafts accepted; "
              f"{1e3 * (middle - begin):.0f} ms without drafts, {1e3 * (end - middle):.0f} ms with "
              "them")  # fmt: skip
    print(bytes(torch.cat([prompt, found], 1)[0].tolist()).decode(errors="replace"))
