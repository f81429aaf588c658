"""Translates, summarises, scores and generates with trained models of seqconv.

    from seqconv import Translator
    translator = Translator("demo/model")
    print(translator.translate("four hundred and six").text)

Models: Translator, Summarizer, Scorer, Generator; seqconv.metrics has BLEU and its like.
"""

from __future__ import annotations

from ._light import TYPE_CHECKING, Any
from ._model import Info, Stream
from ._models import Generator, Scorer, Summarizer, Translator
from ._text_model import Tokens
from ._version import __version__
from .errors import (ClosedError, ModelError, OptionError, OutOfMemory, QueueFull, RequestCancelled,
                     RequestError, RequestTimeout, SeqconvError)
from .results import Alignment, Generation, Hypothesis, Part, Score, Translation

if TYPE_CHECKING:
    from . import metrics
    from ._aio import AsyncStream
    from ._typed import GenerationOptions, TranslationOptions

__all__ = [
    "Alignment", "AsyncStream", "ClosedError", "Generation", "GenerationOptions", "Generator",
    "Hypothesis", "Info", "ModelError", "OptionError", "OutOfMemory", "Part", "QueueFull",
    "RequestCancelled", "RequestError", "RequestTimeout", "Score", "Scorer", "SeqconvError",
    "Stream", "Summarizer", "Tokens", "Translation", "TranslationOptions", "Translator",
    "__version__",
]  # fmt: skip

# Names of the operators, which were here before they had a package of their own.
_OPERATORS = frozenset((
    "DynamicConv", "LightConv", "TaLK", "TalkConv", "AverageAttention", "lightconv", "dynamicconv", "talk",
    "lightconv_step", "dynamicconv_step", "talk_step", "cumulative_average",
    "cumulative_average_step", "conv_initial_state", "nn", "ops", "convert"))  # fmt: skip


# Names that bring other modules with them, which are imported when they are wanted.
_LATER = {"AsyncStream": "_aio", "GenerationOptions": "_typed", "TranslationOptions": "_typed"}


def __getattr__(name: str) -> Any:
    import importlib

    if name == "metrics":
        return importlib.import_module("seqconv.metrics")
    if name in _LATER:
        return getattr(importlib.import_module(f"seqconv.{_LATER[name]}"), name)
    if name in _OPERATORS:
        raise AttributeError(
            f"seqconv.{name} is seqconv_torch.{name} now, of the package seqconv-torch")
    raise AttributeError(f"module 'seqconv' has no attribute '{name}'")
