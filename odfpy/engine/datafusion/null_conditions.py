"""Conditions on files that DataFusion delegates to pyarrow, which would not evaluate them as SQL does.

`x IN (...)` is unknown where x is null, and pyarrow says that it is false. So `x NOT IN (...)`, of more values than
DataFusion writes as comparisons, would be true of nulls. Below AND and OR alone there is no difference: a row for
which a condition is unknown is left out like one for which it is false.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

_LOGICAL: Final = ("AND", "OR")
_LIST: Final = " IN (["


def misreads_nulls(plan: Any) -> bool:
    """Return whether a scan of an optimized plan has a condition of this kind."""
    lines = [line for line in plan.display_indent().splitlines() if "full_filters=" in line and _LIST in line]
    if not lines:
        return False
    scans = [filters for filters in _filters_of_scans(plan) if any(_LIST in str(condition) for condition in filters)]
    # A subquery in an expression, whose plan is not an input of another one, is only in the text.
    return len(scans) != len(lines) or not all(_is_read_well(condition) for filters in scans for condition in filters)


def _filters_of_scans(plan: Any) -> Iterator[Sequence[Any]]:
    step = plan.to_variant()
    if type(step).__name__ == "TableScan":
        yield step.filters()
    for below in plan.inputs():
        yield from _filters_of_scans(below)


def _is_read_well(condition: Any) -> bool:
    kind = condition.variant_name()
    if kind == "BinaryExpr" and condition.to_variant().op() in _LOGICAL:
        step = condition.to_variant()
        return _is_read_well(step.left()) and _is_read_well(step.right())
    if kind == "InList":
        return not condition.to_variant().negated()
    return _LIST not in str(condition)  # a false match in a text only costs a scan of all rows
