"""Short convolutions as functions, and the state that their steps go on from."""

from __future__ import annotations

import torch
from torch import Tensor

from seqconv_torch import _library
from seqconv_torch._transforms import by_definition

_library.load()
_ops: _library.Operators = torch.ops.seqconv


def _require(condition: bool, op: str, text: str) -> None:
    if not condition:
        raise ValueError(f"[{op}] {text}")


def _dynamic_of(low_rank: tuple[Tensor, Tensor]) -> Tensor:
    """z [.., P], u [P, H, K] -> [.., H, K]."""
    z, u = low_rank
    _require(
        u.dim() == 3 and z.shape[-1] == u.shape[0],
        "short_conv",
        f"low_rank must be z [B, T, P] and u [P, H, K], but got {list(z.shape)} "
        f"and {list(u.shape)}",
    )
    dynamic: Tensor = (z @ u.flatten(1).to(z.dtype)).unflatten(  # type: ignore[no-untyped-call]
        -1, u.shape[1:]
    )
    return dynamic


def _taps(
    weight: Tensor | None, dynamic: Tensor | None, low_rank: tuple[Tensor, Tensor] | None
) -> tuple[Tensor | None, Tensor | None]:
    if low_rank is None:
        return weight, dynamic
    _require(
        dynamic is None, "short_conv", "dynamic or low_rank must be given, but got both"
    )
    return weight, _dynamic_of(low_rank)


def short_conv(
    x: Tensor,
    weight: Tensor | None = None,
    dynamic: Tensor | None = None,
    *,
    low_rank: tuple[Tensor, Tensor] | None = None,
    bias: Tensor | None = None,
    activation: str | None = None,
    residual: bool = False,
    dilation: int = 1,
    padding_left: int | None = None,
    normalization: str = "none",
    renormalize_edges: bool = False,
    initial_state: Tensor | None = None,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    seq_idx: Tensor | None = None,
    drop_p: float = 0.0,
    drop_seed: Tensor | None = None,
    drop_mask: Tensor | None = None,
) -> Tensor:
    """Short convolution with static taps, taps of every position, or both.

        z[b, t, c] = bias[c] + sum_j (weight[c * G // C, j] + dynamic[b, t, c * H // C, j])
                     * x[b, t - (padding_left - j) * dilation, c]
        y = activation(z), and with `residual` y = activation(z) + x

    x is zero outside of a sequence, or what `initial_state` says. The whole, its
    pieces of any lengths, packed sequences and steps give the same bits (causal,
    one instruction set); so does any number of threads. Differentiable in x, weight,
    dynamic, low_rank, bias and initial_state.

    Args:
        x: [B, T, C]; packed, with cu_seqlens, [N, C] or [1, N, C].
        weight: [G, K], taps of all positions; G divides C. G = C is a kernel for every
            channel, G = 1 one for all.
        dynamic: [B, T, H, K] (packed [N, H, K]), taps of every position; H divides C.
        low_rank: z [B, T, P] and u [P, H, K], for dynamic = z u.
        bias: [C].
        activation: None, "silu" or "swish", which is the same.
        residual: adds x behind the activation.
        dilation: positions from a tap to the next.
        padding_left: taps before the current one, 0 .. K-1; None: K-1, causal.
        normalization: one of NORMALIZATIONS, of weight or of dynamic over their taps;
            "none" where both are given. lightconv is the softmax of weight,
            dynamicconv that of dynamic.
        renormalize_edges: as in lightconv.
        initial_state: [B, (K-1) * dilation, C], the inputs before x in order of time;
            causal only.
        lengths: [B], int64 or int32: real positions of each row.
        cu_seqlens: [B + 1], int32 or int64, from 0 to N: sequence b is x[cu_seqlens[b] :
            cu_seqlens[b + 1]].
        seq_idx: [B, T], int32 or int64: neighbouring positions with the same number are
            a sequence; negative ones are padding and give zero. The initial state is
            that of each row's first sequence.
        drop_p, drop_seed, drop_mask: DropConnect on the normalised taps of dynamic, or
            of weight without it, as in lightconv.

    Returns:
        y, of x's shape and type.
    """
    weight, dynamic = _taps(weight, dynamic, low_rank)
    operator = _ops.short_conv_reference if by_definition() else _ops.short_conv
    return operator(
        x, weight, dynamic, bias, initial_state, dilation=dilation, padding_left=padding_left,
        activation=activation or "none", residual=residual, normalization=normalization,
        renormalize_edges=renormalize_edges, drop_p=drop_p, drop_seed=drop_seed,
        drop_mask=drop_mask, lengths=lengths, cu_seqlens=cu_seqlens, seq_idx=seq_idx,
    )  # fmt: skip


