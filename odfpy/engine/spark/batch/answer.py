"""The expected output: the whole query, run once with plain Spark over closed rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.engine.contract import TransformRequest
from odfpy.engine.spark.batch.closed import ClosedPlan, NotComparable
from odfpy.engine.spark.batch.request import obstacle_of
from odfpy.engine.spark.batch.steps import NotRowByRow, Steps, tables_in
from odfpy.engine.spark.batch.tables import WEIGHT, quoted
from odfpy.engine.spark.batch.uses import Uses
from odfpy.engine.spark.plan.catalyst import Node, column_id, columns
from odfpy.engine.spark.plan.failures import spark_errors
from odfpy.engine.sql.source_text import step_texts
from odfpy.errors import InvalidQuery

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Answer:
    """The expected state of an output.

    Attributes:
        rows: the columns of the query, and a weight: how often a row is present.
        taken_back: how many rows inputs retract without having them, by alias, where it matters: for queries that do
            not work row by row, SQL does not define the effect of such retractions.
    """

    rows: DataFrame
    taken_back: Mapping[str, int]


def batch_answer(spark: SparkSession, run: TransformRequest, scratch: Path) -> Answer:
    """Run the queries of a transform over the current state of its inputs, as far as it is closed.

    Args:
        spark: a session with the engine's settings.
        run: the transform as one run over all rows of its inputs; its output paths are not used.
        scratch: a folder for temporary files, which have to exist as long as the rows are read.

    Raises:
        NotComparable: its result does not follow from the state of its inputs, or no rule tells when it is closed.
        InvalidQuery, UnsupportedQuery, EngineError: the queries or the inputs are at fault.
    """
    if (obstacle := obstacle_of(run.transform)) is not None:
        raise NotComparable(obstacle)
    with spark_errors(step_texts(run.transform)):
        return _row_by_row(spark, run, scratch) or _with_state(spark, run, scratch)


def _with_state(spark: SparkSession, run: TransformRequest, scratch: Path) -> Answer:
    steps = Steps(spark, run, scratch)
    return Answer(_rows(steps, steps.last(), run, 1), steps.taken_back())


def _row_by_row(spark: SparkSession, run: TransformRequest, scratch: Path) -> Answer | None:
    """Return the answer if all queries work row by row; then retractions of absent rows pass into the result."""
    if run.transform.temporal_tables:
        return None
    for all_columns in (False, True):  # system columns are visible if named, or passed by a star
        make = partial(Steps, spark, run, scratch, row_by_row=True, all_columns=all_columns)
        try:
            steps = make()
            last = steps.last()
        except NotRowByRow:
            return None
        except InvalidQuery:
            if all_columns:  # a stateful query sees only data columns, and its error names the problem
                return None
        else:
            if not steps.has_star:
                break
    _check_columns(last.plan, steps)
    if run.query_changed:
        raise NotComparable("it is made row by row, and rows of another query, which it had before, stay")
    rows = _rows(steps, last, run, 1)
    if steps.taken_back():
        less = make(sign=-1)
        rows = rows.union(_rows(less, less.last(), run, -1))
    return Answer(rows, {})


def _check_columns(plan: Node, steps: Steps) -> None:
    """Refuse a result that depends on system columns of the inputs."""
    shown = Uses(plan).shown
    hidden = {name for log in steps.logs for name in log.schema.names if name not in log.names}
    leaves = (columns(leaf) for number, leaf in tables_in(plan, deep=True) if number < len(steps.logs))
    hidden_names = sorted(
        {column.name() for leaf in leaves for column in leaf if column.name() in hidden and column_id(column) in shown}
    )
    if hidden_names:
        names = " and ".join(f"`{name}`" for name in hidden_names)
        raise NotComparable(f"it shows {names}, which entries of a changelog have, and rows of a state have not")


def _rows(steps: Steps, last: ClosedPlan, run: TransformRequest, weight: int) -> DataFrame:
    """Return the rows of a result that have an event time: over no rows, SQL still returns one row of NULLs."""
    from pyspark.sql import functions

    rows = steps.catalyst.dataframe(steps.catalyst.project(last.columns, last.plan))
    timed_rows = rows.where(functions.col(quoted(run.vocab.event_time_column)).isNotNull())
    return timed_rows.withColumn(WEIGHT, functions.lit(weight).cast("bigint"))
