"""Properties of a plan: its keys, its times, and the stateful inputs that it reads.

A plan is *stateless* as long as it works row by row: its rows can be computed from any rows of its sources, new or old.
An operator that looks at several rows at once (an aggregate, a join...) reads *stateful inputs*. A stateful input is a
stateless plan whose rows the engine stores between pulls, or reads again. The operators above are run over its rows as
of before a pull and as of after it; the difference is what the pull emits.

A *key* is a value by which a plan is partitioned: the result for one value does not depend on rows with another. So a
pull reads rows of affected keys only. Reading rows of other keys does no harm: their results before and after are
equal, and cancel out.

A *fragment* is a plan that is processed by itself. Its changes are a source of later fragments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Protocol

from odfpy.engine.spark.analysis.partial_aggregate import PartialAggregate
from odfpy.engine.spark.incremental.properties.row_rules import NO_RULES, RowRules
from odfpy.engine.spark.plan.catalyst import Node, column_id, expression_name
from odfpy.engine.spark.plan.storable_types import can_be_key
from odfpy.engine.spark.plan.times import Clock, DerivedWatermark


@dataclass(frozen=True, slots=True)
class StateRequirement:
    """The state that an operator needs, as `odf inspect query` shows it.

    Attributes:
        name: class of query, for example `event-time window`.
        reason: what in the query makes it so.
        state: what is stored between pulls.
    """

    name: str
    reason: str
    state: str


@dataclass(frozen=True, slots=True)
class TimeColumn:
    """A column that has the event times of rows, or the windows that they fall into.

    Attributes:
        watermark: no row with a time at or before it comes later.
        windows: if the column is a window of that time, the expressions that compute it, one for each copy of a row.
        reads: the time column that these expressions read.
        is_session: whether the window grows with the rows that fall into it.
    """

    watermark: DerivedWatermark
    windows: tuple[Node, ...] = ()
    reads: Node | None = None
    is_session: bool = False


class Retention(Enum):
    """The rows of a stateful input that the engine stores between pulls."""

    NOTHING = "none: they are read again from the history of the inputs"
    OPEN = "those that are not dropped yet: of open windows, sessions and intervals"
    GROUPS = "none, but the partial aggregates of their groups"
    TOP_ROWS = "those that matter as long as no row is retracted, such as the first rows of each partition"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class Lookup:
    """A lookup of rows by another stateful input, as facts look up versions; unmatched looked-up rows are not emitted.

    Attributes:
        by: number of the other stateful input, whose rows wait until the versions of their time are known.
        condition: the join condition, an expression over the columns of both.
        valid: the columns from when and until when a row is valid, if a change of a row only affects the interval in
            which it makes a difference; None if a change affects the whole interval in which the row is valid.
        uses_end: whether the query uses the end of a row for more than the comparison with the time looked up.
        is_outer: whether rows that find no match are in the result.
    """

    by: int
    condition: Node
    valid: tuple[Node, Node] | None
    uses_end: bool
    is_outer: bool


TopRows = Callable[[Node, Clock], Node]
"""Filters the rows that matter as long as no row is retracted, given a plan of rows and the watermarks."""


@dataclass(frozen=True, slots=True)
class StatefulInput:
    """A stateless plan whose rows an operator must store or re-read: a side of a join, or the input of an aggregate.

    Attributes:
        number: position among the stateful inputs of its fragment, from 0.
        plan: the stateless plan.
        columns: its output.
        keys: expressions over its columns by which the operator above can be partitioned.
        rules: rules for when its rows are complete, late, and no longer stored.
        retention: which rows are stored.
        looked_up: how rows of another stateful input look up those of this one, None if they do not.
        log: the column with the event time if the operator reads the changelog itself rather than its current state;
            the last columns are then the marks of `odfpy.engine.spark.incremental.state.log`. Otherwise None.
        groups: the partial aggregates that are stored in place of rows; `keys` are then the grouping expressions.
        top_rows: given a plan with these columns, returns the rows that matter as long as no row is retracted or late,
            with the same columns.
    """

    number: int
    plan: Node
    columns: tuple[Node, ...]
    keys: tuple[Node, ...]
    rules: RowRules = NO_RULES
    retention: Retention = Retention.NOTHING
    looked_up: Lookup | None = None
    log: Node | None = None
    groups: PartialAggregate | None = None
    top_rows: TopRows | None = None

    @property
    def is_read_again(self) -> bool:
        """True if none of its rows are stored: a pull reads them from history, or from an arrangement."""
        return self.retention is Retention.NOTHING and self.groups is None


@dataclass(frozen=True, slots=True)
class Values:
    """Columns and expressions of a plan that have the same value in each row.

    Attributes:
        columns: ids of output columns.
        expressions: others, over output columns.
    """

    columns: frozenset[int] = frozenset()
    expressions: tuple[Node, ...] = ()

    @classmethod
    def of(cls, values: Iterable[Node]) -> Values:
        """Return the values that some columns and expressions have."""
        named = [(expression_name(value) == "AttributeReference", value) for value in values]
        columns = frozenset(column_id(value) for is_column, value in named if is_column)
        return cls(columns, tuple(value for is_column, value in named if not is_column))

    def has(self, expression: Node) -> bool:
        """Return whether an expression is one of the columns or expressions."""
        if expression_name(expression) == "AttributeReference":
            return column_id(expression) in self.columns
        return any(other.semanticEquals(expression) for other in self.expressions)

    def __or__(self, other: Values) -> Values:
        """Return the union with others."""
        return Values(self.columns | other.columns, self.expressions + other.expressions)


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a plan.

    Each row of the result is computed from rows of stateful inputs with the same key. `outputs` and `nullable_outputs`
    also hold for rows that an operator adds: an outer join adds rows whose columns of one side are NULL, whatever the
    key.

    Attributes:
        at: the index of the key among the keys of each stateful input, by number of the stateful input; stateful inputs
            that are looked up may lack it.
        outputs: outputs that have the value of the key in all rows.
        nullable_outputs: outputs that have the value of the key in some rows, and are NULL in all others.
    """

    at: Mapping[int, int]
    outputs: Values = field(default_factory=Values)
    nullable_outputs: Values = field(default_factory=Values)


