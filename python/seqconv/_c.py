"""The library and its C interface (seqconv/seqconv.h), structs and functions alike."""

from __future__ import annotations

import ctypes
import os
from ctypes import (POINTER, Structure, c_char_p, c_double, c_int32, c_int64, c_size_t, c_uint64,
                    c_void_p, string_at)
from struct import Struct

from . import errors
from ._light import TYPE_CHECKING
from ._version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

OK, INVALID, FAILED, OUT_OF_MEMORY, CANCELLED, TIMED_OUT = range(6)
PART = 8
MODEL_ERROR, OPTION_ERROR, TASK_ERROR, QUEUE_FULL, EMPTY, WRONG_PROCESS, ERROR = range(16, 23)
TRANSLATION, LANGUAGE_MODEL = 1, 2
SOURCE, TARGET = 0, 1
COMPUTE = ("model", "auto", "float32", "bfloat16", "int8")
ALIGNMENTS = ("none", "pairs", "shares")
OWN_INTEGER = -(2**63)
OWN_NUMBER = -1.7976931348623157e308
OWN_FLAG = -1


class Text(Structure):
    _fields_ = [("data", c_void_p), ("size", c_int64)]


class Sized(Structure):
    """A struct that begins with its size; other members have their C defaults."""

    DEFAULTS: dict[str, Any] = {}

    def __init__(self, **members: Any) -> None:
        super().__init__(ctypes.sizeof(type(self)))
        for name, value in self.DEFAULTS.items():
            setattr(self, name, value)
        for name, value in members.items():
            setattr(self, name, value)


class RuntimeOptions(Sized):
    _fields_ = [
        ("size", c_size_t), ("task", c_int32), ("compute", c_int32), ("follow_links", c_int32),
        ("reserved", c_int32), ("threads", c_int64), ("batch_tokens", c_int64),
        ("logits_bytes", c_int64), ("max_source_tokens", c_int64), ("queue_limit", c_int64),
        ("shortlist", c_char_p), ("max_wait_ms", c_int64), ("terminology", c_char_p),
    ]  # fmt: skip
    DEFAULTS = {"batch_tokens": 4096, "logits_bytes": 32 << 20}


class SearchOptions(Sized):
    _fields_ = [
        ("size", c_size_t), ("beam", c_int64), ("n_best", c_int64), ("max_length_b", c_int64),
        ("min_length", c_int64), ("no_repeat_ngram", c_int64), ("max_length_a", c_double),
        ("length_penalty", c_double), ("unknown_penalty", c_double), ("ban_unknown", c_int32),
        ("stepwise_length_penalty", c_int32),
    ]  # fmt: skip
    DEFAULTS = {
        **dict.fromkeys(("beam", "n_best", "max_length_b", "min_length", "no_repeat_ngram"),
                        OWN_INTEGER),
        **dict.fromkeys(("max_length_a", "length_penalty", "unknown_penalty"), OWN_NUMBER),
        **dict.fromkeys(("ban_unknown", "stepwise_length_penalty"), OWN_FLAG),
    }


class SamplingOptions(Sized):
    _fields_ = [
        ("size", c_size_t), ("temperature", c_double), ("top_k", c_int64), ("top_p", c_double),
        ("ban_unknown", c_int32), ("has_seed", c_int32), ("seed", c_uint64),
    ]  # fmt: skip
    DEFAULTS = {"temperature": 1.0, "top_p": 1.0}


class ModelInfo(Sized):
    _fields_ = [
        ("size", c_size_t), ("task", c_int32), ("reserved", c_int32), ("models", c_int64),
        ("threads", c_int64), ("parameters", c_int64), ("file_bytes", c_int64),
        ("weight_bytes", c_int64), ("source_vocabulary", c_int64), ("target_vocabulary", c_int64),
        ("max_source_tokens", c_int64), ("max_target_tokens", c_int64), ("compute", c_char_p),
        ("search", POINTER(SearchOptions)),
    ]  # fmt: skip


# Structs of results, which are read whole: that is many times quicker than member by member.
# (size, status, reserved, error and its size, note_count, notes, output_count, outputs,
#  source_token_count, source_tokens, source_ranges, kept_bytes)
RESULT = Struct("@NiiPqqPqPqPPq")
# (size, text and its size, token_count, tokens, token_scores, score, log_probability,
#  token_ranges, pair_count, pairs, source_shares)
OUTPUT = Struct("@NPqqPPddPqPP")
TEXT = Struct("@Pq")
PAIR = Struct("@qq")


