"""Scores of translations and summaries, with the numbers of `seqconv evaluate`.

    from seqconv import metrics
    print(metrics.bleu(["a cat"], ["the cat"]))

References are a text per hypothesis, or a list of texts per hypothesis, equally many.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

from . import _c, errors

References = Union[Sequence[str], Sequence[Sequence[str]]]

__all__ = ["Metric", "bleu", "chrf", "exact", "rouge", "ter"]


@dataclass(frozen=True)
class Metric:
    """The score of a corpus in percent.

    `signature` says how it came about, so that it can be quoted; `report` is both in a line.
    `scores` has all measures by name: those of ROUGE are several, and `score` is the first.
    """

    score: float
    signature: str
    report: str
    scores: dict[str, float]

    def __float__(self) -> float:
        return self.score

    def __str__(self) -> str:
        return self.report


def _string(text: _c.Text) -> str:
    return _c.string_of(text.data, text.size)


def _evaluate(
    metric: str, hypotheses: Sequence[str], references: References, options: dict[str, Any]
) -> Metric:
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise TypeError("hypotheses and references must be lists of texts, but got a text")
    lists = [[own] if isinstance(own, str) else list(own) for own in references]
    if len(lists) != len(hypotheses):
        raise errors.OptionError(
            f"every hypothesis must have references, but there are {len(hypotheses)} and "
            f"{len(lists)}")
    each = len(lists[0]) if lists else 0
    if any(len(own) != each for own in lists):
        raise errors.OptionError("all hypotheses must have equally many references")
    given, kept = _c.texts_of(list(hypotheses))
    others, also_kept = _c.texts_of([text for own in lists for text in own])
    found = ctypes.POINTER(_c.Scores)()
    _c.check(_c.library.evaluate(
        metric.encode(), given, others, len(lists), each, json.dumps(options).encode(),
        ctypes.byref(found)))  # fmt: skip
    try:
        own = found.contents
        scores = {_string(own.names[i]): own.values[i] for i in range(own.count)}
        return Metric(next(iter(scores.values())), _string(own.signature),
                      _string(own.report), scores)  # fmt: skip
    finally:
        _c.library.scores_free(found)


def bleu(
    hypotheses: Sequence[str],
    references: References,
    *,
    tokenizer: str = "13a",
    lowercase: bool = False,
    smoothing: str = "exp",
    order: int = 4,
    effective_order: bool = False,
    style: str = "sacrebleu",
    **options: Any,
) -> Metric:
    """Corpus BLEU as sacreBLEU computes it, or multi-bleu.perl (style="multi-bleu").

    tokenizer: "13a", "none", "intl", "char" or "zh"; smoothing: "exp", "floor", "add-k" or "none".
    Further options are the keys of [metrics.bleu]. One that the style has no use for, such as a
    tokenizer of multi-bleu, raises OptionError if it is not its default.
    """
    return _evaluate("bleu", hypotheses, references, {
        **options, "tokenizer": tokenizer, "smoothing": smoothing, "order": order,
        "effective_order": effective_order, "style": style, "lowercase": lowercase})  # fmt: skip


def chrf(
    hypotheses: Sequence[str],
    references: References,
    *,
    char_order: int = 6,
    word_order: int = 0,
    beta: int = 2,
    lowercase: bool = False,
    whitespace: bool = False,
    eps_smoothing: bool = False,
) -> Metric:
    """Corpus chrF; with word_order=2 it is chrF++."""
    return _evaluate("chrf", hypotheses, references, {
        "char_order": char_order, "word_order": word_order, "beta": beta, "lowercase": lowercase,
        "whitespace": whitespace, "eps_smoothing": eps_smoothing})  # fmt: skip


def ter(
    hypotheses: Sequence[str],
    references: References,
    *,
    normalized: bool = False,
    no_punct: bool = False,
    asian_support: bool = False,
    case_sensitive: bool = False,
) -> Metric:
    """Translation edit rate, sacreBLEU's; smaller is better."""
    return _evaluate("ter", hypotheses, references, {
        "normalized": normalized, "no_punct": no_punct, "asian_support": asian_support,
        "case_sensitive": case_sensitive})  # fmt: skip


def rouge(
    hypotheses: Sequence[str],
    references: References,
    *,
    style: str = "rouge-1.5.5",
    order: int = 2,
    stem: bool = True,
    tokenizer: str = "ascii",
    **options: Any,
) -> Metric:
    """F-scores of ROUGE-1 to ROUGE-`order` and ROUGE-L, as of ROUGE-1.5.5 or of rouge_score.

    Sentences of a summary are lines. Further options are the keys of [metrics.rouge].
    """
    return _evaluate("rouge", hypotheses, references, {
        **options, "style": style, "order": order, "stem": stem,
        "tokenizer": tokenizer})  # fmt: skip


def exact(
    hypotheses: Sequence[str], references: References, *, lowercase: bool = False
) -> Metric:
    """The share of texts that equal a reference, but for white space at their ends."""
    return _evaluate("exact", hypotheses, references, {"lowercase": lowercase})
