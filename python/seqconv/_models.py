"""Translator, Summarizer, Scorer, Generator."""

from __future__ import annotations

import ctypes
import os
from collections import deque
from collections.abc import (AsyncIterable, AsyncIterator, Callable, Iterable, Iterator, Sequence)
from itertools import islice
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Union, overload

from . import _c, _options, errors, results
from ._model import Model, Request, Stream
from .results import Generation, Score, Translation

if TYPE_CHECKING:
    from asyncio import Task

    from typing_extensions import Unpack

    from ._aio import AsyncStream

Folder = Union[str, "os.PathLike[str]"]
R = TypeVar("R")

# Texts of an iterable that are translated together: its memory, whatever its length.
_WINDOW = 1024
_WINDOW_IN_FLIGHT = 256


class Tokens(list[str]):
    """A text as tokens of the model's vocabulary, such as Translator.tokenize gives."""


Given = Union[str, Tokens]


def _texts_of(given: Given, name: str) -> tuple[dict[str, Any], Any]:
    """Members of a request for a text or tokens, and what they point to."""
    if isinstance(given, Tokens):
        array, kept = _c.texts_of(list(given))
        plural = {"text": "tokens", "prefix": "prefix_tokens", "prompt": "prompt_tokens"}[name]
        return {plural: array, plural[:-1] + "_count": len(given)}, (array, kept)
    if not isinstance(given, str):
        raise TypeError(f"{name} must be str or Tokens, but got {type(given).__name__}")
    text, data = _c.text_of(given)
    return {name: text}, data


def _seeded(options: TranslationOptions, number: int) -> TranslationOptions:
    """The options of a list's text: equal texts have draws of their own."""
    if not options.get("sample") or options.get("seed") is not None:
        return options
    return {**options, "seed": number + 1}


def _windows(texts: Iterable[Given]) -> Iterator[list[Given]]:
    iterator = iter(texts)
    while window := list(islice(iterator, _WINDOW)):
        yield window


async def _aiter(texts: Iterable[R] | AsyncIterable[R]) -> AsyncIterator[R]:
    if isinstance(texts, AsyncIterable):
        async for text in texts:
            yield text
    else:
        for text in texts:
            yield text


def _sequence(texts: Any) -> Sequence[Given]:
    if not isinstance(texts, Sequence):
        raise TypeError(f"texts must be a str, Tokens or a list of them, but got "
                        f"{type(texts).__name__}; other iterables: see the method's _iter form")
    return texts


class TranslationOptions(TypedDict, total=False):
    """Options of a translation or summary; what is not given is the model's own."""

    beam: int
    """Beam size; 1: greedy."""
    n_best: int
    """Hypotheses given, at most the beam; with `sample` the number of draws."""
    length_penalty: float
    """Scores are divided by length to this power."""
    max_length_a: float
    """At most max_length_a * (tokens of the text) + max_length_b tokens."""
    max_length_b: int
    min_length: int
    no_repeat_ngram: int
    """No n-gram of this size comes twice; 0: off."""
    unknown_penalty: float
    """Subtracted from the log-probability of <unk>."""
    ban_unknown: bool
    """Whether <unk> is impossible."""
    stepwise_length_penalty: bool
    """Whether finished hypotheses stay in the beam and compete by score at each step."""
    target_prefix: str | Tokens
    """The beginning of the translation."""
    sample: bool
    """Whether to draw instead of to search."""
    temperature: float
    """Of draws; 0: the most probable token."""
    top_k: int
    """Draws are among so many of the most probable tokens; 0: all."""
    top_p: float
    """Draws are among the most probable tokens that reach this sum."""
    seed: int
    """Of draws; equal seeds give equal texts."""
    alignments: str
    """"none", "pairs" or "shares"."""
    timeout: float
    """Seconds from the call on, after which the request ends with RequestTimeout."""


class GenerationOptions(TypedDict, total=False):
    """Options of generated text."""

    length: int
    """Tokens to generate, 200 if not given."""
    temperature: float
    top_k: int
    top_p: float
    ban_unknown: bool
    seed: int
    timeout: float
    """Seconds from the call on, after which the request ends with RequestTimeout."""


