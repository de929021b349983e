"""Row-by-row operators, set operations and subqueries."""

from __future__ import annotations

from dataclasses import replace

from support.search.expressions import Expression, column_of, condition, expression
from support.search.relations import (
    DECIMAL,
    INT,
    LIST,
    LONG,
    SCALARS,
    TEXT,
    TIME,
    Builder,
    Column,
    Table,
)
from support.search.selecting import kept_of, made, plain, selected, time_of


def project(builder: Builder, table: Table) -> Table:
    """SELECT expressions, perhaps with a WHERE."""
    alias = builder.fresh("r")
    found = plain(table, alias, kept_of(builder, table))
    found += [expression(builder, table, alias) for _ in range(builder.one_of((0, 1, 2)))]
    if table.of(TIME) and builder.chance(3):
        found.append(expression(builder, table, alias, TIME))
    listed, columns = selected(builder, found)
    where = f" WHERE {condition(builder, table, alias)}" if builder.chance(2) else ""
    builder.uses.add("project")
    return made(
        builder, f"SELECT {listed} FROM {table.text} AS {alias}{where}", columns, time_of(table, columns, found), table
    )


def star(builder: Builder, table: Table) -> Table:
    """SELECT *, with a WHERE."""
    alias = builder.fresh("r")
    builder.uses.add("star")
    where = condition(builder, table, alias)
    return made(builder, f"SELECT * FROM {table.text} AS {alias} WHERE {where}", table.columns, table.time, table)


def exploded(builder: Builder, table: Table) -> Table:
    """Return a row for each element of a list."""
    lists = table.of(LIST)
    if not lists:
        return project(builder, table)
    alias, item = builder.fresh("r"), builder.fresh("c")
    found = plain(table, alias, kept_of(builder, table))
    listed, columns = selected(builder, found)
    builder.uses.add("explode")
    column = builder.one_of(lists)
    outer = builder.one_of(("", "OUTER "))
    text = f"SELECT {listed}, {item} FROM {table.text} AS {alias} LATERAL VIEW {outer}explode({alias}.{column.name}) AS {item}"
    return made(builder, text, (*columns, Column(item, INT)), time_of(table, columns, found), table)


def without(builder: Builder, table: Table) -> Table:
    """Select * EXCEPT some columns, in an arbitrary order."""
    alias = builder.fresh("r")
    kept = kept_of(builder, table)
    left_out = [column for column in table.columns if column not in kept]
    if not left_out:
        return star(builder, table)
    builder.uses.add("* EXCEPT")
    order = builder.one_of(("", f" ORDER BY {kept[0].name}", f" DISTRIBUTE BY {kept[-1].name}"))
    text = f"SELECT * EXCEPT ({', '.join(one.name for one in left_out)}) FROM {table.text} AS {alias}{order}"
    columns = tuple(column for column in table.columns if column in kept)
    return made(builder, text, columns, table.time if table.time in [c.name for c in columns] else None, table)


def beside(builder: Builder, table: Table) -> Table:
    """Return rows joined with rows generated from each, or with constants."""
    alias, other, name = builder.fresh("r"), builder.fresh("r"), builder.fresh("c")
    found = plain(table, alias, kept_of(builder, table))
    listed, columns = selected(builder, found)
    numbers, lists = table.of(INT), table.of(LIST)
    forms = ["lateral", "range"] + (["values", "values left"] if numbers else []) + (["explode"] if lists else [])
    form = builder.one_of(forms)
    kind = INT
    if form == "lateral":
        computed = expression(builder, table, alias)
        kind, source = computed.kind, f", LATERAL (SELECT {computed.text} AS {name})"
    elif form == "explode":
        source = f", LATERAL explode({alias}.{builder.one_of(lists).name}) AS {other}({name})"
    elif form == "range":
        kind, source = LONG, f" CROSS JOIN range(2) AS {other}({name})"
    else:
        join = "LEFT JOIN" if form == "values left" else "JOIN"
        key = f"{other}.n = {alias}.{builder.one_of(numbers).name}"
        source = f" {join} (VALUES (0, 5), (1, 7), (1, NULL)) AS {other}(n, {name}) ON {key}"
    builder.uses.add(f"beside {form}")
    text = f"SELECT {listed}, {name} FROM {table.text} AS {alias}{source}"
    return made(builder, text, (*columns, Column(name, kind)), time_of(table, columns, found), table)


