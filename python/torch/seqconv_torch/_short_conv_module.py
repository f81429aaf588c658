"""Short convolution as a module."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from seqconv_torch import _active, _short_conv
from seqconv_torch._mixer import parameter, require


class ShortConv(_active.Streaming):
    """Short causal convolution, as of today's language models, with static taps, taps
    that every position predicts from its input or from another tensor, or both
    (seqconv_torch.short_conv).

    Args:
        channels: C.
        kernel_size: K, any number from 1.
        groups: G, static kernels; None: C, one for every channel; 0: none.
        heads: H, kernels that every position predicts; 0: none.
        rank: P of a low-rank prediction, Q -> P -> H * K; 0: one linear map.
        bias: adds a bias to every position.
        activation: None, "silu" or "swish".
        residual: adds the input behind the activation.
        dilation: positions from a tap to the next.
        query_channels: Q, the channels of what predicts the kernels; 0: C. With Q other than C
            every call needs a query.
        device, dtype: of the parameters.

    Parts: `weight` [G, K] and `bias` [C], both U(-1/sqrt(K), 1/sqrt(K)) as those of
    torch.nn.Conv1d, or None; `predict`, an nn.Linear without bias of outputs [H * K]
    (row h * K + j: tap j of head h) or, with a rank, nn.Sequential of two.
    ValueError on impossible options.
    """

    bias: nn.Parameter | None

    def __init__(
        self,
        channels: int,
        kernel_size: int = 4,
        *,
        groups: int | None = None,
        heads: int = 0,
        rank: int = 0,
        bias: bool = False,
        activation: str | None = None,
        residual: bool = False,
        dilation: int = 1,
        query_channels: int = 0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.channels, self.kernel_size, self.dilation = channels, kernel_size, dilation
        self.groups = channels if groups is None else groups
        self.heads, self.rank = heads, rank
        self.activation, self.residual = activation, residual
        require(
            query_channels >= 0 and (query_channels == 0 or heads > 0),
            self,
            f"query_channels must be 0, or above it beside heads, but got {query_channels}",
        )
        self.query_channels = query_channels or channels
        self._check_options()
        new = partial(parameter, device=device, dtype=dtype)
        self.weight = new(self.groups, kernel_size) if self.groups > 0 else None
        self.bias = new(channels) if bias else None
        self.predict: nn.Module | None = None
        if heads > 0:
            taps = heads * kernel_size
            widths = [self.query_channels, *([rank] if rank > 0 else []), taps]
            maps = [
                nn.Linear(a, b, bias=False, device=device, dtype=dtype)
                for a, b in zip(widths, widths[1:])
            ]
            self.predict = maps[0] if rank == 0 else nn.Sequential(*maps)
        self.reset_parameters()

    def _check_options(self) -> None:
        for name in ("channels", "kernel_size", "dilation"):
            value = getattr(self, name)
            require(value >= 1, self, f"{name} must be at least 1, but got {value}")
        for name in ("groups", "heads"):
            count = getattr(self, name)
            require(
                count >= 0 and (count == 0 or self.channels % count == 0),
                self,
                f"{name} must divide channels = {self.channels}, or be 0, but got {count}",
            )
        require(
            self.groups + self.heads > 0, self, "groups or heads must be above 0, but got neither"
        )
        require(
            self.rank >= 0 and (self.rank == 0 or self.heads > 0),
            self,
            f"rank must be 0, or above it beside heads, but got {self.rank}",
        )
        require(
            self.activation in (None, "silu", "swish"),
            self,
            f"activation must be None, 'silu' or 'swish', but got {self.activation!r}",
        )

    def reset_parameters(self) -> None:
        """Draws the initial parameters from torch's generator."""
        bound = 1 / math.sqrt(self.kernel_size)
        for own in (self.weight, self.bias):
            if own is not None:
                nn.init.uniform_(own, -bound, bound)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                part.reset_parameters()

    def _dynamic(self, x: Tensor, query: Tensor | None) -> Tensor | None:
        if self.predict is None:
            require(query is None, self, "query needs heads above 0, but got one without")
            return None
        query = x if query is None else query
        require(
            query.shape[-1] == self.query_channels and query.shape[:-1] == x.shape[:-1],
            self,
            "query, or x without one, must be [B, T, Q] with Q = "
            f"{self.query_channels} beside x {list(x.shape)}, but got {list(query.shape)}",
        )
        taps: Tensor = self.predict(query).unflatten(-1, (self.heads, self.kernel_size))
        return taps

    def _check_input(self, x: Tensor) -> None:
        if x.shape[-1] != self.channels:
            raise ValueError(
                f"[{type(self).__name__}] x must be [B, T, C] with C = {self.channels}, but got "
                f"{list(x.shape)}"
            )

    def forward(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        *,
        query: Tensor | None = None,
        key_padding_mask: Tensor | None = None,
        cu_seqlens: Tensor | None = None,
        seq_idx: Tensor | None = None,
        initial_state: Tensor | None = None,
    ) -> Tensor:
        """x [B, T, C], or packed [N, C] -> the same; see seqconv_torch.short_conv.

        query: [B, T, Q], predicts the kernels instead of x.
        key_padding_mask: [B, T], True at padding, which stands on the right: another
        way to say lengths."""
        self._check_input(x)
        if key_padding_mask is not None:
            require(lengths is None, self, "lengths or key_padding_mask must be given, but got both")
            lengths = key_padding_mask.shape[1] - key_padding_mask.sum(1)
        if _active.entered:
            state_says = {
                "cu_seqlens": cu_seqlens, "seq_idx": seq_idx, "initial_state": initial_state
            }  # fmt: skip
            y = _active.advance(self, x, lengths, unwanted=state_says, query=query)
            if y is not None:
                return y
        return _short_conv.short_conv(
            x,
            self.weight,
            self._dynamic(x, query),
            bias=self.bias,
            activation=self.activation,
            residual=self.residual,
            dilation=self.dilation,
            initial_state=initial_state,
            lengths=lengths,
            cu_seqlens=cu_seqlens,
            seq_idx=seq_idx,
        )

    def final_state(
        self,
        x: Tensor,
        lengths: Tensor | None = None,
        *,
        cu_seqlens: Tensor | None = None,
        initial_state: Tensor | None = None,
    ) -> Tensor:
        """The initial state of what follows x, [B, (K-1) * dilation, C]."""
        return _short_conv.short_conv_final_state(
            x,
            self.kernel_size,
            dilation=self.dilation,
            initial_state=initial_state,
            lengths=lengths,
            cu_seqlens=cu_seqlens,
        )

    def initial_state(
        self, rows: int, *, rollback: int = 0, dtype: torch.dtype | None = None
    ) -> _short_conv.ShortConvState:
        """The state of steps of N = rows streams, whose last `rollback` inputs may be taken
        back: a ring [N, slots, C] of the parameters' type or `dtype`."""
        own = next(self.parameters())
        return _short_conv.ShortConvState.zeros(
            rows,
            self.kernel_size,
            self.channels,
            dilation=self.dilation,
            rollback=rollback,
            dtype=dtype or own.dtype,
            device=own.device,
        )

    def step(
        self,
        x: Tensor,
        state: _short_conv.ShortConvState,
        *,
        query: Tensor | None = None,
        state_indices: Tensor | None = None,
        lengths: Tensor | None = None,
    ) -> Tensor:
        """The next inputs [N, T', C], query [N, T', Q] -> [N, T', C]; `state` moves on by
        itself. Without gradient: call it under torch.no_grad()."""
        self._check_input(x)
        return _short_conv.short_conv_step(
            x,
            state,
            self.weight,
            self._dynamic(x, query),
            bias=self.bias,
            activation=self.activation,
            residual=self.residual,
            state_indices=state_indices,
            lengths=lengths,
        )

    def _stream(
        self, rows: int, rollback: int, dtype: torch.dtype | None
    ) -> _short_conv.ShortConvState:
        return self.initial_state(rows, rollback=rollback, dtype=dtype)

    def _ring_step(
        self, x: Tensor, state: _short_conv.ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        return self.step(x, state, lengths=lengths, **more)

    def extra_repr(self) -> str:
        said = f"{self.channels}, kernel_size={self.kernel_size}, groups={self.groups}"
        for name in ("heads", "rank", "activation", "residual"):
            if getattr(self, name):
                said += f", {name}={getattr(self, name)!r}"
        if self.query_channels != self.channels:
            said += f", query_channels={self.query_channels}"
        return said + (f", dilation={self.dilation}" if self.dilation > 1 else "")
