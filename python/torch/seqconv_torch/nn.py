"""The operators as modules that own their parameters.

Names, defaults and initialisation are those of the C++ layers (seqconv/nn), and
so are the names of parameters: weights move between the two as they are.

Each maps x [B, T, C] to [B, T, C], so that it stands where self-attention or a
convolution over time would. `lengths` [B], int64 or int32, says how much of
a row is real. A causal module also takes its input in steps:

    state, position = module.initial_state(rows), 0
    with torch.no_grad():
        y = module.step(x, state, position)  # x [N, T', C], any T' >= 1
        position += x.shape[1]

To go on from other rows (beam search), index the state: state[parents]. A ModuleState
does all of this for the modules of a whole model.
"""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqconv_torch import _active, ops
from seqconv_torch._average import AverageAttention
from seqconv_torch._mixer import (
    Conv,
    Mixer,
    check_no_dropout,
    check_probability,
    parameter,
    require,
)
from seqconv_torch._short_conv import ShortConvState, short_conv_step
from seqconv_torch._short_conv_module import ShortConv

__all__ = ["AverageAttention", "DynamicConv", "LightConv", "ShortConv", "TaLKConv"]


class LightConv(Conv):
    """Lightweight convolution (Wu et al. 2019, section 3).

    Args:
        channels: C.
        heads: H, divides C; a head's R = C / H neighbouring channels share a
            kernel.
        kernel_size: K, any number from 1.
        causal: K-1 taps to the left, else K // 2 (centred).
        weight_dropout: DropConnect on the taps in training, after the
            normalisation.
        normalization: of a kernel over its taps, see seqconv_torch.ops.lightconv.
            With heads = channels and "none" it is the depthwise convolution.
        renormalize_edges: the softmax leaves out taps that fall outside of the
            sequence (or length).
        bias: adds a bias to every position.
        device, dtype: of the parameters.

    Parameters: `weight` [H, K], logits, Xavier-uniform with the fans of [H, 1, K],
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
            channels, heads, kernel_size, causal, weight_dropout, normalization, renormalize_edges
        )
        new = partial(parameter, device=device, dtype=dtype)
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
        self._check_input(x)
        if _active.entered and (y := _active.advance(self, x, lengths)) is not None:
            return y
        return ops.lightconv(
            x,
            self.weight,
            padding_left=self.padding_left,
            lengths=lengths,
            **self._options(),
            **self._drop(x),
        )

    def step(self, x: Tensor, state: Tensor, position: int | Tensor) -> Tensor:
        """Causal only, without gradient: the next inputs [N, T', C] ->
        [N, T', C]. `state` [N, K-1, C] is changed in place; `position`, a number or
        one int64 element, is the number of inputs already seen. Without dropout:
        ValueError in training with some; call eval()."""
        self._check_step(x)
        return ops.lightconv_step(x, state, position, self.weight, **self._options())

    def _ring_step(
        self, x: Tensor, state: ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        self._check_step(x)
        return short_conv_step(x, state, self.weight, lengths=lengths, **self._options())

    def initial_state(self, rows: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros [N, K-1, C] for N = rows, of the parameter's type or `dtype`,
        which is the type that steps are made in."""
        return self._initial_state(rows, self.weight, dtype)


class DynamicConv(Conv):
    """Dynamic convolution (Wu et al. 2019, section 4): every position predicts
    its own kernel from its own input, or from that of another tensor.

    Args: as for LightConv, and
        filter_bias: adds a bias to the map that predicts the kernels.
        query_channels: Q, the channels of what predicts the kernels; 0: C. With
            Q other than C every call needs a query.

    Parameters: `weight_linear` [H*K, Q], row h*K + j predicts tap j of head h,
    and `weight_linear_bias` [H*K] or None, both U(-1/sqrt(Q), 1/sqrt(Q));
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
        query_channels: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__(
            channels, heads, kernel_size, causal, weight_dropout, normalization, renormalize_edges
        )
        new = partial(parameter, device=device, dtype=dtype)
        wanted = f"query_channels must not be negative, but got {query_channels}"
        require(query_channels >= 0, self, wanted)
        self.query_channels = query_channels or channels
        rows = heads * kernel_size
        self.weight_linear = new(rows, self.query_channels)
        self.weight_linear_bias = new(rows) if filter_bias else None
        self.bias = new(channels) if bias else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial parameters from torch's generator."""
        bound = 1 / math.sqrt(self.query_channels)
        nn.init.uniform_(self.weight_linear, -bound, bound)
        if self.weight_linear_bias is not None:
            nn.init.uniform_(self.weight_linear_bias, -bound, bound)
        if self.bias is not None:
            nn.init.zeros_(self.bias)

    def _logits(self, x: Tensor, query: Tensor | None) -> Tensor:
        if query is None:
            query = x
        if query.dim() != 3 or query.shape[2] != self.query_channels:
            raise ValueError(
                f"[{type(self).__name__}] query, or x without one, must be "
                f"[B, T, Q] with Q = {self.query_channels}, but got "
                f"{list(query.shape)}"
            )
        flat = functional.linear(query, self.weight_linear, self.weight_linear_bias)
        logits: Tensor = flat.unflatten(  # type: ignore[no-untyped-call]
            -1, (self.heads, self.kernel_size)
        )
        return logits  # [B, T, H, K]

    def forward(
        self, x: Tensor, lengths: Tensor | None = None, query: Tensor | None = None
    ) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]; the kernels are
        predicted from query [B, T, Q], or else from x."""
        self._check_input(x)
        if _active.entered and (y := _active.advance(self, x, lengths, query=query)) is not None:
            return y
        return ops.dynamicconv(
            x,
            self._logits(x, query),
            padding_left=self.padding_left,
            lengths=lengths,
            **self._options(),
            **self._drop(x),
        )

    def step(
        self, x: Tensor, state: Tensor, position: int | Tensor, query: Tensor | None = None
    ) -> Tensor:
        """Causal only, without gradient: [N, T', C], query [N, T', Q] ->
        [N, T', C]; see LightConv.step."""
        self._check_step(x)
        logits = self._logits(x, query)
        return ops.dynamicconv_step(x, state, position, logits, **self._options())

    def _ring_step(
        self, x: Tensor, state: ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        self._check_step(x)
        logits = self._logits(x, more["query"])
        return short_conv_step(x, state, dynamic=logits, lengths=lengths, **self._options())

    def initial_state(self, rows: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros [N, K-1, C] for N = rows; see LightConv.initial_state."""
        return self._initial_state(rows, self.weight_linear, dtype)

    def extra_repr(self) -> str:
        own = self.query_channels != self.channels
        query = f", query_channels={self.query_channels}" if own else ""
        return super().extra_repr() + query


class TaLKConv(Mixer):
    """Time-aware large-kernel convolution (Lioutas and Guo 2020, eq. 2-8): every
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
    wider whatever x is, also under autocast: rounding would move the edges.
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
        require(max_offset >= 0, self, f"max_offset must not be negative, but got {max_offset}")
        check_probability(self, "offset_dropout", offset_dropout)
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
            logits = self.offsets(x.to(self.offsets.weight.dtype))
            wide = torch.promote_types(logits.dtype, torch.float32)
            offsets = torch.sigmoid(logits.to(wide))
        return functional.dropout(offsets, self.offset_dropout, self.training)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]."""
        if _active.entered and (y := _active.advance(self, x, lengths)) is not None:
            return y
        offsets = self._offsets(x)
        if self.causal:
            return ops.talk(x, offsets, max_left=self.max_offset, lengths=lengths)
        left, right = offsets.chunk(2, dim=-1)
        reach = self.max_offset
        return ops.talk(x, left, right, max_left=reach, max_right=reach, lengths=lengths)

    def step(self, x: Tensor, state: Tensor, position: int | Tensor) -> Tensor:
        """Causal only, without gradient: [N, T', C] -> [N, T', C], `state`
        [N, max_offset, C]; see LightConv.step."""
        self._check_causal()
        check_no_dropout(self, "offset_dropout")
        offsets = self._offsets(x)
        return ops.talk_step(x, state, position, offsets, max_left=self.max_offset)

    def initial_state(self, rows: int, dtype: torch.dtype | None = None) -> Tensor:
        """Zeros [N, max_offset, C] for N = rows; see LightConv.initial_state."""
        self._check_causal()
        weight = self.offsets.weight
        dtype = dtype or weight.dtype
        return ops.talk_initial_state(
            rows, self.max_offset, self.channels, dtype=dtype, device=weight.device
        )

    def _stream(self, rows: int, rollback: int, dtype: torch.dtype | None) -> Tensor:
        """Any number of slots will do."""
        state = self.initial_state(rows, dtype)
        return state.new_zeros(rows, self.max_offset + rollback, self.channels)

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, heads={self.heads}, "
            f"max_offset={self.max_offset}, causal={self.causal}, "
            f"offset_dropout={self.offset_dropout}"
        )
