"""Names and layouts of the package causal-conv1d 1.7.

    from seqconv_torch.causal_conv1d import causal_conv1d_fn, causal_conv1d_update

B rows, C channels, T positions, W taps of which the last one is that of the current
position. Tensors are [B, C, T]; states hold the inputs before x, the newest last. Any
B, C, T and W; float32, float64 and bfloat16 on the CPU, float32, bfloat16 and float16 on
a CUDA device. Weight and bias may each have x's type or a narrower one, and float32
beside 16 bits.
"""

from __future__ import annotations

from typing import Literal, overload

import torch
from torch import Tensor

from seqconv_torch._doors import ACTIVATIONS, beside, pushed, require
from seqconv_torch._short_conv import short_conv, short_conv_final_state

__all__ = ["causal_conv1d_fn", "causal_conv1d_update", "causal_conv1d_varlen_states"]

#: The version of causal-conv1d whose interface this is.
__version__ = "1.7.0"


def _taps(
    op: str, x: Tensor, weight: Tensor, bias: Tensor | None, activation: str | None
) -> tuple[Tensor, Tensor | None]:
    """weight [C, W] and bias [C] beside x [B, C, T], checked."""
    if activation not in ACTIVATIONS:
        raise NotImplementedError(
            f"[{op}] activation must be None, 'silu' or 'swish', but got {activation!r}"
        )
    require(x.dim() == 3, op, f"x must be [B, C, T], but got {list(x.shape)}")
    C = x.shape[1]
    require(
        weight.dim() == 2 and weight.shape[0] == C and weight.shape[1] >= 1,
        op,
        f"weight must be [C, W] with C = {C}, but got {list(weight.shape)}",
    )
    weight = beside(op, "weight", weight, x)
    if bias is None:
        return weight, None
    require(
        list(bias.shape) == [C], op, f"bias must be [C] with C = {C}, but got {list(bias.shape)}"
    )
    return weight, beside(op, "bias", bias, x)


def _laid_out(y: Tensor, x: Tensor) -> Tensor:
    """y [B, C, T], a view of [B, T, C], in the layout of x: channels last, or contiguous."""
    channels_last = x.stride(1) == 1 and x.stride(2) > 1
    return y if channels_last else y.contiguous()


@overload
def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: Literal[False] = False,
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> Tensor: ...
@overload
def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    *,
    return_final_states: Literal[True],
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> tuple[Tensor, Tensor]: ...
def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    seq_idx: Tensor | None = None,
    initial_states: Tensor | None = None,
    return_final_states: bool = False,
    final_states_out: Tensor | None = None,
    activation: str | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """y[b, c, t] = activation(bias[c] + sum_j weight[c, j] x[b, c, t - (W-1) + j]).

    Differentiable in x, weight, bias and initial_states, through y and the final states.
    A channels-last x (the transpose of [B, T, C]) is read where it lies; one of another
    layout is copied once, and so is y.

    Args:
        x: [B, C, T].
        weight: [C, W].
        bias: [C].
        seq_idx: [B, T], int32 or int64: neighbouring positions with the same number are
            a sequence, and negative ones are padding that gives zero.
        initial_states: [B, C, W-1], of x's type: the inputs before each row's first
            sequence. None: zeros.
        return_final_states: returns the last W-1 inputs too; not beside seq_idx.
        final_states_out: [B, C, W-1], where these are written.
        activation: None, "silu" or "swish", which is the same.

    Returns:
        y [B, C, T] of x's type and layout; with return_final_states y and
        [B, C, W-1], which is final_states_out where that was given.

    NotImplementedError on another activation, ValueError on another shape or type.
    """
    op = "causal_conv1d_fn"
    weight, bias = _taps(op, x, weight, bias, activation)
    B, C, W = x.shape[0], *weight.shape
    require(
        seq_idx is None or not return_final_states,
        op,
        "return_final_states must be False beside seq_idx, but got True",
    )
    for name, states in (
        ("initial_states", initial_states),
        ("final_states_out", final_states_out),
    ):
        if states is not None:
            require(
                list(states.shape) == [B, C, W - 1] and states.dtype == x.dtype,
                op,
                f"{name} must be {x.dtype} [B, C, W-1] with B = {B}, C = {C}, W-1 = {W - 1}, but "
                f"got {states.dtype} {list(states.shape)}",
            )
    inputs = x.transpose(1, 2)
    before = None if initial_states is None else initial_states.transpose(1, 2)  # [B, W-1, C]
    y = short_conv(
        inputs, weight, bias=bias, activation=activation, initial_state=before, seq_idx=seq_idx
    )
    y = _laid_out(y.transpose(1, 2), x)
    if not return_final_states:
        return y
    before = inputs.new_zeros(B, W - 1, C) if before is None else before
    final = pushed(before, inputs).transpose(1, 2)
    return y, final if final_states_out is None else final_states_out.copy_(final)


