"""The column names of a preprocessing query, as far as its text alone determines them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from odfpy.dataset.transform import TransformSql

if TYPE_CHECKING:
    from sqlglot import exp

_INPUT = "input"
_GRAMMARS = {"datafusion": "postgres", "flink": "spark", "postgresql": "postgres"}
_PLAIN = {"kind", "hint", "distinct", "expressions", "from", "from_", "where", "order", "limit", "offset", "into"}


def output_names(transform: TransformSql, columns: Sequence[str] | None) -> Sequence[str] | None:
    """Return the names of the columns of the result, None if only an engine can tell.

    Args:
        transform: queries over the view `input`.
        columns: those of the view, None if they are not known.
    """
    tables: dict[str, Sequence[str] | None] = {_INPUT: columns}
    names: Sequence[str] | None = None
    for step in transform.normalized().steps:
        names = _names(step.query, transform.engine.lower(), tables)
        if step.alias is not None:
            tables[step.alias.lower()] = names
    return names


def _names(query: str, engine: str, tables: Mapping[str, Sequence[str] | None]) -> Sequence[str] | None:
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        parsed = sqlglot.parse_one(query, dialect=_GRAMMARS.get(engine, engine))
    except (SqlglotError, ValueError, RecursionError):
        return None
    while isinstance(parsed, exp.SetOperation):
        parsed = parsed.this
    if not isinstance(parsed, exp.Select):
        return None
    names: list[str] = []
    for item in parsed.expressions:
        if isinstance(item, exp.Star) and not any(item.args.values()):
            every = _columns_of_only_table(parsed, tables)
            if every is None:
                return None
            names += every
        elif isinstance(item, exp.Alias) or (isinstance(item, exp.Column) and not isinstance(item.this, exp.Star)):
            names.append(item.alias_or_name)
        else:
            return None  # engines name expressions differently
    return names


def _columns_of_only_table(select: exp.Select, tables: Mapping[str, Sequence[str] | None]) -> Sequence[str] | None:
    """Return the columns of `*`, if there is only one table."""
    from sqlglot import exp

    if any(value for key, value in select.args.items() if key not in _PLAIN):
        return None
    clause = select.args.get("from_") or select.args.get("from")
    table = clause.this if clause is not None else None
    if not isinstance(table, exp.Table) or table.args.get("db") or table.args.get("pivots") or table.args.get("joins"):
        return None
    return tables.get(table.name.lower())