class Term(Structure):
    _fields_ = [("source", Text), ("target", Text)]


class TranslationRequest(Sized):
    _fields_ = [
        ("size", c_size_t), ("text", Text), ("tokens", POINTER(Text)), ("token_count", c_int64),
        ("prefix", Text), ("prefix_tokens", POINTER(Text)), ("prefix_token_count", c_int64),
        ("search", POINTER(SearchOptions)), ("sampling", POINTER(SamplingOptions)),
        ("alignments", c_int32), ("stream", c_int32), ("timeout_ms", c_int64),
        ("terms", POINTER(Term)), ("term_count", c_int64),
    ]  # fmt: skip


class ScoreRequest(Sized):
    _fields_ = [("size", c_size_t), ("source", Text), ("target", Text), ("timeout_ms", c_int64)]


class GenerationRequest(Sized):
    _fields_ = [
        ("size", c_size_t), ("prompt", Text), ("prompt_tokens", POINTER(Text)),
        ("prompt_token_count", c_int64), ("length", c_int64), ("sampling", POINTER(SamplingOptions)),
        ("stream", c_int32), ("reserved", c_int32), ("timeout_ms", c_int64),
    ]  # fmt: skip


class Call(Sized):
    _fields_ = [
        ("size", c_size_t), ("cancel", c_void_p), ("heard", c_void_p), ("queue", c_void_p),
        ("user", c_void_p),
    ]  # fmt: skip


class Event(Sized):
    _fields_ = [("size", c_size_t), ("user", c_void_p), ("result", c_void_p)]


class Scores(Sized):
    _fields_ = [
        ("size", c_size_t), ("count", c_int64), ("names", POINTER(Text)),
        ("values", POINTER(c_double)), ("signature", Text), ("report", Text),
    ]  # fmt: skip


_Results = POINTER(c_void_p)
# Arguments and answer of each function; a status where none is said.
_FUNCTIONS: dict[str, tuple[list[Any], Any]] = {
    "version": ([], c_char_p),
    "last_error": ([], c_char_p),
    "open": ([POINTER(c_char_p), c_int64, POINTER(RuntimeOptions), POINTER(c_void_p)], c_int32),
    "close": ([c_void_p], None),
    "info": ([c_void_p], POINTER(ModelInfo)),
    "result_free": ([c_void_p], None),
    **{name: ([c_void_p, POINTER(request), c_int64, POINTER(Call), _Results], c_int32)
       for name, request in (("translate", TranslationRequest), ("summarise", TranslationRequest),
                             ("score", ScoreRequest), ("generate", GenerationRequest))},
    **{f"{name}_async": ([c_void_p, POINTER(request), POINTER(Call)], c_int32)
       for name, request in (("translate", TranslationRequest), ("summarise", TranslationRequest),
                             ("score", ScoreRequest), ("generate", GenerationRequest))},
    "cancel_token_new": ([POINTER(c_void_p)], c_int32),
    "cancel": ([c_void_p], None),
    "cancel_token_free": ([c_void_p], None),
    "queue_new": ([POINTER(c_void_p)], c_int32),
    "queue_free": ([c_void_p], None),
    "queue_descriptor": ([c_void_p], c_int32),
    "queue_take": ([c_void_p, c_int64, POINTER(Event)], c_int32),
    "tokenize": ([c_void_p, c_int32, Text, _Results], c_int32),
    "detokenize": ([c_void_p, c_int32, POINTER(Text), c_int64, _Results], c_int32),
    "evaluate": ([c_char_p, POINTER(Text), POINTER(Text), c_int64, c_int64, c_char_p,
                  POINTER(POINTER(Scores))], c_int32),
    "scores_free": ([POINTER(Scores)], None),
}  # fmt: skip


