"""The checks that names and layouts of other packages share."""

from __future__ import annotations

import torch
from torch import Tensor

ACTIVATIONS = (None, "silu", "swish")


def require(condition: bool, op: str, text: str) -> None:
    if not condition:
        raise ValueError(f"[{op}] {text}")


def beside(op: str, name: str, tensor: Tensor, x: Tensor) -> Tensor:
    """`tensor` in a type that short_conv takes beside x: its own, or a wider one that
    holds it exactly."""
    if tensor.dtype == x.dtype:
        return tensor
    wanted = torch.float32 if x.dtype == torch.bfloat16 else x.dtype
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
