"""Results: plain dataclasses."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from typing import Any

from . import _c, errors

_ERRORS: dict[int, type[errors.SeqconvError]] = {
    _c.CANCELLED: errors.RequestCancelled,
    _c.TIMED_OUT: errors.RequestTimeout,
    _c.OUT_OF_MEMORY: errors.OutOfMemory,
}


@dataclass(frozen=True)
class Alignment:
    """Tokens that belong together, and where they stand in the texts.

    `source_tokens` and `source_spans` have one entry per token of the text, </s> the last;
    `target_spans` one per token of the translation. A span is (begin, end) in characters of the
    text, so that `text[begin:end]` is what a token stands for. `pairs` are (source, target)
    numbers of tokens, from 0. `shares`, where asked for, has a row per token of the translation:
    the share of each source token in what it looked at, with sum 1.
    """

    source_tokens: list[str]
    source_spans: list[tuple[int, int]]
    target_spans: list[tuple[int, int]]
    pairs: list[tuple[int, int]]
    shares: list[list[float]] | None = None

    def __str__(self) -> str:
        """Pharaoh's form: "0-0 1-2"."""
        return " ".join(f"{source}-{target}" for source, target in self.pairs)


@dataclass(frozen=True)
class Hypothesis:
    """One translation or summary.

    `score` is `log_probability`, a natural logarithm, divided by length to the power of the
    length penalty. `tokens` end in </s>; `token_scores` has one natural logarithm for each.
    """

    text: str
    score: float
    log_probability: float
    tokens: list[str]
    token_scores: list[float]
    alignment: Alignment | None = None


@dataclass(frozen=True)
class _Result:
    """The part that all results have: why there is none, and what was cut or replaced."""

    error: errors.SeqconvError | None
    notes: list[str]

    @property
    def ok(self) -> bool:
        """True where the request succeeded."""
        return self.error is None

    def raise_for_error(self) -> None:
        """Raises `error`, if there is one."""
        if self.error is not None:
            raise self.error


@dataclass(frozen=True)
class Translation(_Result):
    """The translations or summaries of one text, best first.

    The properties are those of the best one; they raise `error` where there is none.
    """

    hypotheses: list[Hypothesis] = field(default_factory=list)

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis."""
        self.raise_for_error()
        return self.hypotheses[0]

    @property
    def text(self) -> str:
        """The text of the best hypothesis."""
        return self.best.text

    @property
    def score(self) -> float:
        """The score of the best hypothesis."""
        return self.best.score

    @property
    def tokens(self) -> list[str]:
        """The tokens of the best hypothesis."""
        return self.best.tokens

    @property
    def alignment(self) -> Alignment | None:
        """The alignment of the best hypothesis, where asked for."""
        return self.best.alignment

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Generation(_Result):
    """The text that follows a prompt; so far, where `error` is set.

    `log_probability` is the natural logarithm of the probability of `tokens`.
    """

    text: str = ""
    tokens: list[str] = field(default_factory=list)
    token_scores: list[float] = field(default_factory=list)
    log_probability: float = 0.0

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Score(_Result):
    """The natural logarithm of the probability of a translation given its source."""

    _log_probability: float = float("nan")

    @property
    def log_probability(self) -> float:
        """</s> included; raises `error` where there is one."""
        self.raise_for_error()
        return self._log_probability


@dataclass(frozen=True)
class Part:
    """Some text of a stream: `text` is all of it so far, `added` what is new.

    The text before `text[kept:]` was told before; a part may replace the end of the text.
    """

    text: str
    added: str
    kept: int


def _strings(texts: Any, count: int) -> list[str]:
    return [_c.string_of(texts[i]) for i in range(count)]


def _numbers(numbers: Any, count: int) -> list[float]:
    return list(numbers[:count]) if numbers else []


def _spans(text: str, data: bytes, ranges: Any, count: int) -> list[tuple[int, int]]:
    """Ranges of bytes as those of characters."""
    if len(text) == len(data):
        return [(ranges[i].begin, ranges[i].end) for i in range(count)]
    places = [0] * (len(data) + 1)
    number = -1
    for place, byte in enumerate(data):
        number += (byte & 0xC0) != 0x80
        places[place] = number
    places[len(data)] = len(text)
    return [(places[ranges[i].begin], places[ranges[i].end]) for i in range(count)]


def _bytes_of(text: _c.Text) -> bytes:
    return ctypes.string_at(text.data, text.size) if text.size else b""


def _hypothesis(output: _c.Output, source: str, result: _c.Result) -> Hypothesis:
    count = output.token_count
    data = _bytes_of(output.text)
    text = data.decode("utf-8", "replace")
    alignment = None
    if result.source_token_count:
        width = result.source_token_count
        own = source.encode("utf-8", "surrogatepass")
        shares = output.source_shares
        alignment = Alignment(
            _strings(result.source_tokens, width),
            _spans(source, own, result.source_ranges, width),
            _spans(text, data, output.token_ranges, count) if output.token_ranges else [],
            [(output.pairs[i].source, output.pairs[i].target) for i in range(output.pair_count)],
            [list(shares[i * width:(i + 1) * width]) for i in range(count)] if shares else None,
        )
    return Hypothesis(
        text, output.score, output.log_probability, _strings(output.tokens, count),
        _numbers(output.token_scores, count), alignment)  # fmt: skip


def _error_of(result: _c.Result) -> errors.SeqconvError | None:
    if result.status == _c.OK:
        return None
    return _ERRORS.get(result.status, errors.RequestError)(_c.string_of(result.error))


def translation_of(result: _c.Result, source: str) -> Translation:
    """source: the text that ranges of its tokens mean."""
    outputs = [result.outputs[i].contents for i in range(result.output_count)]
    return Translation(
        _error_of(result), _strings(result.notes, result.note_count),
        [_hypothesis(output, source, result) for output in outputs])  # fmt: skip


def generation_of(result: _c.Result) -> Generation:
    error, notes = _error_of(result), _strings(result.notes, result.note_count)
    if not result.output_count:
        return Generation(error, notes)
    output = result.outputs[0].contents
    return Generation(
        error, notes, _c.string_of(output.text), _strings(output.tokens, output.token_count),
        _numbers(output.token_scores, output.token_count), output.log_probability)  # fmt: skip


def score_of(result: _c.Result) -> Score:
    log_probability = (
        result.outputs[0].contents.log_probability if result.output_count else float("nan"))
    return Score(_error_of(result), _strings(result.notes, result.note_count), log_probability)


class Text:
    """A stream's text, put together from its parts in bytes."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, result: _c.Result) -> Part:
        kept = self._data[:result.kept_bytes]
        added = _bytes_of(result.outputs[0].contents.text)
        self._data = kept + added
        start = kept.decode("utf-8", "replace")
        more = added.decode("utf-8", "replace")
        return Part(start + more, more, len(start))
