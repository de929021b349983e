"""Changelogs that pass through queries row by row, for temporal tables, which depend on more than the current state.

Each row has marks that tell when and from where it came; they travel beside the columns that a query selects.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.spark.analysis.analysis import analyzed_step
from odfpy.engine.spark.analysis.normal_form import in_normal_form
from odfpy.engine.spark.batch.closed import TABLE
from odfpy.engine.spark.batch.tables import normalize_floats, quoted, read_log, under_query_names
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    items,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.inner_queries import without_inner_queries
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InternalError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

COMMIT: Final = "__odf_commit"
SOURCE: Final = "__odf_source"
OFFSET: Final = "__odf_place"
OPERATION: Final = "__odf_kind"
MARKS: Final = (COMMIT, SOURCE, OFFSET, OPERATION)
"""The system time of a row, the number of the input that it came from, its offset there, and its operation type."""

BRANCH: Final = "__odf_way"
"""The reference to an input, counted from left to right in the query, through which a row came."""


class Logs:
    """The changelogs of inputs, and of row-by-row queries over them, under their names in a separate session."""

    def __init__(self, spark: SparkSession, inputs: Sequence[Table], policy: LatePolicy, scratch: Path) -> None:
        self._catalyst = Catalyst(request_session(spark))
        self._plans: dict[str, Node] = {}
        for number, (table, late) in enumerate(zip(inputs, policy.inputs, strict=True)):
            self._name_input(number, table, scratch, late)

    def _name_input(self, number: int, table: Table, scratch: Path, late: Late) -> None:
        from pyspark.sql import functions

        catalyst, log = self._catalyst, read_log(self._catalyst, table, scratch, late)
        vocab = table.vocab
        hidden = (vocab.system_time_column, vocab.offset_column, vocab.operation_type_column)
        commit, offset, operation = (functions.col(quoted(name)) for name in hidden)
        marks = (commit, functions.lit(number), offset, operation)
        rows = log.rows.select(
            *(functions.col(quoted(name)) for name in log.names),
            *(mark.alias(name) for name, mark in zip(MARKS, marks, strict=True)),
        )
        plan = catalyst.plan(normalize_floats(catalyst, rows))
        inner = under_query_names(
            catalyst,
            plan,
            [*log.fields, *((name, True) for name in MARKS)],
            [catalyst.alias(catalyst.integer(number), TABLE)],
        )
        self._name(table.name, catalyst.project(columns(inner)[: len(log.names)], inner))

    def add(self, alias: str, text: SourceText) -> None:
        """Register a query that works row by row, or consists of constants, over the names so far."""
        plan = analyzed_step(self._catalyst, alias, text, list(self._plans)).plan
        self._name(alias, in_normal_form(self._catalyst, without_inner_queries(self._catalyst, plan)))

    def _name(self, name: str, plan: Node) -> None:
        self._catalyst.name_view(name, plan)
        self._plans[name] = plan

    def log(self, name: str) -> DataFrame:
        """Return a registered query as a changelog: columns `c0`, `c1`..., the marks, and the branch."""
        plan = self._plans[name]
        data = columns(plan)
        carried = _Carrying(self._catalyst).carry(plan)
        rows = self._catalyst.dataframe(self._catalyst.project([*data, *_marks_of(carried)], carried))
        return rows.toDF(*(f"c{at}" for at in range(len(data))), *MARKS, BRANCH)


class _Carrying:
    """The rewriting of a row-by-row plan so that the marks of rows travel beside its columns."""

    def __init__(self, catalyst: Catalyst) -> None:
        self._catalyst = catalyst
        self._branches = count()
        self._definitions: dict[int, Node] = {}

    def carry(self, plan: Node) -> Node:
        """Return the plan with the marks in its output, and the number of the input reference of each row."""
        catalyst = self._catalyst
        match operator_name(plan):
            case "SubqueryAlias" | "View" | "expressions.PipeOperator" | "Sort" | "RepartitionByExpression":
                return self.carry(plan.child())
            case "LocalRelation" | "Range" | "OneRowRelation" | "Except" | "Intersect":
                return plan  # constants have no marks
            case "WithCTE":
                self._definitions |= {item.id(): item.child() for item in items(plan.cteDefs())}
                return self.carry(plan.plan())
            case "CTERelationRef":
                definition = self._definitions[plan.cteId()]
                below = self.carry(definition)
                pairs = zip(columns(definition), columns(plan), strict=True)
                renamed = [catalyst.alias(inner, outer.name(), outer.exprId()) for inner, outer in pairs]
                return catalyst.project([*renamed, *_marks_of(below)], below)
            case "Project":
                return self._project(plan)
            case "Filter" | "Generate" | "Join":  # constants add nothing to the marks of the other side
                return plan.withNewChildren(catalyst.seq([self.carry(child) for child in children(plan)]))
            case "Expand":
                below = self.carry(plan.child())
                marks = _marks_of(below)
                copies = [[*items(copy), *marks] for copy in items(plan.projections())]
                return catalyst.expand(copies, [*columns(plan), *marks], below)
            case "Union":
                parts = [(columns(child), self.carry(child)) for child in children(plan)]
                return catalyst.union([catalyst.project([*own, *_marks_of(part)], part) for own, part in parts])
        raise InternalError(f"{operator_name(plan)} is not an operator row by row")

    def _project(self, plan: Node) -> Node:
        expressions = selected(plan)
        if any(expression.name() == TABLE and expression_name(expression) == "Alias" for expression in expressions):
            branch = self._catalyst.alias(self._catalyst.integer(next(self._branches)), BRANCH)
            return self._catalyst.project([*columns(plan), branch], plan)
        below = self.carry(plan.child())
        return self._catalyst.project([*expressions, *_marks_of(below)], below)


def _marks_of(plan: Node) -> list[Node]:
    by_name = {column.name(): column for column in columns(plan)}
    return [by_name[name] for name in (*MARKS, BRANCH) if name in by_name]
