"""Opened models: their lifetime, calls that wait, and calls that an event loop waits for."""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import weakref

from . import _c, _options, errors, results
from ._light import TYPE_CHECKING, Generic, TypeVar, dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

T = TypeVar("T", covariant=True)
R = TypeVar("R")
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
        self._event = _c.Event()
        self._free = _c.library.queue_free

    def take(self, timeout_ms: int) -> tuple[int, int] | None:
        """The number of the oldest event and the address of its result, which stays until done();
        None: none came in time. An interrupt between the library's answer and its use loses
        nothing."""
        if not self._event.result:
            status = _c.library.queue_take(self.handle, timeout_ms, ctypes.byref(self._event))
            if status == _c.EMPTY:
                return None
            _c.check(status)
        return self._event.user or 0, self._event.result

    def done(self) -> None:
        """Frees the event that was taken."""
        result, self._event.result = self._event.result, None
        _c.library.result_free(result)

    def __del__(self) -> None:
        if hasattr(self, "handle") and self.process == os.getpid():
            self._free(self.handle)


class Request(Generic[T]):
    """A request as C has it, with what it points to, and how the result at an address is read."""

    def __init__(self, struct: Any, kept: Any, read: Callable[[int], T]) -> None:
        self.struct = struct
        self.kept = kept
        self.read = read


class Requests(Generic[T]):
    """A list of requests as an array of C, with what it points to, and how the result of one is
    read: by its number and an address."""

    def __init__(self, array: Any, kept: Any, read: Callable[[int, int], T]) -> None:
        self.array = array
        self.kept = kept
        self.read = read

    @classmethod
    def of_one(cls, request: Request[T]) -> Requests[T]:
        array = (type(request.struct) * 1)(request.struct)
        return cls(array, request, lambda number, result: request.read(result))


class Model:
    """An opened model. Close it, or use it as a context manager, to free its memory early.

    Any thread may use it, and several at a time.
    """

    _task = _c.TRANSLATION

    def __init__(self, folders: Sequence[str | os.PathLike[str]], **options: Any) -> None:
        names = [os.fsencode(folder) for folder in folders]
        if any(b"\0" in name for name in names):
            raise errors.ModelError(f"a folder's name must be without NUL, but got {folders!r}")
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
            if self._process != os.getpid() and self._tokens:
                return  # calls of the parent's threads, of which this process has none
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

    def _using(self, token: Token | None = None) -> _Use:
        return _Use(self, token or Token())

    def _wait(self, function: str, requests: Requests[T]) -> list[T]:
        """Results of a list, in its order."""
        count = len(requests.array)
        if not count:
            return []
        token = Token()

        def work() -> list[T]:
            places = (ctypes.c_void_p * count)()
            call = _c.Call(cancel=token.handle)
            with self._using(token) as (handle, _):
                _c.check(getattr(_c.library, function)(
                    handle, requests.array, count, ctypes.byref(call), places))
            found: list[Any] = places[:]
            try:
                return [requests.read(*one) for one in enumerate(found)]
            finally:
                free = _c.library.result_free
                for result in found:
                    free(result)

        return _interruptible(work, token)

    def _begin(
        self, function: str, request: Request[Any], token: Token, queue: Queue, number: int
    ) -> None:
        own = _c.Call(cancel=token.handle, queue=queue.handle, user=number)
        with self._using(token) as (handle, _):
            _c.check(getattr(_c.library, function + "_async")(
                handle, ctypes.byref(request.struct), ctypes.byref(own)))


M = TypeVar("M", bound=Model)


class _Use:
    """A call on a model that must not be closed meanwhile, and its token."""

    def __init__(self, model: Model, token: Token) -> None:
        self._model = model
        self._token = token

    def __enter__(self) -> tuple[ctypes.c_void_p, Token]:
        model = self._model
        with model._condition:
            if model._handle is None:
                raise errors.ClosedError(f"this {type(model).__name__} was closed")
            try:
                model._tokens.add(self._token)
                return model._handle, self._token
            except BaseException:
                model._tokens.discard(self._token)
                raise

    def __exit__(self, *exception: object) -> None:
        with self._model._condition:
            self._model._tokens.discard(self._token)
            self._model._condition.notify_all()


def _interruptible(work: Callable[[], R], token: Token) -> R:
    """Does work that Ctrl-C cancels: only the main thread hears of that, so that another one,
    which holds all that the library reads, waits for the library."""
    if threading.current_thread() is not threading.main_thread():
        return work()
    found: list[R] = []
    raised: list[BaseException] = []
    done = threading.Event()

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    try:
        try:
            threading.Thread(target=run, name="seqconv call").start()
        except RuntimeError:  # at the interpreter's end there is no other thread
            return work()
        while not done.wait():
            pass
    except BaseException:
        token.cancel()
        raise
    if raised:
        raise raised.pop()
    return found.pop()


class Stream(Generic[T]):
    """The parts of a text as they come. `result` is there when the iteration has ended.

    Closing it, or leaving its `with` block, ends the request. It belongs to one thread at a time.
    """

    def __init__(self, model: Model, function: str, request: Request[T]) -> None:
        self._request = request
        self._text = results.Text()
        self._token = Token()
        self._queue: Queue | None = Queue()
        self._result: T | None = None
        self._error: Exception | None = None
        self._model = model  # not closed meanwhile by being forgotten
        request.struct.stream = 1
        model._begin(function, request, self._token, self._queue, 0)

    def __iter__(self) -> Iterator[results.Part]:
        return self

    def __next__(self) -> results.Part:
        while self._queue is not None:
            # Ctrl-C is heard between two calls.
            if (taken := self._queue.take(100)) is None:
                continue
            if results.status_of(taken[1]) == _c.PART:
                part = self._text.add(taken[1])
                self._queue.done()
                return part
            try:
                self._result = self._request.read(taken[1])
            except Exception as error:
                self._error = error
            self._queue.done()
            self._queue = None  # and its descriptor
        raise StopIteration

    @property
    def result(self) -> T:
        """The result; waits for it."""
        for _ in self:
            pass
        if self._error is not None:
            raise self._error
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
