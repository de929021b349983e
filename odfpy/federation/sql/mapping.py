"""Rewriting fragments in another schema: each column is replaced by the expression that a mapping has for it.

Replacements are cast to the column's type in the original schema, so that a source with other types changes nothing for
the client. Columns that a mapping lacks are replaced by NULL, cast to that type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.columns import Types, columns_of
from odfpy.federation.sql.errors import InvalidFragment, InvalidTransformation
from odfpy.federation.sql.expressions import Column, Constant, Expression, has_aggregate, rebuilt
from odfpy.federation.sql.fragment import Fragment, Order, Output
from odfpy.federation.sql.operators import called_again
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.simplify import simplified
from odfpy.federation.sql.types import UNKNOWN

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
        InvalidTransformation: it is not in the grammar.
    """
    if not isinstance(template, str) or len(template) > _MAX_LENGTH:
        raise InvalidTransformation(f"A transformation has at most {_MAX_LENGTH:,} characters", hint=_HINT)
    stand_in = "v"
    while stand_in in template.replace(_PLACE, "") or stand_in == column:
        stand_in += "_"  # no column that the template refers to

    find = columns_of(columns)
    try:
        value = find(column)
        named = named_columns(find)
        found = read_text(
            template.replace(_PLACE, f'"{stand_in}"'), lambda node: value if node.name == stand_in else named(node)
        )
    except InvalidFragment as error:
        raise InvalidTransformation(
            f"Not a transformation: {template}: {error.message}", hint=error.hint or _HINT
        ) from error
    if has_aggregate(found):
        raise InvalidTransformation(f"A transformation is of one row, and has no aggregates: {template}", hint=_HINT)
    return found


def rewritten(fragment: Fragment, entity: str, expressions: Mapping[str, Expression]) -> Fragment:
    """Rewrite a fragment in another schema.

    Args:
        fragment: the fragment in its original schema.
        entity: name of the entity in the new schema.
        expressions: for each column of the original schema, its expression in the new one.

    Raises:
        InvalidFragment: the schemas do not fit, or the fragment has become too large.
    """

    def column(node: Column) -> Expression:
        found = expressions.get(node.name)
        if found is None:
            return Constant(None, node.dtype)
        return found if node.dtype == UNKNOWN else cast(found, node.dtype)

    def of(expression: Expression) -> Expression:
        return simplified(rebuilt(expression, column, called_again))

    return replace(
        fragment,
        entity=entity,
        outputs=tuple(Output(one.name, of(one.expression), one.type) for one in fragment.outputs),
        where=None if fragment.where is None else of(fragment.where),
        groups=tuple(of(one) for one in fragment.groups),
        order=tuple(Order(of(one.expression), one.descending, one.nulls_first) for one in fragment.order),
    )
