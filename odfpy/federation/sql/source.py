"""SQL for one source: the cells that the requester may see, then the fragment, then the client's types.

    SELECT outputs of the fragment
    FROM (SELECT cells, NULL where hidden, and a flag for visible rows FROM (relation) WHERE the row is visible)
    WHERE the fragment's condition

Engines may evaluate conditions in any order, even on rows that another condition excludes. So a cell that is not
visible in all visible rows is wrapped in `CASE WHEN`, and every argument of an operator that can fail is wrapped in
`CASE WHEN the row is visible`: for other rows it is NULL. Values are guarded, not conditions, since engines rewrite
`CASE WHEN a THEN b ELSE FALSE END` to `AND`, whose sides are then evaluated in any order. Plain comparisons are left
bare, so that sources can use their statistics and indexes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final

import pyarrow as pa

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.columns import columns_of
from odfpy.federation.sql.engines import writer_of
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import AGGREGATES, Call, Column, Constant, Expression, columns_in, rebuilt
from odfpy.federation.sql.flavors import CONDITION
from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.operators import FALSE, NULL, call, called_again, can_fail, retyped
from odfpy.federation.sql.reading import named_columns, read_text
from odfpy.federation.sql.simplify import simplified
from odfpy.federation.sql.types import BOOL, UNKNOWN
from odfpy.federation.sql.writing import Writer
from odfpy.sharing.conditions import condition_sql
from odfpy.sharing.decisions import View
from odfpy.sharing.names import folded

_SHOWS: Final = "__shows"
_RELATION: Final = "relation"
_VISIBLE: Final = "visible"
_ROWS: Final = "rows"


def source_sql(
    fragment: Fragment,
    expressions: Mapping[str, Expression],
    relation: str,
    view: View,
    attributes: Mapping[str, str],
    dialect: str,
    *,
    schema: pa.Schema,
) -> str:
    """Return the query that a source runs for a fragment.

    Args:
        fragment: the fragment in this relay's schema.
        expressions: for each column of the entity, its expression over the source's fields; missing ones are NULL.
        relation: query of the source that returns its fields (`odfpy.federation.model.relations`).
        view: the cells that the requester may see, by names of fields.
        attributes: attributes of the requester, for row conditions.
        dialect: dialect of the source: one of `writing.WRITERS`.
        schema: names and types of the fields.

    Raises:
        InvalidFragment: a mapping or grant does not fit the fields, or the source does not support an operation.
    """
    cells = _Cells(view, attributes, schema)
    asked = _Asked(fragment, expressions, cells)
    writer = writer_of(dialect)
    return _Query(writer, asked, cells).text(f"(\n{relation}\n)")


# --- Visibility
# --------------------------------------------------------------------------------------------------------


class _Cells:
    """The visible cells of a relation."""

    def __init__(self, view: View, attributes: Mapping[str, str], schema: pa.Schema) -> None:
        self._types = {field.name: field.type for field in schema}
        if len(self._types) != len(schema):
            raise InvalidFragment("A data source has two fields of the same name")
        self._find = columns_of(self._types)
        self.is_all = view.is_all
        column_names = {folded(name) for name in self._types}
        self._parts = [
            (part.columns, None if part.rows is None else self._condition(part.rows, attributes))
            for part in view.parts
            if part.columns is None or any(folded(column) in column_names for column in part.columns)
        ]
        self.shows = self._any([rows for _, rows in self._parts])
        self.name = _SHOWS
        while folded(self.name) in column_names:
            self.name += "_"

    def _condition(self, rows: str, attributes: Mapping[str, str]) -> Expression:
        try:
            condition = read_text(condition_sql(rows, attributes), named_columns(self._find), CONDITION)
            return cast(retyped(condition, self.column), BOOL)
        except InvalidFragment as error:
            raise InvalidFragment(
                "A condition on rows of a grant does not fit the fields of its data source",
                hint="The operator of the relay can see which by `odf relay status`.",
            ) from error

    @staticmethod
    def _any(conditions: Sequence[Expression | None]) -> Expression | None:
        """Return the disjunction of conditions, None for all rows."""
        known = list(dict.fromkeys(condition for condition in conditions if condition is not None))
        if len(known) == len(set(conditions)) and known:
            return simplified(call("or", *known))
        return None if conditions else FALSE

    def column(self, name: str) -> Column:
        """Look up a field of the relation by the name in an expression."""
        expression = self._find(name)
        if not isinstance(expression, Column):
            raise InvalidFragment(f"There is no field {name!r}")
        return Column(expression.name, expression.dtype, _RELATION)

    def mask(self, field: str) -> Expression | None:
        """Return the condition under which a field is visible, None if always in visible rows; `FALSE` if never."""
        of_field = [rows for columns, rows in self._parts if columns is None or folded(field) in map(folded, columns)]
        condition = self._any(of_field)
        return None if condition == self.shows else condition


class _Asked:
    """The fragment as a query over a relation: in its fields, and with its types."""

    def __init__(self, fragment: Fragment, expressions: Mapping[str, Expression], cells: _Cells) -> None:
        self.fragment = fragment
        self._expressions = expressions
        self._cells = cells
        self.where = None if fragment.where is None else self._guarded(self._of(fragment.where))
        if self.where is not None:
            self.where = cast(self.where, BOOL) if self.where.dtype != BOOL else self.where
        self.outputs = [
            (output.name, self._guarded(cast(self._of(output.expression), output.type)))
            if output.type != UNKNOWN
            else (output.name, self._guarded(self._of(output.expression)))
            for output in fragment.outputs
        ]
        self.groups = [self._guarded(self._of(group)) for group in fragment.groups]
        self.order = [self._guarded(self._of(order.expression)) for order in fragment.order]

    @property
    def every(self) -> Iterable[Expression]:
        where = () if self.where is None else (self.where,)
        return (*(output for _, output in self.outputs), *where, *self.groups, *self.order)

    def _of(self, expression: Expression) -> Expression:
        def information(node: Column) -> Expression:
            mapped = self._expressions.get(node.name, NULL)
            typed = retyped(mapped, self._field)
            return typed if node.dtype == UNKNOWN else cast(typed, node.dtype)

        return simplified(rebuilt(expression, information, called_again))

    def _field(self, name: str) -> Expression:
        field = self._cells.column(name)
        is_hidden = self._cells.mask(field.name) == FALSE
        return Constant(None, field.dtype) if is_hidden else Column(field.name, field.dtype, _VISIBLE)

    def _guarded(self, expression: Expression) -> Expression:
        """Guard an expression: nothing that can fail gets a value of an invisible row."""
        if self._cells.shows is None:
            return expression

        def guard(node: Call, arguments: tuple[Expression, ...]) -> Expression:
            values = [self._of_shown(argument) for argument in arguments] if can_fail(node) else arguments
            return called_again(node, values)

        return rebuilt(expression, lambda column: column, guard)

    def _of_shown(self, value: Expression) -> Expression:
        """Return the value in visible rows, else NULL; operations that may fail are already NULL there."""
        if can_fail(value) or _holds_aggregate(value):
            return value
        return call("case", Column(self._cells.name, BOOL, _VISIBLE), value, NULL)


def _holds_aggregate(node: Expression) -> bool:
    if isinstance(node, Call) and node.operator == "cast":
        return _holds_aggregate(node.arguments[0])
    return isinstance(node, Call) and node.operator in AGGREGATES


# --- SQL text
# ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Query:
    writer: Writer
    asked: _Asked
    cells: _Cells

    def text(self, relation: str) -> str:
        fragment, write = self.asked.fragment, self.writer
        rows = self._visible(relation)
        where = "" if self.asked.where is None else f" WHERE {write.write(self.asked.where)}"
        if fragment.is_grouped:
            return self._grouped(f"{rows}{where}")
        distinct = "DISTINCT " if fragment.is_distinct else ""
        shown = [f"{write.write(output)} AS {write.quoted(name)}" for name, output in self.asked.outputs]
        if fragment.limit is None:
            return f"SELECT {distinct}{', '.join(shown)} FROM {rows}{where}"  # noqa: S608
        names = self._order_names()
        if not fragment.is_distinct:
            shown += [f"{write.write(self.asked.order[at])} AS {write.quoted(name)}" for at, name in names.items()]
        query = f"SELECT {distinct}{', '.join(shown)} FROM {rows}{where}"  # noqa: S608
        if names:
            query = self._ordered(query, names)
        return f"{query} LIMIT {fragment.limit}"

    def _order_names(self) -> dict[int, str]:
        """Choose names of the columns to order by, by the index of the sort key.

        They differ from those of the relation: DataFusion confuses these with outputs of the same name. Constants are
        left out, since `ORDER BY 1` would refer to the first column.
        """
        if self.asked.fragment.is_distinct:
            outputs = {output.expression: output.name for output in self.asked.fragment.outputs}
            return {at: outputs[order.expression] for at, order in enumerate(self.asked.fragment.order)}
        taken = {folded(name) for name, _ in self.asked.outputs}
        free = (name for at in count() if (name := f"o{at}") not in taken)
        return {at: next(free) for at, order in enumerate(self.asked.order) if not isinstance(order, Constant)}

    def _ordered(self, rows: str, names: Mapping[int, str]) -> str:
        """Return the outputs of rows in their order.

        Args:
            rows: a query for outputs and sort keys.
            names: names of the sort keys.
        """
        fragment, write = self.asked.fragment, self.writer
        shown = ", ".join(write.write(Column(name, output.dtype, _ROWS)) for name, output in self.asked.outputs)
        by = [
            write.ordered(
                Column(name, self.asked.order[at].dtype, _ROWS),
                descending=fragment.order[at].descending,
                nulls_first=fragment.order[at].nulls_first,
            )
            for at, name in names.items()
        ]
        return f"SELECT {shown} FROM ({rows}) AS {write.quoted(_ROWS)} ORDER BY {', '.join(by)}"  # noqa: S608

    def _visible(self, relation: str) -> str:
        """Return the visible cells that are needed, as a subquery."""
        quoted, cells = self.writer.quoted, self.cells
        if cells.is_all or (cells.shows is None and not self._masked()):
            return f"{relation} AS {quoted(_VISIBLE)}"
        shows = None if cells.shows is None else self.writer.write(cells.shows)
        shown = [] if shows is None else [f"{shows} AS {quoted(cells.name)}"]
        for name in sorted(set().union(*(columns_in(expression) for expression in self.asked.every)) - {cells.name}):
            mask = cells.mask(name)
            field = cells.column(name)
            cell = field if mask is None else call("case", mask, field, NULL)
            shown.append(f"{self.writer.write(cell)} AS {quoted(name)}")
        where = "" if shows is None else f" WHERE {shows}"
        return f"(SELECT {', '.join(shown)} FROM {relation} AS {quoted(_RELATION)}{where}) AS {quoted(_VISIBLE)}"  # noqa: S608

    def _masked(self) -> bool:
        names = set().union(*(columns_in(expression) for expression in self.asked.every))
        return any(self.cells.mask(name) is not None for name in names)

    def _grouped(self, rows: str) -> str:
        """Group by column names, so that no engine has to recognize equal expressions."""
        write = self.writer
        keys = {expression: f"g{at}" for at, expression in reversed(list(enumerate(self.asked.groups)))}
        arguments: dict[Expression, str] = {}
        shown = []
        for (name, expression), output in zip(self.asked.outputs, self.asked.fragment.outputs, strict=True):
            shown_value = (
                self._aggregated(expression, arguments)
                if _holds_aggregate(expression)
                else self._key(output.expression, output.type)
            )
            shown.append(f"{write.write(shown_value)} AS {write.quoted(name)}")
        inner = [f"{write.group_key(expression)} AS {write.quoted(name)}" for expression, name in keys.items()]
        inner += [f"{write.write(expression)} AS {write.quoted(name)}" for expression, name in arguments.items()]
        by = ", ".join(write.write(Column(name, expression.dtype, _ROWS)) for expression, name in keys.items())
        every = ", ".join(inner) or f"TRUE AS {write.quoted('row')}"
        text = f"SELECT {', '.join(shown)} FROM (SELECT {every} FROM {rows}) AS {write.quoted(_ROWS)}"  # noqa: S608
        return f"{text} GROUP BY {by}" if by else text

    def _key(self, expression: Expression, dtype: pa.DataType) -> Expression:
        """Return the group that an output refers to, by its name."""
        at = self.asked.fragment.groups.index(expression)
        key = self.asked.groups[at]
        named = Column(f"g{self.asked.groups.index(key)}", key.dtype, _ROWS)
        return named if dtype == UNKNOWN else cast(named, dtype)

    def _aggregated(self, node: Expression, arguments: dict[Expression, str]) -> Expression:
        if isinstance(node, Call) and node.operator == "cast":
            return cast(self._aggregated(node.arguments[0], arguments), node.dtype)
        if not isinstance(node, Call) or not node.arguments:
            return node
        [argument] = node.arguments
        name = arguments.setdefault(argument, f"a{len(arguments)}")
        return call(node.operator, Column(name, argument.dtype, _ROWS))