def filtered(builder: Builder, table: Table, other: Table) -> Table:
    """WHERE with a subquery."""
    alias, inner = builder.fresh("r"), builder.fresh("r")
    pairs = [(a, b) for a in table.columns for b in other.columns if a.kind == b.kind and a.kind in SCALARS]
    if builder.world is not None:
        pairs = [(a, b) for a, b in pairs if builder.world not in (a.name, b.name)]
    same = f"{alias}.{builder.world} = {inner}.{builder.world}" if builder.world else ""
    forms = ["EXISTS", "NOT EXISTS", "IN"] + ([] if builder.world else ["NOT IN", "scalar", "EXISTS alone"])
    form = builder.one_of(forms)
    if not pairs:
        return star(builder, table)
    a, b = builder.one_of(pairs)
    mine, theirs = f"{alias}.{a.name}", f"{inner}.{b.name}"
    source = f"{other.text} AS {inner}"
    if form in ("EXISTS", "NOT EXISTS"):
        sign = builder.one_of(("=", "<=>"))
        where = f"{form} (SELECT 1 FROM {source} WHERE {' AND '.join(filter(None, [same, f'{mine} {sign} {theirs}']))})"
    elif form == "EXISTS alone":
        exists = f"{builder.one_of(('EXISTS', 'NOT EXISTS'))} (SELECT 1 FROM {source} WHERE {theirs} IS NOT NULL)"
        where = builder.one_of((exists, f"{mine} IS NULL OR {exists}"))
    elif form == "scalar":
        where = f"{mine} {builder.one_of(('<', '>=', '='))} (SELECT {builder.one_of(('max', 'min'))}({theirs}) FROM {source})"
    else:
        where = f"{mine} {form} (SELECT {theirs} FROM {source}{f' WHERE {same}' if same else ''})"
    builder.uses.add(f"subquery {form}")
    text = f"SELECT * FROM {table.text} AS {alias} WHERE {where}"
    return made(builder, text, table.columns, table.time, table, other)


def looked_up(builder: Builder, table: Table, other: Table) -> Table:
    """Return rows or groups beside the value of a scalar subquery; the engine refuses it beside groups and in ON."""
    kinds = (INT, LONG, TEXT)
    if builder.world is not None or not other.of(*kinds) or not table.of(*kinds):
        return filtered(builder, table, other)
    alias, inner = builder.fresh("r"), builder.fresh("r")
    found = column_of(builder, other.of(*kinds), inner)
    query = f"(SELECT {builder.one_of(('max', 'min'))}({found.text}) FROM {other.text} AS {inner})"
    value = Expression(query, found.kind, nullable=True)
    form = builder.one_of(("column", "column", "group", "on"))
    builder.uses.add(f"scalar subquery, {form}")
    kept = plain(table, alias, kept_of(builder, table))
    if form == "group":
        kept = [column_of(builder, table.of(*kinds), alias)]
        listed, columns = selected(builder, [*kept, value])
        text = f"SELECT {listed} FROM {table.text} AS {alias} GROUP BY {kept[0].text}"
    elif form == "on":
        listed, columns = selected(builder, kept)
        text = (
            f"SELECT {listed} FROM {table.text} AS {alias} LEFT SEMI JOIN range(3) AS {inner}1 ON {query} IS NOT NULL"
        )
    else:
        listed, columns = selected(builder, [*kept, value])
        text = f"SELECT {listed} FROM {table.text} AS {alias}"
    return made(builder, text, columns, time_of(table, columns[: len(kept)], kept), table, other)


def united(builder: Builder, table: Table, other: Table) -> Table:
    """Set operations."""
    sign = builder.one_of(("UNION ALL", "UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
    mine = kept_of(builder, table)
    left, right = builder.fresh("r"), builder.fresh("r")
    theirs: list[Expression] = []
    for column in mine:
        same = [c for c in other.columns if c.kind == column.kind]
        if column.name == builder.world:
            same = [other.named(builder.world)]
        elif column.name == table.time and other.time is not None:
            same = [other.named(other.time)]
        kind = "DECIMAL(8,2)" if column.kind == DECIMAL else "ARRAY<INT>" if column.kind == LIST else column.kind
        theirs.append(
            column_of(builder, same, right) if same else Expression(f"CAST(NULL AS {kind})", column.kind, nullable=True)
        )
    found = plain(table, left, mine)
    listed, columns = selected(builder, found)
    other_listed = ", ".join(one.text for one in theirs)
    columns = tuple(
        replace(column, nullable=column.nullable or one.nullable) for column, one in zip(columns, theirs, strict=True)
    )
    builder.uses.add(sign)
    text = f"SELECT {listed} FROM {table.text} AS {left} {sign} SELECT {other_listed} FROM {other.text} AS {right}"
    return made(builder, text, columns, time_of(table, columns, found), table, other)
