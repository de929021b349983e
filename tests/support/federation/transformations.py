"""Transformations of columns, as templates of SQL."""

from __future__ import annotations

from typing import Final

from odfpy.federation.sql.columns import Types, columns_of
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Expression, has_aggregate
from odfpy.federation.sql.reading import named_columns, read_text

_PLACE: Final = "{v}"
_MAX_LENGTH: Final = 10_000
_HINT: Final = (
    "It is made of {v}, columns, constants, comparisons, AND OR NOT, IN, BETWEEN, LIKE, IS NULL, + - * /, ||, CASE,"
    " CAST, abs, lower, upper, length, substring, coalesce, nullif, year, month and day."
)


def transformed(template: str, column: str, columns: Types | None = None) -> Expression:
    """Apply a transformation to a column: `{v} * 100` to `discount`.

    Args:
        template: SQL, in which `{v}` stands for the column; it may refer to other columns.
        column: name of the column.
        columns: names and types of all columns, None if they belong to another relay.

    Raises:
        InvalidFragment: it is not in the grammar.
    """
    if not isinstance(template, str) or len(template) > _MAX_LENGTH:
        raise InvalidFragment(f"A transformation has at most {_MAX_LENGTH:,} characters", hint=_HINT)
    stand_in = "v"
    while stand_in in template.replace(_PLACE, "") or stand_in == column:
        stand_in += "_"  # no column that the template refers to

    find = columns_of(columns)
    value, named = find(column), named_columns(find)
    found = read_text(
        template.replace(_PLACE, f'"{stand_in}"'), lambda node: value if node.name == stand_in else named(node)
    )
    if has_aggregate(found):
        raise InvalidFragment(f"A transformation is of one row, and has no aggregates: {template}", hint=_HINT)
    return found