@dataclass(frozen=True, slots=True)
class Validity:
    """A column `valid_from` or `valid_to` of a temporal table.

    Attributes:
        is_end: whether it is `valid_to`.
        watermark: later pulls neither begin nor end versions at or before it.
    """

    is_end: bool
    watermark: DerivedWatermark


@dataclass(frozen=True, slots=True)
class Groups:
    """Partial aggregates of the rows of a stateful input.

    Attributes:
        plan: the result of `PartialAggregate.of_rows`, with each group once.
        by_value: whether the aggregated values are part of its keys, so that they can be retracted.
    """

    plan: Node
    by_value: bool


class InputsAt(Protocol):
    """The rows of stateful inputs and the watermarks at one moment: before a pull or after it."""

    @property
    def clock(self) -> Clock:
        """Return the watermarks."""
        ...

    def rows(self, stateful_input: StatefulInput) -> Node:
        """Return the rows of a stateful input, with its columns (of which unused ones may be missing)."""
        ...

    def groups(self, stateful_input: StatefulInput) -> Groups:
        """Return the partial aggregates of a stateful input that has them."""
        ...

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        """Return whether all rows that a log has ever had are known to be appended."""
        ...


Build = Callable[[Any], Node]
"""Builds the plan for an `InputsAt`."""


