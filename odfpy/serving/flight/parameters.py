"""What `?` stands for in a query, as far as one can tell: JDBC wants to know before it takes a value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.arrow import to_arrow
from odfpy.query.dialects import with_parameters
from odfpy.query.plan import Plan

if TYPE_CHECKING:
    from sqlglot import exp


_MARK: Final = "odf parameter "


def parameter_schema(found: Plan) -> pa.Schema:
    """The parameters of a query, `1`, `2` and so on: of the type of the column that they are compared with, else text.

    Whatever a client sends instead is taken all the same.
    """
    from sqlglot import exp

    if not found.num_parameters:
        return pa.schema([])
    types: dict[str, pa.DataType] = {f"{_MARK}{number}": pa.string() for number in range(1, found.num_parameters + 1)}
    text = found.query.text.rstrip().rstrip(";")
    tree = found.dialect.tree(with_parameters(text, found.dialect, [*types]))
    columns = _columns(found)
    for literal in tree.find_all(exp.Literal) if tree is not None else ():
        if literal.name in types:
            types[literal.name] = _type(literal, columns)
    return pa.schema([pa.field(name.removeprefix(_MARK), kind) for name, kind in types.items()])


def _columns(found: Plan) -> dict[str, pa.DataType]:
    schemas = [one.state.schema for _, one in found.tables]
    return {field.name: field.type for schema in schemas if schema is not None for field in to_arrow(schema)}


def _type(place: exp.Literal, columns: dict[str, pa.DataType]) -> pa.DataType:
    from sqlglot import exp

    parent = place.parent
    if isinstance(parent, exp.Limit | exp.Offset):
        return pa.int64()
    names = [one.name for one in parent.iter_expressions() if isinstance(one, exp.Column)] if parent else []
    return next((columns[name] for name in names if name in columns), pa.string())
