"""Tables of a query that are just rows of one entity: an entity itself, or a simple subquery over one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Column, Expression, has_aggregate
from odfpy.federation.sql.flavors import Flavor
from odfpy.federation.sql.reading import FindColumn, read_tree
from odfpy.federation.sql.splitting.query_tree import QueryTree
from odfpy.federation.sql.types import plain

if TYPE_CHECKING:
    from sqlglot import exp

PLAIN_SELECT: Final = frozenset(("expressions", "from_", "where", "kind", "hint", "operation_modifiers"))


@dataclass(frozen=True, slots=True)
class Relation:
    """Rows of one entity.

    Attributes:
        entity: name of the entity.
        columns: the entity's column behind each column.
        conditions: conditions that its rows fulfil.
    """

    entity: str
    columns: Mapping[str, Expression]
    conditions: tuple[Expression, ...] = ()

    def finder(self, alias: str) -> FindColumn:
        """Return a lookup for the columns of the table with an alias, which rejects all others.

        Args:
            alias: alias of the table in the query.
        """

        def find(node: exp.Column) -> Expression:
            if node.table != alias or node.name not in self.columns:
                raise InvalidFragment(f"{node.sql()} is of another table")
            return self.columns[node.name]

        return find


class Relations:
    """The tables of a query, resolved to relations by alias."""

    def __init__(self, query: QueryTree, flavor: Flavor) -> None:
        """
        Args:
            query: the query.
            flavor: flavor of the query.
        """
        from sqlglot import exp

        self._query = query
        self._flavor = flavor
        self._is_recursive = any(node.args.get("recursive") for node in query.tree.find_all(exp.With))
        self._sources = {alias: source for scope in query.scopes for alias, source in scope.sources.items()}

    def relation(self, alias: str) -> Relation | None:
        """Return the rows behind an alias, None if these are not simply rows of one entity.

        Args:
            alias: alias of a table.
        """
        from sqlglot import exp

        source = self._sources.get(alias)
        if isinstance(source, exp.Table):
            entity = self._query.entities.get(source.name)
            if entity is None:
                return None
            columns = self._query.columns[entity]
            return Relation(entity, {name: Column(real, plain(dtype)) for name, (real, dtype) in columns.items()})
        inner = getattr(source, "expression", None)
        if self._is_recursive:
            return None  # LIMIT, for instance, cannot be merged
        return self._of_select(inner) if isinstance(inner, exp.Select) else None

    def _of_select(self, select: Any) -> Relation | None:
        """Return the rows of a subquery that only filters, selects and renames."""
        if any(value for key, value in select.args.items() if key not in PLAIN_SELECT):
            return None
        source = select.args.get("from_")
        alias = "" if source is None else source.this.alias
        relation = self.relation(alias) if alias else None
        if relation is None:
            return None
        find = relation.finder(alias)
        try:
            where = select.args.get("where")
            conditions = [] if where is None else [read_tree(where.this, find, self._flavor)]
            columns = {
                expression.alias_or_name: read_tree(expression.unalias(), find, self._flavor)
                for expression in select.expressions
            }
        except InvalidFragment:
            return None
        if any(map(has_aggregate, (*conditions, *columns.values()))) or len(columns) != len(select.expressions):
            return None
        return Relation(relation.entity, columns, (*relation.conditions, *conditions))
