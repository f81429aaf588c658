"""Results: plain dataclasses."""

from __future__ import annotations

from ctypes import string_at
from struct import unpack

from . import _c, errors
from ._light import TYPE_CHECKING, dataclass, field

if TYPE_CHECKING:
    from typing import Any, TypeVar

    _R = TypeVar("_R")

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
    numbers of tokens, from 0. `shares`, where asked for, has a row per token of the translation,
    none if its text was empty: the share of each source token in what it looked at, with sum 1.
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
        """Raises the like of `error`, if there is one. A traceback of its own would hold this
        result, and this result that."""
        if self.error is not None:
            raise type(self.error)(*self.error.args)


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


def _made(kind: type[_R], members: dict[str, Any]) -> _R:
    """A dataclass with all of its members, past its __init__ and what refuses changes."""
    one = object.__new__(kind)
    object.__setattr__(one, "__dict__", members)
    return one


def _spans(text: str, data: bytes, ranges: int, count: int) -> list[tuple[int, int]]:
    """Ranges of bytes as those of characters."""
    found = _c.pairs_of(ranges, count)
    if len(text) == len(data):
        return found
    places = [0] * (len(data) + 1)
    number = -1
    for place, byte in enumerate(data):
        number += (byte & 0xC0) != 0x80
        places[place] = number
    places[len(data)] = len(text)
    return [(places[begin], places[end]) for begin, end in found]


def _shares(shares: int, rows: int, width: int) -> list[list[float]]:
    numbers = _c.numbers_of(shares, rows * width)
    return [numbers[i * width:(i + 1) * width] for i in range(rows)]


def _error_of(status: int, error: int, size: int) -> errors.SeqconvError | None:
    if status == _c.OK:
        return None
    return _ERRORS.get(status, errors.RequestError)(_c.string_of(error, size))


def _outputs(outputs: int, count: int) -> list[tuple[Any, ...]]:
    """The structs of outputs; _c.OUTPUT names their members."""
    places = unpack(f"{count}P", string_at(outputs, 8 * count)) if count else ()
    return [_c.OUTPUT.unpack(string_at(place, _c.OUTPUT.size)) for place in places]


def status_of(result: int) -> int:
    status: int = _c.RESULT.unpack(string_at(result, _c.RESULT.size))[1]
    return status


def translation_of(result: int, source: str, alignments: int) -> Translation:
    """The result at an address. source: the text that ranges of its tokens mean; alignments:
    the number in _c.ALIGNMENTS of what was asked for."""
    (_, status, _, error, error_size, note_count, notes, output_count, outputs,
     width, source_tokens, source_ranges, _) = (
        _c.RESULT.unpack(string_at(result, _c.RESULT.size)))  # fmt: skip
    source_data = source.encode("utf-8", "surrogatepass") if alignments else b""
    hypotheses = []
    for (_, data, size, count, tokens, scores, score, log_probability, ranges, pair_count, pairs,
         shares) in _outputs(outputs, output_count):  # fmt: skip
        text = _c.string_of(data, size)
        alignment = None
        if alignments:
            alignment = _made(Alignment, {
                "source_tokens": _c.strings_of(source_tokens, width),
                "source_spans": _spans(source, source_data, source_ranges, width),
                "target_spans": _spans(text, string_at(data, size), ranges, count),
                "pairs": _c.pairs_of(pairs, pair_count),
                "shares": _shares(shares, count, width) if alignments > 1 else None,
            })
        hypotheses.append(_made(Hypothesis, {
            "text": text, "score": score, "log_probability": log_probability,
            "tokens": _c.strings_of(tokens, count), "token_scores": _c.numbers_of(scores, count),
            "alignment": alignment}))  # fmt: skip
    return _made(Translation, {
        "error": _error_of(status, error, error_size),
        "notes": _c.strings_of(notes, note_count), "hypotheses": hypotheses})  # fmt: skip


def generation_of(result: int) -> Generation:
    """The result at an address."""
    _, status, _, error, error_size, note_count, notes, output_count, outputs, *_ = (
        _c.RESULT.unpack(string_at(result, _c.RESULT.size)))
    found: dict[str, Any] = {
        "error": _error_of(status, error, error_size), "notes": _c.strings_of(notes, note_count),
        "text": "", "tokens": [], "token_scores": [], "log_probability": 0.0}  # fmt: skip
    if output_count:
        ((_, data, size, count, tokens, scores, _, log_probability, *_),) = (
            _outputs(outputs, output_count))
        found.update(
            text=_c.string_of(data, size), tokens=_c.strings_of(tokens, count),
            token_scores=_c.numbers_of(scores, count), log_probability=log_probability)  # fmt: skip
    return _made(Generation, found)


def score_of(result: int) -> Score:
    """The result at an address."""
    _, status, _, error, error_size, note_count, notes, output_count, outputs, *_ = (
        _c.RESULT.unpack(string_at(result, _c.RESULT.size)))
    log_probability = float("nan")
    if output_count:
        ((*_, log_probability, _, _, _, _),) = _outputs(outputs, output_count)
    return _made(Score, {
        "error": _error_of(status, error, error_size), "notes": _c.strings_of(notes, note_count),
        "_log_probability": log_probability})  # fmt: skip


class Text:
    """A stream's text, put together from its parts in bytes."""

    def __init__(self) -> None:
        self._data = b""

    def add(self, result: int) -> Part:
        """The part at an address."""
        *_, count, outputs, _, _, _, kept_bytes = (
            _c.RESULT.unpack(string_at(result, _c.RESULT.size)))
        ((_, data, size, *_),) = _outputs(outputs, count)
        kept = self._data[:kept_bytes]
        added = string_at(data, size)
        self._data = kept + added
        start = kept.decode("utf-8", "replace")
        more = added.decode("utf-8", "replace")
        return _made(Part, {"text": start + more, "added": more, "kept": len(start)})
