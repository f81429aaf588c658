"""Options as C has them."""

from __future__ import annotations

import ctypes
import os

from . import _c, errors
from ._light import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from typing import Any

_SEARCH = ("beam", "n_best", "max_length_b", "min_length", "no_repeat_ngram", "max_length_a",
           "length_penalty", "unknown_penalty", "ban_unknown", "stepwise_length_penalty")


_SAMPLING = ("temperature", "top_k", "top_p", "ban_unknown", "seed")
# The keys of TranslationOptions and GenerationOptions (_typed.py).
TRANSLATION = frozenset((*_SEARCH, *_SAMPLING, "target_prefix", "terms", "sample", "alignments",
                         "timeout"))
GENERATION = frozenset((*_SAMPLING, "length", "timeout"))


def _typed(name: str, value: Any, wanted: type) -> Any:
    """`value` if it is of a type of C's; a TypeError says what came instead."""
    if wanted is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        raise TypeError(f"{name} must be {wanted.__name__}, but got {value!r}")
    if isinstance(value, int) and not -(2**63) < value < 2**63:
        raise errors.OptionError(f"{name} must fit into 64 bits, but got {value}")
    return value


_TYPES: dict[str, type] = {
    **dict.fromkeys(("beam", "n_best", "max_length_b", "min_length", "no_repeat_ngram"), int),
    **dict.fromkeys(("max_length_a", "length_penalty", "unknown_penalty"), float),
    **dict.fromkeys(("ban_unknown", "stepwise_length_penalty", "sample"), bool),
    "temperature": float, "top_k": int, "top_p": float, "seed": int, "length": int,
}  # fmt: skip


def checked(options: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The options that are given, not None, of the right types. TypeError for unknown ones."""
    for name in options:
        if name not in known:
            near = _nearest(name, known)
            raise TypeError(f"there is no option '{name}'" + (f"; did you mean '{near}'?" if near else ""))
    return {name: _typed(name, value, _TYPES[name]) if name in _TYPES else value
            for name, value in options.items() if value is not None}


def _nearest(name: str, known: Collection[str]) -> str | None:
    import difflib  # only for a message

    return next(iter(difflib.get_close_matches(name, list(known), 1)), None)


def search_options(given: dict[str, Any]) -> _c.SearchOptions:
    return _c.SearchOptions(**{
        name: int(value) if isinstance(value, bool) else value
        for name, value in given.items() if name in _SEARCH})


def sampling_options(given: dict[str, Any]) -> _c.SamplingOptions:
    own: dict[str, Any] = {name: given[name] for name in ("temperature", "top_k", "top_p") if name in given}
    if "ban_unknown" in given:
        own["ban_unknown"] = int(given["ban_unknown"])
    if "seed" in given:
        if not 0 <= given["seed"] < 2**63:
            raise errors.OptionError(f"seed must be between 0 and 2^63 - 1, but got {given['seed']}")
        own.update(has_seed=1, seed=given["seed"])
    return _c.SamplingOptions(**own)


def timeout_ms(timeout: float | None) -> int:
    """Seconds as C has them; 0: none. A timeout of less than a millisecond is one."""
    if timeout is None:
        return 0
    seconds = _typed("timeout", timeout, float)
    if not seconds > 0:
        raise errors.OptionError(f"timeout must be above 0 seconds, but got {timeout}")
    return max(1, int(min(seconds, 2.0**50) * 1000))


def runtime_options(
    task: int,
    threads: int,
    compute: str,
    shortlist: str | None,
    follow_links: bool,
    batch_tokens: int,
    max_source_tokens: int,
    queue_limit: int,
    terminology: str | None,
) -> tuple[_c.RuntimeOptions, Any]:
    """The options, and what they point to."""
    if compute not in _c.COMPUTE:
        raise errors.OptionError(f"compute must be one of {', '.join(_c.COMPUTE)}, but got {compute!r}")
    name, terms = (os.fsencode(file) if file is not None else None for file in (shortlist, terminology))
    numbers = {"threads": threads, "batch_tokens": batch_tokens,
               "max_source_tokens": max_source_tokens, "queue_limit": queue_limit}
    own = _c.RuntimeOptions(
        task=task, compute=_c.COMPUTE.index(compute), follow_links=int(follow_links),
        shortlist=name, terminology=terms, **{key: _typed(key, value, int) for key, value in numbers.items()})
    return own, (name, terms, ctypes.byref(own))
