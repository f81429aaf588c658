"""The operators' definitions as loops over single numbers, in float64."""

import math

import torch


def lightconv(x, taps, padding_left):
    """x [B, T, C]; taps [H, K] or [B, T, H, K], normalised."""
    B, T, C = x.shape
    H, K = taps.shape[-2:]
    taps = taps.double().expand(B, T, H, K)
    y = torch.zeros(B, T, C, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            for c in range(C):
                for j in range(K):
                    s = t - padding_left + j
                    if 0 <= s < T:
                        head = c // (C // H)
                        y[b, t, c] += taps[b, t, head, j] * x[b, s, c]
    return y


def renormalized(logits, steps, padding_left):
    """Softmax of logits [H, K] or [B, T, H, K] over the taps that meet one of
    `steps` positions, zero elsewhere: [B, T, H, K] (B = 1 for [H, K])."""
    H, K = logits.shape[-2:]
    if logits.dim() == 2:
        logits = logits.expand(1, steps, H, K)
    taps = torch.zeros(logits.shape, dtype=torch.float64)
    for b in range(logits.shape[0]):
        for t in range(steps):
            for h in range(H):
                met = [
                    j for j in range(K) if 0 <= t - padding_left + j < steps
                ]
                powers = [math.exp(logits[b, t, h, j]) for j in met]
                for j, power in zip(met, powers):
                    taps[b, t, h, j] = power / sum(powers)
    return taps


def lightconv_interleaved(x, taps, padding_left):
    """The same with head c % H for channel c; taps [H, K], normalised."""
    B, T, C = x.shape
    H, K = taps.shape
    y = torch.zeros(B, T, C, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            for c in range(C):
                for j in range(K):
                    s = t - padding_left + j
                    if 0 <= s < T:
                        y[b, t, c] += taps[c % H, j].double() * x[b, s, c]
    return y


def cumulative_average(x):
    """x [B, T, C]."""
    B, T, C = x.shape
    y = torch.zeros(B, T, C, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            for c in range(C):
                total = sum(x[b, s, c].item() for s in range(t + 1))
                y[b, t, c] = total / (t + 1)
    return y


def talk(x, left, right, max_left, max_right):
    """x [B, T, C]; offsets [B, T, H] of a window that is cut at the ends."""
    B, T, C = x.shape
    H = left.shape[2]
    y = torch.zeros(B, T, C, dtype=torch.float64)
    for b in range(B):
        for t in range(T):
            for c in range(C):
                h = c // (C // H)
                begin = t - left[b, t, h].item() * max_left
                end = t + right[b, t, h].item() * max_right
                begin, end = max(begin, 0), min(end, T - 1)
                for s in range(math.floor(begin), math.ceil(end) + 1):
                    # Token s is there by how far its distance leaves it in.
                    share = min(1, max(0, 1 - (begin - s))) * min(
                        1, max(0, 1 - (s - end))
                    )
                    y[b, t, c] += share * x[b, s, c]
    return y / (max_left + max_right + 1)