def short_conv_final_state(
    x: Tensor,
    kernel_size: int,
    *,
    dilation: int = 1,
    initial_state: Tensor | None = None,
    lengths: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
) -> Tensor:
    """The last (K-1) * dilation inputs of each sequence, in order of time.

    They are the initial state of short_conv of the inputs that follow. Inputs before
    the first one are those of initial_state, or zeros. Differentiable in x and
    initial_state any number of times.

    Returns:
        [B, (K-1) * dilation, C], a copy, of x's type.
    """
    return _ops.short_conv_final_state(
        x, kernel_size, dilation=dilation, initial_state=initial_state, lengths=lengths,
        cu_seqlens=cu_seqlens,
    )  # fmt: skip


class ShortConvState:
    """The inputs that steps of M streams remember, with their positions.

    Input number p of stream m lies in ring[m, p % slots]; there are (K-1) * dilation
    slots and `rollback` more, so that as many of the last inputs can be taken back.

    Attributes:
        ring: [M, slots, C].
        positions: [M, 2], int64: inputs seen, and the most that there ever were.
        kernel_size, dilation: of the convolution.
    """

    def __init__(self, ring: Tensor, positions: Tensor, kernel_size: int, dilation: int) -> None:
        self.ring, self.positions = ring, positions
        self.kernel_size, self.dilation = kernel_size, dilation

    @classmethod
    def zeros(
        cls,
        rows: int,
        kernel_size: int,
        channels: int,
        *,
        dilation: int = 1,
        rollback: int = 0,
        dtype: torch.dtype | None = None,
        device: torch.device | str | None = None,
    ) -> ShortConvState:
        """Before the first input: zeros [M, slots, C] for M = rows. ValueError on sizes that
        cannot be."""
        _require(
            rows >= 0 and kernel_size >= 1 and channels >= 1 and dilation >= 1 and rollback >= 0,
            "ShortConvState",
            "rows, kernel_size, channels, dilation and rollback must be at least 0, 1, 1, 1 and "
            f"0, but got {rows}, {kernel_size}, {channels}, {dilation} and {rollback}",
        )
        slots = (kernel_size - 1) * dilation + rollback
        ring = torch.zeros(rows, slots, channels, dtype=dtype, device=device)
        positions = torch.zeros(rows, 2, dtype=torch.int64, device=device)
        return cls(ring, positions, kernel_size, dilation)

    @classmethod
    def of(
        cls, inputs: Tensor, kernel_size: int, *, dilation: int = 1, rollback: int = 0
    ) -> ShortConvState:
        """After inputs of which the last [M, (K-1) * dilation, C] are these, in order of
        time, as short_conv_final_state has them. Copies them."""
        length = (kernel_size - 1) * dilation
        _require(
            inputs.dim() == 3 and inputs.shape[1] == length and rollback >= 0,
            "ShortConvState",
            f"inputs must be [M, (K-1) * dilation, C] with (K-1) * dilation = {length}, and "
            f"rollback at least 0, but got {list(inputs.shape)} and {rollback}",
        )
        state = cls.zeros(
            inputs.shape[0], kernel_size, inputs.shape[2], dilation=dilation, rollback=rollback,
            dtype=inputs.dtype, device=inputs.device,
        )  # fmt: skip
        state.ring[:, :length] = inputs.detach()
        state.positions.fill_(length)
        return state

    @classmethod
    def of_rolled(
        cls, rolled: Tensor, kernel_size: int, *, dilation: int = 1, rollback: int = 0
    ) -> ShortConvState:
        """From the form of other packages, [B, C, W] with the newest input last, of which
        the last (K-1) * dilation are read. Copies them."""
        length = (kernel_size - 1) * dilation
        _require(
            rolled.dim() == 3 and rolled.shape[2] >= length,
            "ShortConvState",
            f"rolled must be [B, C, W] with W at least {length}, but got {list(rolled.shape)}",
        )
        inputs = rolled[:, :, rolled.shape[2] - length :].transpose(1, 2)
        return cls.of(inputs, kernel_size, dilation=dilation, rollback=rollback)

    @property
    def rollback_limit(self) -> int:
        """Inputs that the ring has room to take back."""
        return self.ring.shape[1] - (self.kernel_size - 1) * self.dilation

    def last_inputs(self, count: int | None = None) -> Tensor:
        """The last `count` inputs, or the (K-1) * dilation that matter, [M, count, C] in
        order of time: a copy. Zeros before the first one."""
        if count is None:
            count = (self.kernel_size - 1) * self.dilation
        return _ops.short_conv_last_inputs(self.ring, self.positions, count)

    def rolled(self, width: int | None = None) -> Tensor:
        """The form of other packages, [M, C, width] with the newest input last: a copy.
        width: K-1 (times the dilation) by default, and at most the slots; others want K."""
        if width is None or width <= self.ring.shape[1]:
            return self.last_inputs(width).transpose(1, 2).contiguous()
        known = self.last_inputs(self.ring.shape[1]).transpose(1, 2)
        return torch.nn.functional.pad(known, (width - known.shape[2], 0))

    def rollback(self, counts: int | Tensor) -> None:
        """Takes the last counts[m] inputs of stream m back, or as many of each.

        RuntimeError where the ring no longer has the (K-1) * dilation inputs before:
        there may be as many as `rollback` since the furthest position. A CUDA device
        takes as many back as it can instead."""
        if isinstance(counts, int):
            counts = torch.full((self.ring.shape[0],), counts, device=self.positions.device)
        _ops.short_conv_rollback(self.positions, counts, self.rollback_limit)

    def select(self, rows: Tensor) -> ShortConvState:
        """The state of other rows, [N], as beam search goes on with them: a copy."""
        return ShortConvState(
            self.ring.index_select(0, rows), self.positions.index_select(0, rows),
            self.kernel_size, self.dilation,
        )  # fmt: skip

    def clone(self) -> ShortConvState:
        return ShortConvState(
            self.ring.clone(), self.positions.clone(), self.kernel_size, self.dilation
        )

    def __repr__(self) -> str:
        M, slots, C = self.ring.shape
        return (
            f"ShortConvState(rows={M}, slots={slots}, channels={C}, "
            f"kernel_size={self.kernel_size}, dilation={self.dilation})"
        )


