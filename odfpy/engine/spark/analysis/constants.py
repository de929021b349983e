"""Constants in queries: VALUES and range(...), which Spark evaluates while it analyzes them, and gaps of sessions.

What tables of constants are made of is looked at before, in the parsed query: afterwards nobody can tell what it was.
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
"""So many rows a range may have: they are made anew whenever the query runs."""

_QUERIES: Final = frozenset(("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery"))
_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


def check_constants(catalyst: Catalyst, parsed: Node, source: SourceText) -> None:
    """Refuse tables of constants that are not the same everywhere and always.

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
        made = [catalyst.alias(value, f"c{at}") for at, value in enumerate(values)]
        check_deterministic(catalyst, catalyst.analyze(catalyst.project(made, catalyst.one_row())), source)


def check_ranges(plan: Node, source: SourceText) -> None:
    """Refuse ranges that are too long.

    Raises:
        UnsupportedQuery: one is; the hint says how long they may be.
    """
    for operator in with_subqueries(plan):
        if operator.name == "Range" and (rows := int(str(operator.node.numElements()))) > MAX_ROWS:
            raise UnsupportedQuery(
                f"This range has {rows:,} rows{place(operator.node, source)}",
                hint=f"A range may have {MAX_ROWS:,}. Longer ones come from a cross join of two, or from a dataset.",
            )


def check_gaps(catalyst: Catalyst, plan: Node, source: SourceText) -> None:
    """Refuse sessions that no row is in, since their gap is a constant that is not an interval, or none that lasts.

    Spark leaves such rows out without a word. It does so with single rows whose gap is NULL or negative, too; there a
    query may mean it.

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
            if is_made and is_session(session) and not _lasts(catalyst, session):
                raise InvalidQuery(
                    f"The gap of these sessions is not an interval that lasts{place(session, source)}",
                    hint="Write it as a number with a unit, for example session_window(event_time, '5 minutes').",
                )


def _lasts(catalyst: Catalyst, session: Node) -> bool:
    """Return whether a row's own session has an end after its start, unless that is up to the row."""
    for name, added in subtree(children(session.child())[-1]):
        if name == "TimestampAddInterval":  # the outermost in the end: the time may be made by others
            _, gap = children(added)
            if not gap.foldable():
                return True
            start = catalyst.time(0, added)
            after = added.withNewChildren(catalyst.seq([start, gap]))
            return bool(catalyst.constant(catalyst.expression("GreaterThan", after, start)))
    return True


def _plans(plan: Node) -> Iterator[Node]:
    """The operators of a parsed query, also those of queries inside of it."""
    yield plan
    below = children(plan) + (items(plan.innerChildren()) if operator_name(plan) == "UnresolvedWith" else [])
    for expression in expressions_of(plan):
        below += [node.plan() for kind, node in subtree(expression) if kind in _QUERIES]
    for child in below:
        yield from _plans(child)


def _values(plan: Node) -> list[Node]:
    """Return what a table of constants is made of."""
    match operator_name(plan):
        case "analysis.UnresolvedInlineTable":
            return [value for row in items(plan.rows()) for value in items(row)]
        case "analysis.UnresolvedTableValuedFunction" if items(plan.name())[-1].lower() == "range":
            return [_argument(value) for value in items(plan.functionArgs())]
    return []


def _argument(value: Node) -> Node:
    return children(value)[0] if expression_name(value) == "NamedArgumentExpression" else value


def _is_plain(value: Node) -> bool:
    """Return whether a value stands in the query as it is; times may be words as `now`."""
    return expression_name(value) == "Literal" and value.dataType().typeName() not in _TIMES
