"""The shape of a value type, derived from its annotations once.

Metadata consists of frozen dataclasses. All codecs (FlatBuffers, YAML, JSON) use the same description of them, so a
field is declared in exactly one place.
"""

from __future__ import annotations

import re
import types
from dataclasses import fields
from enum import Enum
from functools import cache
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.duration import Duration
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import IntRange, SingleMemberUnion
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import DatasetAlias, DatasetRef
from odfpy.values import dataclass

# Types with their own encoding in every codec.
LEAVES = (str, bool, bytes, Timestamp, Duration, Multihash, DatasetId, DatasetAlias, ExtraAttributes)


@dataclass(frozen=True, slots=True)
class Integer:
    """An integer of the given range."""

    range: IntRange


@dataclass(frozen=True, slots=True)
class Leaf:
    """One of `LEAVES`."""

    type: type


@dataclass(frozen=True, slots=True)
class DatasetReference:
    """A dataset id or alias, written as text."""


@dataclass(frozen=True, slots=True)
class Enumeration:
    """A member of an enum, written by its value."""

    type: type[Enum]


@dataclass(frozen=True, slots=True)
class Sequence:
    """A tuple of any length."""

    item: Shape


@dataclass(frozen=True, slots=True)
class OneOf:
    """A union of dataclasses; the order of members is that of the wire format."""

    members: tuple[type, ...]

    def member(self, kind: str) -> type | None:
        """Return the member of a kind; case is ignored."""
        return next((member for member in self.members if kind_of(member).lower() == kind.lower()), None)


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass."""

    type: type


Shape: TypeAlias = Integer | Leaf | DatasetReference | Enumeration | Sequence | OneOf | Record


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a record: its name in Python, its key in documents, its shape, and whether it is optional."""

    name: str
    key: str
    shape: Shape
    optional: bool


def kind_of(member: type) -> str:
    """Return the name of a union member in documents: its `KIND`, else the name of its class."""
    kind: str = getattr(member, "KIND", member.__name__)
    return kind


@cache
def fields_of(record: type) -> tuple[Field, ...]:
    """Return the fields of a record, in declared order, which is the order of the wire format."""
    hints = get_type_hints(record, include_extras=True)
    return tuple(_field(field.name, hints[field.name]) for field in fields(record))


def _field(name: str, hint: Any) -> Field:
    key = re.sub(r"_(.)", lambda match: match[1].upper(), name)
    arms = _arms(hint)
    required = tuple(arm for arm in arms if arm is not type(None))
    return Field(name, key, shape_of(*required), optional=len(required) < len(arms))


def _arms(hint: Any) -> tuple[Any, ...]:
    if get_origin(hint) in (Union, types.UnionType):
        return tuple(arm for part in get_args(hint) for arm in _arms(part))
    return (hint,)


def shape_of(*arms: Any) -> Shape:
    """Return the shape of an annotation; several arms are a union.

    Raises:
        TypeError: no codec supports an annotation.
    """
    arms = tuple(arm for hint in arms for arm in _arms(hint))
    if set(arms) == set(get_args(DatasetRef)):
        return DatasetReference()
    if len(arms) > 1:
        return OneOf(arms)
    return _shape_of_one(arms[0])


def _shape_of_one(hint: Any) -> Shape:
    if get_origin(hint) is Annotated:
        inner, mark = get_args(hint)
        return OneOf((inner,)) if isinstance(mark, SingleMemberUnion) else Integer(mark)
    if get_origin(hint) is tuple:
        return Sequence(shape_of(get_args(hint)[0]))
    if hint in LEAVES:
        return Leaf(hint)
    if isinstance(hint, type) and issubclass(hint, Enum):
        return Enumeration(hint)
    if isinstance(hint, type) and hasattr(hint, "__dataclass_fields__"):
        return Record(hint)
    raise TypeError(f"No codec for {hint!r}")
