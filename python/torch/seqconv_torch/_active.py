"""Steps that are under way: how a module's forward finds the state that it goes on from."""

from __future__ import annotations

import sys
import threading
from contextvars import ContextVar, Token
from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch._compile import _disable_dynamo

from seqconv_torch._short_conv import ShortConvState

#: True while any thread is in a step. torch.compile guards it, so that a graph that was made
#: outside of steps is made again in one.
entered = False

_lock = threading.Lock()
_count = 0


class Streaming(nn.Module):
    """A module whose forward is a step where a ModuleState says so."""

    def _stream(
        self, rows: int, rollback: int, dtype: torch.dtype | None
    ) -> ShortConvState | Tensor:
        """The state of `rows` streams before the first input; ValueError where there is
        none. A tensor goes to step(x, state, position), a ShortConvState to _ring_step."""
        raise NotImplementedError

    def _ring_step(
        self, x: Tensor, state: ShortConvState, lengths: Tensor | None, **more: Any
    ) -> Tensor:
        raise NotImplementedError


class _Open(Protocol):
    """A ModuleState in a step."""

    def _knows(self, module: Streaming) -> bool: ...
    def _advance(
        self, module: Streaming, x: Tensor, lengths: Tensor | None, more: dict[str, Any]
    ) -> Tensor: ...


#: Steps with who began them: a child task has a copy of its parent's context.
_open: ContextVar[tuple[tuple[Any, _Open], ...]] = ContextVar("seqconv_torch_steps", default=())


def _owner() -> tuple[int, Any]:
    """This thread, and its asyncio task or None."""
    asyncio = sys.modules.get("asyncio")  # without it there is no task
    try:
        task = asyncio.current_task() if asyncio is not None else None
    except RuntimeError:  # no loop runs in this thread
        task = None
    return threading.get_ident(), task


def enter(state: _Open) -> Token[tuple[tuple[Any, _Open], ...]]:
    """Begins a step in this thread or task; `state` must be in none."""
    global entered, _count
    with _lock:
        _count += 1
        entered = True
    return _open.set((*_open.get(), (_owner(), state)))


def leave(token: Token[tuple[tuple[Any, _Open], ...]]) -> None:
    global entered, _count
    _open.reset(token)
    with _lock:
        _count -= 1
        entered = _count > 0


def advance(
    module: Streaming,
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    unwanted: dict[str, Any] | None = None,
    **more: Any,
) -> Tensor | None:
    """The step of a module, or None where this thread is in none.

    Asked for where `entered` is set. ValueError for a module that no state knows, as its
    whole forward would forget what came before, and for arguments among `unwanted`, which
    say what the state says."""
    if torch.compiler.is_dynamo_compiling():
        return _advance_eagerly(module, x, lengths, unwanted, more)
    return _advance(module, x, lengths, unwanted, more)


def _advance(
    module: Streaming,
    x: Tensor,
    lengths: Tensor | None,
    unwanted: dict[str, Any] | None,
    more: dict[str, Any],
) -> Tensor | None:
    opened = _open.get()
    if not opened:
        return None
    own = _owner()
    states = [state for owner, state in opened if owner == own]
    if not states:
        return None
    for name, value in (unwanted or {}).items():
        if value is not None and value is not False:
            raise ValueError(
                f"[{type(module).__name__}] {name} must be left out in a step of a "
                f"ModuleState, but got {'a tensor' if isinstance(value, Tensor) else value}"
            )
    for state in reversed(states):
        if state._knows(module):
            return state._advance(module, x, lengths, more)
    raise ValueError(
        "[ModuleState] modules that are called in a step must be those of the model that "
        f"the state was made of, but got another {type(module).__name__}"
    )


#: With a break of the graph; torch.compiler.disable would import the compiler with the package.
_advance_eagerly = _disable_dynamo(_advance)
