"""A faster `dataclass` for frozen classes with slots.

A short command defines more than a hundred such classes. The standard library compiles six methods for each of them,
which was a third of the time of `odf list`. This module compiles `__init__` only, and only when the first instance is
created. The other methods are shared closures with the behaviour of the standard library's, so that `fields`,
`replace`, `match`, `copy` and `pickle` see no difference. Other classes are left to the standard library.

Subclasses of these classes must use this decorator too: the standard library does not know that their base is frozen.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: bool) -> Any:
        """Decorate a class as `dataclasses.dataclass` does."""
        is_ours = {"frozen", "slots"} <= options.keys() <= {"frozen", "slots", "kw_only"} and all(options.values())
        make = _value_class if is_ours else dataclasses.dataclass
        return make(cls, **options) if cls is not None else lambda named: make(named, **options)


_set: Callable[[object, str, object], None] = object.__setattr__
_delete: Callable[[object, str], None] = object.__delattr__


def _value_class(body: type, *, frozen: bool, slots: bool, kw_only: bool = False) -> Any:
    """Return the dataclass of a class body; methods that the body defines stay.

    Args:
        body: the class as written.
        frozen: always true.
        slots: always true.
        kw_only: whether the fields are keyword-only.
    """
    del frozen
    own = vars(body)
    body.__doc__ = body.__doc__ or body.__name__  # the standard library would look for a signature
    cls: Any = dataclasses.dataclass(body, init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    fields = dataclasses.fields(cls)
    names = tuple(field.name for field in fields)
    compared = _values_of([field.name for field in fields if field.compare])
    hashed = _values_of([field.name for field in fields if (field.compare if field.hash is None else field.hash)])

    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - as all of them, a method of the class
        return compared(self) == compared(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(hashed(self))

    @recursive_repr()
    def __repr__(self: object) -> str:  # noqa: N807
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields if field.repr)
        return f"{self.__class__.__qualname__}({shown})"

    def __setattr__(self: object, name: str, value: object) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        _set(self, name, value)

    def __delattr__(self: object, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise FrozenInstanceError(f"cannot delete field {name!r}")
        _delete(self, name)

    def __getstate__(self: object) -> list[object]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: object, state: list[object]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            _set(self, name, value)

    for method in (__repr__, __eq__, __setattr__, __delattr__, __getstate__, __setstate__):
        if method.__name__ not in own:
            _give(cls, method)
    if "__hash__" not in own or (own["__hash__"] is None and "__eq__" in own):
        _give(cls, __hash__)
    if "__init__" not in own:
        cls.__init__ = _FirstInit(cls, fields)
    return cls


class _FirstInit:
    """Descriptor that compiles `__init__` on first use: most classes get no instance in a short command."""

    def __init__(self, cls: type, fields: tuple[Field[Any], ...]) -> None:
        self._cls, self._fields = cls, fields

    def __get__(self, value: object, owner: type | None = None) -> Callable[..., None]:
        init: Any = _init_of(self._cls, self._fields)
        _give(self._cls, init)  # replaces this descriptor
        bound: Callable[..., None] = init.__get__(value, owner)
        return bound


def _give(cls: type, method: Callable[..., object]) -> None:
    method.__qualname__, method.__module__ = f"{cls.__qualname__}.{method.__name__}", cls.__module__
    setattr(cls, method.__name__, method)


def _values_of(names: list[str]) -> Callable[[object], object]:
    """Return a function that returns the values of attributes as a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    one = attrgetter(names[0])
    return lambda value: (one(value),)


def _init_of(cls: type, fields: tuple[Field[Any], ...]) -> Callable[..., None]:
    known: dict[str, object] = {"_set": _set}
    lines = [line for field in fields for line in _assignment(field, known)]
    if hasattr(cls, "__post_init__"):
        lines.append(" self.__post_init__()")
    by_name = [_parameter(field) for field in fields if field.init and field.kw_only]
    given = [_parameter(field) for field in fields if field.init and not field.kw_only]
    parameters = ", ".join(["self", *given, *(["*", *by_name] if by_name else [])])
    # The names of fields, which a programmer has written; as the standard library does.
    exec(f"def __init__({parameters}):\n" + "\n".join(lines or [" pass"]), known)  # noqa: S102
    init: Any = known["__init__"]
    init.__annotations__ = {**{field.name: field.type for field in fields if field.init}, "return": None}
    made: Callable[..., None] = init
    return made


def _parameter(field: Field[Any]) -> str:
    has_default = field.default is not MISSING or field.default_factory is not MISSING
    return f"{field.name}=_default_{field.name}" if has_default else field.name


def _assignment(field: Field[Any], known: dict[str, object]) -> list[str]:
    """Return the lines that set a field, and add the names that they use to `known`."""
    name = field.name
    if field.default_factory is not MISSING:
        known[f"_make_{name}"], known[f"_default_{name}"] = field.default_factory, MISSING
        known["_missing"] = MISSING
        made = f"_make_{name}()"
        value = f"{made} if {name} is _missing else {name}" if field.init else made
    else:
        known[f"_default_{name}"] = field.default
        if not field.init and field.default is MISSING:
            return []  # `__post_init__` sets it
        value = name if field.init else f"_default_{name}"
    return [f" _set(self, {name!r}, {value})"]
