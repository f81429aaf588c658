"""The operators as functions on tensors.

All take [B, T, C] and return [B, T, C] of x's type. x is float64, float32 or
bfloat16 (on a CUDA device float32, bfloat16 or float16); weights, logits,
offsets and biases have x's type, or are float32 beside an x of 16 bits. Sums are
kept in float32 or wider. Any T (also 0), any K >= 1, any H that divides C.
`lengths` [B], int64 or int32, says how much of each row is real: positions at and
beyond a length count as zero, give zero and get no gradient. All tensors are on
x's device; a position may be on the host too.

A wrong call is a RuntimeError "[lightconv] what was wanted, but got what came".
They have any number of derivatives, those after the first by their definition in
tensor algebra, as under torch.func, torch.vmap and in forward mode: slower, and with
memory for every tap.
"""

import math

import torch
from torch import Tensor

from seqconv_torch import _library
from seqconv_torch._short_conv import (
    ShortConvState,
    short_conv,
    short_conv_final_state,
    short_conv_step,
)
from seqconv_torch._transforms import by_definition

_library.load()
_ops: _library.Operators = torch.ops.seqconv

__all__ = [
    "NORMALIZATIONS",
    "ShortConvState",
    "average_initial_state",
    "conv_initial_state",
    "cumulative_average",
    "cumulative_average_step",
    "dynamicconv",
    "dynamicconv_step",
    "lightconv",
    "lightconv_step",
    "short_conv",
    "short_conv_final_state",
    "short_conv_step",
    "talk",
    "talk_initial_state",
    "talk_step",
]


#: What `normalization` may be (table 6 of Wu et al. 2019).
NORMALIZATIONS = (
    "none",
    "softmax",
    "sigmoid",
    "tanh",
    "square",
    "abs",
    "l1",
    "l2",
    "abs_l1",
    "abs_l2",
)


def _position(op: str, position: int | Tensor) -> Tensor:
    """One int64 element; a number is that of all rows."""
    if isinstance(position, Tensor):
        return position
    if isinstance(position, bool) or not isinstance(position, (int, torch.SymInt)):
        raise ValueError(
            f"[{op}] position must be a whole number or one int64 element, but got {position!r}"
        )
    return torch.full((1,), position, dtype=torch.int64)


def lightconv(
    x: Tensor,
    weight: Tensor,
    *,
    padding_left: int = 0,
    normalization: str = "softmax",
    renormalize_edges: bool = False,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    drop_p: float = 0.0,
    drop_seed: Tensor | None = None,
    drop_mask: Tensor | None = None,
) -> Tensor:
    """Lightweight convolution (Wu et al. 2019, section 3).

        y[b, t, c] = bias[c] + sum_j w[c // R, j] * x[b, t - padding_left + j, c]

    with w the normalisation of `weight` over its K taps, and x zero outside of
    the sequence. Differentiable in x, weight and bias.

    Args:
        x: [B, T, C].
        weight: [H, K], logits; H divides C.
        padding_left: taps before the current position, 0 .. K-1: K-1 is causal,
            K // 2 centred (also for an even K).
        normalization: one of NORMALIZATIONS.
        renormalize_edges: where taps fall outside of the sequence (or length),
            the softmax is over the others alone, so that they sum to 1; needs
            softmax.
        bias: [C], added to every position.
        lengths: [B], int64 or int32.
        drop_p: DropConnect after the normalisation: taps are dropped with this
            probability, in [0, 1), survivors scaled by 1 / (1 - drop_p); one
            mask for the whole batch. Nothing is dropped without one of:
        drop_seed: one int64 element, on x's device; the mask is a function of
            it.
        drop_mask: [H, K], nonzero where a tap is kept.

    Returns:
        [B, T, C] of x's type.
    """
    options = {
        "padding_left": padding_left, "normalization": normalization,
        "renormalize_edges": renormalize_edges, "drop_p": drop_p, "drop_seed": drop_seed,
        "drop_mask": drop_mask, "lengths": lengths,
    }  # fmt: skip
    if by_definition():
        return _ops.short_conv_reference(x, weight, None, bias, **options)
    return _ops.lightconv(x, weight, bias, **options)


