"""Stars as arguments of functions, as in `xxhash64(*)`.

Spark replaces the star by columns. Each of them has the text position of the function call, while a column that is
named has the position of its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from odfpy.engine.spark.plan.catalyst import (
    Node,
    children,
    columns_read,
    expression_name,
    expressions_of,
    text_range,
)
from odfpy.engine.sql.source_text import SourceText

_STAR_AS_ARGUMENT: Final = re.compile(r"[(,.]\s*\*\s*(?:[,)]|except\b)", re.IGNORECASE)


def has_star_in_function(plan: Node, source: SourceText) -> bool:
    """Return whether a function of an analyzed query takes columns by a star, whichever they are."""
    for _ in columns_by_star(plan, source):
        return True
    return any(has_star_in_function(child, source) for child in children(plan))


def columns_by_star(operator: Node, source: SourceText) -> Iterator[Node]:
    """Yield the columns that functions of an operator take by a star."""
    for expression in expressions_of(operator):
        if expression_name(expression) != "AttributeReference":
            for column in columns_read(expression):
                if _STAR_AS_ARGUMENT.search(written_at(column, source)):
                    yield column


def written_at(node: Node, source: SourceText) -> str:
    """Return the text that a node comes from; for a column that came by a star, the text of the function call."""
    span = text_range(node)
    return "" if span is None else source.text[slice(*span)]
