"""The dynamic convolution of Jet-Nemotron.

    from seqconv_torch.jet_nemotron import DynamicShortConvolution

B rows, T positions, D channels, W taps of which the last one is that of the current
position, N sequences: B, or as many as cu_seqlens packs into one row. Caches [N, D, W]
hold the last W inputs, the newest last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
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

__all__ = ["DynamicShortConvolution"]

GENERATOR_ACTIVATIONS: dict[str, type[nn.Module]] = {
    "silu": nn.SiLU,
    "swish": nn.SiLU,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "sigmoid": nn.Sigmoid,
}


class DynamicShortConvolution(_active.Streaming):
    """Causal convolution of [B, T, D] whose kernels, one for every position and channel, a
    small network makes:

        y = activation(sum_j kernel[t, d, j] x[t - (W-1) + j, d])
        kernel[t] = w2(activation of the generator(w1(generator_input[t])))

    Args:
        hidden_size: D.
        kernel_size: W, any number from 1.
        generator_input_size: channels of what kernels are made of; None: D.
        generator_reduction: the network has D // generator_reduction units; None: D.
        generator_activation: one of GENERATOR_ACTIVATIONS.
        activation: None, "silu" or "swish", of y.
        static_conv_init: is given w2's bias, which is the kernel of all positions.
        use_fast_conv1d, implementation: kept in attributes, and without effect.

    Parameters, zero at first: `kernel_generator.w1.weight` [units, input size],
    `kernel_generator.w2.weight` [D * W, units] and `kernel_generator.w2.bias` [D * W], row
    d * W + j for tap j of channel d. ValueError on another activation.
    """

    def __init__(
        self,
        hidden_size: int,
        kernel_size: int,
        generator_input_size: int | None = None,
        generator_reduction: int | None = None,
        generator_activation: str = "silu",
        activation: str | None = "silu",
        static_conv_init: Callable[[Tensor], object] | None = None,
        use_fast_conv1d: bool = True,
        implementation: str = "naive",
    ) -> None:
        super().__init__()
        for name, value, known in (
            ("activation", activation, ACTIVATIONS),
            ("generator_activation", generator_activation, tuple(GENERATOR_ACTIVATIONS)),
        ):
            require(
                value in known,
                "DynamicShortConvolution",
                f"{name} must be one of {', '.join(map(str, known))}, but got {value}",
            )
        self.hidden_size, self.kernel_size, self.activation = hidden_size, kernel_size, activation
        self.generator_input_size = generator_input_size or hidden_size
        self.generator_hidden_size = hidden_size // (generator_reduction or 1)
        self.static_conv_init = static_conv_init
        self.use_fast_conv1d, self.implementation = use_fast_conv1d, implementation
        units = self.generator_hidden_size
        w2 = nn.Linear(units, hidden_size * kernel_size)
        self.kernel_generator = nn.Sequential(
            OrderedDict(
                w1=nn.Linear(self.generator_input_size, units, bias=False),
                act=GENERATOR_ACTIVATIONS[generator_activation](),
                w2=w2,
            )
        )
        for parameter in self.parameters():
            nn.init.zeros_(parameter)
        if static_conv_init is not None:
            static_conv_init(w2.bias)

    def get_kernel(self, x: Tensor) -> Tensor:
        """[.., generator_input_size] -> taps [.., D, W]."""
        made: Tensor = self.kernel_generator(x)
        return made.view(*made.shape[:-1], self.hidden_size, self.kernel_size)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        cache: Tensor | None = None,
        output_final_state: bool = False,
        cu_seqlens: Tensor | None = None,
        generator_input: Tensor | None = None,
        **kwargs: object,
    ) -> tuple[Tensor, Tensor | None]:
        """activation(convolution of x), and the cache.

        `cache` holds the inputs before x. It is changed in place by an x of one position,
        and by any other with output_final_state. Gradients do not go through it.

        Args:
            x: [B, T, D]; B = 1 beside cu_seqlens.
            mask: [B, T], a factor of x; not beside cu_seqlens. x itself stays as it is.
            cache: [N, D, W], of x's type. None: zeros.
            output_final_state: returns a cache even where none was given.
            cu_seqlens: [N + 1], int32 or int64, from 0 to T: sequences packed into a row.
            generator_input: [B, T, generator_input_size]; None: x.
            kwargs: ignored.

        Returns:
            y [B, T, D], contiguous, of x's type; and the cache [N, D, W] or None.

        ValueError on another shape or type, and on mask beside cu_seqlens.
        """
        op, D, W = "DynamicShortConvolution", self.hidden_size, self.kernel_size
        require(
            x.dim() == 3 and x.shape[2] == D,
            op,
            f"x must be [B, T, D] with D = {D}, but got {list(x.shape)}",
        )
        require(
            mask is None or cu_seqlens is None, op, "mask or cu_seqlens must be given, but got both"
        )
        check_cache(op, cache, [rows_of(x, cu_seqlens), D, W], x)
        if mask is not None:
            x = x * mask.unsqueeze(-1).to(x.dtype)
        kernel = self.get_kernel(x if generator_input is None else generator_input)
        require(
            kernel.shape[:-1] == x.shape,
            op,
            f"generator_input must be [B, T, {self.generator_input_size}] beside x "
            f"{list(x.shape)}, but gave kernels {list(kernel.shape)}",
        )
        if _active.entered:
            state_says = {
                "cache": cache, "cu_seqlens": cu_seqlens, "output_final_state": output_final_state
            }  # fmt: skip
            next_y = _active.advance(self, x, unwanted=state_says, kernel=kernel)
            if next_y is not None:
                return next_y, None
        y = short_conv(
            x,
            dynamic=beside(op, "the kernels", kernel, x),
            activation=self.activation,
            initial_state=history_of(None if cache is None else cache.detach()),
            cu_seqlens=cu_seqlens,
        )
        one_position = cu_seqlens is None and x.shape[1] == 1
        if output_final_state or (one_position and cache is not None):
            with torch.no_grad():
                after = cache_after(cache, x, W, cu_seqlens)
                cache = after if cache is None else cache.copy_(after)
        return y, cache

    def _stream(self, rows: int, rollback: int, dtype: torch.dtype | None) -> ShortConvState:
        own = next(self.parameters())
        return ShortConvState.zeros(
            rows, self.kernel_size, self.hidden_size, rollback=rollback,
            dtype=dtype or own.dtype, device=own.device,
        )  # fmt: skip

    def _ring_step(
        self, x: Tensor, state: ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        kernel = beside("DynamicShortConvolution", "the kernels", more["kernel"], x)
        return short_conv_step(x, state, dynamic=kernel, activation=self.activation)
