"""Arrow types for Spark: for each type the plain Arrow type in which Spark can represent its values.

Types that Spark lacks are widened (unsigned integers), truncated to microseconds (times), or converted to plain
layouts (views, large types, dictionaries, run ends). Other types cause an error that names the column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa
from pyarrow import types

from odfpy.flight.errors import NotForSpark

_MAX_PRECISION: Final = 38
INTERVAL: Final = pa.struct([("months", pa.int32()), ("days", pa.int32()), ("nanoseconds", pa.int64())])
"""The parts of an interval, as in Arrow: Spark has no type for all three."""
_WIDER: Final = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.float16(): pa.float32(),
    pa.date64(): pa.date32(),
}
_AS_THEY_ARE: Final = frozenset(
    [pa.null(), pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(), pa.date32()]
)


def plain_type(arrow: pa.DataType) -> pa.DataType | None:
    """Return the type in which Spark represents values of a type, also nested; None if there is none."""
    return next((plain(arrow) for fits, plain in _RULES if fits(arrow)), None)


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the schema in types of Spark. All columns are nullable: servers' declarations are not relied on.

    Raises:
        NotForSpark: Spark has no such type; the message names the column.
    """
    seen: set[str] = set()
    fields = []
    for field in schema:
        if field.name in seen:
            raise NotForSpark(
                f"Two columns are called {field.name!r}, which Spark cannot tell apart",
                hint="Rename one of them in a query: SELECT ... AS ....",
            )
        seen.add(field.name)
        found = plain_type(field.type)
        if found is None:
            raise NotForSpark(
                f"Spark has no type for column {field.name!r} of type {field.type}",
                hint="Omit it (option columns), or CAST it in a query (option query).",
            )
        fields.append(pa.field(field.name, found))
    return pa.schema(fields)


def _decimal(arrow: Any) -> pa.DataType | None:
    return pa.decimal128(arrow.precision, arrow.scale) if _fits(arrow) else None


def _fits(arrow: Any) -> bool:
    """Return whether Spark's decimals, which have at most 38 digits and a scale up to the precision, include a type."""
    return bool(arrow.precision <= _MAX_PRECISION and 0 <= arrow.scale <= arrow.precision)


def _list(arrow: Any) -> pa.DataType | None:
    item = plain_type(arrow.value_type)
    return None if item is None else pa.list_(pa.field("element", item))


def _map(arrow: Any) -> pa.DataType | None:
    key, value = plain_type(arrow.key_type), plain_type(arrow.item_type)
    return None if key is None or value is None else pa.map_(key, pa.field("value", value))


def _struct(arrow: Any) -> pa.DataType | None:
    fields = [(field.name, plain_type(field.type)) for field in arrow.fields]
    if any(kind is None for _, kind in fields) or len({name for name, _ in fields}) < len(fields):
        return None
    return pa.struct(fields)


_RULES: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], pa.DataType | None]], ...]] = (
    (lambda kind: kind in _AS_THEY_ARE, lambda kind: kind),
    (lambda kind: kind in _WIDER, _WIDER.__getitem__),
    (lambda kind: isinstance(kind, pa.Bool8Type), lambda _: pa.bool_()),
    (lambda kind: isinstance(kind, pa.BaseExtensionType), lambda kind: plain_type(kind.storage_type)),
    (
        lambda kind: types.is_dictionary(kind) or types.is_run_end_encoded(kind),
        lambda kind: plain_type(kind.value_type),
    ),
    (types.is_interval, lambda _: INTERVAL),
    (
        lambda kind: types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind),
        lambda _: pa.string(),
    ),
    (lambda kind: types.is_binary(kind) or types.is_large_binary(kind), lambda _: pa.binary()),
    (lambda kind: types.is_binary_view(kind) or types.is_fixed_size_binary(kind), lambda _: pa.binary()),
    (types.is_timestamp, lambda kind: pa.timestamp("us", kind.tz and "UTC")),
    (types.is_time, lambda _: pa.time64("ns")),
    (types.is_duration, lambda _: pa.duration("us")),
    (types.is_decimal, _decimal),
    (types.is_map, _map),
    (types.is_struct, _struct),
    (lambda kind: hasattr(kind, "value_type") and hasattr(kind, "value_field"), _list),
)
"""Conversion rules: predicates of types, with functions that return the plain type; the first match applies."""
