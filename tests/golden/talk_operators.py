"""TaLK: cases from the definition of its window, token by token."""
import math

import numpy as np
import torch

from sequence_operators import (add_linear, differentiate, dropped, given, leaf, linear, normalize,
                                note_chunks, validity)

MARGIN = 5e-4  # between a window's end and a whole position, where the offset is computed


def ends(left, right, max_left, max_right):
    """Where windows begin and end, as real positions [B, T, H], clamped to the sequence."""
    T = left.shape[1]
    t = torch.arange(T, dtype=torch.float64).view(1, T, 1)
    begin = (t - left * max_left).clamp(0, T - 1)
    end = (t + right * max_right).clamp(0, T - 1) if right is not None else t.expand_as(left)
    return begin, end


def talk(x, left, right, max_left, max_right):
    """The sum over each window over its largest size; a token that an end cuts counts in part."""
    T, C = x.shape[1:]
    begin, end = ends(left, right, max_left, max_right)
    t = torch.arange(T, dtype=torch.float64).view(1, T, 1)
    back, ahead = (math.ceil(distance.detach().max()) for distance in (t - begin, end - t))
    y = torch.zeros_like(x)
    for distance in range(-back, ahead + 1):
        i = t + distance
        share = ((begin <= i) & (i <= end)).double()
        share = share + torch.where((i < begin) & (begin < i + 1), i + 1 - begin, 0.0)
        share = share + torch.where((i - 1 < end) & (end < i), end - (i - 1), 0.0)
        y = y + share.repeat_interleave(C // left.shape[2], 2) * shifted(x, distance)
    return y / (max_left + max_right + 1)


def shifted(x, distance):
    """x[:, t + distance], zero outside."""
    B, T, C = x.shape
    size = min(abs(distance), T)
    zeros = x.new_zeros(B, size, C)
    return torch.cat([zeros, x[:, :T - size]], 1) if distance < 0 else torch.cat([x[:, size:], zeros], 1)


def draw_offsets(case, kind, name, shape, reach):
    """In 0 ... 1 (`dropped`: 2), exact as positions; an odd number of parts never ends at a whole one."""
    count = math.prod(shape)
    parts = case.integers(name, count, 128) * 2 + 1
    choice = case.integers(name + "/kind", count, 3)
    values = {
        "random": lambda: parts / 256,
        "integer": lambda: case.integers(name + "/whole", count, reach + 1) / max(reach, 1),
        "extremes": lambda: (choice == 1) + (choice == 2) * parts / 256,
        "dropped": lambda: (choice > 0) * parts / 128,
    }[kind]()
    return given(case, name, np.reshape(case.presets.get(name, values), shape).astype(float))


def note_talk(case, spec):
    """Adds the metadata; returns (H, max_left, max_right, causal)."""
    causal = bool(spec["causal"])
    case.note(heads=spec["h"], causal=causal, max_left=spec["reach"], max_right=spec["ahead"])
    if causal:
        note_chunks(case, spec["t"])
    return spec["h"], spec["reach"], spec["ahead"], causal


def make_talk_conv(case, spec):
    H, max_left, max_right, causal = note_talk(case, spec)
    kind = next((kind for kind in ("integer", "extremes", "dropped") if spec[kind]), "random")
    case.note(offsets=kind)
    valid = validity(case, spec)
    shape = [*valid.shape[:2], H]
    leaves = {"x": leaf(case, "x", [*shape[:2], spec["c"]]),
              "offset_left": draw_offsets(case, kind, "offset_left", shape, max_left)}
    if not causal:
        leaves["offset_right"] = draw_offsets(case, kind, "offset_right", shape, max_right)
    y = talk(leaves["x"] * valid, leaves["offset_left"], leaves.get("offset_right"), max_left, max_right)
    differentiate(case, y * valid, leaves, valid)


def clear_of_whole(positions):
    """Whether every position is whole or further than MARGIN from it: rounding cannot move it across."""
    distance = (positions - positions.round()).abs()
    return bool(((distance == 0) | (distance > MARGIN)).all())


def make_talk_conv_layer(case, spec):
    H, max_left, max_right, causal = note_talk(case, spec)
    valid = validity(case, spec)
    shape = [*valid.shape[:2], H if causal else 2 * H]
    leaves = {"x": leaf(case, "x", [*shape[:2], spec["c"]])}
    add_linear(case, leaves, "offsets", shape[2], spec["c"])
    x = leaves["x"] * valid
    for attempt in range(200):
        bias = case.draw(f"offsets.bias/{attempt}", [shape[2]])
        leaves["offsets.bias"] = given(case, "offsets.bias", bias)
        offsets = normalize(linear(x, leaves["offsets.weight"], leaves["offsets.bias"]), "sigmoid")
        offsets = dropped(case, spec, offsets, shape)
        left, right = offsets[..., :H], None if causal else offsets[..., H:]
        if all(clear_of_whole(end) for end in ends(left, right, max_left, max_right)):
            break
    else:
        raise ValueError(f"{case.name}: no bias keeps the windows' ends clear of whole positions")
    case.expect("offsets", offsets.detach())
    differentiate(case, talk(x, left, right, max_left, max_right) * valid, leaves, valid)
