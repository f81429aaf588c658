"""Translator, Summarizer, Scorer, Generator."""

from __future__ import annotations

from . import _c, _options, results
from ._light import TYPE_CHECKING, overload
from ._model import Model, Request, Requests, Stream
from ._text_model import _TextModel, detokenize, give_text, tokenize

if TYPE_CHECKING:
    from collections.abc import AsyncIterable, AsyncIterator, Iterable, Iterator, Sequence

    from typing_extensions import Unpack

    from ._aio import AsyncStream
    from ._text_model import Folder, Given, Tokens
    from ._typed import GenerationOptions, TranslationOptions
    from .results import Generation, Score, Translation


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
        beginning of the translation; terms, a dict of terms and how they are translated; sample=True draws instead of searching, with temperature, top_k,
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
            [model], threads=threads, compute=compute, shortlist=None, terminology=None, follow_links=follow_links,
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
        found = self._wait("score", Requests.of_one(self._request(source, target, timeout)))[0]
        found.raise_for_error()
        return found

    def score_batch(
        self, pairs: Iterable[tuple[str, str]], /, *, timeout: float | None = None
    ) -> list[Score]:
        """A score per pair of source and translation, in order; one that fails has `error`."""
        requests = [self._request(*pair, timeout) for pair in pairs]
        array = (_c.ScoreRequest * len(requests))(*(one.struct for one in requests))
        return self._wait("score", Requests(
            array, requests, lambda _, result: results.score_of(result)))

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
            [model], threads=threads, compute=compute, shortlist=None, terminology=None, follow_links=follow_links,
            batch_tokens=4096, max_source_tokens=0, queue_limit=queue_limit)  # fmt: skip

    def _request(self, prompt: Given, options: GenerationOptions) -> Request[Generation]:
        own = _options.checked(options, _options.GENERATION)
        length = own.pop("length", 200)
        struct = _c.GenerationRequest(
            length=length, timeout_ms=_options.timeout_ms(own.pop("timeout", None)))
        kept = give_text(struct, prompt, "prompt")
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
        found = self._wait("generate", Requests.of_one(self._request(prompt, options)))[0]
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
        return tokenize(self, text, _c.TARGET)

    def detokenize(self, tokens: Iterable[str]) -> str:
        """The text of tokens."""
        return detokenize(self, tokens, _c.TARGET)
