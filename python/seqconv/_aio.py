"""Calls that an event loop waits for. They are apart, as asyncio takes long to be imported."""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import AsyncIterator, Callable
from typing import Any, Generic, TypeVar

from . import _c, results
from ._model import Model, Queue, Request, Token

T = TypeVar("T", covariant=True)


class Pump:
    """Results of an event loop's requests. One queue serves all of them."""

    _of_loops: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Pump] = (
        weakref.WeakKeyDictionary())

    def __init__(self) -> None:
        self.queue = Queue()
        self._descriptor = _c.library.queue_descriptor(self.queue.handle)
        self._hearers: dict[int, Callable[[Any], bool]] = {}
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

    def add(self, hear: Callable[[Any], bool]) -> int:
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

    def hear(result: Any) -> bool:
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

        def hear(result: Any) -> bool:
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

    def _hear(self, result: Any) -> bool:
        if result.status == _c.PART:
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
