"""Exceptions of the package: one class for all, and one for each kind."""

from __future__ import annotations


class SeqconvError(Exception):
    """The base of all exceptions of this package."""


class ModelError(SeqconvError):
    """A model cannot be opened: no folder of one, another task, damaged."""


class OptionError(SeqconvError, ValueError):
    """Options that make no sense, alone or together."""


class RequestError(SeqconvError):
    """A request has no result: its text or options make no sense to the model, or it failed."""


class RequestCancelled(RequestError):
    """The request or its model was cancelled or closed before it was done."""


class RequestTimeout(RequestError, TimeoutError):
    """The request's timeout passed before it was done."""


class QueueFull(SeqconvError):
    """As many requests wait as `queue_limit` allows: this one was refused."""


class ClosedError(SeqconvError):
    """The model was closed."""


class OutOfMemory(SeqconvError, MemoryError):
    """There is not memory enough for a model, or for what a call must hold."""