@dataclass(frozen=True, slots=True)
class PlanInfo:
    """The properties of a plan or subplan, from which the planner derives those of the operators above it.

    Attributes:
        columns: its output columns.
        stateless_plan: the plan itself, while it works row by row.
        build: builds the plan for a moment; unused while the plan is stateless.
        join_product: `build` itself if each row of the result combines one row of every stateful input; otherwise any
            other value.
        keys: keys by which the plan is partitioned, once it is stateful.
        stateful_inputs: the stateful inputs that it reads.
        times: columns that have times, by id.
        unique: ids of columns that identify a row, or None.
        requirements: the state that its operators need, from the sources up.
        validity: columns of a temporal table that tell when its rows are valid, by id, while the plan is stateless.
    """

    columns: tuple[Node, ...]
    stateless_plan: Node | None = None
    build: Build | None = None
    join_product: Build | None = None
    keys: tuple[Key, ...] = ()
    stateful_inputs: tuple[StatefulInput, ...] = ()
    times: Mapping[int, TimeColumn] = field(default_factory=dict)
    unique: frozenset[int] | None = None
    requirements: tuple[StateRequirement, ...] = ()
    validity: Mapping[int, Validity] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        """True if the plan reads no source: its rows are the same at all moments."""
        return self.stateless_plan is None and not self.stateful_inputs

    @property
    def is_join_product(self) -> bool:
        """True if each row combines one row of every stateful input, so that appended rows only add to the result."""
        return self.join_product is not None and self.join_product is self.build

    def over(self, build: Build, **changes: Any) -> PlanInfo:
        """Return the properties after an operator that works row by row; changes are attributes."""
        return replace(self, build=build, join_product=build if self.is_join_product else None, **changes)

    def built(self, inputs_at: InputsAt | None) -> Node:
        """Return the plan for a moment; a constant plan needs none."""
        if self.build is None:
            return self.stateless_plan
        return self.build(inputs_at)


@dataclass(frozen=True, slots=True)
class Fragment:
    """A plan that is processed by itself, and whose changes are a source of later fragments.

    Attributes:
        source: number of the source that its changes form.
        info: the properties of the plan; never stateless.
        keys: for each stateful input, the expressions by which its rows are looked up, None for a key that it lacks;
            empty if every pull affects all rows.
        alias: name of the step that it computes, None for a part of a step.
    """

    source: int
    info: PlanInfo
    keys: Mapping[int, tuple[Node | None, ...]]
    alias: str | None = None


def constant(outputs: tuple[Node, ...], plan: Node) -> PlanInfo:
    """Return the properties of a plan that reads no source. Nothing identifies a row unless there are no columns."""

    def build(_: InputsAt | None) -> Node:
        return plan

    return PlanInfo(outputs, build=build, join_product=build, unique=None if outputs else frozenset())


def rows_of(stateful_input: StatefulInput, inputs_at: InputsAt) -> Node:
    """Return the plan that reads a stateful input."""
    return inputs_at.rows(stateful_input)


def fragment_of(info: PlanInfo, source: int, alias: str | None = None) -> Fragment:
    """Return a plan as a fragment, with those of its keys by which rows can be looked up.

    Args:
        info: the properties of the plan.
        source: number of the source that its changes are.
        alias: name of the step that it is, None for a part of one.
    """
    keys = {
        stateful_input.number: tuple(
            _key_at(key, stateful_input) for key in info.keys if _is_usable_key(key, info.stateful_inputs)
        )
        for stateful_input in info.stateful_inputs
    }
    return Fragment(source, info, keys, alias)


def _key_at(key: Key, stateful_input: StatefulInput) -> Node | None:
    return stateful_input.keys[key.at[stateful_input.number]] if stateful_input.number in key.at else None


def _is_usable_key(key: Key, stateful_inputs: Sequence[StatefulInput]) -> bool:
    """Return whether rows can be looked up by a key; a key that is left out only means that more rows are read."""
    return all(
        can_be_key(expression)
        for stateful_input in stateful_inputs
        if (expression := _key_at(key, stateful_input)) is not None
    )
