"""Mappings as SQL: the relation of a data source, and an expression for each column of an entity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.federation.model.connections import DatasetConnection
from odfpy.federation.model.documents import DataSource, LocalData, RemoteMapping, SourceMapping
from odfpy.federation.model.expressions import VALUE, is_name, remote_expressions, transformation

if TYPE_CHECKING:
    from sqlglot import exp


def relation_sql(data: LocalData, source: DataSource) -> str:
    """Return the fields of a data source as a SELECT, in the dialect of its connection.

    Args:
        data: the data with its connection.
        source: the validated data source.
    """
    from sqlglot import exp

    columns = [_column(field.column).as_(field.name, quoted=True) for field in source.fields]
    return str(exp.select(*columns).from_(_relation(data, source)).sql(data.connection.dialect, identify=True))


def local_expressions(mapping: SourceMapping) -> dict[str, exp.Expr]:
    """Return an expression over a data source's fields for each column of the entity that it provides.

    Args:
        mapping: a validated mapping.
    """
    return {field.information: _transformed(field.transformation, _column(field.field)) for field in mapping.fields}


def remote_expressions_of(mapping: RemoteMapping) -> dict[str, exp.Expr]:
    """Return an expression over the peer's columns for each column of the entity that it provides.

    Args:
        mapping: a validated mapping.
    """
    given = remote_expressions(mapping.sql, mapping.remote_entity) or {}
    return {
        part.information: _transformed(part.transformation, given.get(part.remote, _column(part.remote)))
        for part in mapping.information
    }


def _column(name: str) -> exp.Expr:
    from sqlglot import exp

    return exp.column(exp.to_identifier(name, quoted=True))


def _transformed(text: str | None, value: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    if text is None:
        return value.copy()
    tree = transformation(text)
    inner = value if isinstance(value, exp.Column) else exp.paren(value)
    return tree.transform(lambda node: inner.copy() if _is_value(node) else node)


def _is_value(node: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.Column) and node.name == VALUE


def _relation(data: LocalData, source: DataSource) -> exp.Expr:
    from sqlglot import exp, parse_one

    connection, text = data.connection, source.source_sql
    if isinstance(connection, DatasetConnection) and "(" not in text and " " not in text.strip():
        return _dataset(connection, text.strip())
    if is_name(text, connection.dialect):
        return parse_one(text, into=exp.Table, dialect=connection.dialect)
    tree = parse_one(text, dialect=connection.dialect)
    return exp.Subquery(this=tree.unnest(), alias=exp.TableAlias(this=exp.to_identifier("source", quoted=True)))


def _dataset(connection: DatasetConnection, name: str) -> exp.Expr:
    """Return a dataset as its connection shows it (docs/query.md, "Time travel")."""
    from sqlglot import exp

    at, of = connection.as_at, connection.as_of
    if connection.shown == "changelog":
        if at is None:
            return exp.Table(this=exp.func("odf_changelog", exp.Literal.string(name)))
        return exp.Table(this=exp.to_identifier(f"{name}@{at}", quoted=True))
    function = "odf_current" if at is None else "odf_as_at"
    if of is not None:
        function = "odf_as_of" if at is None else "odf_as_at_of"
    arguments = [exp.Literal.string(argument) for argument in (name, at, of) if argument is not None]
    return exp.Table(this=exp.func(function, *arguments))
