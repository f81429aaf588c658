"""Types of keyword options. They are apart, as `typing` takes long to be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ._text_model import Tokens

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
    terms: Mapping[str, str]
    """Translations of a text that holds a key hold its value (docs/translating.md)."""
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