def _load() -> ctypes.CDLL:
    """The library beside this file, or the one that SEQCONV_RUNTIME_LIBRARY names."""
    own = os.path.join(os.path.dirname(__file__), "lib", "libseqconv_runtime.so.1")
    path = os.environ.get("SEQCONV_RUNTIME_LIBRARY") or own
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(f"the library of seqconv cannot be loaded: {error}") from None
    for name, (arguments, answer) in _FUNCTIONS.items():
        try:
            function = library["seqconv_" + name]
        except AttributeError:
            raise ImportError(f"{path} must be the library of seqconv {__version__}, but has no "
                              f"function seqconv_{name}") from None
        function.argtypes = arguments
        function.restype = answer
        setattr(library, name, function)
    version = library.version().decode()
    if version != __version__:
        raise ImportError(f"{path} must be the library of seqconv {__version__}, but is that of "
                          f"{version}: install the package again")
    return library


library: Any = _load()

_ERRORS: dict[int, type[errors.SeqconvError]] = {
    OUT_OF_MEMORY: errors.OutOfMemory,
    MODEL_ERROR: errors.ModelError,
    TASK_ERROR: errors.ModelError,
    OPTION_ERROR: errors.OptionError,
    QUEUE_FULL: errors.QueueFull,
    INVALID: errors.RequestError,
}


def check(status: int) -> None:
    """Raises what a call that failed stands for."""
    if status != OK:
        message = library.last_error().decode("utf-8", "replace")
        raise _ERRORS.get(status, errors.SeqconvError)(message)


def encoded(text: str) -> bytes:
    """The bytes of a text. Lone surrogates are told by the library."""
    if not isinstance(text, str):
        raise TypeError(f"a text must be str, but got {type(text).__name__}")
    return text.encode("utf-8", "surrogatepass")


def address_of(data: bytes) -> int:
    return ctypes.cast(c_char_p(data), c_void_p).value or 0


def text_of(text: str) -> tuple[Text, bytes]:
    """A text, and the bytes that it points to."""
    data = encoded(text)
    return Text(address_of(data), len(data)), data


def _packed(texts: Sequence[bytes]) -> tuple[list[bytes], bytes]:
    """The structs of texts, and the bytes that they point to, which are one block."""
    block = b"\0".join(texts)
    place = address_of(block)
    structs = []
    for data in texts:
        structs.append(TEXT.pack(place, len(data)))
        place += len(data) + 1
    return structs, block


def texts_of(texts: Sequence[str]) -> tuple[Any, Any]:
    """An array of texts, one longer than the list so that it is never NULL, and their bytes."""
    for text in texts:
        if not isinstance(text, str):
            raise TypeError(f"texts must be a list of str, but got {type(text).__name__}")
    structs, block = _packed([encoded(text) for text in texts])
    array = (Text * (len(texts) + 1)).from_buffer_copy(b"".join(structs) + bytes(TEXT.size))
    return array, block


def array_of(struct: Sized, name: str, texts: Sequence[bytes]) -> tuple[Any, Any]:
    """An array of copies of a struct, each with a text `name` of its own, and their bytes."""
    kind: Any = type(struct)
    own = bytes(struct)
    begin = getattr(kind, name).offset
    before, after = own[:begin], own[begin + TEXT.size:]
    structs, block = _packed(texts)
    data = b"".join([before + text + after for text in structs])
    return (kind * len(texts)).from_buffer_copy(data), block


def string_of(data: int | None, size: int) -> str:
    return string_at(data, size).decode("utf-8", "replace") if data and size else ""


def strings_of(texts: int, count: int) -> list[str]:
    """Texts of a result, which the library lays one after the other, each with its NUL
    (src/runtime/api/results.cpp)."""
    if not count:
        return []
    views = string_at(texts, count * TEXT.size)
    begin, _ = TEXT.unpack_from(views)
    last, size = TEXT.unpack_from(views, len(views) - TEXT.size)
    found = string_at(begin, last + size - begin).decode("utf-8", "replace").split("\0")
    if len(found) != count:  # a NUL of their own
        found = [string_of(*text) for text in TEXT.iter_unpack(views)]
    return found


def pairs_of(pairs: int, count: int) -> list[tuple[int, int]]:
    """Pairs of numbers, such as ranges."""
    found: list[Any] = list(PAIR.iter_unpack(string_at(pairs, count * PAIR.size))) if pairs else []
    return found


def numbers_of(numbers: int, count: int) -> list[float]:
    """float32 of C."""
    data = string_at(numbers, 4 * count) if numbers else b""
    found: Any = memoryview(data).cast("f").tolist()
    return found  # type: ignore[no-any-return]
