"""Parts of queries over all rows of small inputs, without pulls: test cases for the laws of keys.

A part is evaluated in full, and over the rows of some keys only, as in a pull.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta, timezone
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
from support.engine.requests import Query, Source, queries

from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.contract import InputSchema
from odfpy.engine.lateness.policy import LatePolicy
from odfpy.engine.spark.incremental.operators.steps import Steps, steps_of
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, Groups, Key, StatefulInput
from odfpy.engine.spark.incremental.properties.row_rules import is_complete
from odfpy.engine.spark.incremental.state.changes import Changes, multiset, no_rows
from odfpy.engine.spark.incremental.state.pull import Pull
from odfpy.engine.spark.incremental.state.source_rows import SourceRows
from odfpy.engine.spark.incremental.state.stateful_inputs import StatefulRows
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns
from odfpy.engine.spark.plan.times import Clock
from odfpy.engine.spark.rows.batches import ROWS_IN_ONE_TASK
from odfpy.engine.spark.rows.parallelism import Parallelism
from odfpy.engine.spark.rows.tables import Table

START = datetime(2024, 1, 1, tzinfo=timezone.utc)
_END = START + timedelta(days=7)
FIELDS: Sequence[Any] = (pa.field("k", pa.int32()), pa.field("j", pa.int32()))
"""The columns of every input, besides the event time, which is given in hours after `START`."""

Row = tuple[Any, ...]


def prepared(catalyst: Catalyst, folder: Path, query: Query, inputs: Sequence[str], **more: Any) -> Steps:
    """Return a query over inputs that are alike; `more` are other parts of the transform."""
    schemas = [Source(folder, name, FIELDS).schema_file() for name in inputs]
    tables = [Table.of(InputSchema(name, DEFAULT_VOCABULARY, file)) for name, file in zip(inputs, schemas, strict=True)]
    return steps_of(catalyst, replace(queries(query), **more), tables, "event_time", LatePolicy.default(len(tables)))


@dataclass(frozen=True)
class _All:
    """A source with only new rows."""

    plan: Node

    def new(self) -> SourceRows:
        return SourceRows(self.plan, is_append_only=True, count=0)

    def old(self) -> None:
        return None


@dataclass
class World:
    """A transform and all rows of its inputs.

    Attributes:
        inputs: all rows of each input, see `input_rows`.
        scratch: a folder for temporary files.
    """

    catalyst: Catalyst
    steps: Steps
    inputs: Sequence[Node]
    scratch: Path
    _streams: list[_All] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._streams += [_All(plan) for plan in self.inputs]
        for fragment in self.steps.fragments:
            plan = self.result(fragment)
            marks = [self.catalyst.alias(self.catalyst.integer(0), f"mark{at}") for at in range(2)]
            self._streams.append(_All(self.catalyst.project([*columns(plan), *marks], plan)))

    @property
    def clock(self) -> Clock:
        """The watermarks, which have passed all rows."""
        return Clock(self.catalyst, [int(_END.timestamp()) * 1_000_000] * len(self.inputs))

    def result(self, fragment: Fragment, touched: Node | None = None) -> Node:
        """Return the rows of a fragment, or those computed from the rows of some keys only."""
        return fragment.info.built(_InputsAt(self, fragment, self._stateful_inputs(fragment), touched))

    def keys(self, fragment: Fragment) -> Node:
        """The different keys of all rows, at stateful inputs that have all keys of a fragment: columns `k0`, `k1`..."""
        stateful_inputs, found = self._stateful_inputs(fragment), []
        for stateful_input in fragment.info.stateful_inputs:
            new, keys = stateful_inputs.new(stateful_input), fragment.keys[stateful_input.number]
            if new is not None and None not in keys:
                aliases = [self.catalyst.alias(key, f"k{at}") for at, key in enumerate(keys)]
                found.append(self.catalyst.project(aliases, new.plan))
        return self.catalyst.plan(self.catalyst.dataframe(self.catalyst.union(found)).distinct())

    def _stateful_inputs(self, fragment: Fragment) -> StatefulRows:
        parallelism = Parallelism(self.catalyst, ROWS_IN_ONE_TASK)
        pull = Pull(self.catalyst, parallelism, self._streams, self.clock, self.clock, self.scratch, is_first=True)
        return StatefulRows(pull, fragment)


def input_rows(catalyst: Catalyst, rows: Sequence[Row]) -> Node:
    """Return all rows of an input: hours after `START`, `k`, `j`."""
    texts = [
        f"(timestamp'{START + timedelta(hours=hours):%Y-%m-%d %H:%M:%S}', {_literal(k)}, {_literal(j)})"
        for hours, k, j in rows
    ]
    values = f"VALUES {', '.join(texts)}" if texts else "SELECT timestamp'2024-01-01', 0, 0 WHERE false"
    text = (
        "SELECT event_time, cast(k AS int) AS k, cast(j AS int) AS j, event_time AS system_time, 0L AS offset, 0 AS op "
        f"FROM ({values}) AS t(event_time, k, j)"
    )
    return catalyst.analyze(catalyst.parse(text))


def _literal(value: int | None) -> str:
    return "NULL" if value is None else str(value)


@dataclass(frozen=True)
class _InputsAt:
    """All rows of stateful inputs, or those of some keys."""

    world: World
    fragment: Fragment
    stateful_inputs: StatefulRows
    touched: Node | None

    @property
    def clock(self) -> Clock:
        return self.world.clock

    def rows(self, stateful_input: StatefulInput) -> Node:
        catalyst, new = self.world.catalyst, self.stateful_inputs.new(stateful_input)
        if new is None:
            return no_rows(catalyst, stateful_input.columns)
        plan = (
            catalyst.filter(is_complete(stateful_input.rules.complete_when, self.clock), new.plan)
            if stateful_input.rules.only_complete
            else new.plan
        )
        chosen = self._of_touched(self.fragment.keys[stateful_input.number], plan)
        return multiset(catalyst, Changes(chosen, new.is_append_only), stateful_input.columns)

    def groups(self, stateful_input: StatefulInput) -> Groups:
        groups = self.stateful_inputs.groups(stateful_input)
        plan = groups.new
        if plan is None:
            return groups.of(None)
        keys = [key and groups.over_groups(key) for key in self.fragment.keys[stateful_input.number]]
        return groups.of(
            self._of_touched(
                keys, groups.complete(plan, self.clock, None) if stateful_input.rules.only_complete else plan
            )
        )

    def is_append_only(self, stateful_input: StatefulInput) -> bool:
        return True

    def _of_touched(self, keys: Sequence[Node | None], plan: Node) -> Node:
        catalyst = self.world.catalyst
        if self.touched is None:
            return plan
        pairs = [(key, touched) for key, touched in zip(keys, columns(self.touched), strict=True) if key is not None]
        same = [catalyst.expression("EqualNullSafe", key, touched) for key, touched in pairs]
        if not same:
            return plan
        condition = reduce(lambda one, other: catalyst.expression("And", one, other), same)
        return catalyst.semi_join(plan, self.touched, condition)


# --- What a part says of its keys -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Halves:
    """The rows of a part in full, and those of two halves of all values of one of its keys; as text.

    Attributes:
        misplaced: rows of a half in which an output claimed to have the key's value has one of the other half.
    """

    whole: Counter[str]
    halves: Counter[str]
    misplaced: Sequence[str]


def halves(world: World, fragment: Fragment, at: int) -> Halves:
    """Return the rows of a fragment, and those of the halves of all values of its key `at`; in one query."""
    from pyspark.sql import functions

    catalyst, key = world.catalyst, fragment.info.keys[at]
    touched = catalyst.dataframe(world.keys(fragment))
    whole = _said(world, fragment, Key({}), world.result(fragment), None)
    frames = [whole.withColumn("half", functions.lit(-1))]
    for number in range(2):
        chosen = touched.where(_half_of(functions.col(f"k{at}")) == number)
        frame = _said(world, fragment, key, world.result(fragment, catalyst.plan(chosen)), number)
        frames.append(frame.withColumn("half", functions.lit(number)))
    rows = reduce(lambda one, other: one.union(other), frames).collect()
    return Halves(
        Counter(row["row"] for row in rows if row["half"] < 0),
        Counter(row["row"] for row in rows if row["half"] >= 0),
        [row["row"] for row in rows if not row["is_right"]],
    )


def _half_of(value: Any) -> Any:
    from pyspark.sql import functions

    return functions.pmod(functions.xxhash64(value), functions.lit(2))


def _said(world: World, fragment: Fragment, key: Key, plan: Node, half: int | None) -> Any:
    """Return rows of a fragment as JSON, and whether all outputs claimed to have a key's value have one of the half."""
    from pyspark.sql import functions

    catalyst, by_id = world.catalyst, {column_id(column): column for column in columns(plan)}
    shown, or_null = (
        [*(by_id[one] for one in values.columns if one in by_id), *values.expressions]
        for values in (key.outputs, key.nullable_outputs)
    )
    said = [catalyst.alias(one, f"said{at}") for at, one in enumerate([*shown, *or_null])]
    data = [f"c{at}" for at in range(len(fragment.info.columns))]
    selected = catalyst.dataframe(catalyst.project([*fragment.info.columns, *said], plan))
    frame = selected.toDF(*data, *(f"said{at}" for at in range(len(said))))
    is_right = functions.lit(True)
    for at in range(len(said)):
        value = functions.col(f"said{at}")
        is_one = _half_of(value) == half
        is_right = is_right & (is_one if at < len(shown) else is_one | value.isNull())
    row = functions.to_json(functions.struct(*data), {"ignoreNullFields": "false"})
    return frame.select(row.alias("row"), is_right.alias("is_right"))
