"""What `?` stands for in a query, as far as one can tell: JDBC wants to know before it takes a value."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from odfpy.data.arrow import to_arrow
from odfpy.query.plan import Plan

if TYPE_CHECKING:
    from sqlglot import exp


def parameter_schema(found: Plan) -> pa.Schema:
    """The parameters of a query, `1`, `2` and so on: of the type of the column that they are compared with, else text.

    Whatever a client sends instead is taken all the same.
    """
    from sqlglot import exp

    if not found.num_parameters:
        return pa.schema([])
    types: list[pa.DataType] = [pa.string()] * found.num_parameters
    tree = found.dialect.tree(found.query.text.strip().rstrip(";"))
    places = [] if tree is None else [one for one in tree.dfs() if isinstance(one, exp.Placeholder)]
    if len(places) == found.num_parameters:
        columns = _columns(found)
        types = [_type(place, columns) for place in places]
    return pa.schema([pa.field(str(number), kind) for number, kind in enumerate(types, start=1)])


def _columns(found: Plan) -> dict[str, pa.DataType]:
    schemas = [one.state.schema for _, one in found.tables]
    return {field.name: field.type for schema in schemas if schema is not None for field in to_arrow(schema)}


def _type(place: exp.Placeholder, columns: dict[str, pa.DataType]) -> pa.DataType:
    from sqlglot import exp

    parent = place.parent
    if isinstance(parent, exp.Limit | exp.Offset):
        return pa.int64()
    if isinstance(parent, exp.Predicate | exp.Condition):
        names = [one.name for one in parent.iter_expressions() if isinstance(one, exp.Column)]
        return next((columns[name] for name in names if name in columns), pa.string())
    return pa.string()
