"""The steps of a transform as blocks, in the order in which they are processed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.transform import TransformSql
from odfpy.engine.source_text import step_texts
from odfpy.engine.spark.analysis import analyzed_step, check_aliases, check_names
from odfpy.engine.spark.catalyst import Catalyst, columns
from odfpy.engine.spark.classes.base import Step
from odfpy.engine.spark.determinism import check_deterministic
from odfpy.engine.spark.failures import spark_errors
from odfpy.engine.spark.incremental.operators import OPERATORS
from odfpy.engine.spark.incremental.parts import Block, Part, TimeColumn, block_of
from odfpy.engine.spark.incremental.refusals import hidden_columns_told
from odfpy.engine.spark.incremental.sources import Source, source_of, source_plan
from odfpy.engine.spark.incremental.times import Of
from odfpy.engine.spark.incremental.walk import Walk
from odfpy.engine.spark.tables import Table, visible_columns
from odfpy.engine.spark.types import spark_schema


@dataclass(frozen=True, slots=True)
class StepPart:
    """A step, and what is known of it."""

    step: Step
    part: Part


@dataclass(frozen=True, slots=True)
class Steps:
    """A transform, ready to be run.

    Attributes:
        steps: what its queries are.
        blocks: what is processed by itself, each before those that read its changes.
    """

    steps: tuple[StepPart, ...]
    blocks: tuple[Block, ...]

    @property
    def last(self) -> StepPart:
        """The step whose result is the output."""
        return self.steps[-1]

    @property
    def output(self) -> Block | None:
        """The block whose changes are the output; None when the last step is row by row."""
        return None if self.last.part.free is not None else self.blocks[-1]


def steps_of(catalyst: Catalyst, transform: TransformSql, tables: Sequence[Table]) -> Steps:
    """Analyze a transform of which a step is not row by row. The session must not know its inputs yet.

    Raises:
        InvalidQuery, UnsupportedQuery, NondeterministicQuery: a query is at fault.
    """
    sources = [_name_input(catalyst, table, number) for number, table in enumerate(tables)]
    known = [table.name for table in tables]
    check_aliases(transform.steps, known)
    hidden = {name for table in tables for name in _hidden(table.vocab)}
    found: list[StepPart] = []
    blocks: list[Block] = []
    for text, query in zip(step_texts(transform), transform.steps, strict=True):
        with hidden_columns_told(hidden), spark_errors([text]):
            step = analyzed_step(catalyst, query.alias, text, known)
            check_names(step)
            check_deterministic(catalyst, step.plan, step.operators, text)
            walk = Walk(catalyst, text, sources, blocks, OPERATORS)
            part = walk.part(catalyst.without_subqueries(step.plan))
            found.append(StepPart(step, part))
            plan = step.plan
            if part.free is None:
                number = len(sources)
                blocks.append(block_of(part, number, query.alias))
                sources.append(source_of(part))
                plan = catalyst.project(part.columns, source_plan(catalyst, part.columns, number))
            if query is not transform.steps[-1] and query.alias is not None:
                catalyst.name_view(query.alias, plan)
                known.append(query.alias)
    return Steps(tuple(found), tuple(blocks))


def _hidden(vocab: DatasetVocabulary) -> tuple[str, ...]:
    return vocab.offset_column, vocab.operation_type_column, vocab.system_time_column


def _name_input(catalyst: Catalyst, table: Table, number: int) -> Source:
    """Let queries see an input: its data columns, since state has neither offsets nor operation types."""
    schema = table.schema()
    visible = visible_columns(schema, table.vocab)
    empty = columns(catalyst.empty(spark_schema(schema, table.name)))
    seen = []
    for at in visible:
        column = empty[at]
        seen.append(column if schema.field(at).nullable else catalyst.alias(catalyst.never_null(column), column.name()))
    plan = source_plan(catalyst, [column.toAttribute() for column in seen], number)
    catalyst.name_view(table.name, catalyst.project(columns(plan)[: len(seen)], plan))
    event_time = schema.names.index(table.vocab.event_time_column)
    return Source({visible.index(event_time): TimeColumn(Of(number))})
