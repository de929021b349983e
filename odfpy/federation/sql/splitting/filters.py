"""Conditions of a query that are pushed down to the entities that they involve.

A condition involves one table if it uses columns of no other. It can be pushed below a join unless an outer join
produces NULL rows afterwards, which it would have filtered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Expression, columns_in, has_aggregate
from odfpy.federation.sql.flavors import Flavor
from odfpy.federation.sql.reading import read_tree
from odfpy.federation.sql.splitting.relations import Relation
from odfpy.federation.sql.types import kind_of

_SIDES: Final = ("", "LEFT", "RIGHT", "FULL")
_KINDS: Final = ("", "INNER", "OUTER", "CROSS", "SEMI", "ANTI")


def taken_conditions(select: Any, relations: Mapping[str, Relation], flavor: Flavor) -> dict[str, list[Expression]]:
    """Remove the conditions from a query that can be pushed down; return them by alias.

    Args:
        select: the query, which is modified.
        relations: its tables that are rows of an entity, by alias.
        flavor: flavor of the query.
    """
    taken: dict[str, list[Expression]] = {alias: [] for alias in relations}
    joins = select.args.get("joins") or []
    if any(_is_strange(join) for join in joins):
        return taken

    def take(allowed: Callable[[str], bool]) -> Callable[[Any], bool]:
        def is_taken(condition: Any) -> bool:
            of_relation = _of_one(condition, relations, flavor)
            if of_relation is None or not allowed(of_relation[0]):
                return False
            taken[of_relation[0]].append(of_relation[1])
            return True

        return is_taken

    nullable = _nullable(select, joins)
    where = select.args.get("where")
    if where is not None:
        left = _without(where.this, take(lambda alias: alias not in nullable))
        select.set("where", None if left is None else type(where)(this=left))
    for join in joins:
        condition = join.args.get("on")
        own = join.this.alias
        if condition is None or join.side in ("FULL", "RIGHT"):
            continue
        # The clause must not disappear: an inner join without ON is a cross join.
        left = _without(condition, take(lambda alias, own=own: alias == own))  # type: ignore[misc]
        join.set("on", _true() if left is None else left)

    return taken


def _is_strange(join: Any) -> bool:
    plain = ("this", "on", "side", "kind")
    return (
        join.side not in _SIDES
        or join.kind not in _KINDS
        or any(value for key, value in join.args.items() if key not in plain)
    )


def _nullable(select: Any, joins: Sequence[Any]) -> set[str]:
    """Return aliases of the tables for which a join may produce NULL rows."""
    before = {select.args["from_"].this.alias} if select.args.get("from_") is not None else set()
    nullable: set[str] = set()
    for join in joins:
        if join.side in ("RIGHT", "FULL"):
            nullable |= before
        if join.side in ("LEFT", "FULL"):
            nullable.add(join.this.alias)
        before.add(join.this.alias)
    return nullable


def _without(condition: Any, is_taken: Callable[[Any], bool]) -> Any:
    """Return the condition without the conjuncts that are removed; None if nothing is left."""
    from sqlglot import exp

    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    if isinstance(condition, exp.Paren):
        inner = _without(condition.this, is_taken)
        return None if inner is None else exp.paren(inner, copy=False)
    flat: list[Any] = []
    for part in parts:
        bare = part.unnest()
        flat.extend(bare.flatten() if isinstance(bare, exp.And) else [part])
    left = [conjunct for conjunct in flat if not is_taken(conjunct)]
    return exp.and_(*left, copy=False) if left else None


def _true() -> Any:
    from sqlglot import exp

    return exp.true()


def _of_one(condition: Any, relations: Mapping[str, Relation], flavor: Flavor) -> tuple[str, Expression] | None:
    """Return the table that a condition involves, and the condition over its entity's columns."""
    from sqlglot import exp

    aliases = {column.table for column in condition.find_all(exp.Column)}
    if len(aliases) != 1 or not aliases <= relations.keys():
        return None
    [alias] = aliases
    try:
        expression = read_tree(condition, relations[alias].finder(alias), flavor)
    except InvalidFragment:
        return None
    if kind_of(expression.dtype) != "bool" or has_aggregate(expression) or not columns_in(expression):
        return None
    return alias, expression