def short_conv_step(
    x: Tensor,
    state: ShortConvState,
    weight: Tensor | None = None,
    dynamic: Tensor | None = None,
    *,
    low_rank: tuple[Tensor, Tensor] | None = None,
    bias: Tensor | None = None,
    activation: str | None = None,
    residual: bool = False,
    normalization: str = "none",
    renormalize_edges: bool = False,
    state_indices: Tensor | None = None,
    lengths: Tensor | None = None,
) -> Tensor:
    """Causal short_conv of the next T' >= 1 inputs of some streams. No gradient.

    `state` is changed in place and moves on by itself. Inputs that turn out to be
    wrong, such as rejected drafts, are taken back by state.rollback.

    Args:
        x: [N, T', C], of the state's type.
        state: of M streams; M = N without state_indices.
        state_indices: [N], int64 or int32: the stream that each row of x goes on with,
            each once; a negative one is padding, gives zero and changes nothing.
        lengths: [N], int64 or int32: inputs of each row that are real; others give
            zero and are not seen.
        weight, dynamic, low_rank, bias, activation, residual, normalization,
            renormalize_edges: as in short_conv; dynamic is [N, T', H, K].

    Returns:
        [N, T', C].
    """
    weight, dynamic = _taps(weight, dynamic, low_rank)
    return _ops.short_conv_step(
        x, state.ring, state.positions, weight, dynamic, bias, dilation=state.dilation,
        activation=activation or "none", residual=residual, normalization=normalization,
        renormalize_edges=renormalize_edges, state_indices=state_indices, lengths=lengths,
    )  # fmt: skip
