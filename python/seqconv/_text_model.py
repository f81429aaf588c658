"""The part that translators and summarizers have in common: requests of texts, one, listed,
streamed or awaited."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import AsyncIterable, Sequence
from itertools import islice

from . import _c, _options, errors, results
from ._light import TYPE_CHECKING, TypeVar
from ._model import Model, Request, Requests, Stream

if TYPE_CHECKING:
    from asyncio import Future
    from collections.abc import AsyncIterator, Callable, Iterable, Iterator
    from typing import Any

    from typing_extensions import Unpack

    from ._aio import AsyncStream
    from ._typed import TranslationOptions
    from .results import Translation

Folder = str | os.PathLike[str]
R = TypeVar("R")

# Texts of an iterable that are translated together: its memory, whatever its length.
_WINDOW = 1024
_WINDOW_IN_FLIGHT = 256


class Tokens(list[str]):
    """A text as tokens of the model's vocabulary, such as Translator.tokenize gives."""


Given = str | Tokens


def give_text(struct: _c.Sized, given: Given, name: str) -> Any:
    """Makes a text or tokens those of a request; returns what the struct points to then."""
    if isinstance(given, Tokens):
        array, kept = _c.texts_of(given)
        plural = {"text": "tokens", "prefix": "prefix_tokens", "prompt": "prompt_tokens"}[name]
        setattr(struct, plural, ctypes.cast(array, type(getattr(struct, plural))))
        setattr(struct, plural[:-1] + "_count", len(given))
        return array, kept
    if not isinstance(given, str):
        raise TypeError(f"{name} must be str or Tokens, but got {type(given).__name__}")
    text, kept = _c.text_of(given)
    setattr(struct, name, text)
    return kept


def give_terms(struct: _c.Sized, terms: Any) -> Any:
    """Makes terms those of a request; returns what the struct points to then."""
    pairs = list(terms.items() if hasattr(terms, "items") else terms)
    if not all(len(pair) == 2 and all(isinstance(side, str) for side in pair) for pair in pairs):
        raise TypeError("terms must be a dict from str to str, or pairs of them")
    array = (_c.Term * len(pairs))()
    kept = []
    for term, pair in zip(array, pairs):
        for name, side in zip(("source", "target"), pair):
            text, bytes_of_it = _c.text_of(side)
            setattr(term, name, text)
            kept.append(bytes_of_it)
    struct.terms, struct.term_count = array, len(pairs)
    return array, kept


def _seed_of(number: int) -> int:
    """The seed of a text's draws where none is given, by its number in a list: equal texts have
    draws of their own, those of `seqconv translate --sample` (mix_words(1, number + 1) of
    src/base/random.h)."""
    mask = 2**64 - 1
    z = 1 + 0x9E3779B97F4A7C15 * (number + 2) & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def _sequence(texts: Any) -> Sequence[Given]:
    if not isinstance(texts, Sequence):
        raise TypeError(f"texts must be a str, Tokens or a list of them, but got "
                        f"{type(texts).__name__}; other iterables: see the method's _iter form")
    return texts


