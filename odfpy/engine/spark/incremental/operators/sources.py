"""Sources in plans: inputs, temporal tables and the changelogs of earlier fragments, with what the planner needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from odfpy.engine.spark.incremental.properties.plan_info import PlanInfo, TimeColumn, Validity
from odfpy.engine.spark.incremental.state.changes import with_identity_of
from odfpy.engine.spark.incremental.state.source_rows import no_source_rows
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns
from odfpy.engine.spark.plan.step import CARRIED_INPUT, CARRIED_OFFSET, CARRIED_OPERATION


@dataclass(frozen=True, slots=True)
class TableSource:
    """The properties of a source that the planner relies on: times, uniqueness, validity.

    Attributes:
        times: columns that have times, by position.
        unique: positions of the columns that identify a row.
        validity: the columns `valid_from` and `valid_to` of a temporal table, by position.
    """

    times: Mapping[int, TimeColumn]
    unique: frozenset[int] | None = None
    validity: Mapping[int, Validity] = field(default_factory=dict)


def source_of(info: PlanInfo) -> TableSource:
    """Return the properties of a planned fragment as a source of later fragments."""
    positions = {column_id(column): at for at, column in enumerate(info.columns)}
    times = {positions[key]: time for key, time in info.times.items() if key in positions}
    unique = frozenset(positions[key] for key in info.unique) if info.unique is not None else None
    return TableSource(times, unique)


def source_plan(catalyst: Catalyst, outputs: Sequence[Node], number: int) -> Node:
    """Return an empty plan that represents a source: its columns under given identities, and the carried columns.

    Args:
        catalyst: access to Catalyst.
        outputs: its columns.
        number: number of the source.
    """
    empty = no_source_rows(catalyst, outputs)
    inner = columns(empty)
    named = [with_identity_of(catalyst, below, column) for below, column in zip(inner, outputs, strict=False)]
    carried = [
        catalyst.alias(catalyst.integer(number), CARRIED_INPUT),
        catalyst.alias(inner[-2], CARRIED_OFFSET),
        catalyst.alias(inner[-1], CARRIED_OPERATION),
    ]
    return catalyst.project(named + carried, empty)
