"""The state of a whole module, with its position."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import Token
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from seqconv_torch import _active
from seqconv_torch._short_conv import ShortConvState


def _require(condition: bool, text: str) -> None:
    if not condition:
        raise ValueError(f"[ModuleState] {text}")


class _Step:
    """One call of the model: T' and lengths, which its modules share, and who was called."""

    def __init__(self, token: Token[Any]) -> None:
        self.token = token
        self.size = 0
        self.lengths: Tensor | None = None
        self.called: dict[str, None] = {}
        self.moved = False  # some module's memory is another one now
        self._groups: list[tuple[Tensor, int, int]] | None = None

    def begin(self, name: str, x: Tensor, lengths: Tensor | None) -> None:
        """A module's call; ValueError where it is not of this step."""
        _require(
            name not in self.called,
            f"each module must be called once in a step, but got a second call of {name!r}",
        )
        if not self.called:
            _require(
                lengths is None
                or lengths.shape == x.shape[:1]
                and lengths.dtype in (torch.int64, torch.int32)
                and bool(((lengths >= 0) & (lengths <= x.shape[1])).all()),
                f"lengths of {name!r} must be [N], int64 or int32, in 0 .. T' with N, T' = "
                f"{list(x.shape[:2])}, but got "
                + ("none" if lengths is None else f"{lengths.dtype} {lengths.tolist()}"),
            )
            self.size, self.lengths = x.shape[1], lengths
        first = next(iter(self.called), name)
        same = lengths is self.lengths or (
            lengths is not None and self.lengths is not None and torch.equal(lengths, self.lengths)
        )
        _require(
            x.shape[1] == self.size and same,
            "all modules of a step must be given as many inputs, but got "
            f"{self.said(x.shape[1], lengths)} for {name!r} after "
            f"{self.said(self.size, self.lengths)} for {first!r}",
        )
        self.called[name] = None

    @staticmethod
    def said(size: int, lengths: Tensor | None) -> str:
        return f"{size}" if lengths is None else f"{size} with lengths {lengths.tolist()}"

    def counts(self, rows: int) -> Tensor:
        """[N], int64, on the host: inputs of each row."""
        if self.lengths is None:
            return torch.full((rows,), self.size)
        return self.lengths.to("cpu", torch.int64)

    def groups(self, positions: Tensor) -> list[tuple[Tensor, int, int]]:
        """Rows [n], position and count of the streams that are as far and go as far."""
        if self._groups is None:
            rows: dict[tuple[int, int], list[int]] = {}
            counts = self.counts(len(positions)).tolist()
            for row, key in enumerate(zip(positions.tolist(), counts)):
                rows.setdefault(key, []).append(row)
            self._groups = [(torch.tensor(its), *key) for key, its in rows.items()]
        return self._groups


