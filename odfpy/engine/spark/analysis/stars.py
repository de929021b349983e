"""The expansion of `*` at the end of a query row by row: without columns that the engine assigns anew.

Such a query may read `offset` and `system_time` of its inputs, which are therefore columns of theirs. In its result
they would be those of other rows; so `SELECT *` and `SELECT * EXCEPT (...)` leave them out, as with state. Who names
one of them is told to give it another name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.spark.classes.base import Delta, QueryClass, Step
from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    children,
    columns,
    expression_name,
    operator_name,
    selected,
    text_range,
)
from odfpy.engine.spark.plan.lineage import find_column, origins
from odfpy.engine.spark.plan.operators import INPUT
from odfpy.engine.spark.rows.tables import Table
from odfpy.engine.sql.source_text import SourceText


def without_assigned(
    step: Step, query_class: QueryClass, catalyst: Catalyst, tables: Sequence[Table], vocab: DatasetVocabulary
) -> Step:
    """The last step without the inputs' own offsets and system times, where `*` has brought them into its result.

    Args:
        step: the step.
        query_class: what it is run as.
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
    delta = query_class.run(catalyst, step)
    left_out = {at for at in assigned if _is_of_star(step.plan, at, step.source) and _is_assigned(delta, at, tables)}
    if not left_out:
        return step
    kept = [column for at, column in enumerate(shown) if at not in left_out]
    return replace(step, plan=catalyst.project(kept, step.plan))


def _is_assigned(delta: Delta, at: int, tables: Sequence[Table]) -> bool:
    """Return whether a column of the result is the offset or the system time of an input, however it is made."""
    for origin in origins(delta.plan, columns(delta.plan)[at]):
        if origin.branch is None or not origin.is_unchanged:
            return False
        own = tables[delta.branches[origin.branch].input].vocab
        if origin.column not in (own.offset_column, own.system_time_column):
            return False
    return True


def _is_of_star(plan: Node, at: int, source: SourceText) -> bool:
    """Return whether the outermost SELECT has a column by `*` (or there is none, as in `TABLE a`)."""
    match operator_name(plan):
        case "Project":
            column = selected(plan)[at]
            found = text_range(column)
            text = "" if found is None else source.text[slice(*found)]
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