class _TextModel(Model):
    """The part that translators and summarizers have in common."""

    _function = "translate"

    def __init__(
        self,
        model: Folder | Sequence[Folder],
        *,
        threads: int = 0,
        compute: str = "model",
        shortlist: Folder | None = None,
        follow_links: bool = False,
        batch_tokens: int = 4096,
        max_source_tokens: int = 0,
        queue_limit: int = 0,
    ) -> None:
        """Opens a model folder, or several that vote.

        threads: batches worked on at a time; 0: as many as there are cores.
        compute: "model", "auto", "float32", "bfloat16" or "int8".
        shortlist: a file of `seqconv shortlist`.
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
            follow_links=follow_links, batch_tokens=batch_tokens,
            max_source_tokens=max_source_tokens, queue_limit=queue_limit)  # fmt: skip

    def _request(self, given: Given, options: TranslationOptions) -> Request[Translation]:
        members, kept = _texts_of(given, "text")
        own = _options.checked(options, TranslationOptions.__annotations__)
        prefix = own.pop("target_prefix", None)
        more, also_kept = _texts_of(prefix, "prefix") if prefix is not None else ({}, None)
        alignments = own.pop("alignments", "none")
        if alignments not in _c.ALIGNMENTS:
            raise errors.OptionError(
                f"alignments must be one of {', '.join(_c.ALIGNMENTS)}, but got {alignments!r}")
        search = _options.search_options(own)
        sampling = None
        struct = _c.TranslationRequest(
            **members, **more, alignments=_c.ALIGNMENTS.index(alignments),
            timeout_ms=_options.timeout_ms(own.pop("timeout", None)))  # fmt: skip
        struct.search.contents = search
        if own.pop("sample", False):
            sampling = _options.sampling_options(own)
            struct.sampling.contents = sampling
        elif drawn := [name for name in ("temperature", "top_k", "top_p", "seed") if name in own]:
            raise errors.OptionError(f"{drawn[0]} is an option of draws: it needs sample=True")
        source = given if isinstance(given, str) else ""
        if isinstance(given, Tokens) and alignments != "none":
            source = self.detokenize(given, "source")
        return Request(struct, (kept, also_kept, search, sampling),
                       lambda result: results.translation_of(result, source))  # fmt: skip

    def _list(self, texts: Sequence[Given], options: TranslationOptions) -> list[Translation]:
        return self._wait(self._function, [self._request(text, options) for text in texts])

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

    async def _any_async(
        self, texts: Given | Sequence[Given], options: TranslationOptions
    ) -> Translation | list[Translation]:
        import asyncio

        from ._aio import wait

        if isinstance(texts, (str, Tokens)):
            found = await wait(self, self._function, self._request(texts, options))
            found.raise_for_error()
            return found
        requests = [self._request(text, _seeded(options, number))
                    for number, text in enumerate(_sequence(texts))]
        tasks = [asyncio.ensure_future(wait(self, self._function, request)) for request in requests]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            for task in tasks:
                task.cancel()

    def _iter(self, texts: Iterable[Given], options: TranslationOptions) -> Iterator[Translation]:
        for window in _windows(texts):
            yield from self._list(window, options)

    async def _iter_async(
        self, texts: Iterable[Given] | AsyncIterable[Given], options: TranslationOptions
    ) -> AsyncIterator[Translation]:
        import asyncio

        from ._aio import wait

        window = min(_WINDOW_IN_FLIGHT, self._queue_limit or _WINDOW_IN_FLIGHT)
        under_way: deque[Task[Translation]] = deque()
        try:
            number = 0
            async for text in _aiter(texts):
                request = self._request(text, _seeded(options, number))
                number += 1
                under_way.append(asyncio.ensure_future(wait(self, self._function, request)))
                while under_way and (len(under_way) >= window or under_way[0].done()):
                    yield await under_way.popleft()
            while under_way:
                yield await under_way.popleft()
        finally:
            for task in under_way:
                task.cancel()

    def stream(
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Stream[Translation]:
        """Parts of the result, each as soon as all hypotheses of the beam have it in common.

            with model.stream("...") as stream:
                for part in stream:
                    print(part.text)
            print(stream.result.text)
        """
        return Stream(self, self._function, self._request(text, options))

    def stream_async(
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> AsyncStream[Translation]:
        """stream() for `async for`, called while an event loop runs."""
        from ._aio import AsyncStream

        return AsyncStream(self, self._function, self._request(text, options))

    def tokenize(self, text: str, side: str = "source") -> Tokens:
        """The tokens of a text as the model reads it, without </s>. side: "source" or "target"."""
        return _tokenize(self, text, _side(side))

    def detokenize(self, tokens: Iterable[str], side: str = "target") -> str:
        """The text of tokens."""
        return _detokenize(self, tokens, _side(side))


def _side(side: str) -> int:
    if side not in ("source", "target"):
        raise errors.OptionError(f"side must be 'source' or 'target', but got {side!r}")
    return _c.TARGET if side == "target" else _c.SOURCE


def _call_for_result(call: Callable[[Any], int], read: Callable[[Any], R]) -> R:
    found = ctypes.POINTER(_c.Result)()
    _c.check(call(ctypes.byref(found)))
    try:
        return read(found.contents)
    finally:
        _c.library.result_free(found)


def _tokenize(model: Model, text: str, side: int) -> Tokens:
    own, kept = _c.text_of(text)
    with model._using() as (handle, _):
        return _call_for_result(
            lambda place: int(_c.library.tokenize(handle, side, own, place)),
            lambda result: Tokens(results.generation_of(result).tokens))  # fmt: skip


def _detokenize(model: Model, tokens: Iterable[str], side: int) -> str:
    own = list(tokens)
    array, kept = _c.texts_of(own)
    with model._using() as (handle, _):
        return _call_for_result(
            lambda place: int(_c.library.detokenize(handle, side, array, len(own), place)),
            lambda result: results.generation_of(result).text)  # fmt: skip


class Translator(_TextModel):
    """Translates. A model folder, or several that vote."""

    _function = "translate"

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> list[Translation]: ...
    def translate(
        self, text: str | Tokens | Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Translation | list[Translation]:
        """The translation of a text, or a list with one per text of a list.

        A list keeps all threads busy. A text that fails raises RequestError; within a list it
        leaves the others, and its own result has `error`.

        Options, each the model's own if not given: beam (size; 1: greedy), n_best, length_penalty,
        max_length_a and max_length_b (at most a * source tokens + b tokens), min_length,
        no_repeat_ngram, unknown_penalty, ban_unknown, stepwise_length_penalty; target_prefix, the
        beginning of the translation; sample=True draws instead of searching, with temperature, top_k,
        top_p and seed; alignments ("pairs" or "shares"); timeout in seconds.
        """
        return self._any(text, options)

    def translate_iter(
        self, texts: Iterable[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Iterator[Translation]:
        """Yields a result per text of any iterable, in order, in bounded memory."""
        return self._iter(texts, options)

    @overload
    async def translate_async(  # type: ignore[overload-overlap]
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Translation: ...
    @overload
    async def translate_async(
        self, text: Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> list[Translation]: ...
    async def translate_async(
        self, text: str | Tokens | Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Translation | list[Translation]:
        """translate() for an event loop, which goes on meanwhile.

        Requests of all tasks that come close together share batches. Cancelling the task ends
        the request.
        """
        return await self._any_async(text, options)

    def translate_iter_async(
        self,
        texts: Iterable[str | Tokens] | AsyncIterable[str | Tokens],
        /,
        **options: Unpack[TranslationOptions],
    ) -> AsyncIterator[Translation]:
        """translate_iter() for `async for`; texts may be an asynchronous iterable."""
        return self._iter_async(texts, options)


class Summarizer(_TextModel):
    """Summarises documents, whose lines are taken together; sentences of summaries are lines."""

    _function = "summarise"

    @overload
    def summarize(  # type: ignore[overload-overlap]
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Translation: ...
    @overload
    def summarize(
        self, text: Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> list[Translation]: ...
    def summarize(
        self, text: str | Tokens | Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Translation | list[Translation]:
        """The summary of a text, or a list with one per text of a list.

        A list keeps all threads busy. A text that fails raises RequestError; within a list it
        leaves the others, and its own result has `error`.

        Options, each the model's own if not given: beam (size; 1: greedy), n_best, length_penalty,
        max_length_a and max_length_b (at most a * source tokens + b tokens), min_length,
        no_repeat_ngram, unknown_penalty, ban_unknown, stepwise_length_penalty; target_prefix, the
        beginning of the summary; sample=True draws instead of searching, with temperature, top_k,
        top_p and seed; alignments ("pairs" or "shares"); timeout in seconds.
        """
        return self._any(text, options)

    def summarize_iter(
        self, texts: Iterable[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Iterator[Translation]:
        """Yields a result per text of any iterable, in order, in bounded memory."""
        return self._iter(texts, options)

    @overload
    async def summarize_async(  # type: ignore[overload-overlap]
        self, text: str | Tokens, /, **options: Unpack[TranslationOptions]
    ) -> Translation: ...
    @overload
    async def summarize_async(
        self, text: Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> list[Translation]: ...
    async def summarize_async(
        self, text: str | Tokens | Sequence[str | Tokens], /, **options: Unpack[TranslationOptions]
    ) -> Translation | list[Translation]:
        """summarize() for an event loop, which goes on meanwhile.

        Requests of all tasks that come close together share batches. Cancelling the task ends
        the request.
        """
        return await self._any_async(text, options)

    def summarize_iter_async(
        self,
        texts: Iterable[str | Tokens] | AsyncIterable[str | Tokens],
        /,
        **options: Unpack[TranslationOptions],
    ) -> AsyncIterator[Translation]:
        """summarize_iter() for `async for`; texts may be an asynchronous iterable."""
        return self._iter_async(texts, options)


class Scorer(Model):
    """Scores given translations. One model folder."""

    def __init__(
        self,
        model: Folder,
        *,
        threads: int = 0,
        compute: str = "model",
        follow_links: bool = False,
        batch_tokens: int = 4096,
        queue_limit: int = 0,
    ) -> None:
        """Opens a model folder; see Translator."""
        super().__init__(
            [model], threads=threads, compute=compute, shortlist=None, follow_links=follow_links,
            batch_tokens=batch_tokens, max_source_tokens=0, queue_limit=queue_limit)  # fmt: skip

    @staticmethod
    def _request(source: str, target: str, timeout: float | None) -> Request[Score]:
        if not isinstance(source, str) or not isinstance(target, str):
            raise TypeError(f"source and target must be str, but got {type(source).__name__} and "
                            f"{type(target).__name__}")
        own, kept = _c.text_of(source)
        other, also_kept = _c.text_of(target)
        struct = _c.ScoreRequest(
            source=own, target=other, timeout_ms=_options.timeout_ms(timeout))
        return Request(struct, (kept, also_kept), results.score_of)

    def score(self, source: str, target: str, /, *, timeout: float | None = None) -> Score:
        """The log-probability of a translation. Raises RequestError."""
        found = self._wait("score", [self._request(source, target, timeout)])[0]
        found.raise_for_error()
        return found

    def score_batch(
        self, pairs: Iterable[tuple[str, str]], /, *, timeout: float | None = None
    ) -> list[Score]:
        """A score per pair of source and translation, in order; one that fails has `error`."""
        return self._wait("score", [self._request(*pair, timeout) for pair in pairs])

    async def score_async(
        self, source: str, target: str, /, *, timeout: float | None = None
    ) -> Score:
        """score() for an event loop."""
        from ._aio import wait

        found = await wait(self, "score", self._request(source, target, timeout))
        found.raise_for_error()
        return found


class Generator(Model):
    """Generates text with a language model: the folder of one."""

    _task = _c.LANGUAGE_MODEL

    def __init__(
        self,
        model: Folder,
        *,
        threads: int = 0,
        compute: str = "model",
        follow_links: bool = False,
        queue_limit: int = 0,
    ) -> None:
        """Opens a model folder; see Translator."""
        super().__init__(
            [model], threads=threads, compute=compute, shortlist=None, follow_links=follow_links,
            batch_tokens=4096, max_source_tokens=0, queue_limit=queue_limit)  # fmt: skip

    def _request(self, prompt: Given, options: GenerationOptions) -> Request[Generation]:
        members, kept = _texts_of(prompt, "prompt")
        own = _options.checked(options, GenerationOptions.__annotations__)
        length = own.pop("length", 200)
        struct = _c.GenerationRequest(
            **members, length=length, timeout_ms=_options.timeout_ms(own.pop("timeout", None)))
        sampling = _options.sampling_options(own)
        struct.sampling.contents = sampling
        return Request(struct, (kept, sampling), results.generation_of)

    def generate(
        self, prompt: str | Tokens = "", /, **options: Unpack[GenerationOptions]
    ) -> Generation:
        """The text that follows a prompt.

        Options: length, the tokens to generate (200); temperature (1; 0: the most probable),
        top_k (0: all), top_p (1), ban_unknown, seed (1; equal seeds give equal texts); timeout in
        seconds. Raises RequestError.
        """
        found = self._wait("generate", [self._request(prompt, options)])[0]
        found.raise_for_error()
        return found

    def stream(
        self, prompt: str | Tokens = "", /, **options: Unpack[GenerationOptions]
    ) -> Stream[Generation]:
        """Parts of the text as it comes, whole characters; see Translator.stream."""
        return Stream(self, "generate", self._request(prompt, options))

    async def generate_async(
        self, prompt: str | Tokens = "", /, **options: Unpack[GenerationOptions]
    ) -> Generation:
        """generate() for an event loop."""
        from ._aio import wait

        found = await wait(self, "generate", self._request(prompt, options))
        found.raise_for_error()
        return found

    def stream_async(
        self, prompt: str | Tokens = "", /, **options: Unpack[GenerationOptions]
    ) -> AsyncStream[Generation]:
        """stream() for `async for`, called while an event loop runs."""
        from ._aio import AsyncStream

        return AsyncStream(self, "generate", self._request(prompt, options))

    def tokenize(self, text: str) -> Tokens:
        """The tokens of a text as the model reads it; </s> stands between lines."""
        return _tokenize(self, text, _c.TARGET)

    def detokenize(self, tokens: Iterable[str]) -> str:
        """The text of tokens."""
        return _detokenize(self, tokens, _c.TARGET)
