"""Evaluation of expressions over a time: whether their values are times, and what these are for given times.

All times are microseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node

_TIMES: Final = ("date", "timestamp", "timestamp_ntz")


def is_time(expression: Node) -> bool:
    """Return whether the values of an expression are times or dates."""
    return expression.dataType().typeName() in _TIMES


def evaluate(catalyst: Catalyst, expression: Node, reads: Node, micros: int) -> int | None:
    """Return the value of a time expression for a value of the column that it reads, in microseconds, rounded down.

    Args:
        catalyst: access to Catalyst.
        expression: the expression.
        reads: the column of the time that the expression reads.
        micros: the time, in microseconds since the epoch.
    """
    (value,) = _evaluated(catalyst, [expression], reads, micros)
    return value


def open_start(catalyst: Catalyst, windows: Sequence[Node], reads: Node, micros: int) -> int:
    """Return the start of the first window that is open at a time; between windows, the time itself.

    Args:
        catalyst: access to Catalyst.
        windows: expressions of the windows that a time belongs to, with `start` and `end`.
        reads: the column of the time that they read.
        micros: the time, in microseconds since the epoch.
    """
    bounds = [catalyst.field_of(window, name) for window in windows for name in ("start", "end")]
    evaluated = _evaluated(catalyst, bounds, reads, micros)
    pairs = zip(evaluated[::2], evaluated[1::2], strict=True)
    return min(
        (start for start, end in pairs if start is not None and end is not None and start <= micros < end),
        default=micros,
    )


def _evaluated(catalyst: Catalyst, expressions: Sequence[Node], reads: Node, micros: int) -> list[int | None]:
    given = catalyst.alias(catalyst.time(micros, reads), reads.name(), reads.exprId())
    return _one_row(catalyst, expressions, [given])


def evaluated_at(catalyst: Catalyst, expression: Node, reads: Node, micros: Sequence[int]) -> list[int | None] | None:
    """Return the values of a time expression for several values of its column; None if it fails for one of them.

    Args:
        catalyst: access to Catalyst.
        expression: the expression.
        reads: the column of the time that the expression reads.
        micros: the times, in microseconds since the epoch.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    build = Builder(catalyst)
    given = [catalyst.alias(catalyst.time(value, reads), f"given{at}") for at, value in enumerate(micros)]

    def over(column: Node) -> Node:
        return build.substitute(expression, lambda part: column if part.semanticEquals(reads) else None)

    try:
        return _one_row(catalyst, [over(column.toAttribute()) for column in given], given)
    except (Py4JJavaError, PySparkException):
        return None


def _one_row(catalyst: Catalyst, expressions: Sequence[Node], given: Sequence[Node]) -> list[int | None]:
    build = Builder(catalyst)
    micros = [build.expression("UnixMicros", build.cast(expression, "timestamp")) for expression in expressions]
    aliases = [catalyst.alias(value, f"value{at}") for at, value in enumerate(micros)]
    return catalyst.constants(catalyst.project(aliases, catalyst.project(given, catalyst.one_row())))