class _Asked:
    """The options of a call, from which the request of each of its texts is made."""

    def __init__(self, model: _TextModel, options: TranslationOptions) -> None:
        own = _options.checked(options, _options.TRANSLATION)
        alignments = own.pop("alignments", "none")
        if alignments not in _c.ALIGNMENTS:
            raise errors.OptionError(
                f"alignments must be one of {', '.join(_c.ALIGNMENTS)}, but got {alignments!r}")
        self._model = model
        self._alignments = _c.ALIGNMENTS.index(alignments)
        self._struct = struct = _c.TranslationRequest(
            alignments=self._alignments, timeout_ms=_options.timeout_ms(own.pop("timeout", None)))
        prefix = own.pop("target_prefix", None)
        self._kept = [give_text(struct, prefix, "prefix") if prefix is not None else None,
                      give_terms(struct, own.pop("terms", {}))]
        struct.search.contents = search = _options.search_options(own)
        self._kept.append(search)
        self._sampling: _c.SamplingOptions | None = None  # of draws without a seed
        if own.pop("sample", False):
            struct.sampling.contents = sampling = _options.sampling_options(own)
            self._kept.append(sampling)
            self._sampling = None if sampling.has_seed else sampling
        elif drawn := [name for name in ("temperature", "top_k", "top_p", "seed") if name in own]:
            raise errors.OptionError(f"{drawn[0]} is an option of draws: it needs sample=True")

    def _seed(self, struct: _c.TranslationRequest, number: int) -> Any:
        """Gives a request the draws of the text `number`."""
        if self._sampling is None:
            return None
        own = _c.SamplingOptions.from_buffer_copy(self._sampling)
        own.has_seed, own.seed = 1, _seed_of(number)
        struct.sampling.contents = own
        return own

    def _read(self, given: Given, result: int) -> Translation:
        source = given if isinstance(given, str) else ""
        if self._alignments and not isinstance(given, str):
            source = self._model.detokenize(given, "source")
        return results.translation_of(result, source, self._alignments)

    def request(self, given: Given, number: int = 0) -> Request[Translation]:
        """The request of a text, which is the one `number` of a list."""
        struct = _c.TranslationRequest.from_buffer_copy(self._struct)
        kept = (self._kept, give_text(struct, given, "text"), self._seed(struct, number))
        return Request(struct, kept, lambda result: self._read(given, result))

    def requests(self, texts: Sequence[Given], first: int = 0) -> Requests[Translation]:
        """The requests of texts, which are those of a list from the number `first` on."""
        data = []
        for given in texts:
            if not isinstance(given, (str, Tokens)):
                raise TypeError(f"text must be str or Tokens, but got {type(given).__name__}")
            data.append(_c.encoded(given) if isinstance(given, str) else b"")
        array, block = _c.array_of(self._struct, "text", data)
        kept = [self._kept, block]
        for number, given in enumerate(texts):
            if not isinstance(given, str):
                kept.append(give_text(array[number], given, "text"))
        if first and self._sampling is not None:  # the library counts from 0
            kept += [self._seed(array[number], first + number) for number in range(len(data))]
        return Requests(array, kept, lambda number, result: self._read(texts[number], result))