@torch.no_grad()
def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | None = None,
    cache_seqlens: int | Tensor | None = None,
    conv_state_indices: Tensor | None = None,
) -> Tensor:
    """causal_conv1d_fn of the next inputs of some rows, whose state is changed in place.
    No gradient.

    Args:
        x: [B, C] or [B, C, T].
        conv_state: [B, C, S] with S >= W-1, or [M, C, S] beside conv_state_indices, of
            x's type and any strides. Its last W-1 columns are the inputs before x; the
            state afterwards is the last S columns of it and x.
        weight: [C, W].
        bias: [C].
        activation: None, "silu" or "swish".
        cache_seqlens: [B], int32 or int64, inputs seen so far, or a number for all rows:
            the state is a ring instead, with input number p in column p mod S. The caller
            counts on.
        conv_state_indices: [B], int32 or int64: the row of conv_state that each row of x
            goes on with, each once. A negative one is padding: it gives zero and changes
            nothing.

    Returns:
        y, of x's shape and type.

    NotImplementedError on another activation, ValueError on another shape or type.
    """
    op = "causal_conv1d_update"
    inputs = x.unsqueeze(2) if x.dim() == 2 else x
    weight, bias = _taps(op, inputs, weight, bias, activation)
    (B, C, T), W = inputs.shape, weight.shape[1]
    _check_state(op, inputs, conv_state, W, conv_state_indices is None)
    if isinstance(cache_seqlens, int):
        cache_seqlens = torch.full((B,), cache_seqlens, device=x.device)
    for name, of in (
        ("cache_seqlens", cache_seqlens),
        ("conv_state_indices", conv_state_indices),
    ):
        if of is not None:
            shape = list(of.shape)
            require(shape == [B], op, f"{name} must be [B] with B = {B}, but got {shape}")
    state = conv_state
    if conv_state_indices is not None:
        rows = conv_state_indices.long()
        state = conv_state.index_select(0, rows.clamp(min=0))
    S = state.shape[2]
    if cache_seqlens is None or S == 0:
        history, after = state[:, :, S - (W - 1) :], pushed(state.mT, inputs.mT).mT
    else:
        at = cache_seqlens.long()[:, None, None]  # [B, 1, 1]
        steps = torch.arange(1 - W, T, device=x.device)
        slots = ((at + steps) % S).expand(B, C, W - 1 + T)
        history = state.gather(2, slots[:, :, : W - 1])
        new = min(S, T)
        after = state.scatter(2, slots[:, :, W - 1 + T - new :], inputs[:, :, T - new :])
    y = short_conv(
        inputs.transpose(1, 2), weight, bias=bias, activation=activation,
        initial_state=history.transpose(1, 2),
    ).transpose(1, 2)  # fmt: skip
    if conv_state_indices is None:
        conv_state.copy_(after)
    else:
        real = rows >= 0
        conv_state[rows[real]] = after[real]
        y = y.masked_fill(~real[:, None, None], 0)
    y = _laid_out(y, inputs)
    return y.squeeze(2) if x.dim() == 2 else y


def _check_state(op: str, x: Tensor, state: Tensor, W: int, row_by_row: bool) -> None:
    B, C, _ = x.shape
    require(
        state.dim() == 3
        and (state.shape[0] == B or not row_by_row)
        and state.shape[1] == C
        and state.shape[2] >= W - 1
        and state.dtype == x.dtype,
        op,
        f"conv_state must be {x.dtype} {'[B' if row_by_row else '[M'}, C, S] with B = {B}, C = {C} "
        f"and S at least W-1 = {W - 1}, but got {state.dtype} {list(state.shape)}",
    )


def causal_conv1d_varlen_states(x: Tensor, cu_seqlens: Tensor, state_len: int) -> Tensor:
    """The last inputs of packed sequences, as states of causal_conv1d_update.

    Differentiable in x. A sequence may be empty.

    Args:
        x: [N, C], one sequence behind the other.
        cu_seqlens: [B + 1], int32 or int64, from 0 to N.
        state_len: S >= 0, inputs of each sequence that are kept.

    Returns:
        [B, C, S], the newest input last and zeros before a shorter sequence; a
        transposed [B, S, C].

    ValueError on another shape.
    """
    op = "causal_conv1d_varlen_states"
    require(x.dim() == 2, op, f"x must be [N, C], but got {list(x.shape)}")
    require(
        cu_seqlens.dim() == 1 and len(cu_seqlens) >= 1,
        op,
        f"cu_seqlens must be [B + 1], but got {list(cu_seqlens.shape)}",
    )
    require(state_len >= 0, op, f"state_len must be at least 0, but got {state_len}")
    return short_conv_final_state(x, state_len + 1, cu_seqlens=cu_seqlens).transpose(1, 2)
