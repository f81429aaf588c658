"""The operators as modules that own their parameters.

Names, defaults and initialisation are those of the C++ layers (seqconv/nn), and
so are the names of parameters: weights move between the two as they are.

Each maps x [B, T, C] to [B, T, C], so that it stands where self-attention or a
convolution over time would. `lengths` [B], int64, says how much of a row is
real. A causal module also takes its input in steps:

    state = module.initial_state(rows)
    position = torch.zeros(1, dtype=torch.int64)
    with torch.no_grad():
        y = module.step(x, state, position)  # x [N, T', C], any T' >= 1
        position += x.shape[1]

To go on from other rows (beam search), index the state: state[parents].
"""

import math
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqconv import ops

__all__ = ["DynamicConv", "LightConv", "Talk"]


def _parameter(
    *shape: int,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> nn.Parameter:
    """A parameter that has no values yet."""
    return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))


def _require(condition: bool, module: nn.Module, text: str) -> None:
    if not condition:
        raise ValueError(f"[{type(module).__name__}] {text}")


class _Mixer(nn.Module):
    """What the three have in common: heads of channels, and steps."""

    def __init__(self, channels: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.channels, self.heads, self.causal = channels, heads, causal
        _require(
            channels >= 1 and heads >= 1 and channels % heads == 0,
            self,
            f"heads must divide channels, but got {channels} channels, "
            f"{heads} heads",
        )

    def _check_probability(self, name: str, p: float) -> None:
        _require(0 <= p < 1, self, f"{name} must be in [0, 1), but got {p}")

    def _check_causal(self) -> None:
        _require(self.causal, self, "step needs causal=True")


class _Conv(_Mixer):
    """Options and state of LightConv and DynamicConv."""

    bias: nn.Parameter | None

    def __init__(
        self,
        channels: int,
        heads: int,
        kernel_size: int,
        causal: bool,
        weight_dropout: float,
        normalization: str,
        renormalize_edges: bool,
    ) -> None:
        super().__init__(channels, heads, causal)
        self.renormalize_edges = renormalize_edges
        self.kernel_size, self.weight_dropout = kernel_size, weight_dropout
        self.normalization = normalization
        _require(
            kernel_size >= 1,
            self,
            f"kernel_size must be at least 1, but got {kernel_size}",
        )
        self._check_probability("weight_dropout", weight_dropout)
        _require(
            normalization in ops.NORMALIZATIONS,
            self,
            f"normalization must be one of {', '.join(ops.NORMALIZATIONS)}, "
            f"but got {normalization!r}",
        )
        _require(
            not renormalize_edges or normalization == "softmax",
            self,
            "renormalize_edges needs normalization 'softmax', but got "
            f"{normalization!r}",
        )

    @property
    def padding_left(self) -> int:
        """Taps before the current position."""
        return self.kernel_size - 1 if self.causal else self.kernel_size // 2

    def _options(self) -> dict:
        return {
            "normalization": self.normalization,
            "renormalize_edges": self.renormalize_edges,
            "bias": self.bias,
        }

    def _drop(self, x: Tensor) -> dict:
        """In training, DropConnect by a seed from torch's generator."""
        if not self.training or self.weight_dropout == 0:
            return {}
        seed = torch.randint(2**63 - 1, (), device=x.device)
        return {"drop_p": self.weight_dropout, "drop_seed": seed}

    def _initial_state(
        self, rows: int, parameter: Tensor, dtype: torch.dtype | None
    ) -> Tensor:
        self._check_causal()
        return ops.conv_initial_state(
            rows,
            self.kernel_size,
            self.channels,
            dtype=dtype or parameter.dtype,
            device=parameter.device,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, heads={self.heads}, "
            f"kernel_size={self.kernel_size}, causal={self.causal}, "
            f"weight_dropout={self.weight_dropout}, "
            f"normalization={self.normalization!r}, "
            f"renormalize_edges={self.renormalize_edges}"
        )


class LightConv(_Conv):
    """Lightweight convolution (Wu et al. 2019, eq. 3-5).

    Args:
        channels: C.
        heads: H, divides C; a head's R = C / H neighbouring channels share a
            kernel.
        kernel_size: K, any number from 1.
        causal: K-1 taps to the left, else K // 2 (centred).
        weight_dropout: DropConnect on the taps in training, after the
            normalisation.
        normalization: of a kernel over its taps, see seqconv.ops.lightconv.
            With heads = channels and "none" it is the depthwise convolution.
        renormalize_edges: taps outside of the sequence give their weight to
            the others; needs softmax.
        bias: adds a bias to every position.
        device, dtype: of the parameters.

    Parameters: `weight` [H, K], raw, Xavier-uniform with the fans of [H, 1, K],
    bound sqrt(6 / (K + H*K)); `bias` [C], zero at first, or None. ValueError on
    impossible options.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        kernel_size: int = 3,
        causal: bool = False,
        weight_dropout: float = 0.0,
        normalization: str = "softmax",
        renormalize_edges: bool = False,
        bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            channels,
            heads,
            kernel_size,
            causal,
            weight_dropout,
            normalization,
            renormalize_edges,
        )
        new = partial(_parameter, device=device, dtype=dtype)
        self.weight = new(heads, kernel_size)
        self.bias = new(channels) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weight from torch's generator."""
        fans = self.kernel_size + self.heads * self.kernel_size
        bound = math.sqrt(6 / fans)
        nn.init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]."""
        return ops.lightconv(
            x,
            self.weight,
            padding_left=self.padding_left,
            lengths=lengths,
            **self._options(),
            **self._drop(x),
        )

    def step(self, x: Tensor, state: Tensor, position: Tensor) -> Tensor:
        """Causal only, without gradient: the next inputs [N, T', C] ->
        [N, T', C]. `state` [N, K-1, C] is changed in place; `position`, one
        int64 element, is the number of inputs already seen."""
        self._check_causal()
        return ops.lightconv_step(
            x, state, position, self.weight, **self._options()
        )

    def initial_state(
        self, rows: int, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Zeros [N, K-1, C] for N = rows, of the parameter's type or `dtype`,
        which is the type that steps are made in."""
        return self._initial_state(rows, self.weight, dtype)


class DynamicConv(_Conv):
    """Dynamic convolution (Wu et al. 2019, eq. 6-7): every position predicts
    its own kernel from its own input, or from that of another tensor.

    Args: as for LightConv, and
        filter_bias: adds a bias to the map that predicts the kernels.

    Parameters: `weight_linear` [H*K, C], row h*K + j predicts tap j of head h,
    and `weight_linear_bias` [H*K] or None, both U(-1/sqrt(C), 1/sqrt(C));
    `bias` [C], zero at first, or None. ValueError on impossible options.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        kernel_size: int = 3,
        causal: bool = False,
        weight_dropout: float = 0.0,
        normalization: str = "softmax",
        renormalize_edges: bool = False,
        bias: bool = False,
        filter_bias: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            channels,
            heads,
            kernel_size,
            causal,
            weight_dropout,
            normalization,
            renormalize_edges,
        )
        new = partial(_parameter, device=device, dtype=dtype)
        rows = heads * kernel_size
        self.weight_linear = new(rows, channels)
        self.weight_linear_bias = new(rows) if filter_bias else None
        self.bias = new(channels) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial parameters from torch's generator."""
        bound = 1 / math.sqrt(self.channels)
        nn.init.uniform_(self.weight_linear, -bound, bound)
        if self.weight_linear_bias is not None:
            nn.init.uniform_(self.weight_linear_bias, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def _logits(self, query: Tensor) -> Tensor:
        logits = functional.linear(  # [B, T, H*K]
            query, self.weight_linear, self.weight_linear_bias
        )
        return logits.unflatten(-1, (self.heads, self.kernel_size))

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        query: Tensor | None = None,
    ) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]; the kernels are
        predicted from query [B, T, C], or else from x."""
        return ops.dynamicconv(
            x,
            self._logits(x if query is None else query),
            padding_left=self.padding_left,
            lengths=lengths,
            **self._options(),
            **self._drop(x),
        )

    def step(
        self,
        x: Tensor,
        state: Tensor,
        position: Tensor,
        query: Tensor | None = None,
    ) -> Tensor:
        """Causal only, without gradient: [N, T', C] -> [N, T', C]; see
        LightConv.step."""
        self._check_causal()
        logits = self._logits(x if query is None else query)
        return ops.dynamicconv_step(
            x, state, position, logits, **self._options()
        )

    def initial_state(
        self, rows: int, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Zeros [N, K-1, C] for N = rows; see LightConv.initial_state."""
        return self._initial_state(rows, self.weight_linear, dtype)


class Talk(_Mixer):
    """Time-aware large-kernel convolution (Lioutas and Guo 2020, eq. 3-8): every
    position predicts how far its window reaches.

    Args:
        channels: C.
        heads: H, divides C; a head's R = C / H neighbouring channels share a
            window.
        max_offset: the furthest reach to a side, in tokens.
        causal: to the left only.
        offset_dropout: inverted dropout on the predicted offsets in training.
        device, dtype: of the parameters.

    Parameters `offsets.weight` [2H, C] (left, then right; [H, C] when causal)
    and `offsets.bias`, both U(-1/sqrt(C), 1/sqrt(C)). Offsets are float32 or
    wider whatever x is, also under autocast: rounding would move the borders.
    ValueError on impossible sizes.
    """

    def __init__(
        self,
        channels: int,
        heads: int = 1,
        max_offset: int = 3,
        causal: bool = False,
        offset_dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(channels, heads, causal)
        self.max_offset, self.offset_dropout = max_offset, offset_dropout
        _require(
            max_offset >= 0,
            self,
            f"max_offset must not be negative, but got {max_offset}",
        )
        self._check_probability("offset_dropout", offset_dropout)
        outputs = heads if causal else 2 * heads
        self.offsets = nn.Linear(channels, outputs, device=device, dtype=dtype)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial parameters from torch's generator."""
        bound = 1 / math.sqrt(self.channels)
        nn.init.uniform_(self.offsets.weight, -bound, bound)
        nn.init.uniform_(self.offsets.bias, -bound, bound)

    def _offsets(self, x: Tensor) -> Tensor:
        """[B, T, 2H] or [B, T, H] in [0, 1], or more after dropout."""
        device = "cpu" if x.is_meta else x.device.type  # meta has no autocast
        with torch.autocast(device, enabled=False):
            raw = self.offsets(x.to(self.offsets.weight.dtype))
            wide = torch.promote_types(raw.dtype, torch.float32)
            offsets = torch.sigmoid(raw.to(wide))
        return functional.dropout(offsets, self.offset_dropout, self.training)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]."""
        offsets = self._offsets(x)
        if self.causal:
            return ops.talk(
                x, offsets, max_left=self.max_offset, lengths=lengths
            )
        left, right = offsets.chunk(2, dim=-1)
        return ops.talk(
            x,
            left,
            right,
            max_left=self.max_offset,
            max_right=self.max_offset,
            lengths=lengths,
        )

    def step(self, x: Tensor, state: Tensor, position: Tensor) -> Tensor:
        """Causal only, in evaluation, without gradient: [N, T', C] ->
        [N, T', C], `state` [N, max_offset, C]; see LightConv.step."""
        self._check_causal()
        offsets = self._offsets(x)
        return ops.talk_step(
            x, state, position, offsets, max_left=self.max_offset
        )

    def initial_state(
        self, rows: int, dtype: torch.dtype | None = None
    ) -> Tensor:
        """Zeros [N, max_offset, C] for N = rows; see LightConv.initial_state."""
        self._check_causal()
        weight = self.offsets.weight
        return ops.talk_initial_state(
            rows,
            self.max_offset,
            self.channels,
            dtype=dtype or weight.dtype,
            device=weight.device,
        )

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, heads={self.heads}, "
            f"max_offset={self.max_offset}, causal={self.causal}, "
            f"offset_dropout={self.offset_dropout}"
        )
