"""A query as a tree in which all names are resolved: each column to its table, each table to its entity.

Every occurrence of a table gets a unique alias, so that no name in the tree is ambiguous.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from odfpy.data.sql_text import OF_STRANGERS, check_text
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import InvalidQuery, QueryTooDeep, UnsupportedQuery, did_you_mean
from odfpy.federation.sql.flavors import QUERIES

if TYPE_CHECKING:
    from sqlglot.optimizer.scope import Scope

_TABLE: Final = "__odf_entity_"
_PLAIN: Final = frozenset(("this", "alias", "db", "catalog", "joins"))


@dataclass(frozen=True, slots=True)
class QueryTree:
    """A query with resolved names.

    Attributes:
        tree: the query.
        entities: the entity behind each table name; each occurrence has its own name.
        columns: for each entity, its columns by the names that the query uses for them.
        scopes: its SELECTs, inner ones first.
    """

    tree: Any
    entities: Mapping[str, str]
    columns: Mapping[str, Mapping[str, tuple[str, pa.DataType]]]
    scopes: list[Scope]


def query_tree(sql: str, entities: Mapping[str, pa.Schema], dialect: Any) -> QueryTree:
    """Parse a query and resolve its names.

    Args:
        sql: the query.
        entities: names and schemas of entities.
        dialect: sqlglot dialect.

    Raises:
        InvalidQuery: it is not a query, or refers to something that does not exist.
        UnsupportedQuery: it uses an entity in a way that cannot be sent to relays.
    """
    from sqlglot import exp
    from sqlglot.errors import OptimizeError, ParseError, SqlglotError
    from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
    from sqlglot.optimizer.pushdown_projections import pushdown_projections
    from sqlglot.optimizer.qualify import qualify
    from sqlglot.optimizer.scope import traverse_scope
    from sqlglot.schema import MappingSchema

    try:
        tree = _parsed(sql, dialect)
        _name_expressions(tree, dialect)
        tree = normalize_identifiers(tree, dialect=dialect)
        named = {name: _column_names(schema, dialect) for name, schema in entities.items()}
        places = _place_entities(tree, named)
        known: dict[str, object] = {place: dict.fromkeys(named[entity], "unknown") for place, entity in places.items()}
        schema = MappingSchema(known or {_TABLE: {"x": "int"}}, dialect=dialect, normalize=False)
        if any(star.table for star in tree.find_all(exp.Column) if isinstance(star.this, exp.Star)):
            tree = qualify(tree, dialect=dialect, schema=schema)  # with other aliases, `x.*` would not resolve
        tree = qualify(tree, dialect=dialect, schema=schema, canonicalize_table_aliases=True)
        if dialect == QUERIES["datafusion"].sqlglot:
            _require_distinct_names(tree)
        if any(select.is_star for select in tree.find_all(exp.Select)):
            raise InvalidQuery(
                "A star stands for columns that are not known, or of which two have the same name",
                hint="Name the columns instead.",
            )
        tree = pushdown_projections(tree)
        for unnamed in tree.find_all(exp.Table):
            if isinstance(unnamed.this, exp.Identifier):
                unnamed.this.set("quoted", True)
        return QueryTree(tree, places, named, list(traverse_scope(tree)))
    except RecursionError as error:
        raise QueryTooDeep.anywhere() from error
    except OptimizeError as error:
        raise InvalidQuery(f"The query does not fit the entities: {error}") from error
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        where = SourceText(sql).at_line(first.get("line") or 1, max(0, (first.get("col") or 1) - 1))
        raise InvalidQuery(f"The query does not parse: {first.get('description') or error}{where}") from error
    except SqlglotError as error:
        raise InvalidQuery(f"The query does not parse: {error}") from error


def _parsed(sql: str, dialect: Any) -> Any:
    from sqlglot import exp, parse

    check_text(sql, OF_STRANGERS)
    queries = [statement for statement in parse(sql, dialect=dialect) if statement is not None]
    if len(queries) != 1 or not isinstance(queries[0], exp.Query):
        raise InvalidQuery("A question is one SELECT", hint="Entities can be read only: SELECT ... FROM an entity.")
    if any(not select.expressions for select in queries[0].find_all(exp.Select)):
        raise InvalidQuery("A SELECT has nothing to show")
    for kind in (exp.Into, exp.Lock, exp.Command, exp.DDL, exp.DML, exp.Placeholder, exp.Parameter):
        for node in queries[0].find_all(kind):
            if not isinstance(node, exp.Query):
                raise UnsupportedQuery(f"A question over a web cannot have {kind.__name__.upper()}")
    return queries[0]


def _require_distinct_names(tree: Any) -> None:
    """Check that no SELECT has two columns of the same name, which DataFusion refuses under names of our own.

    Args:
        tree: a query whose stars are resolved, and whose columns all have a name.

    Raises:
        InvalidQuery: one has.
    """
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        names = Counter(select.named_selects)
        name = next((name for name, count in names.items() if count > 1 and name != "*"), None)
        if name is not None:
            raise InvalidQuery(
                f"Two columns of a SELECT have the name {name!r}",
                hint=f"Give one of them another name with AS, as in `a.{name} AS other`; a star has all columns.",
            )


def _name_expressions(tree: Any, dialect: Any) -> None:
    """Name unnamed outputs by their text, as engines do, before the text changes."""
    from sqlglot import exp

    for select in tree.find_all(exp.Select):
        named = []
        for expression in select.expressions:
            is_named = (
                isinstance(expression, exp.Alias | exp.Star | exp.Aliases) or expression.find(exp.Star) is expression
            )
            if (
                is_named
                or (isinstance(expression, exp.Column) and not isinstance(expression.this, exp.Star))
                or expression.is_star
            ):
                named.append(expression)
            else:
                text = expression.sql(dialect, comments=False, normalize_functions="lower")
                named.append(exp.alias_(expression, exp.to_identifier(text, quoted=True)))
        select.set("expressions", named)


def _column_names(schema: pa.Schema, dialect: Any) -> dict[str, tuple[str, pa.DataType]]:
    """Return columns by the names that a query uses for them: Spark is case-insensitive."""
    columns: dict[str, tuple[str, pa.DataType]] = {}
    for field in schema:
        name = field.name.lower() if dialect == "spark" else field.name
        columns.setdefault(name, (field.name, field.type))
    return columns


def _place_entities(tree: Any, entities: Mapping[str, Any]) -> dict[str, str]:
    """Name each occurrence of an entity by a table of its own; return the mapping."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    placed: dict[str, str] = {}
    folded = {name.lower(): name for name in entities}
    seen: set[int] = set()
    for scope in traverse_scope(tree):
        for table in scope.tables:
            if id(table) in seen or (table.name in scope.cte_sources and not table.db):
                continue
            seen.add(id(table))
            if not isinstance(table.this, exp.Identifier):
                raise UnsupportedQuery(
                    f"A question over a web reads entities only, not {table.sql()}", hint=_known(entities)
                )
            name = ".".join(part.name for part in table.parts)
            entity = name if name in entities else folded.get(name.lower())
            if entity is None:
                raise InvalidQuery(
                    f"There is no entity {name!r}", hint=did_you_mean(name, entities, otherwise=_known(entities))
                )
            if any(value for key, value in table.args.items() if key not in _PLAIN) or table.alias_column_names:
                raise UnsupportedQuery(f"An entity is read by its name and an alias only: {table.sql()}")
            place = f"{_TABLE}{len(placed)}"
            placed[place] = entity
            alias = table.args.get("alias") or exp.TableAlias(this=exp.to_identifier(table.name, quoted=True))
            table.set("alias", alias)
            table.set("this", exp.to_identifier(place, quoted=True))
            table.set("db", None)
            table.set("catalog", None)
    return placed


def _known(entities: Mapping[str, Any]) -> str:
    return f"There are {', '.join(sorted(entities)[:20])}." if entities else "There are none."
