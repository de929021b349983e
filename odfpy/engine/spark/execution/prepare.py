"""Preparation of a transform: inputs named, queries analyzed and classified, the result's form known.

An analysis does this over empty tables, a run over the new rows of the inputs; the checks are the same, so that a run
never relies on an analysis that somebody made before.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.output import OutputForm, output_form
from odfpy.engine.spark.analysis.classification import ClassifiedStep, classify_transform
from odfpy.engine.spark.analysis.hints import late_policy
from odfpy.engine.spark.analysis.stars import without_assigned
from odfpy.engine.spark.classes.base import Delta
from odfpy.engine.spark.execution.stateful import Stateful, is_known, stateful
from odfpy.engine.spark.incremental.state.correctable import no_windows
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, items
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.lineage import origins
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.rows.late_table import chosen
from odfpy.engine.spark.rows.tables import Table, name_input
from odfpy.engine.sql.source_text import step_texts
from odfpy.errors import InvalidQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class PreparedTransform:
    """A transform that is ready to run.

    Attributes:
        catalyst: the session of this request.
        tables: the inputs, in declared order.
        steps: what the queries are.
        delta: the rows of the result.
        form: their final columns.
        late: what becomes of late rows.
    """

    catalyst: Catalyst
    tables: tuple[Table, ...]
    steps: tuple[ClassifiedStep, ...]
    delta: Delta
    form: OutputForm
    late: LatePolicy

    @property
    def event_time(self) -> Node:
        """The event time among the columns of the result."""
        return columns(self.delta.plan)[self.form.sources[0]]


@contextmanager
def prepare(
    spark: SparkSession,
    transform: TransformSql,
    vocab: DatasetVocabulary,
    tables: tuple[Table, ...],
    scratch: Path | None = None,
    recorded: DataSchema | None = None,
) -> Iterator[PreparedTransform | Stateful]:
    """Prepare a transform, row by row or with state; inside the block it can be run, and Spark's errors become ours.

    Args:
        spark: the session of the process.
        transform: the queries.
        vocab: names of the system columns of the output.
        tables: the inputs, in declared order.
        scratch: folder for temporary files.
        recorded: schema of the output so far.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
        EngineError: the inputs or the engine are.
    """
    texts = step_texts(transform)
    with TemporaryDirectory(prefix="engine-", dir=scratch) as folder, spark_errors(texts):
        with stage("session"):
            catalyst = Catalyst(request_session(spark))
        names = [table.name for table in tables]
        with stage("parse"):
            policy = late_policy(catalyst, transform, names)
        tables = tuple(_as_known(table, kind) for table, kind in zip(tables, policy.inputs, strict=True))
        if transform.temporal_tables or is_known(catalyst, transform, vocab, tables):
            with stage("analysis"):
                ready = stateful(catalyst, transform, vocab, tables, policy, Path(folder), recorded)
            yield ready
            return
        for position, table in enumerate(tables):
            with stage("inputs"):
                name_input(catalyst, table, position, Path(folder))
        with stage("analysis"):
            steps = classify_transform(catalyst, transform, names)
        last = steps[-1]
        if last.query_class is None or any(step.query_class is None for step in steps):
            with stage("session"):
                fresh = Catalyst(request_session(spark))
            with stage("analysis", again=True):
                ready = stateful(fresh, transform, vocab, tables, policy, Path(folder), recorded)
            yield ready
            return
        if policy.correctable is not None:
            raise no_windows()

        def chosen_rows(number: int, leaf: Node) -> Node:
            rows = chosen(catalyst, policy.inputs[number], tables[number], leaf.child(), Path(folder))
            return catalyst.project(items(leaf.projectList()), rows)

        with stage("plan"):
            step = without_assigned(last.step, last.query_class, catalyst, tables, vocab)
            steps[-1] = replace(last, step=step)
            delta = last.query_class.run(catalyst, step, chosen_rows)
            form = output_form(arrow_schema(catalyst.dataframe(step.plan).schema), vocab, recorded)
            _check_operation_type(delta, form, tables)
        yield PreparedTransform(catalyst, tables, tuple(steps), delta, form, policy)


def _as_known(table: Table, late: Late) -> Table:
    """An input without its key, if what takes a row back may be ignored."""
    return replace(table, primary_key=None) if late is Late.IGNORED else table


def _check_operation_type(delta: Delta, form: OutputForm, tables: tuple[Table, ...]) -> None:
    """The operation type passes through by itself; a query that selects it must not change it."""
    if form.operation_type is None:
        return
    for origin in origins(delta.plan, columns(delta.plan)[form.operation_type]):
        source = None if origin.branch is None else tables[delta.branches[origin.branch].input]
        if source is None or not origin.is_unchanged or origin.column != source.vocab.operation_type_column:
            name = form.vocab.operation_type_column
            raise InvalidQuery(
                f"The column `{name}` of the result is not the `{name}` of an input, passed unchanged",
                hint="Leave it out, since it passes through by itself, or give the column another name with AS.",
            )
