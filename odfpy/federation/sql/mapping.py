"""Fragments in the words of others: an expression for each piece of information takes its place in the tree.

What comes of a piece of information is cast to its type in the model that the fragment was in, so that a source which
keeps it in another way changes nothing for the asker. Information that a mapping lacks is NULL, of that type.
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
    """The expression that a transformation gives of a column: `{v} * 100` of `discount`.

    Args:
        template: SQL, in which `{v}` stands for the column; other columns may be named.
        column: its name.
        columns: names and types of all columns, None if they are somebody else's.

    Raises:
        InvalidTransformation: it is not in the grammar.
    """
    if not isinstance(template, str) or len(template) > _MAX_LENGTH:
        raise InvalidTransformation(f"A transformation has at most {_MAX_LENGTH:,} characters", hint=_HINT)
    stand_in = "v"
    while stand_in in template.replace(_PLACE, "") or stand_in == column:
        stand_in += "_"  # no column that the template names

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
    """The fragment in other words.

    Args:
        fragment: in the words of one model.
        entity: the entity of the other one.
        expressions: for each piece of information, what it is there.

    Raises:
        InvalidFragment: the other words do not fit, or the fragment has become too large.
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
