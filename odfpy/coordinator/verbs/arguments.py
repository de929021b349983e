"""Validation of arguments of a workspace's methods, so that programs get clear errors instead of internal ones."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import isfunction
from numbers import Integral, Real
from pathlib import Path
from typing import Any, Final, TypeVar

from odfpy.errors import UsageError

_Class = TypeVar("_Class", bound=type)
_TYPES: Final[dict[str, tuple[type, ...]]] = {
    "str": (str,),
    "int": (Integral,),  # including those of numpy
    "float": (Real,),
    "bool": (bool,),
    "Path": (Path,),
    "None": (type(None),),
}


def with_checked_arguments(owner: _Class) -> _Class:
    """Decorate a class: its public methods check arguments whose annotations are plain types.

    Arguments of other types, such as sequences of names, are checked by the methods themselves.
    """
    for name, member in list(vars(owner).items()):
        if isfunction(member) and not name.startswith("_"):
            setattr(owner, name, _checked(member))
        elif isinstance(member, classmethod) and not name.startswith("_"):
            setattr(owner, name, classmethod(_checked(member.__func__)))
    return owner


def _checked(method: Callable[..., Any]) -> Callable[..., Any]:
    code = method.__code__
    names = code.co_varnames[: code.co_argcount]
    checked = {
        name: kinds for name, text in method.__annotations__.items() if name != "return" and (kinds := _kinds(text))
    }
    if not checked:
        return method

    @wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name, value in (*zip(names, args, strict=False), *kwargs.items()):
            kinds = checked.get(name)
            # True is an int in Python, but not a valid number of rows.
            if kinds is not None and not (isinstance(value, kinds) and (type(value) is not bool or bool in kinds)):
                wanted = (
                    method.__annotations__[name].replace("int", "a whole number, at least 0").replace(" | ", " or ")
                )
                raise UsageError(
                    f"{name} must be {wanted}, not {value!r:.100} of type {type(value).__name__}",
                    hint=f"help({method.__qualname__}) describes it.",
                )
        return method(*args, **kwargs)

    return call


def _kinds(annotation: object) -> tuple[type, ...]:
    """Return the types in an annotation; none if it includes unsupported types."""
    parts = [part.strip() for part in str(annotation).split("|")]
    return tuple(kind for part in parts for kind in _TYPES[part]) if all(part in _TYPES for part in parts) else ()
