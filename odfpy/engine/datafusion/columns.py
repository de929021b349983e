"""Lineage of columns: the input columns of each result column, determined from the logical plan alone."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from odfpy.engine.datafusion.plan import operator, scans
from odfpy.engine.output import OutputLayout
from odfpy.engine.tracing import ColumnOrigin
from odfpy.errors import InternalError

_MAX_TEXT_LENGTH: Final = 200
_PLACEHOLDER: Final = re.compile(r"__unnest_placeholder\((.*)\)", re.DOTALL)
_NUMBER_OR_TEXT: Final = re.compile(r'\b(?:(?:U?Int|Float)\d+\(([^()"]*)\)|Utf8(?:View)?\("(.*?)"\))', re.DOTALL)
_OF_LIST: Final = re.compile(r"(.*),depth=(\d+)\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Unnested:
    """A column of an Unnest that is not one of the rows below.

    Attributes:
        column: the column.
        source: the column that it is a part of.
        depth: how many lists were opened; 0 for a field of a struct.
    """

    column: str
    source: str
    depth: int


def unnest_columns(plan: Any) -> list[Unnested]:
    """Return the columns that an Unnest makes, in their order."""
    (below,) = plan.inputs()
    known, unnested = names_of(below), []
    for name in names_of(plan):
        if name in known:
            continue
        of_list = _OF_LIST.fullmatch(name)
        if of_list is not None and of_list[1] + ")" in known:
            unnested.append(Unnested(name, of_list[1] + ")", int(of_list[2])))
            continue
        source = next((column for column in known if name.startswith(column + ".")), None)
        if source is None:
            raise InternalError(f"{name} is not a column of what is unnested")
        unnested.append(Unnested(name, source, 0))
    return unnested


def names_of(plan: Any) -> list[str]:
    """Return the columns of a plan, each with the table that it belongs to."""
    return [str(name) for name in operator(plan)[1].schema().field_names()]


@dataclass(frozen=True, slots=True)
class _Origin:
    """One origin of a column.

    Attributes:
        table: name of the input.
        column: name of its column.
        branch: number of the reading.
        is_one_of: whether rows of other branches have another origin.
        through: expressions applied on the way.
    """

    table: str
    column: str
    branch: int
    is_one_of: bool = False
    through: tuple[str, ...] = ()

    def made_by(self, text: str) -> _Origin:
        return replace(self, through=(text[:_MAX_TEXT_LENGTH], *self.through))


def column_origins(plan: Any, inputs: Sequence[str], layout: OutputLayout) -> tuple[ColumnOrigin, ...]:
    """Return the input columns from which the columns of a result come.

    Args:
        plan: the logical plan.
        inputs: names of the inputs in the query.
        layout: the columns of the output.
    """
    origins: dict[tuple[str, int, str, int], ColumnOrigin] = {}
    positions = dict(zip(layout.schema.names[3:], layout.sources, strict=True))
    for name in sorted(positions, key=positions.__getitem__):
        for way in _ways(plan, positions[name], 0):
            origin = ColumnOrigin(
                column=name,
                input=inputs.index(way.table),
                source=way.column,
                is_copy=not way.through,
                through=way.through,
                is_one_of=way.is_one_of,
                branch=way.branch,
            )
            key = origin.column, origin.input, way.column, way.branch
            if key not in origins or origin.is_copy:
                origins[key] = origin
    return tuple(origins.values())


def _ways(plan: Any, at: int, before: int) -> Iterator[_Origin]:
    """Yield all origins of a column of a plan.

    Args:
        plan: the plan.
        at: position of the column.
        before: how many readings of inputs are left of the plan.
    """
    name, variant = operator(plan)
    match name:
        case "TableScan":
            yield _Origin(
                str(variant.table_name()), names_of(plan)[at].removeprefix(f"{variant.table_name()}."), before
            )
        case "Union":
            for below in plan.inputs():
                yield from (replace(way, is_one_of=True) for way in _ways(below, at, before))
                before += sum(scans(below).values())
        case "Projection":
            yield from _of_expression(plan.inputs()[0], variant.projections()[at], before)
        case "Unnest":
            yield from _of_unnest(plan, at, before)
        case _:
            yield from _ways(plan.inputs()[0], at, before)


def _of_expression(below: Any, raw: Any, before: int) -> Iterator[_Origin]:
    """Yield the origins of what an expression reads; a mere column reference adds nothing to them."""
    from datafusion.expr import Expr

    expression = Expr(raw)
    while expression.variant_name() == "Alias":
        (expression,) = expression.rex_call_operands()
    known = names_of(below)
    if expression.variant_name() == "Column":
        yield from _ways(below, known.index(expression.schema_name()), before)
        return
    text = _as_sql(expression.schema_name())
    for name in dict.fromkeys(_columns_read(expression)):
        yield from (way.made_by(text) for way in _ways(below, known.index(name), before))


def _as_sql(name: str) -> str:
    """Return the name of an expression with SQL literals: `Utf8("a")` is `'a'`, and `Int64(2)` is `2`."""

    def literal(match: re.Match[str]) -> str:
        number, text = match.groups()
        return number or "'" + text.replace("'", "''") + "'"

    return _NUMBER_OR_TEXT.sub(literal, _PLACEHOLDER.sub(r"\1", name))


def _columns_read(expression: Any) -> Iterator[str]:
    if expression.variant_name() == "Column":
        yield str(expression.schema_name())
        return
    operands = expression.rex_call_operands() if expression.variant_name() != "Literal" else []
    for operand in operands:
        yield from _columns_read(operand)


def _of_unnest(plan: Any, at: int, before: int) -> Iterator[_Origin]:
    (below,) = plan.inputs()
    known, name = names_of(below), names_of(plan)[at]
    unnested = next((column for column in unnest_columns(plan) if column.column == name), None)
    if unnested is None:
        yield from _ways(below, known.index(name), before)
        return
    inside = _as_sql(unnested.source)
    text = f"unnest({inside})" if unnested.depth else inside + unnested.column.removeprefix(unnested.source)
    yield from (way.made_by(text) for way in _ways(below, known.index(unnested.source), before))
