"""How the event time of the result follows from that of the inputs, and so its watermark (design: "Watermark out").

A watermark promises that no row at or before it comes later. It passes through a query where the event time does: it
is passed unchanged, or it is a function of the input's event time that never decreases. Where the event time is
computed in another way, the watermark does not advance.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.data.timestamp import Timestamp
from odfpy.engine.spark.catalyst import Catalyst, Node, children, expression_name
from odfpy.engine.spark.classes.base import Delta
from odfpy.engine.spark.lineage import Origin, origins
from odfpy.engine.spark.tables import Table
from odfpy.engine.watermark import least_watermark

_TIMES: Final = ("date", "timestamp", "timestamp_ntz")
_NEVER_DECREASING: Final = frozenset(
    """
    Alias AttributeReference KnownNotNull ParseToDate TruncDate TruncTimestamp LastDay AddMonths
    DatetimeSub DateAdd DateSub DateAddInterval DateAddYMInterval TimestampAddInterval TimestampAddYMInterval TimeAdd
    """.split()  # noqa: SIM905
)


def event_time_origins(delta: Delta, column: Node) -> list[Origin]:
    """Where the event time of the result comes from."""
    return origins(delta.plan, column)


def watermark_passes(found: Sequence[Origin], delta: Delta, tables: Sequence[Table]) -> bool:
    """Whether the watermark of the inputs says anything about the result."""
    return bool(found) and all(_is_monotone(origin, delta, tables) for origin in found)


def output_watermark(
    catalyst: Catalyst, delta: Delta, column: Node, tables: Sequence[Table], inputs: Sequence[Timestamp | None]
) -> Timestamp | None:
    """The watermark of the result, or None when it does not advance.

    Args:
        catalyst: the session.
        delta: the rows of the result.
        column: its event time.
        tables: the inputs, in declared order.
        inputs: the latest watermark of each of them.
    """
    found = event_time_origins(delta, column)
    if least_watermark(inputs) is None or not watermark_passes(found, delta, tables):
        return None
    used = {delta.branches[branch].input for branch in (origin.branch for origin in found) if branch is not None}
    unused = [watermark for at, watermark in enumerate(inputs) if at not in used]
    passed = [_passed(catalyst, origin, inputs[_input_of(origin, delta)]) for origin in found]
    return least_watermark([*unused, *passed])


def _input_of(origin: Origin, delta: Delta) -> int:
    return delta.branches[origin.branch or 0].input


def _is_monotone(origin: Origin, delta: Delta, tables: Sequence[Table]) -> bool:
    if origin.branch is None or origin.column != tables[_input_of(origin, delta)].vocab.event_time_column:
        return False
    return all(_never_decreases(step.expression) for step in origin.steps)


def _never_decreases(expression: Node) -> bool:
    """Whether an expression never decreases when the one column that it reads grows."""
    name = expression_name(expression)
    if name == "Cast":
        (child,) = children(expression)
        if expression.dataType().typeName() not in _TIMES or child.dataType().typeName() not in _TIMES:
            return False
    elif name not in _NEVER_DECREASING:
        return False
    return all(_never_decreases(child) for child in children(expression) if not child.references().isEmpty())


def _passed(catalyst: Catalyst, origin: Origin, watermark: Timestamp | None) -> Timestamp | None:
    """The watermark after the expressions that the event time goes through.

    They may map later times to the same result, as `date_trunc` does, so that it is just before theirs.
    """
    if watermark is None or not origin.steps:
        return watermark
    micros: int | None = watermark.millis * 1000
    for step in origin.steps:
        if micros is not None:
            given = catalyst.alias(catalyst.time(micros, step.reads.dataType()), step.reads.name(), step.reads.exprId())
            micros = _micros(
                catalyst, catalyst.project([step.expression], catalyst.project([given], catalyst.one_row()))
            )
    return None if micros is None else Timestamp.from_millis(micros // 1000 - 1)


def _micros(catalyst: Catalyst, plan: Node) -> int | None:
    """The one time that a plan results in, in microseconds since the epoch."""
    from pyspark.sql import functions

    frame = catalyst.dataframe(plan)
    (row,) = frame.select(functions.unix_micros(frame[frame.columns[0]].cast("timestamp"))).collect()
    value: int | None = row[0]
    return value
