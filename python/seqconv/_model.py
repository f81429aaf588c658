"""Opened models: their lifetime, calls that wait, and calls that an event loop waits for."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from . import _c, _options, errors, results

T = TypeVar("T", covariant=True)
_open_models: weakref.WeakSet[Model] = weakref.WeakSet()


class Token:
    """A cancellation token of C."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        _c.check(_c.library.cancel_token_new(ctypes.byref(handle)))
        self.handle = handle
        self._free = _c.library.cancel_token_free

    def cancel(self) -> None:
        _c.library.cancel(self.handle)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self._free(self.handle)


class Queue:
    """A queue of C: results by the numbers of their requests."""

    def __init__(self) -> None:
        handle = ctypes.c_void_p()
        _c.check(_c.library.queue_new(ctypes.byref(handle)))
        self.handle = handle
        self.process = os.getpid()
        self._free = _c.library.queue_free

    def take(self, timeout_ms: int) -> tuple[int, Any] | None:
        """A number and a result, for result_free; None: none came in time."""
        event = _c.Event()
        status = _c.library.queue_take(self.handle, timeout_ms, ctypes.byref(event))
        if status == _c.EMPTY:
            return None
        _c.check(status)
        return event.user or 0, event.result

    def __del__(self) -> None:
        if hasattr(self, "handle") and self.process == os.getpid():
            self._free(self.handle)


@dataclass
class Request(Generic[T]):
    """A request as C has it, with what it points to, and how its result is read."""

    struct: Any
    kept: Any
    read: Callable[[Any], T]


class Model:
    """An opened model. Close it, or use it as a context manager, to free its memory early.

    Any thread may use it, and several at a time.
    """

    _task = _c.TRANSLATION

    def __init__(self, folders: Sequence[str | os.PathLike[str]], **options: Any) -> None:
        names = [os.fsencode(folder) for folder in folders]
        own, kept = _options.runtime_options(self._task, **options)
        handle = ctypes.c_void_p()
        self._condition = threading.Condition()
        self._tokens: set[Token] = set()
        self._process = os.getpid()
        self._handle: ctypes.c_void_p | None = None
        array = (ctypes.c_char_p * max(1, len(names)))(*names)
        _c.check(_c.library.open(array, len(names), ctypes.byref(own), ctypes.byref(handle)))
        del kept
        self._handle = handle
        _open_models.add(self)

    def close(self) -> None:
        """Cancels what is under way, waits for its end, and frees the model."""
        with self._condition:
            handle, self._handle = self._handle, None
            if handle is None:
                return
            for token in self._tokens:
                token.cancel()
            self._condition.wait_for(lambda: not self._tokens)
        _c.library.close(handle)

    def __enter__(self: M) -> M:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} is an opened model: open it in each process")

    @property
    def closed(self) -> bool:
        """True once the model was closed."""
        return self._handle is None

    @property
    def info(self) -> Info:
        """Facts about the model."""
        with self._using() as (handle, _):
            own = _c.library.info(handle).contents
            return Info(own.models, own.threads, own.parameters, own.file_bytes, own.weight_bytes,
                        own.source_vocabulary, own.target_vocabulary, own.max_source_tokens,
                        own.max_target_tokens, own.compute.decode())  # fmt: skip

    def _using(self) -> _Use:
        return _Use(self)

    def _wait(self, function: str, requests: Sequence[Request[T]]) -> list[T]:
        """Results of a list, in its order."""
        if not requests:
            return []
        structs = (type(requests[0].struct) * len(requests))(*(one.struct for one in requests))
        found = (ctypes.POINTER(_c.Result) * len(requests))()

        def call(handle: ctypes.c_void_p, token: Token) -> None:
            own = _c.Call(cancel=token.handle)
            _c.check(_c.library[f"seqconv_{function}"](
                handle, structs, len(requests), ctypes.byref(own), found))

        with self._using() as (handle, token):
            _interruptible(call, handle, token)
        try:
            return [one.read(result.contents) for one, result in zip(requests, found)]
        finally:
            for result in found:
                _c.library.result_free(result)

    def _begin(
        self, function: str, request: Request[Any], token: Token, queue: Queue, number: int
    ) -> None:
        own = _c.Call(cancel=token.handle, queue=queue.handle, user=number)
        with self._using() as (handle, _):
            _c.check(_c.library[f"seqconv_{function}_async"](
                handle, ctypes.byref(request.struct), ctypes.byref(own)))


M = TypeVar("M", bound=Model)


class _Use:
    """A call on a model that must not be closed meanwhile, and its token."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._token = Token()

    def __enter__(self) -> tuple[ctypes.c_void_p, Token]:
        model = self._model
        with model._condition:
            if model._handle is None:
                raise errors.ClosedError(f"this {type(model).__name__} was closed")
            model._tokens.add(self._token)
            return model._handle, self._token

    def __exit__(self, *exception: object) -> None:
        with self._model._condition:
            self._model._tokens.discard(self._token)
            self._model._condition.notify_all()


def _interruptible(
    call: Callable[[ctypes.c_void_p, Token], None], handle: ctypes.c_void_p, token: Token
) -> None:
    """Makes a call that Ctrl-C cancels: only the main thread hears of that, so that another one
    waits for the library."""
    if threading.current_thread() is not threading.main_thread():
        return call(handle, token)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            call(handle, token)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="seqconv call")
    thread.start()
    try:
        thread.join()
    except BaseException:
        token.cancel()
        thread.join()
        raise
    if raised:
        raise raised[0]
    return None


class Stream(Generic[T]):
    """The parts of a text as they come. `result` is there when the iteration has ended.

    Closing it, or leaving its `with` block, ends the request.
    """

    def __init__(self, model: Model, function: str, request: Request[T]) -> None:
        self._request = request
        self._text = results.Text()
        self._token = Token()
        self._queue = Queue()
        self._result: T | None = None
        self._model = model  # not closed meanwhile by being forgotten
        request.struct.stream = 1
        model._begin(function, request, self._token, self._queue, 0)

    def __iter__(self) -> Iterator[results.Part]:
        return self

    def __next__(self) -> results.Part:
        while self._result is None:
            # Ctrl-C is heard between two calls.
            if (taken := self._queue.take(100)) is None:
                continue
            try:
                result = taken[1].contents
                if result.status == _c.PART:
                    return self._text.add(result)
                self._result = self._request.read(result)
            finally:
                _c.library.result_free(taken[1])
        raise StopIteration

    @property
    def result(self) -> T:
        """The result; waits for it."""
        for _ in self:
            pass
        assert self._result is not None
        return self._result

    def close(self) -> None:
        """Ends the request. The result is there, with RequestCancelled where it had not ended."""
        self._token.cancel()

    def __enter__(self) -> Stream[T]:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_token"):
            self._token.cancel()


@dataclass(frozen=True)
class Info:
    """Facts about an opened model. Numbers are 0 where there is no limit, or no such thing."""

    models: int
    threads: int
    parameters: int
    file_bytes: int
    weight_bytes: int
    source_vocabulary: int
    target_vocabulary: int
    max_source_tokens: int
    max_target_tokens: int
    compute: str


def _close_all() -> None:
    """At the interpreter's end nothing of the library's may be under way."""
    for model in list(_open_models):
        if model._process == os.getpid():
            model.close()


atexit.register(_close_all)