class _TextModel(Model):
    """A model of texts to texts."""

    _function = "translate"

    def __init__(
        self,
        model: Folder | Sequence[Folder],
        *,
        threads: int = 0,
        compute: str = "model",
        shortlist: Folder | None = None,
        terminology: Folder | None = None,
        follow_links: bool = False,
        batch_tokens: int = 4096,
        max_source_tokens: int = 0,
        queue_limit: int = 0,
    ) -> None:
        """Opens a model folder, or several that vote.

        threads: batches worked on at a time; 0: as many as there are cores.
        compute: "model", "auto", "float32", "bfloat16" or "int8".
        shortlist: a file of `seqconv shortlist`.
        terminology: a file of lines SOURCE<tab>TARGET (docs/translating.md).
        follow_links: whether files of the folder may be links out of it.
        max_source_tokens: longer texts are cut, with a note; 0: as the model says.
        queue_limit: asynchronous requests that may wait; a further one raises QueueFull.
        Raises ModelError, OptionError, OutOfMemory.
        """
        folders = [model] if isinstance(model, (str, os.PathLike)) else list(model)
        self._queue_limit = queue_limit
        super().__init__(
            folders, threads=threads, compute=compute,
            shortlist=None if shortlist is None else os.fspath(shortlist),
            terminology=None if terminology is None else os.fspath(terminology),
            follow_links=follow_links, batch_tokens=batch_tokens,
            max_source_tokens=max_source_tokens, queue_limit=queue_limit)  # fmt: skip

    def _list(
        self, texts: Sequence[Given], options: TranslationOptions, first: int = 0
    ) -> list[Translation]:
        texts = list(texts)  # that nobody else changes
        return self._wait(self._function, _Asked(self, options).requests(texts, first))

    def _one(self, text: Given, options: TranslationOptions) -> Translation:
        found = self._list([text], options)[0]
        found.raise_for_error()
        return found

    def _any(
        self, texts: Given | Sequence[Given], options: TranslationOptions
    ) -> Translation | list[Translation]:
        if isinstance(texts, (str, Tokens)):
            return self._one(texts, options)
        return self._list(_sequence(texts), options)

    def _begun(self, request: Request[Translation]) -> Future[Translation]:
        import asyncio

        from ._aio import wait

        return asyncio.ensure_future(wait(self, self._function, request))

    async def _any_async(
        self, texts: Given | Sequence[Given], options: TranslationOptions
    ) -> Translation | list[Translation]:
        import asyncio

        from ._aio import wait

        asked = _Asked(self, options)
        if isinstance(texts, (str, Tokens)):
            found = await wait(self, self._function, asked.request(texts))
            found.raise_for_error()
            return found
        requests = [asked.request(text, number) for number, text in enumerate(_sequence(texts))]
        tasks = [self._begun(request) for request in requests]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            while tasks:
                tasks.pop().cancel()

    def _iter(self, texts: Iterable[Given], options: TranslationOptions) -> Iterator[Translation]:
        iterator = iter(texts)
        first = 0
        while window := list(islice(iterator, _WINDOW)):
            yield from self._list(window, options, first)
            first += len(window)

    async def _iter_async(
        self, texts: Iterable[Given] | AsyncIterable[Given], options: TranslationOptions
    ) -> AsyncIterator[Translation]:
        from ._aio import Source

        asked = _Asked(self, options)
        most = min(_WINDOW_IN_FLIGHT, self._queue_limit or _WINDOW_IN_FLIGHT)
        under_way: deque[Future[Translation]] = deque()
        source: Source[Given] = Source(texts)
        number = 0
        try:
            while True:
                while len(under_way) < most and (item := source.ready()):
                    under_way.append(self._begun(asked.request(item[0], number)))
                    number += 1
                if under_way and under_way[0].done():
                    yield under_way.popleft().result()
                elif under_way or not source.has_ended:
                    await source.wait(under_way[0] if under_way else None,
                                      wants_more=len(under_way) < most)
                else:
                    return
        finally:
            source.cancel()
            while under_way:
                under_way.pop().cancel()

    def stream(
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Stream[Translation]:
        """Parts of the result, each as soon as all hypotheses of the beam have it in common.

            with model.stream("...") as stream:
                for part in stream:
                    print(part.text)
            print(stream.result.text)
        """
        return Stream(self, self._function, _Asked(self, options).request(text))

    def stream_async(
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> AsyncStream[Translation]:
        """stream() for `async for`, called while an event loop runs."""
        from ._aio import AsyncStream

        return AsyncStream(self, self._function, _Asked(self, options).request(text))

    def tokenize(self, text: str, side: str = "source") -> Tokens:
        """The tokens of a text as the model reads it, without </s>. side: "source" or "target"."""
        return tokenize(self, text, _side(side))

    def detokenize(self, tokens: Iterable[str], side: str = "target") -> str:
        """The text of tokens."""
        return detokenize(self, tokens, _side(side))


def _side(side: str) -> int:
    if side not in ("source", "target"):
        raise errors.OptionError(f"side must be 'source' or 'target', but got {side!r}")
    return _c.TARGET if side == "target" else _c.SOURCE


def _call_for_result(call: Callable[[Any], int], read: Callable[[int], R]) -> R:
    found = ctypes.c_void_p()
    _c.check(call(ctypes.byref(found)))
    try:
        return read(found.value or 0)
    finally:
        _c.library.result_free(found)


def tokenize(model: Model, text: str, side: int) -> Tokens:
    own, kept = _c.text_of(text)
    with model._using() as (handle, _):
        return _call_for_result(
            lambda place: int(_c.library.tokenize(handle, side, own, place)),
            lambda result: Tokens(results.generation_of(result).tokens))  # fmt: skip


def detokenize(model: Model, tokens: Iterable[str], side: int) -> str:
    own = list(tokens)
    array, kept = _c.texts_of(own)
    with model._using() as (handle, _):
        return _call_for_result(
            lambda place: int(_c.library.detokenize(handle, side, array, len(own), place)),
            lambda result: results.generation_of(result).text)  # fmt: skip
