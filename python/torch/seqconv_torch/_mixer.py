"""What the modules have in common: options, checks, DropConnect."""

from typing import Any

import torch
from torch import Tensor, nn

from seqconv_torch import _active, ops
from seqconv_torch._short_conv import ShortConvState


def parameter(
    *shape: int,
    device: torch.device | str | None,
    dtype: torch.dtype | None,
) -> nn.Parameter:
    """A parameter that has no values yet."""
    return nn.Parameter(torch.empty(shape, device=device, dtype=dtype))


def require(condition: bool, module: nn.Module, text: str) -> None:
    if not condition:
        raise ValueError(f"[{type(module).__name__}] {text}")


def check_probability(module: nn.Module, name: str, p: float) -> None:
    require(0 <= p < 1, module, f"{name} must be in [0, 1), but got {p}")


def check_no_dropout(module: nn.Module, name: str) -> None:
    """A step has no dropout: it is an error where the whole would have some."""
    p = getattr(module, name)
    if module.training and p > 0:
        raise ValueError(
            f"[{type(module).__name__}] step needs a module in evaluation, "
            f"after eval(), but got one in training with {name}={p}"
        )


class Mixer(_active.Streaming):
    """What the convolutions have in common: heads of channels, and steps."""

    def __init__(self, channels: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.channels, self.heads, self.causal = channels, heads, causal
        require(
            channels >= 1 and heads >= 1 and channels % heads == 0,
            self,
            f"heads must divide channels, but got {channels} channels, "
            f"{heads} heads",
        )

    def _check_causal(self) -> None:
        require(self.causal, self, "step needs causal=True")


class Conv(Mixer):
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
        require(
            kernel_size >= 1,
            self,
            f"kernel_size must be at least 1, but got {kernel_size}",
        )
        check_probability(self, "weight_dropout", weight_dropout)
        require(
            normalization in ops.NORMALIZATIONS,
            self,
            f"normalization must be one of {', '.join(ops.NORMALIZATIONS)}, "
            f"but got {normalization!r}",
        )
        require(
            not renormalize_edges or normalization == "softmax",
            self,
            "renormalize_edges needs normalization 'softmax', but got "
            f"{normalization!r}",
        )

    @property
    def padding_left(self) -> int:
        """Taps before the current position."""
        return self.kernel_size - 1 if self.causal else self.kernel_size // 2

    def _check_input(self, x: Tensor) -> None:
        """A kernel of a head fits any number of channels."""
        if x.dim() != 3 or x.shape[2] != self.channels:
            raise ValueError(
                f"[{type(self).__name__}] x must be [B, T, C] with C = "
                f"{self.channels}, but got {list(x.shape)}"
            )

    def _check_step(self, x: Tensor) -> None:
        self._check_causal()
        check_no_dropout(self, "weight_dropout")
        self._check_input(x)

    def _options(self) -> dict[str, Any]:
        return {
            "normalization": self.normalization,
            "renormalize_edges": self.renormalize_edges,
            "bias": self.bias,
        }

    def _drop(self, x: Tensor) -> dict[str, Any]:
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

    def _stream(
        self, rows: int, rollback: int, dtype: torch.dtype | None
    ) -> ShortConvState | Tensor:
        self._check_causal()
        own = next(self.parameters())
        if own.device.type == "cpu":
            return ShortConvState.zeros(
                rows, self.kernel_size, self.channels, rollback=rollback,
                dtype=dtype or own.dtype,
            )  # fmt: skip
        require(rollback == 0, self, f"rollback must be 0 on {own.device}, but got {rollback}")
        return self._initial_state(rows, own, dtype)

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, heads={self.heads}, "
            f"kernel_size={self.kernel_size}, causal={self.causal}, "
            f"weight_dropout={self.weight_dropout}, "
            f"normalization={self.normalization!r}, "
            f"renormalize_edges={self.renormalize_edges}"
        )
