"""Types of the parameters `?` in a query, as far as they can be inferred: JDBC requests them before it sends values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from odfpy.data.schemas.arrow import to_arrow
from odfpy.query.dialects import Dialect, with_parameters
from odfpy.query.plan import QueryPlan

if TYPE_CHECKING:
    from sqlglot import exp


_MARK: Final = "odf parameter "
_TYPES: Final = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "INT", "BIGINT"), pa.int64()),
    **dict.fromkeys(("FLOAT", "DOUBLE"), pa.float64()),
    **dict.fromkeys(("TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMPNTZ", "TIMESTAMPLTZ"), pa.timestamp("ms", "UTC")),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "VARBINARY": pa.binary(),
}
"""Types of cast parameters, for which clients can provide values."""


def parameter_schema(query_plan: QueryPlan) -> pa.Schema:
    """Return the parameters of a query as columns `1`, `2` and so on: with the type of the compared operand, else text.

    Values of other types are accepted, too.
    """
    return parameter_types(query_plan.query.text, query_plan.dialect, query_plan.num_parameters, _columns(query_plan))


def parameter_types(text: str, dialect: Dialect, number: int, columns: Mapping[str, pa.DataType]) -> pa.Schema:
    """Return the parameters of a query, in the form of `parameter_schema`.

    Args:
        text: the query.
        dialect: SQL dialect of the query.
        number: number of its parameters.
        columns: columns of the tables that it names.
    """
    from sqlglot import exp

    if not number:
        return pa.schema([])
    types: dict[str, pa.DataType] = {f"{_MARK}{position}": pa.string() for position in range(1, number + 1)}
    tree = dialect.tree(with_parameters(text.rstrip().rstrip(";"), dialect, [*types]))
    for literal in tree.find_all(exp.Literal) if tree is not None else ():
        if literal.name in types:
            types[literal.name] = _type(literal, columns)
    return pa.schema([pa.field(name.removeprefix(_MARK), kind) for name, kind in types.items()])


def _columns(query_plan: QueryPlan) -> dict[str, pa.DataType]:
    schemas = [table.state.schema for _, table in query_plan.tables]
    return {field.name: field.type for schema in schemas if schema is not None for field in to_arrow(schema)}


def _type(place: exp.Literal, columns: Mapping[str, pa.DataType]) -> pa.DataType:
    """Return the type of the operand next to a parameter, or next to the expression that it is part of."""
    from sqlglot import exp

    node: exp.Expr = place
    while (parent := node.parent) is not None:
        match parent:
            case exp.Limit() | exp.Offset():
                return pa.int64()
            case exp.Connector() | exp.Not() | exp.Where() | exp.Having():
                return pa.bool_()
        beside = [parent, *(expression for expression in parent.iter_expressions() if expression is not node)]
        data_type = next((kind for sibling in beside if (kind := _type_of(sibling, columns)) is not None), None)
        if data_type is not None:
            return data_type
        if isinstance(parent, exp.Predicate) or not isinstance(parent, exp.Binary | exp.Unary):
            break
        node = parent
    return pa.string()


def _type_of(expression: exp.Expr, columns: Mapping[str, pa.DataType]) -> pa.DataType | None:
    """Return the type of an expression that is not a parameter, where it is obvious."""
    from sqlglot import exp

    match expression:
        case exp.Column():
            return columns.get(expression.name)
        case exp.Cast():
            return _TYPES.get(expression.to.this.name)
        case exp.Boolean():
            return pa.bool_()
        case exp.Literal() if expression.is_string:
            return None if expression.name.startswith(_MARK) else pa.string()
        case exp.Literal():
            return pa.int64() if expression.is_int else pa.float64()
    return None