class ModuleState:
    """The memory of all modules of this package within a model: their states after the inputs
    of N streams, and how many there were.

        state = seqconv_torch.ModuleState(model.eval(), rows=4)
        with torch.no_grad():
            logits = state(prompt)      # model(prompt), [4, T] tokens
            logits = state(token)       # model(token) of the next [4, 1]

    A step is one call of the model on the next inputs, T' >= 1 of each stream. Within it the
    forward of every module of this package goes on from where it was: those of LightConv,
    DynamicConv, TaLKConv (causal), AverageAttention, ShortConv, and of the modules under other
    packages' names. Steps of any sizes give what the whole gives, convolutions to the bit.
    `lengths` that a module is given say how many inputs of each row are real; the others are
    not seen. Functions and modules of others keep no state here; attention has a cache of its
    own, and `positions` for its embeddings.

    `state(...)` is short for

        with state:                     # one step
            logits = model(...)

    Each module is called once in a step, on as many inputs as the others. A step that ends in
    an error after a module has moved leaves the state unusable: it is refused from then on,
    until load_state_dict. If no module has moved, the state is as it was. A step belongs to the
    thread or asyncio task that begins it; others see nothing of it, and a state is in one step
    at a time. Two states of one model do not know each other. A model under torch.compile is
    stepped with a break of the graph at each module; fullgraph=True refuses that.

    pickle and copy.deepcopy take the model along; clone and state_dict do not.

    Args:
        model: any module; those within it are looked up when the state is made.
        rows: N, streams.
        rollback: the last inputs of each stream that can be taken back. 0 beside
            AverageAttention, and beside LightConv and DynamicConv on a CUDA device.
        dtype: of the inputs that are remembered, and so of the modules' inputs; None: the type
            of each module's parameters.

    ValueError for a model without such a module, for one of them that is not causal, and for
    numbers below 0.
    """

    def __init__(
        self,
        model: nn.Module,
        rows: int,
        *,
        rollback: int = 0,
        dtype: torch.dtype | None = None,
    ) -> None:
        _require(
            rows >= 0 and rollback >= 0,
            f"rows and rollback must not be negative, but got {rows} and {rollback}",
        )
        self.model, self.rollback_limit = model, rollback
        self._names: dict[_active.Streaming, str] = {}
        self._parts: dict[str, ShortConvState | Tensor] = {}
        self._step: _Step | None = None
        self._torn = False
        with torch.inference_mode(False):
            self._seen = torch.zeros(rows, 2, dtype=torch.int64)  # now, and the most so far
            for name, module in model.named_modules():
                if isinstance(module, _active.Streaming):
                    self._names[module] = name
                    try:
                        self._parts[name] = module._stream(rows, rollback, dtype)
                    except ValueError as error:
                        text = f"every module must take steps, but got {name!r}: {error}"
                        raise ValueError(f"[ModuleState] {text}") from error
        _require(
            bool(self._parts),
            "model must have a module of seqconv_torch, but got none in "
            f"{type(model).__name__}",
        )

    @property
    def rows(self) -> int:
        """N."""
        return len(self._seen)

    @property
    def positions(self) -> Tensor:
        """Inputs that each stream has seen, [N], int64: a copy on the state's device. Within a
        step those before it."""
        part = next(iter(self._parts.values()))
        device = part.ring.device if isinstance(part, ShortConvState) else part.device
        return self._seen[:, 0].clone().to(device)

    @property
    def position(self) -> int:
        """Inputs that every stream has seen; ValueError where streams differ."""
        seen = set(self._seen[:, 0].tolist()) or {0}
        _require(
            len(seen) == 1, f"position needs streams that are as far, but got {sorted(seen)}"
        )
        return int(seen.pop())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """model(*args, **kwargs) as a step."""
        with self:
            return self.model(*args, **kwargs)

    def __enter__(self) -> ModuleState:
        """Begins a step: RuntimeError under grad mode, ValueError in a step or after a torn
        one."""
        if torch.is_grad_enabled():
            raise RuntimeError(
                "[ModuleState] a step has no gradient and must be made under torch.no_grad(), "
                "but got grad mode"
            )
        self._check_whole()
        self._step = _Step(_active.enter(self))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        step, self._step = self._step, None
        assert step is not None
        _active.leave(step.token)
        missing = [name for name in self._parts if name not in step.called]
        # A signal may have come in the middle of one.
        stopped = kind is not None and not issubclass(kind, Exception)
        self._torn = (step.moved or stopped) and (kind is not None or bool(missing))
        if kind is not None:
            return
        _require(
            not missing,
            f"every module must be called in a step, but got no call of {missing[:3]}"
            + (f" and {len(missing) - 3} more" if len(missing) > 3 else ""),
        )
        self._seen[:, 0] += step.counts(self.rows)
        self._seen[:, 1] = self._seen.amax(1)

    def _check_whole(self) -> None:
        _require(
            not self._torn,
            "a state must be whole, but got one whose last step ended in an error after some "
            "of its modules had moved: make a new one, or keep a clone",
        )
        _require(self._step is None, "a state must be in no step, but got one in a step")

    def _knows(self, module: _active.Streaming) -> bool:
        return module in self._names

    def _advance(
        self, module: _active.Streaming, x: Tensor, lengths: Tensor | None, more: dict[str, Any]
    ) -> Tensor:
        """The step of one module: x [N, T', C] -> [N, T', C]."""
        step, name = self._step, self._names[module]
        assert step is not None
        _require(
            x.dim() == 3 and x.shape[0] == self.rows and x.shape[1] >= 1,
            f"x of {name!r} must be [N, T', C] with N = {self.rows} and T' at least 1, but got "
            f"{list(x.shape)}",
        )
        step.begin(name, x, lengths)
        part = self._parts[name]
        if isinstance(part, ShortConvState):
            y = module._ring_step(x, part, lengths, **more)
        else:
            y = self._take(step, module, x, part, more)
        step.moved = True
        return y

    def _take(
        self, step: _Step, module: _active.Streaming, x: Tensor, part: Tensor, more: dict[str, Any]
    ) -> Tensor:
        """Steps a module that takes one position and count for all rows."""
        groups = step.groups(self._seen[:, 0])
        take: Callable[..., Tensor] = module.step  # type: ignore[assignment]
        if len(groups) == 1 and groups[0][2] == step.size:
            return take(x, part, groups[0][1], **more)
        y = torch.zeros_like(x)
        for rows, position, count in groups:
            if count > 0:
                rows = rows.to(x.device)
                own = part[rows]
                inputs = {k: of if of is None else of[rows, :count] for k, of in more.items()}
                new = take(x[rows, :count], own, position, **inputs)
                y = y.to(new.dtype)
                y[rows, :count], part[rows] = new, own
                step.moved = True  # others of this module may refuse theirs
        return y

    @torch.inference_mode(False)
    @torch.no_grad()
    def reorder(self, parents: Tensor) -> None:
        """Goes on with other rows, as beam search does: stream n with what stream parents[n]
        has seen. parents: [N'], int64 or int32, rows of the state in any order, also twice or
        not at all; the state has N' rows afterwards. ValueError on anything else."""
        self._check_whole()
        _require(isinstance(parents, Tensor), f"parents must be a tensor, but got {parents!r}")
        _require(
            parents.dim() == 1 and parents.dtype in (torch.int64, torch.int32),
            f"parents must be [N'], int64 or int32, but got {parents.dtype} "
            f"{list(parents.shape)}",
        )
        host = parents.to("cpu", torch.int64)
        _require(
            not host.numel() or (int(host.min()) >= 0 and int(host.max()) < self.rows),
            f"parents must be in 0 .. {self.rows - 1}, but got {host.tolist()}",
        )
        self._parts = {name: _rows_of(part, host) for name, part in self._parts.items()}
        self._seen = self._seen[host]

    @torch.inference_mode(False)
    @torch.no_grad()
    def rollback(self, counts: int | Tensor) -> None:
        """Takes the last counts[n] inputs of stream n back, or as many of each. counts: [N],
        int64 or int32. ValueError where a stream has not seen as many, or no longer has what
        came before: that are `rollback` inputs since the furthest position. Nothing is taken
        back then."""
        self._check_whole()
        if not isinstance(counts, Tensor):
            number = isinstance(counts, int) and not isinstance(counts, bool)
            _require(number, f"counts must be a number or a tensor, but got {counts!r}")
            counts = torch.full((self.rows,), counts)
        _require(
            list(counts.shape) == [self.rows] and counts.dtype in (torch.int64, torch.int32),
            f"counts must be a number, or int64 or int32 [N] with N = {self.rows}, but got "
            f"{counts.dtype} {list(counts.shape)}",
        )
        host = counts.to("cpu", torch.int64)
        now, most = self._seen.unbind(1)
        limits = torch.minimum(now, now - most + self.rollback_limit)
        _require(
            bool(((host >= 0) & (host <= limits)).all()),
            f"counts must be in 0 .. {limits.tolist()}, what each stream can take back, but got "
            f"{host.tolist()}",
        )
        for part in self._parts.values():
            if isinstance(part, ShortConvState):
                part.rollback(host.to(part.positions.device))
        self._seen[:, 0] -= host

    @torch.inference_mode(False)
    @torch.no_grad()
    def clone(self) -> ModuleState:
        """A state of the same model that goes on from here by itself."""
        self._check_whole()
        other = ModuleState.__new__(ModuleState)
        other.__dict__.update(self.__dict__)
        other._parts = {name: part.clone() for name, part in self._parts.items()}
        other._seen = self._seen.clone()
        return other

    def state_dict(self) -> dict[str, Tensor]:
        """Copies of what is remembered, for load_state_dict of a state of an equal model:
        `positions` [N, 2] (inputs seen, and the most so far), `form` (the rollback, and of each
        module kernel size and dilation, 0 where it has no ring) and for each module `state.`
        with its name, inputs [N, slots, C] or sums [N, C]."""
        self._check_whole()
        return {name: of.clone() for name, of in self._tensors().items()}

    def _tensors(self) -> dict[str, Tensor]:
        parts = {f"state.{name}": _tensor_of(part) for name, part in self._parts.items()}
        return {"positions": self._seen, "form": self._form(), **parts}

    def _form(self) -> Tensor:
        """The numbers that decide the meaning of memory of the same shapes, int64."""
        form = [self.rollback_limit]
        for part in self._parts.values():
            form += (part.kernel_size, part.dilation) if isinstance(part, ShortConvState) else (0, 0)
        return torch.tensor(form)

    @torch.inference_mode(False)
    @torch.no_grad()
    def load_state_dict(self, tensors: dict[str, Tensor]) -> None:
        """Goes on from what state_dict gave, also with other rows or after a torn step.
        ValueError on other names, shapes or types, of another rollback or other
        convolutions, and on positions that cannot be."""
        _require(self._step is None, "a state must be in no step, but got one in a step")
        wanted = self._tensors()
        _require(
            tensors.keys() == wanted.keys(),
            f"names must be {sorted(wanted)}, but got {sorted(tensors)}",
        )
        form, own = tensors["form"].tolist(), wanted.pop("form").tolist()
        _require(
            form == own,
            f"rollback, kernel sizes and dilations must be {own}, but got {form}",
        )
        given = tensors["positions"]
        rows = given.shape[0] if given.dim() else 0
        for name, of in wanted.items():
            shape, got = [rows, *of.shape[1:]], tensors[name]
            _require(
                list(got.shape) == shape and got.dtype == of.dtype,
                f"{name!r} must be {of.dtype} {shape}, but got {got.dtype} {list(got.shape)}",
            )
        seen = given.to("cpu").clone()
        now, most = seen.unbind(1)
        _require(
            bool(((now >= 0) & (now <= most) & (most - now <= self.rollback_limit)).all()),
            "positions must be inputs seen, at least 0, and the most so far, at most "
            f"{self.rollback_limit} more, but got {seen.tolist()}",
        )
        for name, part in self._parts.items():
            new = tensors[f"state.{name}"].to(_tensor_of(part).device).clone()
            if isinstance(part, ShortConvState):
                at = seen.to(new.device).clone()
                self._parts[name] = ShortConvState(new, at, part.kernel_size, part.dilation)
            else:
                self._parts[name] = new
        self._seen, self._torn = seen, False

    def __getstate__(self) -> dict[str, Any]:
        self._check_whole()
        return self.__dict__.copy()

    def __repr__(self) -> str:
        return (
            f"ModuleState({type(self.model).__name__}, rows={self.rows}, "
            f"rollback={self.rollback_limit}, positions={self._seen[:, 0].tolist()})"
        )


def _tensor_of(part: ShortConvState | Tensor) -> Tensor:
    return part.ring if isinstance(part, ShortConvState) else part


def _rows_of(part: ShortConvState | Tensor, rows: Tensor) -> ShortConvState | Tensor:
    """A copy of the streams `rows` [N']."""
    rows = rows.to(_tensor_of(part).device)
    return part.select(rows) if isinstance(part, ShortConvState) else part.index_select(0, rows)
