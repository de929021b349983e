"""Stars in row-by-row queries, which see `offset`, `op` and `system_time` as columns of their inputs.

In the result, these columns would have the values of other rows. So a final `SELECT *` or `SELECT * EXCEPT (...)`
leaves them out, as in stateful queries; a query that names one of them is asked to rename it.

A star in a function call, as in `xxhash64(*)`, makes them part of a value. A correction has another offset than the row
that it retracts, so the value would be that of a row that never existed. New queries with such a star are refused; one
that is already in a chain runs as long as nothing is retracted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.spark.analysis.determinism import place, text_of
from odfpy.engine.spark.analysis.star_arguments import columns_by_star, written_at
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.lineage import above_inputs, find_column, origins
from odfpy.engine.spark.plan.operators import INPUT
from odfpy.engine.spark.plan.step import Step
from odfpy.engine.spark.row_by_row.carried import Delta
from odfpy.engine.spark.row_by_row.carry import carry
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery


def without_assigned(step: Step, catalyst: Catalyst, tables: Sequence[Table], vocab: DatasetVocabulary) -> Step:
    """Return the last step without offsets and system times of inputs that `*` has brought into its result.

    Args:
        step: the step.
        catalyst: the session.
        tables: the inputs, in declared order.
        vocab: names of the columns of the output.
    """
    shown = columns(step.plan)
    assigned = [
        at for at, column in enumerate(shown) if column.name() in (vocab.offset_column, vocab.system_time_column)
    ]
    if not assigned:
        return step
    delta = carry(catalyst, step.plan)
    left_out = {at for at in assigned if _is_of_star(step.plan, at, step.source) and _is_assigned(delta, at, tables)}
    if not left_out:
        return step
    kept = [column for at, column in enumerate(shown) if at not in left_out]
    return replace(step, plan=catalyst.project(kept, step.plan))


def star_in_function(step: Step, delta: Delta, tables: Sequence[Table]) -> str | None:
    """Return the first function that takes system columns of an input by a star, with its place in the text, or None.

    Args:
        step: a step of the transform.
        delta: the result of its query row by row.
        tables: the inputs, in declared order.
    """
    for operator in above_inputs(delta.plan):
        for column in columns_by_star(operator, step.source):
            if any(_is_system_column(delta, below, column, tables) for below in children(operator)):
                return f"`{text_of(column, step.source)}`{place(column, step.source)}"
    return None


def refuse_star(star: str, tables: Sequence[Table]) -> InvalidQuery:
    """Return the error for a function that `star_in_function` has found.

    Args:
        star: the function and its place.
        tables: the inputs, in declared order.
    """
    vocab = tables[0].vocab
    offset, operation, time = vocab.changelog_columns
    return InvalidQuery(
        f"A star brings `{offset}`, `{operation}` and `{time}` of an input into a function, and a row that is taken"
        f" back has other ones than it came with: {star}",
        hint=f"List the columns, or exclude these: `* EXCEPT ({offset}, {operation}, {time})`.",
    )


def _is_system_column(delta: Delta, below: Node, column: Node, tables: Sequence[Table]) -> bool:
    """Return whether a column of an operator's input is the offset, operation type or system time of an input."""
    if find_column(columns(below), column) is None:
        return False
    for origin in origins(below, column):
        if origin.branch is None or not origin.is_unchanged:
            continue
        if origin.column in tables[delta.branches[origin.branch].input].vocab.changelog_columns:
            return True
    return False


def _is_assigned(delta: Delta, at: int, tables: Sequence[Table]) -> bool:
    """Return whether a column of the result is the offset or system time of an input, however it is computed."""
    for origin in origins(delta.plan, columns(delta.plan)[at]):
        if origin.branch is None or not origin.is_unchanged:
            return False
        own = tables[delta.branches[origin.branch].input].vocab
        if origin.column not in (own.offset_column, own.system_time_column):
            return False
    return True


def _is_of_star(plan: Node, at: int, source: SourceText) -> bool:
    """Return whether the outermost SELECT has a column by `*` (or there is no SELECT, as in `TABLE a`)."""
    match operator_name(plan):
        case "Project":
            column = selected(plan)[at]
            text = written_at(column, source)
            return expression_name(column) == "AttributeReference" and text.split(".")[-1].strip("` ") != column.name()
        case "Union":
            return all(_is_of_star(child, at, source) for child in children(plan))
        case "WithCTE":
            return _is_of_star(plan.plan(), at, source)
        case name if name == INPUT or not children(plan):
            return True
    (below,) = children(plan)
    place = find_column(columns(below), columns(plan)[at])
    return place is not None and _is_of_star(below, place, source)
