"""Row-by-row transforms: analyzed once, over empty inputs, then run over the new rows of each pull."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.lru_cache import LruCache
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.lateness.policy import Late
from odfpy.engine.output import output_layout
from odfpy.engine.spark.analysis.classification import ClassifiedStep, classify_transform
from odfpy.engine.spark.analysis.stars import star_in_function, without_assigned
from odfpy.engine.spark.incremental.state.changes import with_identity_of
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, columns, columns_read, operator_name, selected
from odfpy.engine.spark.plan.lineage import ColumnOrigin, above_inputs, origins
from odfpy.engine.spark.plan.step import CARRIED_OFFSET, CARRIED_OPERATION
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.session import request_session
from odfpy.engine.spark.row_by_row.carried import Delta
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.spark.rows.late_table import chosen
from odfpy.engine.spark.rows.tables import Table, name_input, scan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_MAKE_SEVERAL: Final = ("Generate", "Expand")


@dataclass(frozen=True, slots=True)
class RowByRowPlan:
    """An analyzed row-by-row transform. It holds no session, so that it can be cached.

    Attributes:
        steps: the classified queries.
        delta: the result over no rows, which shows where its columns come from.
        result: its columns.
        time_origins: the origins of its event time.
        key: positions of columns that identify a row of its state; None when no columns do.
        star: a function that takes system columns of an input by a star, None for none.
    """

    steps: tuple[ClassifiedStep, ...]
    delta: Delta
    result: pa.Schema
    time_origins: tuple[ColumnOrigin, ...]
    key: tuple[int, ...] | None
    star: str | None

    def over(self, catalyst: Catalyst, tables: Sequence[Table], late: Sequence[Late], scratch: Path) -> Delta:
        """Return the result over the rows of some tables, whose schemas are those at the time of analysis.

        Args:
            catalyst: the session.
            tables: the inputs, in declared order.
            late: the policy for late rows of each table.
            scratch: a folder for temporary files.

        Raises:
            EngineError: a slice is damaged or does not fit the schema.
        """

        def leaf_over(number: int, leaf: Node) -> Node:
            table = tables[number]
            rows = chosen(catalyst, late[number], table, scan(catalyst, table, scratch), scratch)
            return _leaf_over(catalyst, leaf, table, rows)

        return carry(catalyst, self.steps[-1].step.plan, leaf_over)


def _leaf_over(catalyst: Catalyst, leaf: Node, table: Table, rows: Node) -> Node:
    """Return an input over other rows: its columns keep their identities (see `name_input`)."""
    all_columns, names = columns(rows), table.schema().names
    *named, source, _, _ = selected(leaf)
    shown = [with_identity_of(catalyst, below, column) for below, column in zip(all_columns, named, strict=True)]
    offset, operation = (
        all_columns[names.index(name)] for name in (table.vocab.offset_column, table.vocab.operation_type_column)
    )
    marks = [source, catalyst.alias(offset, CARRIED_OFFSET), catalyst.alias(operation, CARRIED_OPERATION)]
    return catalyst.project([*shown, *marks], rows)


_KNOWN: Final[LruCache[Hashable, RowByRowPlan | None]] = LruCache(64)
"""Analyzed transforms, by everything that their plans depend on; None for those that are stateful."""


def row_by_row_plan(
    spark: SparkSession, key: Hashable, transform: TransformSql, vocab: DatasetVocabulary, tables: Sequence[Table]
) -> RowByRowPlan | None:
    """Return the plan of a transform, or None when a step is not row by row. It is analyzed in a session of its own.

    Args:
        spark: the session of the process.
        key: everything that the plan depends on.
        transform: the queries.
        vocab: names of the system columns of the output.
        tables: the inputs, in declared order.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: a query is at fault.
    """
    return _KNOWN.get(key, lambda: _analyzed(Catalyst(request_session(spark)), transform, vocab, tables))


def _analyzed(
    catalyst: Catalyst, transform: TransformSql, vocab: DatasetVocabulary, tables: Sequence[Table]
) -> RowByRowPlan | None:
    for position, table in enumerate(tables):
        name_input(catalyst, replace(table, data_paths=(), interval=None), position, Path())
    steps = classify_transform(catalyst, transform, [table.name for table in tables])
    last = steps[-1]
    if not all(step.is_row_by_row for step in steps):
        return None
    step = without_assigned(last.step, catalyst, tables, vocab)
    delta = carry(catalyst, step.plan)
    result = arrow_schema(catalyst.dataframe(step.plan).schema)
    layout = output_layout(result, vocab, None)
    return RowByRowPlan(
        (*steps[:-1], replace(last, step=step)),
        delta,
        result,
        tuple(origins(delta.plan, columns(delta.plan)[layout.sources[0]])),
        _passed_key(delta, tables, layout.sources),
        next(filter(None, (_star(catalyst, query_step, tables) for query_step in steps)), None),
    )


def _star(catalyst: Catalyst, step: ClassifiedStep, tables: Sequence[Table]) -> str | None:
    if "*" not in step.step.source.text:
        return None
    return star_in_function(step.step, carry(catalyst, step.step.plan), tables)


def _passed_key(delta: Delta, tables: Sequence[Table], shown: Sequence[int]) -> tuple[int, ...] | None:
    """Return the key of the only input, if all of its columns pass unchanged, and rows are not multiplied."""
    if len(delta.branches) != 1:
        return None
    table = tables[delta.branches[0].input]
    key = table.primary_key
    if key is None or any(
        operator_name(above_input) in _MAKE_SEVERAL or _may_keep_half(above_input, table)
        for above_input in above_inputs(delta.plan)
    ):
        return None
    passed: dict[str | None, int] = {}
    for at in shown:
        (way, *others) = origins(delta.plan, columns(delta.plan)[at])
        if way.is_unchanged and not others:
            passed.setdefault(way.column, at)
    return tuple(passed[name] for name in key) if passed.keys() >= set(key) else None


def _may_keep_half(operator: Node, table: Table) -> bool:
    """Return whether a filter reads more than the data of a row: it may pass a row and drop its retraction."""
    if operator_name(operator) != "Filter":
        return False
    below, vocab = operator.child(), table.vocab
    ways = [way for column in columns_read(operator.condition()) for way in origins(below, column)]
    hidden = (None, *vocab.changelog_columns)
    return any(way.column in hidden for way in ways)
