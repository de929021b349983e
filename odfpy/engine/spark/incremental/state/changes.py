"""Changelogs as multisets of rows (ADR 0013, "Streams and states").

A row of a changelog has a weight: +1 for `+A` and `+C`, -1 for `-R` and `-C`. Identical rows are one row with the sum
of their weights; the rows that remain are the current state. A retraction of a row that is not there is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, cached_node_property, columns, type_of
from odfpy.engine.spark.plan.same_bytes import summed_by_row
from odfpy.engine.spark.plan.step import RESERVED_PREFIX
from odfpy.engine.spark.plan.templates import Templates
from odfpy.engine.spark.plan.types import struct_of
from odfpy.engine.spark.rows.parallelism import gather

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

WEIGHT: Final = "__odf_weight"
_TIMES: Final = "__odf_times"
_TEMPLATES: Final = Templates()
_RETRACTIONS: Final = (int(OperationType.RETRACT), int(OperationType.CORRECT_FROM))


@dataclass(frozen=True, slots=True)
class Changes:
    """Rows with weights: a changelog, or a part of one.

    Attributes:
        plan: the columns of the rows, then the weight.
        is_append_only: whether all weights are known to be 1.
        latest: for a log, the greatest event time so far, in microseconds.
    """

    plan: Node
    is_append_only: bool
    latest: int | None = None


def weight_of(catalyst: Catalyst, operation_type: Node) -> Node:
    """Return the weight of a row with an operation type."""
    less = catalyst.expression("In", operation_type, catalyst.seq([catalyst.integer(kind) for kind in _RETRACTIONS]))
    return catalyst.alias(catalyst.expression("If", less, catalyst.integer(-1), catalyst.integer(1)), WEIGHT)


def union_changes(catalyst: Catalyst, parts: Sequence[Changes]) -> Changes:
    """Return the union of several changelogs."""
    if len(parts) == 1:
        return parts[0]
    plans = [with_wide_weight(catalyst, changes.plan) for changes in parts]
    return Changes(gather(catalyst, catalyst.union(plans)), all(changes.is_append_only for changes in parts))


def with_wide_weight(catalyst: Catalyst, plan: Node) -> Node:
    """Cast the weight, which is the last column of a plan, to BIGINT, the type that files have."""
    *data, weight = columns(plan)
    return catalyst.project([*data, wide_weight(catalyst, weight)], plan)


def wide_weight(catalyst: Catalyst, value: Node) -> Node:
    """Return a weight as a BIGINT."""
    return catalyst.alias(Builder(catalyst).cast(value, "bigint"), WEIGHT)


def net(catalyst: Catalyst, changes: Changes) -> Node:
    """Return the net of a changelog: columns `c0`, `c1`... and a weight, which is never 0."""
    plan = changes.plan
    return positional(catalyst, plan) if changes.is_append_only else net_rows(catalyst, plan)


def net_rows(catalyst: Catalyst, plan: Node) -> Node:
    """Return the net rows of a plan whose last column is a weight: columns `c0`, `c1`... and a weight."""
    return _TEMPLATES.over(catalyst, plan, "left", _net_rows, names=_names(plan))


def _net_rows(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions

    summed = summed_by_row(rows, rows.columns[:-1], {WEIGHT: functions.sum(WEIGHT)})
    return summed.where(functions.col(WEIGHT) != 0)


def positional(catalyst: Catalyst, plan: Node) -> Node:
    """Rename the columns of a plan, whose last one is a weight, to `c0`, `c1`..."""
    pairs = zip(columns(plan), _names(plan), strict=True)
    return catalyst.project([catalyst.alias(column, name) for column, name in pairs], plan)


def _names(plan: Node) -> list[str]:
    return [*(f"c{at}" for at in range(len(columns(plan)) - 1)), WEIGHT]


def multiset(catalyst: Catalyst, changes: Changes, wanted: Sequence[Node]) -> Node:
    """Return the current state of a changelog, each row as often as it is present.

    Args:
        catalyst: the session.
        changes: the changelog.
        wanted: the columns whose identities the result gets.
    """
    plan = changes.plan
    if not changes.is_append_only:
        plan = _TEMPLATES.over(catalyst, plan, "each", _expanded, names=_names(plan))
    # Each column gets a unique name. Two columns of one name may be the same column below (`w AS w, w`): Spark then
    # drops both aliases and pushes this projection into the branches of the union in `union_changes`, but refuses a
    # union of branches that have a column twice.
    pairs = enumerate(zip(columns(plan), wanted, strict=False))
    named = [with_identity_of(catalyst, below, other, _name(other, at)) for at, (below, other) in pairs]
    return catalyst.project(named, plan)


def _name(wanted: Node, at: int) -> str:
    """Return a unique name for a column. Columns of the engine keep their prefix: only others order rows."""
    return f"{RESERVED_PREFIX if wanted.name().startswith(RESERVED_PREFIX) else 'c'}{at}"


def _expanded(rows: DataFrame) -> DataFrame:
    """Return each row as often as it is present."""
    from pyspark.sql import functions

    # Negative weights are only ignored here, for queries: the state keeps them until the retracted row comes.
    return repeated(_net_rows(rows).where(functions.col(WEIGHT) > 0))


def repeated(rows: DataFrame) -> DataFrame:
    """Return each row as often as the absolute value of its weight, with one more column that numbers the copies."""
    from pyspark.sql import functions

    times = functions.sequence(functions.lit(1), functions.abs(functions.col(WEIGHT)))
    return rows.withColumn(_TIMES, functions.explode(times))


def renamed(catalyst: Catalyst, plan: Node, wanted: Iterable[Node]) -> Node:
    """Give the first columns of a plan other names and identities.

    Args:
        catalyst: access to Catalyst.
        plan: the plan.
        wanted: the columns whose names and identities they get.
    """
    pairs = zip(columns(plan), wanted, strict=False)
    return catalyst.project([with_identity_of(catalyst, below, column) for below, column in pairs], plan)


def no_rows(catalyst: Catalyst, wanted: Sequence[Node]) -> Node:
    """Return an empty relation with the types, names and identities of some columns."""
    types = struct_of([(f"c{at}", type_of(column)) for at, column in enumerate(wanted)])
    return renamed(catalyst, catalyst.empty(types), wanted)


def with_identity_of(catalyst: Catalyst, column: Node, wanted: Node, name: str | None = None) -> Node:
    """Return a column with the identity, name and nullability of another one, as plans above refer to it.

    Args:
        catalyst: access to Catalyst.
        column: a column of the plan.
        wanted: the column whose identity it takes over.
        name: its name, None for the name of `wanted`.
    """
    value = catalyst.never_null(column) if not _is_nullable(wanted) and column.nullable() else column
    return catalyst.alias(value, name or wanted.name(), wanted.exprId())


def _is_nullable(wanted: Node) -> bool:
    return cached_node_property(wanted, "nullable", lambda: bool(wanted.nullable()))
