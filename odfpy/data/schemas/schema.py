"""The schema of a dataset as recorded in its chain (ODF specification, "Schema").

These are values only. `odfpy.data.schemas.arrow` converts to and from Arrow; `odfpy.data.schemas.ddl` reads the older
DDL text.
A field whose type is not `Option` is required.
"""

from __future__ import annotations

from enum import Enum
from typing import TypeAlias

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.scalars import I32, U32, U64
from odfpy.values import dataclass


class TimeUnit(Enum):
    """Resolution of times, timestamps and durations."""

    SECOND = "Second"
    MILLISECOND = "Millisecond"
    MICROSECOND = "Microsecond"
    NANOSECOND = "Nanosecond"


@dataclass(frozen=True, slots=True)
class _Plain:
    """A type without parameters, equal to any other instance of its class. A single dataclass saves start-up time."""


@dataclass(frozen=True, slots=True)
class Binary:
    """Bytes, of any length or of exactly `fixed_length`."""

    fixed_length: U64 | None = None


class Bool(_Plain):
    """True or false."""

    __slots__ = ()


class Date(_Plain):
    """A calendar day."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Decimal:
    """A decimal of `precision` digits, `scale` of them after the point."""

    precision: U32
    scale: I32


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration, by default in milliseconds."""

    unit: TimeUnit | None = None


class Float16(_Plain):
    """IEEE 754 half precision."""

    __slots__ = ()


class Float32(_Plain):
    """IEEE 754 single precision."""

    __slots__ = ()


class Float64(_Plain):
    """IEEE 754 double precision."""

    __slots__ = ()


class Int8(_Plain):
    """Signed, 8 bits."""

    __slots__ = ()


class Int16(_Plain):
    """Signed, 16 bits."""

    __slots__ = ()


class Int32(_Plain):
    """Signed, 32 bits."""

    __slots__ = ()


class Int64(_Plain):
    """Signed, 64 bits."""

    __slots__ = ()


class UInt8(_Plain):
    """Unsigned, 8 bits."""

    __slots__ = ()


class UInt16(_Plain):
    """Unsigned, 16 bits."""

    __slots__ = ()


class UInt32(_Plain):
    """Unsigned, 32 bits."""

    __slots__ = ()


class UInt64(_Plain):
    """Unsigned, 64 bits."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class List:
    """A list of items of one type."""

    item_type: DataType
    fixed_length: U64 | None = None


@dataclass(frozen=True, slots=True)
class Map:
    """A map of keys to values."""

    key_type: DataType
    value_type: DataType
    keys_sorted: bool | None = None


class Null(_Plain):
    """The type of columns that only contain null."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Option:
    """A value or null."""

    inner: DataType


@dataclass(frozen=True, slots=True)
class Struct:
    """Named fields."""

    fields: tuple[DataField, ...]


@dataclass(frozen=True, slots=True)
class Time:
    """A time of day, by default in milliseconds."""

    unit: TimeUnit | None = None


@dataclass(frozen=True, slots=True)
class Timestamp:
    """An instant, or without a time zone a local time; by default milliseconds in UTC."""

    unit: TimeUnit | None = None
    timezone: str | None = None


class String(_Plain):
    """Text in UTF-8."""

    __slots__ = ()


# The order is that of the union in the FlatBuffers schema.
DataType: TypeAlias = (
    Binary | Bool | Date | Decimal | Duration | Float16 | Float32 | Float64 | Int8 | Int16 | Int32 | Int64 | UInt8
    | UInt16 | UInt32 | UInt64 | List | Map | Null | Option | Struct | Time | Timestamp | String
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataField:
    """A named column or struct member."""

    name: str
    type: DataType
    extra: ExtraAttributes | None = None

    @property
    def is_optional(self) -> bool:
        """True if the field may be null."""
        return isinstance(self.type, (Option, Null))


@dataclass(frozen=True, slots=True)
class DataSchema:
    """All columns of a dataset, system columns first, in order."""

    fields: tuple[DataField, ...]
    extra: ExtraAttributes | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The column names, in order."""
        return tuple(field.name for field in self.fields)

    def field(self, name: str) -> DataField | None:
        """Return the field with a name, which is case-sensitive, or None."""
        return next((field for field in self.fields if field.name == name), None)


def alike_name(name: str) -> str:
    """Return the name of a column without differences that users overlook: case and surrounding spaces."""
    return name.strip().casefold()
