"""The names of `typing` and `dataclasses` that this package uses, without these modules: each of
them takes as long to be imported as all of the package. Type checkers see the real ones."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
    from dataclasses import field as field
    from typing import Any as Any
    from typing import Generic as Generic
    from typing import TypeVar as TypeVar
    from typing import overload as overload
else:
    Any = object

    class TypeVar:
        def __init__(self, name, **_):
            self.__name__ = name

        @property
        def __class__(self):  # for isinstance
            import typing

            return typing.TypeVar

    def overload(function):
        return function

    class Generic:
        __class_getitem__ = classmethod(type(list[int]))

    # The members that dataclasses.dataclass(frozen=True) makes, but for those that refuse changes.
    _MADE = ("__init__", "__repr__", "__eq__", "__hash__", "__match_args__",
             "__dataclass_fields__", "__dataclass_params__")  # fmt: skip
    if sys.version_info >= (3, 13):
        _MADE += ("__replace__",)

    class _Factory:
        def __init__(self, make):
            self.make = make

    def field(*, default_factory):
        return _Factory(default_factory)

    class _Later:
        """A member of a dataclass, which makes all of them when one is wanted."""

        def __init__(self, kind, name):
            self._kind = kind
            self._name = name

        def __get__(self, one, kind=None):
            made = _made_by_dataclasses(self._kind)
            for name in _MADE:
                setattr(self._kind, name, made[name])
            for name in [name for name, value in vars(self._kind).items()
                         if isinstance(value, _Factory)]:
                try:
                    delattr(self._kind, name)
                except AttributeError:  # by another thread
                    pass
            return getattr(kind if one is None else one, self._name)

    def _made_by_dataclasses(kind):
        """The members of a class like `kind` that dataclasses makes. It is another class, so that
        `kind` is whole at any moment, whatever other threads do with it."""
        import dataclasses

        members = {}
        for name, value in vars(kind).items():
            if isinstance(value, _Factory):
                value = dataclasses.field(default_factory=value.make)
            if name not in ("__dict__", "__weakref__", "__setattr__", "__delattr__", *_MADE):
                members[name] = value
        twin = type(kind)(kind.__name__, kind.__bases__, members)
        return vars(dataclasses.dataclass(frozen=True)(twin))

    def dataclass(*, frozen):
        """dataclasses.dataclass(frozen=True)."""
        assert frozen

        def decorate(kind):
            def refuse(self, name, verb):
                if type(self) is kind or name in kind.__dataclass_fields__:
                    import dataclasses

                    raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")

            def __setattr__(self, name, value):
                refuse(self, name, "assign to")
                object.__setattr__(self, name, value)

            def __delattr__(self, name):
                refuse(self, name, "delete")
                object.__delattr__(self, name)

            kind.__setattr__ = __setattr__
            kind.__delattr__ = __delattr__
            for name in _MADE:
                setattr(kind, name, _Later(kind, name))
            return kind

        return decorate
