"""Calls that an event loop waits for. They are apart, as asyncio takes long to be imported."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from itertools import islice
from typing import Any, Generic, TypeVar

from . import _c, results
from ._model import Model, Queue, Request, Token

T = TypeVar("T", covariant=True)
I = TypeVar("I")


class Pump:
    """Results of an event loop's requests. One queue serves all of them."""

    _of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pump] = (
        weakref.WeakKeyDictionary())

    def __init__(self) -> None:
        self.queue = Queue()
        self._descriptor = _c.library.queue_descriptor(self.queue.handle)
        self._hearers: dict[int, Callable[[int], bool]] = {}
        self._numbers = 0

    @classmethod
    def of_running_loop(cls) -> Pump:
        loop = asyncio.get_running_loop()
        for other in list(cls._of_loops):
            if other.is_closed():
                del cls._of_loops[other]
        pump = cls._of_loops.get(loop)
        if pump is None or pump.queue.process != os.getpid():
            pump = cls._of_loops[loop] = cls()
        return pump

    def add(self, hear: Callable[[int], bool]) -> int:
        """The number of a request, whose results `hear` hears until it returns True."""
        self._numbers += 1
        self._hearers[self._numbers] = hear
        if len(self._hearers) == 1:
            asyncio.get_running_loop().add_reader(self._descriptor, self._read)
        return self._numbers

    def remove(self, number: int) -> None:
        self._hearers.pop(number, None)
        if not self._hearers:
            asyncio.get_running_loop().remove_reader(self._descriptor)

    def _read(self) -> None:
        while (taken := self.queue.take(0)) is not None:
            number, result = taken
            try:
                hear = self._hearers.get(number)
                if hear is None or hear(result):
                    self.remove(number)
            finally:
                self.queue.done()


async def wait(model: Model, function: str, request: Request[T]) -> T:
    """The result of a request."""
    pump = Pump.of_running_loop()
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def hear(result: int) -> bool:
        if not future.done():
            try:
                future.set_result(request.read(result))
            except BaseException as error:
                future.set_exception(error)
        return True

    token = Token()
    number = pump.add(hear)
    try:
        model._begin(function, request, token, pump.queue, number)
    except BaseException:
        pump.remove(number)
        raise
    try:
        return await future
    except BaseException:
        token.cancel()
        pump.remove(number)
        raise
    finally:
        del future  # which has an exception whose traceback has this frame


class Source(Generic[I]):
    """The items of an iterable, or of an asynchronous one, of which the next is fetched while a
    result is waited for as well."""

    def __init__(self, items: Iterable[I] | AsyncIterable[I]) -> None:
        self._now = None if isinstance(items, AsyncIterable) else iter(items)
        self._later = items.__aiter__() if isinstance(items, AsyncIterable) else None
        self._fetched: asyncio.Future[I] | None = None
        self.has_ended = False

    def ready(self) -> list[I]:
        """The next item if it is there; raises what the iterable does."""
        found: list[I] = []
        if self._now is not None:
            found = list(islice(self._now, 1))
            self.has_ended = not found
        elif self._fetched is not None and self._fetched.done():
            fetched, self._fetched = self._fetched, None
            try:
                found.append(fetched.result())
            except StopAsyncIteration:
                self.has_ended = True
        return found

    async def wait(self, result: asyncio.Future[Any] | None, *, wants_more: bool) -> None:
        """Waits for the result, or the next item if more are wanted: whichever comes first."""
        if wants_more and self._later is not None and self._fetched is None and not self.has_ended:
            self._fetched = asyncio.ensure_future(self._fetch(self._later))
        item = self._fetched if wants_more else None
        await asyncio.wait([one for one in (result, item) if one is not None],
                           return_when=asyncio.FIRST_COMPLETED)

    @staticmethod
    async def _fetch(items: AsyncIterator[I]) -> I:
        return await items.__anext__()

    def cancel(self) -> None:
        """Ends the fetching."""
        if self._fetched is not None:
            self._fetched.cancel()


class AsyncStream(Generic[T]):
    """The parts of a text as they come, for `async for`. `await stream.result()` has the result.

    Leaving its `async with` block, or aclose(), ends the request.
    """

    def __init__(self, model: Model, function: str, request: Request[T]) -> None:
        self._request = request
        self._text = results.Text()
        self._token = Token()
        self._model = model
        self._parts: asyncio.Queue[results.Part | None] = asyncio.Queue()
        self._result: T | None = None
        self._error: BaseException | None = None
        pump = Pump.of_running_loop()
        method = weakref.WeakMethod(self._hear)

        def hear(result: int) -> bool:
            """Whoever forgets the stream wants no more of it."""
            own = method()
            return own is None or own(result)

        number = pump.add(hear)
        request.struct.stream = 1
        try:
            model._begin(function, request, self._token, pump.queue, number)
        except BaseException:
            pump.remove(number)
            raise

    def _hear(self, result: int) -> bool:
        if results.status_of(result) == _c.PART:
            self._parts.put_nowait(self._text.add(result))
            return False
        try:
            self._result = self._request.read(result)
        except BaseException as error:
            self._error = error
        self._parts.put_nowait(None)
        return True

    def __aiter__(self) -> AsyncIterator[results.Part]:
        return self

    async def __anext__(self) -> results.Part:
        if self._result is None and self._error is None or not self._parts.empty():
            try:
                part = await self._parts.get()
            except asyncio.CancelledError:
                self._token.cancel()
                raise
            if part is not None:
                return part
        self._parts.put_nowait(None)  # for others that wait
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration

    async def result(self) -> T:
        """The result; waits for it."""
        async for _ in self:
            pass
        assert self._result is not None
        return self._result

    async def aclose(self) -> None:
        """Ends the request."""
        self._token.cancel()

    async def __aenter__(self) -> AsyncStream[T]:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        if hasattr(self, "_token"):
            self._token.cancel()
