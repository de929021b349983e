"""Types of columns whose rows can be compared, and stored between pulls.

Spark has types whose values it cannot compare, and others that no file format takes. A query that works row by row may
use them freely. Where rows of several pulls are processed together, they have to be recognized, so such a query is
refused when it is added, not when it has to retract a row for the first time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odfpy.engine.spark.plan.catalyst import Node, type_of
from odfpy.errors import UnsupportedQuery

if TYPE_CHECKING:
    from pyspark.sql.types import DataType

_INSTEAD = "Extract the needed part earlier, or convert it to text: to_json(...), CAST(... AS STRING) or hex(...)."


def can_be_grouped(expression: Node) -> bool:
    """Return whether Spark can group by such a value; VARIANT is refused by Spark itself."""
    from pyspark.sql import types

    return not _has(type_of(expression), lambda inner: isinstance(inner, (types.GeographyType, types.GeometryType)))


def unsortable_beside_text(groupings: Sequence[Node]) -> Node | None:
    """Return the value that keeps Spark from grouping: beside collated texts, Spark sorts rows, also by that value.

    Returns:
        An INTERVAL of months and days, if there is one beside a collated text.
    """
    from pyspark.sql.types import CalendarIntervalType

    if not any("COLLATE" in grouping.dataType().sql() for grouping in groupings):
        return None
    odd = (
        expression
        for expression in groupings
        if _has(type_of(expression), lambda inner: isinstance(inner, CalendarIntervalType))
    )
    return next(odd, None)


def can_be_compared(expression: Node) -> bool:
    """Return whether rows with such a value can be distinguished and counted."""
    from pyspark.sql import types

    odd = (types.VariantType, types.CalendarIntervalType)
    return can_be_grouped(expression) and not _has(type_of(expression), lambda inner: isinstance(inner, odd))


def can_be_stored(expression: Node) -> bool:
    """Return whether files can have such a column without changing its values."""
    return not _has(type_of(expression), _has_no_file)


def can_be_key(expression: Node) -> bool:
    """Return whether rows can be looked up by such a value."""
    return can_be_stored(expression) and not has_map(type_of(expression))


def has_map(data_type: DataType) -> bool:
    """Return whether a type is or contains a MAP: these have no order, and Spark does not join by them."""
    from pyspark.sql.types import MapType

    return _has(data_type, lambda inner: isinstance(inner, MapType))


def check_rows(columns: Sequence[Node], where: Callable[[Node], str], *, are_stored: bool) -> None:
    """Refuse rows that have to be recognized in a later pull, but cannot be.

    Args:
        columns: columns of the rows.
        where: returns the place in the query for a column, as the end of a message.
        are_stored: whether the rows are stored between pulls, or passed from one fragment to the next.

    Raises:
        UnsupportedQuery: the message names the column and its type, the hint an alternative.
    """
    for column in columns:
        if not can_be_compared(column):
            reason = "whose values cannot be compared, so a retracted row could not be found"
        elif are_stored and not can_be_stored(column):
            reason = "whose values cannot be stored between pulls"
        else:
            continue
        kind = f"`{column.name()}` has the type {column.dataType().sql()}"
        raise UnsupportedQuery(f"{kind}, {reason}{where(column)}", hint=_INSTEAD)


def _has_no_file(data_type: DataType) -> bool:
    from pyspark.sql import types

    if isinstance(data_type, types.StructType):
        return not data_type.fields
    odd = (types.VariantType, types.GeographyType, types.GeometryType, types.NullType)
    return isinstance(data_type, (*odd, types.CalendarIntervalType, types.YearMonthIntervalType))


def _has(data_type: DataType, test: Callable[[DataType], bool]) -> bool:
    """Return whether a type, or one inside of it, passes a test."""
    from pyspark.sql import types

    if test(data_type):
        return True
    if isinstance(data_type, types.ArrayType):
        return _has(data_type.elementType, test)
    if isinstance(data_type, types.MapType):
        return _has(data_type.keyType, test) or _has(data_type.valueType, test)
    return isinstance(data_type, types.StructType) and any(_has(field.dataType, test) for field in data_type.fields)
