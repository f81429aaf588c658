"""Average attention as a module."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from seqconv_torch import _active, ops
from seqconv_torch._mixer import check_no_dropout, check_probability, require


class AverageAttention(_active.Streaming):
    """Average attention (Zhang et al. 2018): the average of all inputs
    so far, a linear-ReLU-linear network on it, and a gate between input and
    result. Always causal.

        g = network(cumulative_average(x))
        [i; f] = sigmoid(gate([x; g]))
        y = i * x + f * g

    Args:
        channels: C.
        hidden: width of the network; 0: none.
        activation_dropout: after its ReLU, in training.
        device, dtype: of the parameters.

    Parameters: `gate.weight` [2C, 2C], input gate first, `gate.bias` [2C], and
    of a network `ffn.fc1.weight` [hidden, C], `ffn.fc1.bias`, `ffn.fc2.weight`
    [C, hidden], `ffn.fc2.bias`; weights Xavier-uniform, biases zero at first.
    ValueError on impossible sizes.
    """

    def __init__(
        self,
        channels: int,
        hidden: int = 0,
        activation_dropout: float = 0.0,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.channels, self.hidden = channels, hidden
        self.activation_dropout = activation_dropout
        require(
            channels >= 1 and hidden >= 0,
            self,
            "channels must be at least 1 and hidden not negative, but got "
            f"{channels} and {hidden}",
        )
        check_probability(self, "activation_dropout", activation_dropout)
        new = partial(nn.Linear, device=device, dtype=dtype)
        self.ffn = None
        if hidden > 0:
            self.ffn = nn.ModuleDict()
            self.ffn["fc1"] = new(channels, hidden)
            self.ffn["fc2"] = new(hidden, channels)
        self.gate = new(2 * channels, 2 * channels)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws the initial weights from torch's generator."""
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)
                nn.init.zeros_(module.bias)

    def _gated(self, x: Tensor, average: Tensor) -> Tensor:
        g = average
        if self.ffn is not None:
            hidden = torch.relu(self.ffn["fc1"](g))
            g = self.ffn["fc2"](functional.dropout(hidden, self.activation_dropout, self.training))
        gates = torch.sigmoid(self.gate(torch.cat([x, g], -1)))
        inputs, forgets = gates.chunk(2, -1)  # [B, T, C] each
        # Under autocast x may be wider than what comes out of linear maps.
        return torch.addcmul(inputs * x.to(g.dtype), forgets, g)

    def forward(self, x: Tensor, lengths: Tensor | None = None) -> Tensor:
        """x [B, T, C], lengths [B] or None -> [B, T, C]."""
        if _active.entered and (y := _active.advance(self, x, lengths)) is not None:
            return y
        if lengths is None:
            return self._gated(x, ops.cumulative_average(x))
        steps = torch.arange(x.shape[1], device=x.device)
        padding = (steps >= lengths[:, None])[..., None]  # [B, T, 1]
        x = x.masked_fill(padding, 0)
        average = ops.cumulative_average(x, lengths=lengths)
        return self._gated(x, average).masked_fill(padding, 0)

    def step(self, x: Tensor, state: Tensor, position: int | Tensor) -> Tensor:
        """Without gradient: [N, T', C] -> [N, T', C], `state` [N, C]; see
        LightConv.step. A step costs the same at any position."""
        check_no_dropout(self, "activation_dropout")
        average = ops.cumulative_average_step(x, state, position)
        return self._gated(x, average)

    def initial_state(self, rows: int) -> Tensor:
        """Float64 zeros [N, C] for N = rows: the sums of all inputs so far,
        whatever the type that steps are made in."""
        return ops.average_initial_state(rows, self.channels, device=self.gate.weight.device)

    def _stream(self, rows: int, rollback: int, dtype: torch.dtype | None) -> Tensor:
        require(rollback == 0, self, f"rollback must be 0, as sums forget, but got {rollback}")
        return self.initial_state(rows)

    def extra_repr(self) -> str:
        return (
            f"{self.channels}, hidden={self.hidden}, "
            f"activation_dropout={self.activation_dropout}"
        )