def lightconv_step(
    x: Tensor,
    state: Tensor,
    position: int | Tensor,
    weight: Tensor,
    *,
    normalization: str = "softmax",
    renormalize_edges: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """Causal lightconv of the next T' >= 1 inputs of N streams. No gradient.

    Steps of any size give what the whole sequence gives, at a cost that does
    not grow with it.

    Args:
        x: [N, T', C], of the state's type.
        state: [N, K-1, C] from conv_initial_state; changed in place: input
            number p, from 0, lies in slot p % (K-1).
        position: a number or one int64 element, the number of inputs already seen.
            The caller advances it: `position += x.shape[1]`.
        weight: [H, K], logits.
        normalization, renormalize_edges, bias: as in lightconv.

    Returns:
        [N, T', C].
    """
    return _ops.lightconv_step(
        x, state, _position("lightconv_step", position), weight, bias, normalization=normalization,
        renormalize_edges=renormalize_edges,
    )


def dynamicconv(
    x: Tensor,
    logits: Tensor,
    *,
    padding_left: int = 0,
    normalization: str = "softmax",
    renormalize_edges: bool = False,
    bias: Tensor | None = None,
    lengths: Tensor | None = None,
    drop_p: float = 0.0,
    drop_seed: Tensor | None = None,
    drop_mask: Tensor | None = None,
) -> Tensor:
    """Dynamic convolution (Wu et al. 2019, section 4): lightconv with a kernel of
    its own at every position.

    The logits are normalised over all K taps first; taps that fall outside of
    the sequence are cut after it, unless renormalize_edges says otherwise.
    Differentiable in x, logits and bias; x and logits are all that is kept.

    Args:
        x: [B, T, C].
        logits: [B, T, H, K], usually a linear map of x; H divides C.
        padding_left, normalization, renormalize_edges, bias, lengths: as in
            lightconv.
        drop_p, drop_seed, drop_mask: as in lightconv, with a mask of its own at
            every position, [B, T, H, K].

    Returns:
        [B, T, C] of x's type.
    """
    options = {
        "padding_left": padding_left, "normalization": normalization,
        "renormalize_edges": renormalize_edges, "drop_p": drop_p, "drop_seed": drop_seed,
        "drop_mask": drop_mask, "lengths": lengths,
    }  # fmt: skip
    if by_definition():
        return _ops.short_conv_reference(x, None, logits, bias, **options)
    return _ops.dynamicconv(x, logits, bias, **options)


def dynamicconv_step(
    x: Tensor,
    state: Tensor,
    position: int | Tensor,
    logits: Tensor,
    *,
    normalization: str = "softmax",
    renormalize_edges: bool = False,
    bias: Tensor | None = None,
) -> Tensor:
    """Causal dynamicconv of the next T' >= 1 inputs; see lightconv_step.

    Args:
        x: [N, T', C], of the state's type.
        state: [N, K-1, C] from conv_initial_state; changed in place.
        position: a number or one int64 element, the number of inputs already seen.
        logits: [N, T', H, K].
        normalization, renormalize_edges, bias: as in lightconv.

    Returns:
        [N, T', C].
    """
    return _ops.dynamicconv_step(
        x, state, _position("dynamicconv_step", position), logits, bias, normalization=normalization,
        renormalize_edges=renormalize_edges,
    )


def conv_initial_state(
    rows: int,
    kernel_size: int,
    channels: int,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """State of lightconv_step and dynamicconv_step before the first input:
    zeros [N, K-1, C] for N = rows. ValueError if kernel_size < 1."""
    if kernel_size < 1:
        raise ValueError(
            "[conv_initial_state] kernel_size must be at least 1, but got "
            f"{kernel_size}"
        )
    shape = (rows, kernel_size - 1, channels)
    return torch.zeros(shape, dtype=dtype, device=device)


def talk(
    x: Tensor,
    offset_left: Tensor,
    offset_right: Tensor | None = None,
    *,
    max_left: int = 0,
    max_right: int = 0,
    lengths: Tensor | None = None,
) -> Tensor:
    """Time-aware large-kernel convolution (Lioutas and Guo 2020, eq. 2-8).

    The sum over the window [t - offset_left * max_left, t + offset_right *
    max_right], clamped to the sequence, edge tokens in proportion, divided by
    max_left + max_right + 1. Differentiable in x and the offsets; the gradient
    of an offset whose edge is a whole position, or clamped, is zero.

    Args:
        x: [B, T, C].
        offset_left: [B, T, H] in [0, 1], after a sigmoid (more after offset
            dropout); H divides C. Best in float32 also beside a bfloat16 x:
            rounding moves the edges.
        offset_right: [B, T, H]; without it the window ends at t (causal) and
            max_right must be 0.
        max_left, max_right: the furthest reaches, in tokens.
        lengths: [B], int64 or int32.

    Returns:
        [B, T, C] of x's type.
    """
    operator = _ops.talk_reference if by_definition() else _ops.talk
    return operator(
        x, offset_left, offset_right, max_left=max_left, max_right=max_right, lengths=lengths,
    )


def talk_step(
    x: Tensor,
    state: Tensor,
    position: int | Tensor,
    offset_left: Tensor,
    *,
    max_left: int,
) -> Tensor:
    """Causal talk of the next T' >= 1 inputs; see lightconv_step.

    Args:
        x: [N, T', C], of the state's type.
        state: [N, L, C] from talk_initial_state; changed in place.
        position: a number or one int64 element, the number of inputs already seen.
        offset_left: [N, T', H]; beyond L / max_left is an error.
        max_left: the furthest reach, in tokens.

    Returns:
        [N, T', C].
    """
    return _ops.talk_step(x, state, _position("talk_step", position), offset_left, max_left=max_left)


def talk_initial_state(
    rows: int,
    max_left: int,
    channels: int,
    max_offset: float = 1.0,
    *,
    dtype: torch.dtype | None = None,
    device: torch.device | None = None,
) -> Tensor:
    """State of talk_step before the first input: zeros [N, L, C] for N = rows
    and L = ceil(max_left * max_offset). ValueError if either is negative."""
    if max_left < 0 or not 0 <= max_offset < math.inf:
        raise ValueError(
            "[talk_initial_state] max_left and max_offset must be finite and "
            f"not negative, but got {max_left} and {max_offset}"
        )
    shape = (rows, math.ceil(max_left * max_offset), channels)
    return torch.zeros(shape, dtype=dtype, device=device)


def cumulative_average(x: Tensor, *, lengths: Tensor | None = None) -> Tensor:
    """Cumulative average (Zhang et al. 2018, "Accelerating Neural Transformer
    via an Average Attention Network", without its network).

        y[b, t] = (x[b, 0] + ... + x[b, t]) / (t + 1)

    Always causal. Sums are float64 whatever x is, so that the error does not
    grow with T. Differentiable any number of times.

    Args:
        x: [B, T, C].
        lengths: [B], int64 or int32.

    Returns:
        [B, T, C] of x's type.
    """
    operator = _ops.cumulative_average_reference if by_definition() else _ops.cumulative_average
    return operator(x, lengths=lengths)


def cumulative_average_step(x: Tensor, state: Tensor, position: int | Tensor) -> Tensor:
    """cumulative_average of the next T' >= 1 inputs; see lightconv_step.

    Args:
        x: [N, T', C], of any type whatever the state's.
        state: [N, C], float64, from average_initial_state: the sums of all
            inputs so far; changed in place.
        position: a number or one int64 element, the number of inputs already seen.

    Returns:
        [N, T', C] of x's type.
    """
    return _ops.cumulative_average_step(x, state, _position("cumulative_average_step", position))


def average_initial_state(
    rows: int, channels: int, *, device: torch.device | None = None
) -> Tensor:
    """State of cumulative_average_step before the first input: float64 zeros
    [N, C] for N = rows."""
    return torch.zeros(rows, channels, dtype=torch.float64, device=device)
