"""The steps of a transform, run one after the other over the state of the inputs and the results of earlier steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.dataset.transform import TemporalTable, TransformSql
from odfpy.engine.contract import TransformRequest
from odfpy.engine.spark.analysis.analysis import analyzed_step
from odfpy.engine.spark.analysis.hints import late_policy
from odfpy.engine.spark.analysis.normal_form import in_normal_form
from odfpy.engine.spark.analysis.star_arguments import has_star_in_function
from odfpy.engine.spark.batch.closed import TABLE, ClosedPlan, NotComparable
from odfpy.engine.spark.batch.closing import ClosedPlanner
from odfpy.engine.spark.batch.logs import Logs
from odfpy.engine.spark.batch.tables import (
    Field,
    Log,
    num_taken_back,
    quoted,
    read_log,
    repeated,
    state_of,
    under_query_names,
)
from odfpy.engine.spark.batch.temporal import versions_of_log, versions_of_state
from odfpy.engine.spark.batch.time_bounds import ColumnTimes, RowLineage, TableTimes, ValidityColumn
from odfpy.engine.spark.batch.versions import VALID_FROM, VALID_TO
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    number_named,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.inner_queries import without_inner_queries
from odfpy.engine.spark.plan.operators import ROW_OPERATORS, operators
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.sql.source_text import step_texts
from odfpy.engine.watermark import input_watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class NotRowByRow(Exception):
    """Signals that a query is not row by row, where all queries have to be."""


class Steps:
    """The steps of a transform, run for one moment.

    Attributes:
        catalyst: the session.
        logs: the changelogs of the inputs.
        has_star: whether a function takes columns by a star, in the steps analyzed so far.
    """

    def __init__(
        self,
        spark: SparkSession,
        run: TransformRequest,
        scratch: Path,
        *,
        row_by_row: bool = False,
        all_columns: bool = False,
        sign: int = 1,
    ) -> None:
        """Register the inputs under their names.

        Args:
            spark: a session with the engine's settings.
            run: the transform as one run over all rows of its inputs.
            scratch: a folder for temporary files.
            row_by_row: whether all queries have to work row by row.
            all_columns: whether queries also see the system columns, with NULL values; only for queries that work row
                by row.
            sign: -1 for the rows that were retracted while absent, instead of those that are present.

        Raises:
            NotComparable: the result depends on when rows came.
        """
        self.catalyst = Catalyst(request_session(spark))
        self._run, self._scratch, self._sign = run, scratch, sign
        self.has_star = False
        self._only_row_by_row, self._all_columns = row_by_row, all_columns
        tables = [Table.of(source) for source in run.query_inputs]
        names = [table.name for table in tables]
        policy = late_policy(self.catalyst, _transform(run), names)
        if policy.correctable is not None:
            raise NotComparable(
                f"its windows are correctable for {policy.correctable} only, so that it matters when rows came"
            )
        self.logs = [
            read_log(self.catalyst, table, scratch, late) for table, late in zip(tables, policy.inputs, strict=True)
        ]
        self._temporal = {table.name: table for table in _transform(run).temporal_tables or ()}
        self._carried = Logs(spark, tables, policy, scratch) if self._temporal else None
        self._named: list[TableTimes] = []
        self._names: list[str] = []
        self._states: dict[str, DataFrame | None] = {}
        for source, log in zip(run.query_inputs, self.logs, strict=True):
            watermark = input_watermark(source)
            self._name_input(log, ColumnTimes.at(None if watermark is None else watermark.millis * 1_000))

    def last(self) -> ClosedPlan:
        """Return the result of the last step; raises the errors of `batch_answer`.

        Raises:
            NotRowByRow: all queries have to be row by row, and one is not.
        """
        steps = _transform(self._run).steps
        for text, query in zip(step_texts(_transform(self._run)), steps, strict=True):
            with spark_errors([text]):
                step = analyzed_step(self.catalyst, query.alias, text, self._names)
                if self._only_row_by_row and not _is_row_by_row(step.plan):
                    raise NotRowByRow
                self.has_star = self.has_star or has_star_in_function(step.plan, text)
                plan = without_inner_queries(self.catalyst, step.plan)
                if not self._only_row_by_row:
                    plan = in_normal_form(self.catalyst, plan)
                part = ClosedPlanner(self.catalyst, self._named).of(plan)
            if query is not steps[-1] and query.alias is not None:
                if part.lineage in (RowLineage.CONSTANT, RowLineage.ENTRIES) and self._carried is not None:
                    self._carried.add(query.alias, text)
                self._name_step(query.alias, part)
        return part

    def taken_back(self) -> dict[str, int]:
        """Return how many rows inputs retract without having them, by alias, for inputs that do."""
        counts = {name: num_taken_back(state) for name, state in self._states.items() if state is not None}
        return {name: count for name, count in counts.items() if count}

    # --- Tables ---

    def _name_input(self, log: Log, known: ColumnTimes) -> None:
        name, event_time = log.table.name, log.table.vocab.event_time_column
        if name in self._temporal and self._carried is not None:
            self._name_versions(self._temporal[name], log.fields, event_time, known, self._carried.log(name))
            return
        state = state_of(self.catalyst, log)
        self._states[name] = None if log.is_append_only else state
        rows, fields = repeated(state, self._sign), log.fields
        if self._all_columns:
            rows, fields = _with_empty_columns(rows, log)
        at = [field for field, _ in fields].index(event_time)
        self._name(name, self.catalyst.plan(rows), fields, TableTimes({at: known}, lineage=RowLineage.ENTRIES))

    def _name_step(self, name: str, closed: ClosedPlan) -> None:
        fields = [(str(column.name()), bool(column.nullable())) for column in closed.columns]
        plan, event_time = self.catalyst.project(closed.columns, closed.plan), self._run.vocab.event_time_column
        if name in self._temporal and self._carried is not None:
            known = closed.time_at([field for field, _ in fields].index(event_time)) or ColumnTimes.at(None)
            rows = self._carried.log(name) if closed.lineage is RowLineage.ENTRIES else None
            self._name_versions(self._temporal[name], fields, event_time, known, rows, plan)
            return
        times = {at: time for at in range(len(fields)) if (time := closed.time_at(at)) is not None}
        self._name(name, plan, fields, TableTimes(times, lineage=min(closed.lineage, RowLineage.ROWS)))

    def _name_versions(
        self,
        table: TemporalTable,
        fields: Sequence[Field],
        event_time: str,
        known: ColumnTimes,
        log: DataFrame | None,
        state: Node = None,
    ) -> None:
        """Register the versions of a changelog or, where there is none, of a state."""
        names = [field for field, _ in fields]
        by, time = [f"c{names.index(key)}" for key in table.primary_key], f"c{names.index(event_time)}"
        path = self._scratch / f"versions-{len(self._named)}.parquet"
        if log is not None:
            versions = versions_of_log(log, by, time, path)
        else:
            rows = self.catalyst.dataframe(state).toDF(*(f"c{at}" for at in range(len(names))))
            versions = versions_of_state(rows, by, time, path)
        begin, end = len(names), len(names) + 1
        times = TableTimes({end: known}, {begin: ValidityColumn(False, known), end: ValidityColumn(True, known)})
        more = [(VALID_FROM, False), (VALID_TO, False)]
        self._name(table.name, self.catalyst.plan(versions), [*fields, *more], times)

    def _name(self, name: str, plan: Node, fields: Sequence[Field], times: TableTimes) -> None:
        catalyst, mark = self.catalyst, self.catalyst.alias(self.catalyst.integer(len(self._named)), TABLE)
        if not plan.deterministic():  # a fence: Spark would refuse LATERAL over it
            times, plan = replace(times, hidden=plan), catalyst.empty(catalyst.dataframe(plan).schema)
        inner = under_query_names(catalyst, plan, fields, [mark])
        catalyst.name_view(name, catalyst.project(columns(inner)[:-1], inner))
        self._named.append(times)
        self._names.append(name)


def _transform(run: TransformRequest) -> TransformSql:
    if not isinstance(run.transform, TransformSql):
        raise NotComparable("its transform is not a query")
    return run.transform


def _with_empty_columns(rows: DataFrame, log: Log) -> tuple[DataFrame, list[Field]]:
    """Add the system columns of the dataset to a state, with NULL values."""
    from pyspark.sql import functions

    types = {field.name: field.dataType for field in log.rows.schema.fields}
    data = dict(zip(log.names, rows.columns, strict=True))
    required = dict(log.fields)
    selected = [
        functions.col(data[name]) if name in data else functions.lit(None).cast(types[name]).alias(quoted(name))
        for name in log.schema.names
    ]
    return rows.select(*selected), [(name, required.get(name, True)) for name in log.schema.names]


# --- Plans -----------------------------------------------------------------------------------------------------------


def _is_row_by_row(plan: Node) -> bool:
    """Return whether an analyzed query works row by row."""
    return all(operator.name in ROW_OPERATORS and operator.subquery is None for operator in operators(plan))


def tables_in(plan: Node, *, deep: bool = False) -> Iterator[tuple[int, Node]]:
    """Yield the numbers of the tables that a result reads, and the plan that reads each of them.

    Args:
        plan: the plan of the result.
        deep: whether to include the tables that earlier steps read.
    """
    number = _number_of(plan)
    if number is not None:
        yield number, plan
    if number is None or deep:
        for child in children(plan):
            yield from tables_in(child, deep=deep)


def _number_of(plan: Node) -> int | None:
    if operator_name(plan) != "Project":
        return None
    marks = (column for column in selected(plan) if column.name() == TABLE and expression_name(column) == "Alias")
    return next((number_named(mark) for mark in marks), None)
