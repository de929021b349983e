"""Unique names for the columns of joined tables, without which DataFusion returns wrong answers.

DataFusion 55 pushes conditions below joins by column name: of two tables that both have an `id`, it may pick the wrong
one (its issues 21246 and 25244; mostly above RIGHT and FULL JOIN, or with LIMIT). So every table of a join is wrapped
in a subquery that prefixes its columns with the table's name, so that no two columns have the same name.
"""

from __future__ import annotations

from typing import Any, Final

from odfpy.federation.sql.flavors import QUERIES

_PLAIN: Final = frozenset(("this", "alias", "db", "catalog"))


def with_own_names(sql: str) -> str:
    """Return an equivalent query in which no join has two columns of the same name.

    Args:
        sql: a query from `split` in DataFusion's SQL: every table has a unique alias, every column is qualified.
    """
    from sqlglot import exp, parse_one

    dialect = QUERIES["datafusion"].sqlglot
    tree: Any = parse_one(sql, dialect=dialect)
    joined = [select for select in tree.find_all(exp.Select) if select.args.get("joins")]
    for select in joined:
        for item in [select.args["from_"].this, *(join.this for join in select.args["joins"])]:
            _name_columns(select, item)
    return tree.sql(dialect, comments=False) if joined else sql


def _name_columns(select: Any, item: Any) -> None:
    """Rename the columns of one joined table after it."""
    from sqlglot import exp

    alias = item.alias
    is_plain = isinstance(item, exp.Table) and not any(value for key, value in item.args.items() if key not in _PLAIN)
    if not alias or not (is_plain or isinstance(item, exp.Subquery)):
        return
    columns = [node for node in select.find_all(exp.Column) if node.table == alias]
    if not columns or any(isinstance(column.this, exp.Star) for column in columns):
        return
    names = {column.name: f"{alias} {column.name}" for column in columns}
    table = exp.to_identifier(alias, quoted=True)
    shown = [
        exp.alias_(exp.column(exp.to_identifier(name, quoted=True), table.copy()), own, quoted=True)
        for name, own in names.items()
    ]
    inner = exp.select(*shown).from_(item.copy())
    for column in columns:
        if column.parent is not None and column.arg_key == "expressions" and isinstance(column.parent, exp.Select):
            column.replace(exp.alias_(column.copy(), column.name, quoted=True))  # it names a column of the answer
    for own_column in [node for node in select.find_all(exp.Column) if node.table == alias]:
        own_column.set("this", exp.to_identifier(names[own_column.name], quoted=True))
    item.replace(exp.Subquery(this=inner, alias=exp.TableAlias(this=table)))
