"""Preparation of a transform: its queries are analyzed and classified, and the layout of its result is determined.

Queries are analyzed over empty inputs. The engine caches what it has analyzed, by everything that it depends on, and
makes the same checks for an analysis and for a run: a run does not rely on an analysis by another engine.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from odfpy.data.schemas.schema import DataSchema
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.lateness.policy import Late, LatePolicy
from odfpy.engine.output import OutputLayout, output_layout
from odfpy.engine.spark.analysis.hints import late_policy
from odfpy.engine.spark.execution.row_by_row import RowByRowPlan, row_by_row_plan
from odfpy.engine.spark.execution.stateful import Stateful, prepare_stateful
from odfpy.engine.spark.incremental.state.correctable import no_windows
from odfpy.engine.spark.plan.catalyst import Catalyst, columns
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.spark.plan.lineage import origins
from odfpy.engine.spark.plan.step import RESERVED_PREFIX
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.row_by_row.carried import Delta
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.sql.source_text import step_texts
from odfpy.errors import InvalidQuery, UnsupportedQuery
from odfpy.stages import stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class PreparedTransform:
    """A row-by-row transform that is ready to run.

    Attributes:
        catalyst: the session of this request.
        tables: the inputs, in declared order.
        plan: the analyzed queries.
        delta: the rows of the result.
        layout: the final columns of these rows.
        late: the policy for late rows.
    """

    catalyst: Catalyst
    tables: tuple[Table, ...]
    plan: RowByRowPlan
    delta: Delta
    layout: OutputLayout
    late: LatePolicy


@contextmanager
def prepare(
    spark: SparkSession,
    transform: TransformSql,
    vocab: DatasetVocabulary,
    tables: tuple[Table, ...],
    scratch: Path | None = None,
    recorded: DataSchema | None = None,
) -> Iterator[PreparedTransform | Stateful]:
    """Prepare a transform, row by row or stateful, to be run within the block; errors of Spark are translated.

    Args:
        spark: the session of the process.
        transform: the queries.
        vocab: names of the system columns of the output.
        tables: the inputs, in declared order.
        scratch: folder for temporary files.
        recorded: schema of the output so far.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: the queries are at fault.
        EngineError: the inputs or the engine are at fault.
    """
    texts = step_texts(transform)
    with TemporaryDirectory(prefix="engine-", dir=scratch) as folder, spark_errors(texts):
        with stage("session"):
            catalyst = Catalyst(request_session(spark))
        names = [table.name for table in tables]
        for table in tables:
            _check_columns(table)
        with stage("parse"):
            policy = late_policy(catalyst, transform, names)
        tables = tuple(_as_known(table, kind) for table, kind in zip(tables, policy.inputs, strict=True))
        key = _key_of(catalyst, transform, vocab, tables)
        with stage("analysis"):
            plan = None if transform.temporal_tables else row_by_row_plan(spark, key, transform, vocab, tables)
        if plan is None:
            with stage("analysis", again=True):
                ready = prepare_stateful(catalyst, key, transform, vocab, tables, policy, Path(folder), recorded)
            yield ready
            return
        if policy.correctable is not None:
            raise no_windows()
        with stage("plan"):
            layout = output_layout(plan.result, vocab, recorded)
            _check_operation_type(plan.delta, layout, tables)
            delta = plan.over(catalyst, tables, policy.inputs, Path(folder))
        yield PreparedTransform(catalyst, tables, plan, delta, layout, policy)


def _key_of(catalyst: Catalyst, transform: TransformSql, vocab: DatasetVocabulary, tables: Sequence[Table]) -> Hashable:
    """Return everything that the plans of a transform depend on."""
    inputs = tuple(
        (table.name, table.vocab, table.primary_key, table.schema().serialize().to_pybytes()) for table in tables
    )
    # The version is recorded by the first pull; plans do not depend on it.
    return catalyst.spark.sparkContext, replace(transform, version=None), vocab, inputs


def _check_columns(table: Table) -> None:
    """Refuse an input with a column whose name is reserved for the engine's own columns."""
    name = next((name for name in table.schema().names if name.startswith(RESERVED_PREFIX)), None)
    if name is not None:
        raise UnsupportedQuery(
            f"The input `{table.name}` has a column `{name}`; names with {RESERVED_PREFIX} are those of the engine",
            hint="Give it another name where it is ingested, or by a derivative with `engine: datafusion`.",
        )


def _as_known(table: Table, late: Late) -> Table:
    """Return an input without its primary key if late rows are ignored: a retraction may then be missing."""
    return replace(table, primary_key=None) if late is Late.IGNORED else table


def _check_operation_type(delta: Delta, layout: OutputLayout, tables: tuple[Table, ...]) -> None:
    """Check that a query which selects the operation type passes it on unchanged, as happens anyway."""
    if layout.operation_type is None:
        return
    for origin in origins(delta.plan, columns(delta.plan)[layout.operation_type]):
        source = None if origin.branch is None else tables[delta.branches[origin.branch].input]
        if source is None or not origin.is_unchanged or origin.column != source.vocab.operation_type_column:
            name = layout.vocab.operation_type_column
            raise InvalidQuery(
                f"The column `{name}` of the result is not the `{name}` of an input, passed unchanged",
                hint="Leave it out, since it passes through by itself, or give the column another name with AS.",
            )
