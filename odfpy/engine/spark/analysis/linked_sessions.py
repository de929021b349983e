"""Sessions of many rows: rows that certainly belong together are merged before sessions are computed.

To compute sessions, Spark sorts the rows of each key. But rows with the same gap whose times are less than a gap apart
belong together, whatever lies between them. So time is divided into pieces as long as the gap: the rows of a key in one
piece form a *link*, with their partial aggregates, and with the interval from their least start to their greatest end.
Making links takes no sort; only links are sorted, of which there are few where sessions have many rows.
"""

from __future__ import annotations

from odfpy.engine.spark.analysis.canonical import canonical_partial_aggregate, ordered_aggregate
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, items
from odfpy.engine.spark.plan.session_windows import is_session, needs_whole_sessions, session_of


def linked_sessions(catalyst: Catalyst, node: Node) -> Node:
    """Return an `Aggregate` in which rows become sessions, like `ordered_aggregate`, but with links where possible."""
    build = Builder(catalyst)
    phases = canonical_partial_aggregate(build, node)
    if not phases.can_be_kept or needs_whole_sessions(node):
        return ordered_aggregate(catalyst, node)
    at = next(at for at, grouping in enumerate(phases.groupings) if is_session(grouping))
    session = phases.groupings[at]
    start, end = (catalyst.field_of(session, field) for field in ("start", "end"))
    piece, gap = link_keys(build, start, end)
    groupings = [*phases.groupings[:at], piece, *phases.groupings[at + 1 :], gap]
    reach = [
        catalyst.alias(build.aggregate(build.expression(f"aggregate.{name}", time)), "__odf_reach")
        for name, time in (("Min", start), ("Max", end))
    ]
    outputs = [*items(node.aggregateExpressions()), *reach]
    linking = catalyst.aggregate(groupings, outputs, node.child())
    links = canonical_partial_aggregate(build, linking).of_rows(node.child())
    *known, first, last = columns(links)
    session_struct = session_of(build, session, first, last, known[at].name())
    kept = [column for number, column in enumerate(known) if number not in (at, len(groupings) - 1)]
    return phases.results(phases.merged(catalyst.project([session_struct, *kept], links)))


def link_keys(build: Builder, start: Node, end: Node) -> tuple[Node, Node]:
    """Return the expressions that identify the link of a row within its key: its piece of time, and the gap.

    Args:
        build: makes expressions.
        start: start of the session of a single row.
        end: end of that session.
    """
    first, last = (build.micros(time) for time in (start, end))
    gap = build.expression("Subtract", last, first)
    return build.expression("Subtract", first, build.expression("Pmod", first, gap)), gap
