"""Planning of a whole transform: its steps become fragments, in the order in which they are processed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from odfpy.dataset.transform import TemporalTable, TransformSql
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.spark.analysis.analysis import analyzed_step, check_aliases, check_step
from odfpy.engine.spark.analysis.determinism import place
from odfpy.engine.spark.analysis.normal_form import in_normal_form
from odfpy.engine.spark.incremental.operators.joined_conditions import with_joined_conditions
from odfpy.engine.spark.incremental.operators.planner import Planner
from odfpy.engine.spark.incremental.operators.registry import OPERATORS
from odfpy.engine.spark.incremental.operators.sources import TableSource, source_of, source_plan
from odfpy.engine.spark.incremental.operators.temporal import declared_tables, temporal_table
from odfpy.engine.spark.incremental.properties.keys import sources_read
from odfpy.engine.spark.incremental.properties.plan_info import Fragment, PlanInfo, TimeColumn, fragment_of
from odfpy.engine.spark.incremental.properties.refusals import explain_hidden_columns, not_of_inputs
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, column_id, columns
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.inner_queries import without_inner_queries
from odfpy.engine.spark.plan.step import Step
from odfpy.engine.spark.plan.storable_types import check_rows
from odfpy.engine.spark.plan.times import SourceWatermark
from odfpy.engine.spark.plan.types import spark_schema
from odfpy.engine.spark.rows.tables import Table, visible_columns
from odfpy.engine.sql.source_text import step_texts


@dataclass(frozen=True, slots=True)
class StepPart:
    """A step and the properties of its plan."""

    step: Step
    info: PlanInfo


@dataclass(frozen=True, slots=True)
class Steps:
    """A transform, ready to be run.

    Attributes:
        steps: analysis of its queries.
        fragments: the fragments, each before those that read its changes.
    """

    steps: tuple[StepPart, ...]
    fragments: tuple[Fragment, ...]

    @property
    def last(self) -> StepPart:
        """The step whose result is the output."""
        return self.steps[-1]

    @property
    def output(self) -> Fragment | None:
        """The fragment whose changes are the output; None when the last step is row by row."""
        return None if self.last.info.stateless_plan is not None else self.fragments[-1]


def steps_of(
    catalyst: Catalyst, transform: TransformSql, tables: Sequence[Table], event_time: str, policy: LatePolicy
) -> Steps:
    """Analyze a transform with at least one stateful step. The session must not know the inputs by name yet.

    Args:
        catalyst: the session.
        transform: the queries.
        tables: the inputs, in declared order.
        event_time: name of the event time in steps.
        policy: policy for late rows.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: a query is at fault.
    """
    names = [table.name for table in tables]
    check_aliases(transform.steps, names)
    scope = _Scope(catalyst, declared_tables(transform.temporal_tables or (), names, transform.steps), len(tables))
    inputs = [_input(catalyst, table, number) for number, table in enumerate(tables)]
    scope.sources += [_source_of_input(table, number) for number, table in enumerate(tables)]
    for table, info in zip(tables, inputs, strict=True):
        scope.name(table.name, info, table.vocab.event_time_column)
    hidden = {name for table in tables for name in table.vocab.changelog_columns}
    parts: list[StepPart] = []
    for text, query in zip(step_texts(transform), transform.steps, strict=True):
        with explain_hidden_columns(hidden), spark_errors([text]):
            step = analyzed_step(catalyst, query.alias, text, scope.names)
            is_last = query is transform.steps[-1]
            check_step(catalyst, step, is_last=is_last)
            planner = Planner(catalyst, text, scope.sources, scope.fragments, OPERATORS)
            # `LATE(only)` may retract a row that this query has never counted. Among rows, such a retraction is
            # ignored; a sum would become too small.
            planner.uses_partial_aggregates = Late.ONLY not in policy.inputs
            plan = in_normal_form(catalyst, without_inner_queries(catalyst, step.plan))
            info = planner.start(with_joined_conditions(catalyst, plan))
            if is_last and info.unique == frozenset():
                info = _only_with_event_time(catalyst, info, event_time)
            parts.append(StepPart(step, info))
            if info.is_constant and not is_last:
                catalyst.name_view(str(query.alias), info.built(None))
                scope.names.append(str(query.alias))
                continue
            if info.stateless_plan is None:
                if not is_last:
                    check_rows(info.columns, partial(_place_of, step), are_stored=True)
                info = scope.add(info, fragment_of(info, len(scope.sources), query.alias), source_of(info))
            if not is_last and query.alias is not None:
                scope.name(query.alias, info, event_time)
    if not _reads_input(parts[-1].info, scope):
        raise not_of_inputs(parts[-1].step)
    return Steps(tuple(parts), tuple(scope.fragments))


@dataclass(slots=True)
class _Scope:
    """The names that the next query of a transform can use, and the fragments that compute them.

    Attributes:
        catalyst: the session.
        temporal: temporal tables by name.
        num_inputs: number of inputs, which are the first sources.
        sources: inputs and fragments so far, by number.
        fragments: fragments so far.
        names: the names.
    """

    catalyst: Catalyst
    temporal: Mapping[str, TemporalTable]
    num_inputs: int
    sources: list[TableSource] = field(default_factory=list)
    fragments: list[Fragment] = field(default_factory=list)
    names: list[str] = field(default_factory=list)

    def name(self, name: str, info: PlanInfo, event_time: str) -> None:
        """Register a stateless plan as a view, or its versions, if it is declared as a temporal table.

        Args:
            name: name of the input or step.
            info: properties of the stateless plan.
            event_time: name of the column with its event time.
        """
        if name in self.temporal:
            number = len(self.sources)
            table = temporal_table(self.catalyst, self.temporal[name], info, event_time, number, self.num_inputs)
            info = self.add(table.fragment.info, table.fragment, table.source)
        self.catalyst.name_view(name, self.catalyst.project(info.columns, info.stateless_plan))
        self.names.append(name)

    def add(self, info: PlanInfo, fragment: Fragment, source: TableSource) -> PlanInfo:
        """Register a fragment, and return the properties of the stateless plan that reads its changes.

        Args:
            info: properties of the plan of the fragment.
            fragment: the fragment.
            source: its properties as a source.
        """
        number = len(self.sources)
        self.fragments.append(fragment)
        self.sources.append(source)
        plan = self.catalyst.project(info.columns, source_plan(self.catalyst, info.columns, number))
        return replace(info, stateless_plan=plan, build=None, keys=(), stateful_inputs=())


def _only_with_event_time(catalyst: Catalyst, info: PlanInfo, event_time: str) -> PlanInfo:
    """Drop a single-row result without an event time: an aggregate over no rows still returns one row of NULLs."""
    column = next((column for column in info.columns if column.name() == event_time), None)
    if column is None:
        return info
    has_time = catalyst.expression("IsNotNull", column)
    if info.stateless_plan is not None:
        return replace(info, stateless_plan=catalyst.filter(has_time, info.stateless_plan))
    return replace(info, build=lambda inputs_at: catalyst.filter(has_time, info.built(inputs_at)))


def _place_of(step: Step, column: Node) -> str:
    """Return where in the query a result column of a step is computed."""
    aliases = (node for operator in step.operators for name, node in operator.expressions if name == "Alias")
    alias = next((node for node in aliases if column_id(node) == column_id(column)), None)
    return step.source.whole() if alias is None else place(alias, step.source)


def _reads_input(info: PlanInfo, scope: _Scope) -> bool:
    """Return whether a plan reads an input, directly or through fragments."""
    plans = (
        [stateful_input.plan for stateful_input in info.stateful_inputs]
        if info.stateless_plan is None
        else [info.stateless_plan]
    )
    read = {number for plan in plans for number in sources_read(plan)}
    below = (fragment.info for fragment in scope.fragments if fragment.source in read)
    return any(number < scope.num_inputs for number in read) or any(
        _reads_input(fragment_info, scope) for fragment_info in below
    )


def _input(catalyst: Catalyst, table: Table, number: int) -> PlanInfo:
    """Return the properties of an input with its data columns only: state has no offsets or operation types."""
    schema = table.schema()
    empty = columns(catalyst.empty(spark_schema(schema, table.name)))
    visible = []
    for at in visible_columns(schema, table.vocab):
        column = empty[at]
        if not schema.field(at).nullable:
            column = catalyst.alias(catalyst.never_null(column), column.name())
        visible.append(column)
    plan = source_plan(catalyst, [column.toAttribute() for column in visible], number)
    outputs = tuple(columns(plan)[: len(visible)])
    time = next(column for column in outputs if column.name() == table.vocab.event_time_column)
    return PlanInfo(
        outputs, catalyst.project(outputs, plan), times={column_id(time): TimeColumn(SourceWatermark(number))}
    )


def _source_of_input(table: Table, number: int) -> TableSource:
    """Return the properties of an input as a source: its event time, and its primary key."""
    names = [table.schema().names[at] for at in visible_columns(table.schema(), table.vocab)]
    time = {names.index(table.vocab.event_time_column): TimeColumn(SourceWatermark(number))}
    if table.primary_key is None or not set(table.primary_key) <= set(names):
        return TableSource(time)
    return TableSource(time, unique=frozenset(names.index(name) for name in table.primary_key))
