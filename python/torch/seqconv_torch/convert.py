"""Weights of other implementations of lightconv, made ours.

They disagree about one thing only: which channels share a kernel.

    contiguous    head of channel c is c // R   the paper; fairseq's
                                                LightweightConv1dTBC and its
                                                CUDA layer; this package
    interleaved   head of channel c is c % H    fairseq's LightweightConv1d (the
                                                didactic one), ESPnet

The rows of a weight mean the same in both: no order of an interleaved weight's H
rows is right for contiguous heads. There are two exact ways out. Without
touching anything else, every channel gets a kernel of its own, [C, K], a copy of
its head's: convert_lightconv_weight. Or the channels are reordered once, with
interleaved_channels, by permuting the linear layers around the convolution; that
keeps the H shared rows, for training on.
"""

import torch
from torch import Tensor

__all__ = ["convert_lightconv_weight", "interleaved_channels"]

LAYOUTS = ("contiguous", "interleaved")


def _check(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(f"[convert_lightconv_weight] {text}")


def convert_lightconv_weight(
    weight: Tensor,
    *,
    layout: str,
    channels: int | None = None,
    kernel_mask: bool = False,
) -> Tensor:
    """The weight with which our lightconv does what theirs did. Exact.

    Args:
        weight: [H, 1, K] (fairseq's PyTorch modules, ESPnet) or [H, K]
            (fairseq's CUDA layer), logits. Taps are in the same order everywhere.
        layout: "contiguous" or "interleaved" heads, see the module.
        channels: C; needed for interleaved heads.
        kernel_mask: for ESPnet's decoders (use_kernel_mask): there a causal
            kernel is a centred one whose right half is masked. What remains are
            its first K // 2 + 1 taps, to be used with padding_left = K // 2,
            which is causal for them.

    Returns:
        [H, K] for contiguous heads, [C, K] (one head a channel) for interleaved
        ones; K // 2 + 1 taps with kernel_mask. A new tensor of weight's type,
        differentiable: gradients go to weight, for training on with its rows.

    ValueError on another shape or layout.
    """
    _check(
        weight.dim() == 2 or (weight.dim() == 3 and weight.shape[1] == 1),
        f"weight must be [H, 1, K] or [H, K], but got {list(weight.shape)}",
    )
    _check(
        layout in LAYOUTS,
        f"layout must be 'contiguous' or 'interleaved', but got {layout!r}",
    )
    taps = weight.reshape(weight.shape[0], weight.shape[-1])
    heads, kernel_size = taps.shape
    if kernel_mask:
        _check(
            kernel_size % 2 == 1,
            f"kernel_mask needs an odd K, but got K = {kernel_size}",
        )
        taps = taps[:, : kernel_size // 2 + 1]
    if channels is None:
        _check(
            layout == "contiguous",
            "interleaved heads need channels, but got None",
        )
        return taps.clone()
    _check(
        channels > 0 and channels % heads == 0,
        f"heads must divide channels, but got C = {channels}, H = {heads}",
    )
    if layout == "interleaved":
        return taps.repeat(channels // heads, 1)  # row c is row c % H
    return taps.clone()


def interleaved_channels(channels: int, heads: int) -> Tensor:
    """The order of channels in which interleaved heads are contiguous: [C],
    int64; channel i of ours is channel order[i] of theirs.

    With it, an interleaved lightconv between two linear maps keeps its H rows:

        order = interleaved_channels(C, H)
        before.weight, before.bias: rows [order] (with a GLU, both halves:
            [torch.cat([order, order + C])])
        after.weight: columns [:, order]
        the convolution's own bias: [order]
    """
    _check(
        channels > 0 and heads > 0 and channels % heads == 0,
        f"heads must divide channels, but got C = {channels}, H = {heads}",
    )
    return torch.arange(channels).view(-1, heads).t().reshape(-1)
