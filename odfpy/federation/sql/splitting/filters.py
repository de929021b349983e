"""Conditions of a query that go to the entities they are about.

A condition is of one table if it names columns of no other one. It may go to where the table's rows come from unless
an outer join makes rows of NULL afterwards, on which it would have had a say.
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
    """Take out of a query the conditions that can go to the tables; return these by alias.

    Args:
        select: the query, which is changed.
        relations: its tables that are rows of an entity, by alias.
        flavor: of the query.
    """
    taken: dict[str, list[Expression]] = {alias: [] for alias in relations}
    joins = select.args.get("joins") or []
    if any(_is_strange(join) for join in joins):
        return taken

    def take(allowed: Callable[[str], bool]) -> Callable[[Any], bool]:
        def is_taken(condition: Any) -> bool:
            found = _of_one(condition, relations, flavor)
            if found is None or not allowed(found[0]):
                return False
            taken[found[0]].append(found[1])
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
        # Afterwards nothing may be left that was not a condition before: an inner join without ON is a cross join.
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
    """Aliases of the tables in whose place a join may put NULL."""
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
    """The rest of a condition after those of its parts that are taken; None for nothing."""
    from sqlglot import exp

    parts = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    if isinstance(condition, exp.Paren):
        inner = _without(condition.this, is_taken)
        return None if inner is None else exp.paren(inner, copy=False)
    flat: list[Any] = []
    for part in parts:
        bare = part.unnest()
        flat.extend(bare.flatten() if isinstance(bare, exp.And) else [part])
    left = [one for one in flat if not is_taken(one)]
    return exp.and_(*left, copy=False) if left else None


def _true() -> Any:
    from sqlglot import exp

    return exp.true()


def _of_one(condition: Any, relations: Mapping[str, Relation], flavor: Flavor) -> tuple[str, Expression] | None:
    """The table that a condition is of, and the condition in the words of its entity."""
    from sqlglot import exp

    aliases = {column.table for column in condition.find_all(exp.Column)}
    if len(aliases) != 1 or not aliases <= relations.keys():
        return None
    [alias] = aliases
    try:
        found = read_tree(condition, relations[alias].finder(alias), flavor)
    except InvalidFragment:
        return None
    if kind_of(found.dtype) != "bool" or has_aggregate(found) or not columns_in(found):
        return None
    return alias, found
