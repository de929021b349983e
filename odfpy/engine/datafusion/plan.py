"""The logical plan of a query for DataFusion: whether it works row by row."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any, Final

from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery, NondeterministicQuery, UnsupportedQuery

_ROW_OPERATORS: Final = frozenset(("Projection", "Filter", "Union", "Unnest", "SubqueryAlias", "TableScan"))
_NO_QUERY: Final = frozenset(("Explain", "Analyze", "DescribeTable"))
_NO_INPUT: Final = frozenset(("EmptyRelation", "Values"))
_OTHER: Final[dict[str, str]] = {
    "Aggregate": "a keyed aggregate (GROUP BY or an aggregate function)",
    "Distinct": "DISTINCT (or UNION without ALL)",
    "Join": "a join, EXCEPT or INTERSECT",
    "WindowExpr": "a window function",
    "Limit": "a top-N (ORDER BY with LIMIT)",
    "Sort": "ORDER BY",
    "RecursiveQuery": "a recursive query",
}
_SUBQUERY = re.compile(r"^\s*Subquery:$", re.MULTILINE)
_ONLY: Final = "the engine datafusion processes queries row by row only"
_INSTEAD: Final = "Write it for `engine: spark`, which has aggregates, windows and joins."


def operator(plan: Any) -> tuple[str, Any]:
    """Return the uppermost operator of a logical plan, with its name."""
    variant = plan.to_variant()
    return type(variant).__name__, variant


def operators(plan: Any) -> Iterator[tuple[str, Any]]:
    """Yield all operators of a logical plan with their names, from the result to its inputs."""
    yield operator(plan)
    for below in plan.inputs():
        yield from operators(below)


def check_is_query(plan: Any, source: SourceText) -> None:
    """Reject statements that report on a query or table instead of being a query.

    Raises:
        InvalidQuery: it is not a query.
    """
    for name, _ in operators(plan):
        if name in _NO_QUERY:
            raise InvalidQuery(f"Only queries are allowed, not {name}{source.whole()}", hint="Write a SELECT.")


def check_total_order(plan: Any, source: SourceText) -> None:
    """Reject a LIMIT over rows without an order.

    Raises:
        NondeterministicQuery: LIMIT without ORDER BY.
    """
    names = [name for name, _ in operators(plan)]
    if "Limit" in names and "Sort" not in names:
        raise NondeterministicQuery(
            f"LIMIT without a total order does not return the same rows every time{source.whole()}",
            hint="Add ORDER BY, or omit LIMIT.",
        )


def check_row_by_row(plan: Any, tables: Collection[str], source: SourceText) -> str:
    """Check that every row of the result comes from one row of an input.

    Args:
        plan: the logical plan, not optimized.
        tables: names of the inputs.
        source: the text of the query.

    Returns:
        The reason why it is so.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the query is not row by row.
    """
    check_is_query(plan, source)
    check_total_order(plan, source)
    names = [name for name, _ in operators(plan)]
    if _NO_INPUT.intersection(names) or not set(scans(plan)) <= set(tables):
        raise UnsupportedQuery(
            f"The query has rows that come from no input, so every pull would add them again{source.whole()}",
            hint="Select from an input; constants may stand beside its columns.",
        )
    other = next((name for name in names if name not in _ROW_OPERATORS), None)
    if other is not None:
        raise UnsupportedQuery(f"The query has {_OTHER.get(other, other)}; {_ONLY}{source.whole()}", hint=_INSTEAD)
    if _SUBQUERY.search(plan.display_indent()):
        raise UnsupportedQuery(f"The query has a subquery in an expression; {_ONLY}{source.whole()}", hint=_INSTEAD)
    words = {"Filter": "filter", "Union": "UNION ALL", "Unnest": "unnest"}
    used = ["projection", *(word for name, word in words.items() if name in names)]
    return "every result row comes from one input row: " + ", ".join(used)


def scans(plan: Any) -> Counter[str]:
    """Return how often a plan reads each table."""
    return Counter(str(node.table_name()) for name, node in operators(plan) if name == "TableScan")
