"""Constants in queries: VALUES and range(...), which Spark evaluates during analysis, and gaps of sessions.

Tables of constants are checked in the parsed query: afterwards, their expressions are no longer known.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from odfpy.engine.spark.analysis.determinism import check_deterministic, place
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    expression_name,
    expressions_of,
    items,
    operator_name,
    subtree,
)
from odfpy.engine.spark.plan.operators import with_subqueries
from odfpy.engine.spark.plan.session_windows import is_session
from odfpy.errors import InvalidQuery, UnsupportedQuery

if TYPE_CHECKING:
    from odfpy.engine.sql.source_text import SourceText

MAX_ROWS: Final = 1_000_000
"""The maximum number of rows of a range, which are generated whenever the query runs."""

_QUERIES: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"))
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


def check_constants(catalyst: Catalyst, parsed: Node, source: SourceText) -> None:
    """Refuse tables of constants whose values are not the same everywhere and always.

    Args:
        catalyst: the session.
        parsed: the parsed query.
        source: its text.

    Raises:
        NondeterministicQuery: a value reads the clock, is random...
        InvalidQuery: a value is not an expression of constants.
    """
    values = [value for plan in _plans(parsed) for value in _values(plan) if not _is_plain(value)]
    if values:
        aliases = [catalyst.alias(value, f"c{at}") for at, value in enumerate(values)]
        check_deterministic(catalyst, catalyst.analyze(catalyst.project(aliases, catalyst.one_row())), source)


def check_ranges(plan: Node, source: SourceText) -> None:
    """Refuse ranges that are too long.

    Raises:
        UnsupportedQuery: a range is too long; the hint tells the limit.
    """
    for operator in with_subqueries(plan):
        if operator.name == "Range" and (rows := int(str(operator.node.numElements()))) > MAX_ROWS:
            raise UnsupportedQuery(
                f"This range has {rows:,} rows{place(operator.node, source)}",
                hint=f"A range may have {MAX_ROWS:,}. Longer ones come from a cross join of two, or from a dataset.",
            )


def check_gaps(catalyst: Catalyst, plan: Node, source: SourceText) -> None:
    """Refuse sessions that no row can be in, since their gap is a constant that is no interval, or is not positive.

    Spark silently drops such rows. It also drops single rows whose gap is NULL or negative; a query may intend that.

    Args:
        catalyst: the session.
        plan: the analyzed query.
        source: its text.

    Raises:
        InvalidQuery: there are such sessions.
    """
    if "session_window" not in source.text.lower():
        return
    for operator in with_subqueries(plan):
        for name, session in operator.expressions:
            is_made = name == "Alias" and expression_name(session.child()) == "CreateNamedStruct"
            if is_made and is_session(session) and not _has_positive_gap(catalyst, session):
                raise InvalidQuery(
                    f"The gap of these sessions is not an interval that lasts{place(session, source)}",
                    hint="Write it as a number with a unit, for example session_window(event_time, '5 minutes').",
                )


def _has_positive_gap(catalyst: Catalyst, session: Node) -> bool:
    """Return whether a row's own session ends after it starts, unless that depends on the row."""
    for name, added in subtree(children(session.child())[-1]):
        if name == "TimestampAddInterval":  # the outermost one: others may belong to the time
            _, gap = children(added)
            if not gap.foldable():
                return True
            start = catalyst.time(0, added)
            after = added.withNewChildren(catalyst.seq([start, gap]))
            return bool(catalyst.constant(catalyst.expression("GreaterThan", after, start)))
    return True


def _plans(plan: Node) -> Iterator[Node]:
    """Yield the operators of a parsed query, including those of subqueries."""
    yield plan
    below = children(plan) + (items(plan.innerChildren()) if operator_name(plan) == "UnresolvedWith" else [])
    for expression in expressions_of(plan):
        below += [node.plan() for kind, node in subtree(expression) if kind in _QUERIES]
    for child in below:
        yield from _plans(child)


def _values(plan: Node) -> list[Node]:
    """Return the expressions of a table of constants."""
    match operator_name(plan):
        case "analysis.UnresolvedInlineTable":
            return [value for row in items(plan.rows()) for value in items(row)]
        case "analysis.UnresolvedTableValuedFunction" if items(plan.name())[-1].lower() == "range":
            return [_argument(value) for value in items(plan.functionArgs())]
    return []


def _argument(value: Node) -> Node:
    return children(value)[0] if expression_name(value) == "NamedArgumentExpression" else value


def _is_plain(value: Node) -> bool:
    """Return whether a value is a plain literal; times may be words such as `now`."""
    return expression_name(value) == "Literal" and value.dataType().typeName() not in _TIMES
