"""The short convolution of the package flash-linear-attention 0.6 (`fla.modules`).

    from seqconv_torch.fla import ShortConvolution, causal_conv1d

B rows, T positions, D channels, W taps of which the last one is that of the current
position, N sequences: B, or as many as cu_seqlens packs into one row. Caches [N, D, W]
hold the last W inputs, the newest last.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from seqconv_torch import _active
from seqconv_torch._doors import (
    ACTIVATIONS,
    beside,
    cache_after,
    check_cache,
    history_of,
    require,
    rows_of,
)
from seqconv_torch._short_conv import ShortConvState, short_conv, short_conv_step
from seqconv_torch.causal_conv1d import causal_conv1d_update

__all__ = ["ShortConvolution", "causal_conv1d"]

_BACKENDS = ("triton", "cuda", "mix")


def causal_conv1d(
    x: Tensor,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    residual: Tensor | None = None,
    initial_state: Tensor | None = None,
    output_final_state: bool | None = False,
    activation: str | None = None,
    backend: str | None = "triton",
    cu_seqlens: Tensor | None = None,
    cu_seqlens_cpu: Tensor | None = None,
    chunk_indices: Tensor | None = None,
    cp_context: object | None = None,
    *,
    seq_idx: Tensor | None = None,
    **kwargs: object,
) -> tuple[Tensor, Tensor | None]:
    """y[b, t, d] = activation(bias[d] + sum_j weight[d, j] x[b, t - (W-1) + j, d])
    + residual[b, t, d], and the state afterwards.

    Differentiable in x, weight, bias, residual and initial_state, through y and the state.

    Args:
        x: [B, T, D], or [B, T, ...] whose last dimensions have D elements; B = 1 beside
            cu_seqlens.
        weight: [D, W].
        bias: [D].
        residual: of x's shape, added behind the activation; x itself may be it, and is then
            added before y is rounded.
        initial_state: [N, D, W], of x's type: the inputs before x, of which the last W-1
            matter. None: zeros. It stays as it is.
        output_final_state: returns the state, else None in its place; not beside seq_idx.
        activation: None, "silu" or "swish", which is the same.
        backend: "triton", "cuda" or "mix", without effect.
        cu_seqlens: [N + 1], int32 or int64, from 0 to T: sequences packed into a row.
        cu_seqlens_cpu: the same on the host; only beside cu_seqlens, and without effect.
        chunk_indices, kwargs: ignored.
        cp_context: None; there is no context parallelism.
        seq_idx: [B, T], int32 or int64, without cu_seqlens: neighbouring positions with the
            same number are a sequence. Beside cu_seqlens, which says it, without effect.

    Returns:
        y, contiguous, of x's shape and type; and [N, D, W] or None.

    ValueError on another shape, type, activation or backend, NotImplementedError on a
    cp_context.
    """
    op = "causal_conv1d"
    if cp_context is not None:
        raise NotImplementedError(
            f"[{op}] cp_context must be None, but got {cp_context!r}"
        )
    require(
        weight is not None and weight.dim() == 2 and weight.shape[1] >= 1,
        op,
        f"weight must be [D, W], but got {None if weight is None else list(weight.shape)}",
    )
    assert weight is not None
    D, W = weight.shape
    require(
        x.dim() >= 3 and x.shape[2:].numel() == D,
        op,
        f"x must be [B, T, D] with D = {D}, but got {list(x.shape)}",
    )
    known: tuple[str | None, ...]
    for name, value, known in (
        ("activation", activation, ACTIVATIONS),
        ("backend", backend, _BACKENDS),
    ):
        require(
            value in known,
            op,
            f"{name} must be one of {', '.join(map(str, known))}, but got {value!r}",
        )
    for name, of, wanted in (("bias", bias, [D]), ("residual", residual, list(x.shape))):
        require(
            of is None or list(of.shape) == wanted,
            op,
            f"{name} must be {wanted}, but got {None if of is None else list(of.shape)}",
        )
    require(
        cu_seqlens_cpu is None or cu_seqlens is not None,
        op,
        "cu_seqlens must be given beside cu_seqlens_cpu, but got None",
    )
    if cu_seqlens is not None:
        seq_idx = None
    require(
        seq_idx is None or not output_final_state,
        op,
        "output_final_state must be False beside seq_idx, but got True",
    )
    shape, own_residual = x.shape, residual is x
    x = x.flatten(2)
    check_cache(op, initial_state, [rows_of(x, cu_seqlens), D, W], x, "initial_state")
    y = short_conv(
        x,
        beside(op, "weight", weight, x),
        bias=None if bias is None else beside(op, "bias", bias, x),
        activation=activation,
        residual=own_residual,
        initial_state=history_of(initial_state),
        cu_seqlens=cu_seqlens,
        seq_idx=seq_idx,
    ).view(shape)
    if residual is not None and not own_residual:
        y = (y + residual).to(y.dtype)
    return y, cache_after(initial_state, x, W, cu_seqlens) if output_final_state else None


class ShortConvolution(nn.Conv1d, _active.Streaming):
    """Depthwise causal convolution of [B, T, D] that keeps a cache.

    Args:
        hidden_size: D.
        kernel_size: W, any number from 1.
        bias: adds a bias to every position.
        activation: None, "silu" or "swish", which is the same.
        backend: kept in an attribute, and without effect.
        device, dtype: of the parameters.
        kwargs: ignored.

    Parameters: `weight` [D, 1, W] and `bias` [D] or None, those of torch.nn.Conv1d with
    its initialisation. ValueError on another activation.
    """

    def __init__(
        self,
        hidden_size: int,
        kernel_size: int,
        bias: bool = False,
        activation: str | None = "silu",
        backend: str | None = "triton",
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
        **kwargs: object,
    ) -> None:
        super().__init__(
            hidden_size,
            hidden_size,
            kernel_size,
            padding=kernel_size - 1,
            groups=hidden_size,
            bias=bias,
            device=device,
            dtype=dtype,
        )
        require(
            activation in ACTIVATIONS,
            "ShortConvolution",
            f"activation must be None, 'silu' or 'swish', but got {activation!r}",
        )
        self.hidden_size, self.activation, self.backend = hidden_size, activation, backend

    @property
    def state_size(self) -> int:
        """Numbers in the cache of a sequence, D * W."""
        return self.hidden_size * self.kernel_size[0]

    def _checked(self, x: Tensor, cache: Tensor | None, cu_seqlens: Tensor | None) -> list[int]:
        """The shape of x's cache, [N, D, W]."""
        op, D = "ShortConvolution", self.hidden_size
        require(
            x.dim() == 3 and x.shape[2] == D,
            op,
            f"x must be [B, T, D] with D = {D}, but got {list(x.shape)}",
        )
        wanted = [rows_of(x, cu_seqlens), D, self.kernel_size[0]]
        check_cache(op, cache, wanted, x)
        return wanted

    def forward(  # type: ignore[override]
        self,
        x: Tensor,
        residual: Tensor | None = None,
        mask: Tensor | None = None,
        cache: Tensor | None = None,
        output_final_state: bool = False,
        cu_seqlens: Tensor | None = None,
        chunk_indices: Tensor | None = None,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor | None]:
        """activation(convolution of x) + residual, and the cache afterwards.

        With autograd off, an x of one position a sequence is a step: it changes `cache`
        in place and returns it. Otherwise `cache` stays, and what is returned is new and
        differentiable.

        Args:
            x: [B, T, D]; B = 1 beside cu_seqlens.
            residual: [B, T, D], added behind the activation; x itself may be it, and is
                then added before y is rounded.
            mask: [B, T], a factor of x; not beside cu_seqlens. x itself stays as it is.
            cache: [N, D, W], of x's type: the inputs before x. None: zeros.
            output_final_state: returns the cache, else None in its place.
            cu_seqlens: [N + 1], int32 or int64, from 0 to T: sequences packed into a row.
            chunk_indices, kwargs: ignored.

        Returns:
            y [B, T, D], contiguous, of x's type; and [N, D, W] or None.

        ValueError on another shape or type, and on mask beside cu_seqlens.
        """
        if mask is not None:
            require(
                cu_seqlens is None,
                "ShortConvolution",
                "mask or cu_seqlens must be given, but got both",
            )
            masked = x * mask.unsqueeze(-1).to(x.dtype)
            residual, x = (masked if residual is x else residual), masked
        N = self._checked(x, cache, cu_seqlens)[0]
        if _active.entered:
            state_says = {
                "cache": cache, "cu_seqlens": cu_seqlens, "output_final_state": output_final_state
            }  # fmt: skip
            next_y = _active.advance(self, x, unwanted=state_says, residual=residual)
            if next_y is not None:
                return next_y, None
        if (
            not torch.is_grad_enabled()
            and x.shape[0] * x.shape[1] == N
            and (cu_seqlens is None or bool(cu_seqlens.diff().eq(1).all()))
        ):
            return self.step(x, residual, cache, output_final_state, cu_seqlens)
        return causal_conv1d(
            x,
            self.weight.squeeze(1),
            self.bias,
            residual,
            cache,
            output_final_state,
            self.activation,
            cu_seqlens=cu_seqlens,
        )

    def step(
        self,
        x: Tensor,
        residual: Tensor | None,
        cache: Tensor | None,
        output_final_state: bool = False,
        cu_seqlens: Tensor | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """The next input of each sequence, [N, 1, D], or [1, N, D] beside cu_seqlens.

        Changes `cache` in place (None: a new one of zeros). No gradient. Returns and
        raises as forward does."""
        wanted = self._checked(x, cache, cu_seqlens)
        if cache is None:
            cache = x.new_zeros(wanted)
        columns = x.reshape(-1, self.hidden_size)  # [N, D]
        y = causal_conv1d_update(columns, cache, self.weight.squeeze(1), self.bias, self.activation)
        y = y.view(x.shape)
        y = y if residual is None else (y + residual).to(y.dtype)
        return y, cache if output_final_state else None

    def _stream(self, rows: int, rollback: int, dtype: torch.dtype | None) -> ShortConvState:
        return ShortConvState.zeros(
            rows, self.kernel_size[0], self.hidden_size, rollback=rollback,
            dtype=dtype or self.weight.dtype, device=self.weight.device,
        )  # fmt: skip

    def _ring_step(
        self, x: Tensor, state: ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        op, residual = "ShortConvolution", more["residual"]
        y = short_conv_step(
            x,
            state,
            beside(op, "weight", self.weight.squeeze(1), x),
            bias=None if self.bias is None else beside(op, "bias", self.bias, x),
            activation=self.activation,
            residual=residual is x,
        )
        return y if residual is None or residual is x else (y + residual).to(y.dtype)

    def extra_repr(self) -> str:
        said: str = super().extra_repr()  # type: ignore[no-untyped-call]
        if self.activation is not None:
            said += f", activation={self.activation}"
        return f"{said}, backend={self.backend}"
