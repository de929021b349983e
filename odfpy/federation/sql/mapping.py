"""Rewriting fragments in another schema: each column is replaced by the expression that a mapping has for it.

Replacements are cast to the column's type in the original schema, so that a source with other types changes nothing for
the client. Columns that a mapping lacks are replaced by NULL, cast to that type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.expressions import Column, Constant, Expression, rebuilt
from odfpy.federation.sql.fragment import Fragment, Order, Output
from odfpy.federation.sql.operators import called_again
from odfpy.federation.sql.simplify import simplified
from odfpy.federation.sql.types import UNKNOWN


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
        mapped = expressions.get(node.name)
        if mapped is None:
            return Constant(None, node.dtype)
        return mapped if node.dtype == UNKNOWN else cast(mapped, node.dtype)

    def of(expression: Expression) -> Expression:
        return simplified(rebuilt(expression, column, called_again))

    return replace(
        fragment,
        entity=entity,
        outputs=tuple(Output(output.name, of(output.expression), output.type) for output in fragment.outputs),
        where=None if fragment.where is None else of(fragment.where),
        groups=tuple(of(group) for group in fragment.groups),
        order=tuple(Order(of(order.expression), order.descending, order.nulls_first) for order in fragment.order),
    )
