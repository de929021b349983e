"""Splitting a query into fragments, which are sent to where the data is, and the rest, which the client runs.

A table of the query that consists of rows of one entity becomes a fragment: the columns that the query needs of it,
filtered by the conditions that only involve it. If the query reads no other table, partial aggregates (`aggregates`),
its DISTINCT, or its LIMIT are pushed down, too. The rest repeats whatever has to be done over the rows of all sources.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from odfpy.errors import QueryTooDeep, UsageError, did_you_mean
from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Constant, Expression
from odfpy.federation.sql.flavors import QUERIES, Flavor
from odfpy.federation.sql.fragment import Fragment, Order, Output
from odfpy.federation.sql.operators import all_of
from odfpy.federation.sql.reading import read_tree
from odfpy.federation.sql.splitting.aggregates import partial_aggregates
from odfpy.federation.sql.splitting.filters import taken_conditions
from odfpy.federation.sql.splitting.query_tree import QueryTree, query_tree
from odfpy.federation.sql.splitting.relations import Relation, Relations
from odfpy.federation.sql.splitting.sketches import SketchTable
from odfpy.federation.sql.types import INT

_TOP: Final = frozenset(
    ("expressions", "from_", "where", "kind", "hint", "operation_modifiers", "order", "limit", "offset", "with_")
)
_ONE: Final = Constant(1, INT)


@dataclass(frozen=True, slots=True)
class Split:
    """A query after splitting.

    Attributes:
        fragments: the fragments, by the names that the rest has for their answers.
        rest: SQL over these names, in the dialect of the query.
    """

    fragments: Mapping[str, Fragment]
    rest: str


def split(sql: str, entities: Mapping[str, pa.Schema], dialect: str = "datafusion", prefix: str = "f") -> Split:
    """Split a query.

    Args:
        sql: the query.
        entities: names and schemas of the client's entities.
        dialect: `datafusion` or `spark`: dialect of the query, and of the rest.
        prefix: prefix of the fragments' names; a number follows it.

    Raises:
        InvalidQuery: it is not a query, or refers to something that does not exist.
        UnsupportedQuery: it uses an entity in a way that cannot be sent to relays.
    """
    if dialect not in QUERIES:
        raise UsageError(
            f"Queries are not supported in {dialect!r}",
            hint=did_you_mean(dialect, QUERIES, otherwise=str(list(QUERIES))),
        )
    flavor = QUERIES[dialect]
    tree = query_tree(sql, entities, flavor.sqlglot)
    try:
        return _Splitter(tree, flavor, prefix).split()
    except RecursionError as error:
        raise QueryTooDeep.anywhere() from error


class _Splitter:
    def __init__(self, query: QueryTree, flavor: Flavor, prefix: str) -> None:
        from sqlglot import exp

        self._query = query
        self._flavor = flavor
        self._relations = Relations(query, flavor)
        self._fragments: dict[Fragment, str] = {}
        names = {node.name.lower() for node in query.tree.find_all(exp.Identifier)}
        self._prefix = prefix
        while any(name.startswith(self._prefix) and name[len(self._prefix) :].isdigit() for name in names):
            self._prefix += "_"

    def split(self) -> Split:
        from sqlglot import exp

        for scope in reversed(self._query.scopes):  # outer ones first: the inner ones may then be unnecessary
            if isinstance(scope.expression, exp.Select) and self._is_there(scope.expression):
                self._block(scope.expression)
        rest = self._query.tree.sql(self._flavor.sqlglot, comments=False)
        return Split({name: fragment for fragment, name in self._fragments.items()}, rest)

    def _is_there(self, select: Any) -> bool:
        """Return whether a subquery is still part of the query; an unused `WITH` is removed."""
        from sqlglot import exp

        cte = select.parent
        if isinstance(cte, exp.CTE) and cte.root() is self._query.tree:
            name, holder = cte.alias, cte.parent
            if not any(table.name == name and not table.db for table in self._query.tree.find_all(exp.Table)):
                cte.pop()
                if holder is not None and not holder.expressions:
                    holder.pop()
        return bool(select.root() is self._query.tree)

    # --- One SELECT ---

    def _block(self, select: Any) -> None:
        items = _tables(select)
        relations = {
            alias: known_relation for alias in items if (known_relation := self._relations.relation(alias)) is not None
        }
        if not relations:
            return
        taken = taken_conditions(select, relations, self._flavor)
        if len(items) == 1 and not select.args.get("laterals"):
            [(alias, relation)] = relations.items()
            query_fragment = self._whole_query_fragment(select, alias, relation, taken[alias])
            if query_fragment is not None:
                self._put(items[alias], alias, query_fragment)
                return
        for alias, relation in relations.items():
            self._put(items[alias], alias, self._rows(select, alias, relation, taken[alias]))

    def _whole_query_fragment(
        self, select: Any, alias: str, relation: Relation, conditions: list[Expression]
    ) -> Fragment | SketchTable | None:
        """Return a fragment that also does aggregates, DISTINCT or LIMIT of a query over one table."""
        from sqlglot import exp

        from odfpy.federation.sql.datafusion_dialect import is_known

        if select.args.get("where") is not None:
            return None
        inside = [select.args.get(part) for part in ("having", "order", "group")] + select.expressions
        aggregates = any(clause is not None and _aggregates_in(clause) for clause in inside)
        if select.args.get("group") is not None or aggregates:
            return partial_aggregates(select, alias, relation, conditions, self._flavor)
        is_plain = not any(value for key, value in select.args.items() if key not in (*_TOP, "distinct"))
        if not is_plain or select.find(exp.Window, exp.UDTF, exp.Explode, exp.Unnest):
            return None
        if not all(map(is_known, select.find_all(exp.Anonymous))):
            return None
        if select.args.get("distinct") is not None:
            return self._distinct(select, alias, relation, conditions)
        if select.args.get("limit") is not None:
            return self._first_rows(select, alias, relation, conditions)
        return None

    def _rows(self, select: Any, alias: str, relation: Relation, conditions: list[Expression]) -> Fragment:
        """Return a fragment for the rows of a table that the query needs."""
        from sqlglot import exp

        needed = {column.name for column in select.find_all(exp.Column) if column.table == alias}
        outputs = tuple(Output(name, value) for name, value in relation.columns.items() if name in needed)
        where = all_of([*relation.conditions, *conditions])
        return Fragment(relation.entity, outputs or (Output("n", _ONE),), where)

    def _first_rows(self, select: Any, alias: str, relation: Relation, conditions: list[Expression]) -> Fragment | None:
        """Return a fragment with a LIMIT: no source needs to return more rows than the query wants altogether."""
        limit = _rows_wanted(select)
        if limit is None:
            return None
        try:
            order = self._order(select, alias, relation)
        except InvalidFragment:
            return None
        rows = self._rows(select, alias, relation, conditions)
        return Fragment(rows.entity, rows.outputs, rows.where, order=order, limit=limit)

    def _order(self, select: Any, alias: str, relation: Relation) -> tuple[Order, ...]:
        from sqlglot import exp

        named = {expression.alias_or_name: expression.unalias() for expression in select.expressions}
        order = select.args.get("order")
        orders = []
        for ordered in [] if order is None else order.expressions:
            if not isinstance(ordered, exp.Ordered) or ordered.args.get("with_fill"):
                raise InvalidFragment("Rows have another order")
            by = ordered.this
            if isinstance(by, exp.Column) and not by.table:
                by = named.get(by.name, by)
            value = read_tree(by, relation.finder(alias), self._flavor)
            orders.append(Order(value, bool(ordered.args.get("desc")), bool(ordered.args.get("nulls_first"))))
        return tuple(orders)

    def _distinct(self, select: Any, alias: str, relation: Relation, conditions: list[Expression]) -> Fragment | None:
        """Return a fragment for the distinct rows of the answer itself."""
        from sqlglot import exp

        if select.args["distinct"].args.get("on") is not None:
            return None
        find = relation.finder(alias)
        try:
            outputs = tuple(
                Output(expression.alias_or_name, read_tree(expression.unalias(), find, self._flavor))
                for expression in select.expressions
            )
            where = all_of([*relation.conditions, *conditions])
            fragment = Fragment(relation.entity, outputs, where, is_distinct=True)
            order = select.args.get("order")
            if order is not None and any(
                not isinstance(expression.this, exp.Column) or expression.this.table for expression in order.expressions
            ):
                return None
            limit = _rows_wanted(select) if select.args.get("limit") is not None else None
            if limit is not None:
                by = self._order(select, alias, relation)
                fragment = Fragment(fragment.entity, outputs, where, order=by, limit=limit, is_distinct=True)
        except InvalidFragment:
            return None
        if any(output.dtype is None for output in outputs):
            return None  # engines do not agree on the type of NULL
        table = exp.to_identifier(alias, quoted=True)
        select.set(
            "expressions",
            [
                exp.alias_(
                    exp.column(exp.to_identifier(output.name, quoted=True), table.copy()), output.name, quoted=True
                )
                for output in outputs
            ],
        )
        return fragment

    def _put(self, item: Any, alias: str, replacement: Fragment | SketchTable) -> None:
        """Replace a table by the answer to a fragment, or by what is computed from several answers."""
        from sqlglot import exp

        named = exp.TableAlias(this=exp.to_identifier(alias, quoted=True))
        if isinstance(replacement, SketchTable):
            names = {fragment: self._name(fragment) for fragment, _ in replacement.parts}
            item.replace(exp.Subquery(this=replacement.query(names, self._flavor.sqlglot), alias=named))
            return
        table = exp.to_table(self._name(replacement))
        table.this.set("quoted", True)
        table.set("alias", named)
        item.replace(table)

    def _name(self, fragment: Fragment) -> str:
        """Return the name of the answer to a fragment; equal fragments share it."""
        return self._fragments.setdefault(fragment, f"{self._prefix}{len(self._fragments) + 1}")


def _tables(select: Any) -> dict[str, Any]:
    """Return the tables in FROM and JOIN, by alias."""
    source = select.args.get("from_")
    joins = select.args.get("joins") or []
    items = [] if source is None else [source.this, *(join.this for join in joins)]
    return {item.alias: item for item in items}


def _aggregates_in(node: Any) -> bool:
    """Return whether a node contains an aggregate of this SELECT, not of a subquery."""
    from sqlglot import exp

    return any(
        isinstance(descendant, exp.AggFunc | exp.AnonymousAggFunc)
        for descendant in node.walk(prune=lambda descendant: isinstance(descendant, exp.Query))
    )


def _rows_wanted(select: Any) -> int | None:
    """Return the number of rows needed for LIMIT and OFFSET; None where they are not numbers."""
    from sqlglot import exp

    total = 0
    for part in ("limit", "offset"):
        node = select.args.get(part)
        if node is None:
            continue
        number = node.args.get("expression")
        is_plain = isinstance(node, exp.Limit | exp.Offset) and isinstance(number, exp.Literal)
        if not is_plain or number.is_string or not str(number.this).isdecimal():
            return None
        total += int(number.this)
    return total if total < 1 << 62 else None
