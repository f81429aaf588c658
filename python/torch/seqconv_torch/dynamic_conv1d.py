"""Names and layouts of the package dynamic-conv1d: taps that every position brings along.

    from seqconv_torch.dynamic_conv1d import headwise_dynamic_convolution

B rows, T positions, D channels, W taps of which the first one is that of the current
position: tap k is that of the input k positions before. H heads of D / H neighbouring
channels share taps; H = D is a kernel for every channel. Inputs before the first one are
zero. Any B, T, D and W; x in float32, float64 and bfloat16 on the CPU, in float32,
bfloat16 and float16 on a CUDA device; taps of x's type or a narrower one, and float32
beside 16 bits.
"""

from __future__ import annotations

import torch
from torch import Tensor

from seqconv_torch._doors import beside, require
from seqconv_torch._short_conv import short_conv

__all__ = ["headwise_dynamic_convolution", "lowrank_dynamic_convolution"]


def _static(op: str, static_w: Tensor | None, x: Tensor, W: int) -> Tensor | None:
    """static_w [W, D] as weight [D, W], the current position's tap last."""
    if static_w is None:
        return None
    D = x.shape[2]
    require(
        list(static_w.shape) == [W, D],
        op,
        f"static_w must be [W, D] with W = {W}, D = {D}, but got {list(static_w.shape)}",
    )
    return beside(op, "static_w", static_w, x).flip(0).t()


def headwise_dynamic_convolution(
    x: Tensor, weight: Tensor, static_w: Tensor | None = None, residual: bool = False
) -> Tensor:
    """y[b, t, d] = sum_k (weight[b, t, d * H // D, k] + static_w[k, d]) x[b, t - k, d].

    Differentiable in x, weight and static_w. Copies weight once, for its order of taps.

    Args:
        x: [B, T, D].
        weight: [B, T, H, W]; H divides D.
        static_w: [W, D], taps of all positions.
        residual: adds x.

    Returns:
        y [B, T, D], of x's type.

    ValueError on another shape or type.
    """
    op = "headwise_dynamic_convolution"
    require(x.dim() == 3, op, f"x must be [B, T, D], but got {list(x.shape)}")
    B, T, D = x.shape
    shape = list(weight.shape)
    require(
        len(shape) == 4 and shape[:2] == [B, T] and shape[2] >= 1 and D % shape[2] == 0,
        op,
        f"weight must be [B, T, H, W] with B = {B}, T = {T} and H that divides D = {D}, but got "
        f"{shape}",
    )
    taps = beside(op, "weight", weight, x).flip(-1)
    return short_conv(x, _static(op, static_w, x, shape[3]), taps, residual=residual)


def lowrank_dynamic_convolution(
    x: Tensor, z: Tensor, U: Tensor, static_w: Tensor | None = None, residual: bool = False
) -> Tensor:
    """headwise_dynamic_convolution with a kernel for every channel, of rank R:

        weight[b, t, d, k] = sum_r z[b, t, r] U[r, k * D + d]

    Differentiable in x, z, U and static_w. The taps are made first, in float32 beside
    bfloat16: W times the memory of x.

    Args:
        x: [B, T, D].
        z: [B, T, R].
        U: [R, W * D].
        static_w: [W, D], taps of all positions.
        residual: adds x.

    Returns:
        y [B, T, D], of x's type.

    ValueError on another shape or type.
    """
    op = "lowrank_dynamic_convolution"
    require(x.dim() == 3, op, f"x must be [B, T, D], but got {list(x.shape)}")
    B, T, D = x.shape
    require(
        z.dim() == 3 and list(z.shape[:2]) == [B, T],
        op,
        f"z must be [B, T, R] with B = {B}, T = {T}, but got {list(z.shape)}",
    )
    R = z.shape[2]
    require(
        U.dim() == 2 and U.shape[0] == R and U.shape[1] >= D and U.shape[1] % D == 0,
        op,
        f"U must be [R, W * D] with R = {R}, D = {D}, but got {list(U.shape)}",
    )
    wide = torch.promote_types(x.dtype, torch.float32)
    z, U = (beside(op, name, of, x).to(wide) for name, of in (("z", z), ("U", U)))
    u = U.reshape(R, U.shape[1] // D, D).flip(1).mT  # [R, D, W], the current tap last
    static = _static(op, static_w, x, u.shape[2])
    return short_conv(x, static, low_rank=(z, u), residual=residual)
