"""The checks that names and layouts of other packages share."""

from __future__ import annotations

import torch
from torch import Tensor

from seqconv_torch._short_conv import short_conv_final_state

ACTIVATIONS = (None, "silu", "swish")


def require(condition: bool, op: str, text: str) -> None:
    if not condition:
        raise ValueError(f"[{op}] {text}")


def beside(op: str, name: str, tensor: Tensor, x: Tensor) -> Tensor:
    """`tensor` in a type that short_conv takes beside x: its own, or a wider one that
    holds it exactly."""
    if tensor.dtype == x.dtype:
        return tensor
    wanted = torch.float32 if x.dtype in (torch.bfloat16, torch.float16) else x.dtype
    require(
        torch.promote_types(tensor.dtype, wanted) == wanted,
        op,
        f"{name} must be of type {wanted} or a narrower one beside x of {x.dtype}, but got "
        f"{tensor.dtype}",
    )
    return tensor.to(wanted)


def pushed(state: Tensor, x: Tensor) -> Tensor:
    """The last S of a state [N, S, C] and the inputs x [N, T, C] that follow it: a copy."""
    S, T = state.shape[1], x.shape[1]
    new = x[:, max(0, T - S) :]
    return torch.cat([state[:, new.shape[1] :], new], 1)


def rows_of(x: Tensor, cu_seqlens: Tensor | None) -> int:
    """N, sequences in x [B, T, C] or in a packed one."""
    return x.shape[0] if cu_seqlens is None else len(cu_seqlens) - 1


def check_cache(
    op: str, cache: Tensor | None, wanted: list[int], x: Tensor, name: str = "cache"
) -> None:
    """A cache [N, C, W] of x's type, or none."""
    if cache is not None:
        require(
            list(cache.shape) == wanted and cache.dtype == x.dtype,
            op,
            f"{name} must be {x.dtype} [N, D, W] = {wanted}, but got {cache.dtype} "
            f"{list(cache.shape)}",
        )


def history_of(cache: Tensor | None) -> Tensor | None:
    """The initial state [N, W-1, C] that lies in a cache [N, C, W]: a copy, for a cache
    may change before a gradient is asked for."""
    return None if cache is None else cache[:, :, 1:].mT.clone()


def cache_after(cache: Tensor | None, x: Tensor, width: int, cu_seqlens: Tensor | None) -> Tensor:
    """The last inputs [N, C, width] of the sequences that x goes on with: a new tensor."""
    if cu_seqlens is not None:
        before = None if cache is None else cache.mT
        return short_conv_final_state(
            x, width + 1, initial_state=before, cu_seqlens=cu_seqlens
        ).mT  # fmt: skip
    before = x.new_zeros(x.shape[0], width, x.shape[2]) if cache is None else cache.mT
    return pushed(before, x).mT
