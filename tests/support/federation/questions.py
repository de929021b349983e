"""Random questions about a world, in the SQL that duckdb and DataFusion have in common."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from hypothesis import strategies as st
from support.federation.worlds import BOOL, DATE, DOUBLE, EXACT, INT, SMALL, TEXT, TIME, VALUES, constant, quoted

NUMBERS = (INT, SMALL, DOUBLE, EXACT)
Columns = Mapping[str, pa.DataType]
"""Types of columns by how a question writes them."""


def columns_of(schema: pa.Schema, alias: str | None = None) -> Columns:
    before = "" if alias is None else f"{alias}."
    return {before + quoted(field.name): field.type for field in schema}


@st.composite
def values(draw: st.DrawFn, dtype: pa.DataType) -> str:
    return constant(draw(VALUES[dtype]), dtype)


@st.composite
def conditions(draw: st.DrawFn, columns: Columns, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        one, other = draw(conditions(columns, depth - 1)), draw(conditions(columns, depth - 1))
        return draw(st.sampled_from((f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})")))
    name, dtype = draw(st.sampled_from(list(columns.items())))
    forms = [f"{name} IS NULL", f"{name} IS NOT NULL", f"{name} = {draw(values(dtype))}"]
    if dtype == BOOL:
        forms += [name, f"{name} IS TRUE", f"{name} IS FALSE"]
    else:
        one, other = draw(values(dtype)), draw(values(dtype))
        forms += [
            f"{name} <= {one}",
            f"{name} <> {one}",
            f"{name} BETWEEN {one} AND {other}",
            f"{name} IN ({one}, {other})",
            f"{name} NOT IN ({one}, {other})",
            f"CASE WHEN {name} > {one} THEN {name} < {other} ELSE {name} IS NULL END",
        ]
    if dtype == TEXT:
        forms += [f"{name} LIKE '{p}'" for p in ("%b%", "a_b", "%''%", "100%", "é", "")]
        forms += [f"upper({name}) = 'AB'", f"{name} || 'x' > 'ax'", f"{name} NOT LIKE '%a%'"]
    if dtype in (INT, SMALL):
        forms += [f"{name} + 1 > 3", f"{name} * 2 = 4", f"CAST({name} AS DOUBLE) / 4 < 0.5", f"-{name} >= 2"]
    if dtype == DOUBLE:
        forms += [f"{name} * 2 + 0.5 > 1.5", f"abs({name}) < 3"]
    if dtype == EXACT:
        forms += [f"{name} * 2 > 3", f"{name} - CAST('0.5' AS DECIMAL(3, 1)) <= 1"]
    if dtype == DATE:
        forms += [f"EXTRACT(YEAR FROM {name}) = 1992", f"{name} < DATE '1992-03-31' - INTERVAL '1' MONTH"]
    if dtype == TIME:
        forms += [f"CAST({name} AS DATE) = DATE '1992-01-02'"]
    return draw(st.sampled_from(forms))


@st.composite
def expressions(draw: st.DrawFn, columns: Columns) -> str:
    name, dtype = draw(st.sampled_from(list(columns.items())))
    forms = [name, f"{name} IS NULL", f"coalesce({name}, {draw(values(dtype))})", f"nullif({name}, {name})"]
    forms.append(f"CASE WHEN {draw(conditions(columns, 1))} THEN {name} END")
    if dtype in (INT, SMALL, EXACT):
        forms += [f"{name} * 2", f"{name} + {name}"]
    if dtype == DOUBLE:
        forms += [f"{name} * 0.5", f"{name} / 4.0"]
    if dtype == TEXT:
        forms += [f"lower({name})", f"{name} || '-'", f"substr({name}, 1, 2)"]
    return draw(st.sampled_from(forms))


@st.composite
def aggregates(draw: st.DrawFn, columns: Columns) -> str:
    name, dtype = draw(st.sampled_from(list(columns.items())))
    forms = ["count(*)", f"count({name})", f"count(DISTINCT {name})"]
    if dtype != BOOL:
        forms += [f"min({name})", f"max({name})"]
    if dtype in NUMBERS:
        forms += [f"sum({name})", f"sum({name} * 2)"]
    if dtype in (INT, SMALL, DOUBLE):
        forms += [f"avg({name})"]
    if dtype in (INT, SMALL, EXACT):
        forms += [f"sum(DISTINCT {name})"]
    found = draw(st.sampled_from(forms))
    return f"{found} FILTER (WHERE {draw(conditions(columns, 1))})" if not draw(st.integers(0, 4)) else found


@st.composite
def _where(draw: st.DrawFn, columns: Columns) -> str:
    return f" WHERE {draw(conditions(columns))}" if draw(st.integers(0, 3)) else ""


@st.composite
def _ordered(draw: st.DrawFn, number: int) -> str:
    """Return an order in which only equal rows tie, so that the first ones are the same everywhere."""
    if not draw(st.booleans()):
        return ""
    how = [
        f"{at + 1} {draw(st.sampled_from(('ASC', 'DESC')))} NULLS {draw(st.sampled_from(('FIRST', 'LAST')))}"
        for at in range(number)
    ]
    skipped = f" OFFSET {draw(st.integers(0, 3))}" if draw(st.booleans()) else ""
    return f" ORDER BY {', '.join(how)} LIMIT {draw(st.integers(0, 6))}{skipped}"


@st.composite
def _rows(draw: st.DrawFn, table: str, columns: Columns) -> str:
    shown = draw(st.lists(expressions(columns), min_size=1, max_size=3))
    named = ", ".join(f"{one} AS c{at}" for at, one in enumerate(shown))
    distinct = "DISTINCT " * draw(st.booleans())
    return f"SELECT {distinct}{named} FROM {table}{draw(_where(columns))}{draw(_ordered(len(shown)))}"


@st.composite
def _groups(draw: st.DrawFn, table: str, columns: Columns) -> str:
    keys = draw(st.lists(expressions(columns), max_size=2))
    found = draw(st.lists(aggregates(columns), min_size=1, max_size=3))
    named = ", ".join(
        [*(f"{one} AS k{at}" for at, one in enumerate(keys)), *(f"{one} AS a{at}" for at, one in enumerate(found))]
    )
    by = f" GROUP BY {', '.join(str(at + 1) for at in range(len(keys)))}" if keys else ""
    having = f" HAVING count(*) > {draw(st.integers(0, 2))}" if draw(st.booleans()) else ""
    return f"SELECT {named} FROM {table}{draw(_where(columns))}{by}{having}{draw(_ordered(len(keys) + len(found)))}"


@st.composite
def questions(draw: st.DrawFn, entities: Mapping[str, pa.Schema]) -> str:
    """Return a question about one or both entities."""
    kind = draw(
        st.sampled_from(("rows", "rows", "groups", "groups", "derived", "join", "join", "union", "window", "nested"))
    )
    schemas = dict(entities)
    item, other = (columns_of(schemas[name]) for name in ("Item", "other"))
    if kind == "rows":
        return draw(_rows('"Item" AS i', item))
    if kind == "groups":
        return draw(_groups('"Item"', item))
    if kind == "derived":
        names = list(item.items())
        inner = draw(_where(item))
        renamed = ", ".join(f"{name} AS d{at}" for at, (name, _) in enumerate(names))
        columns = {f"d{at}": dtype for at, (_, dtype) in enumerate(names)}
        limit = draw(
            st.sampled_from(("", "", " ORDER BY " + ", ".join(f"d{at}" for at in range(len(names))) + " LIMIT 4"))
        )
        over = draw(st.sampled_from((_rows, _groups)))
        table = f'SELECT {renamed} FROM "Item"{inner}{limit}'
        if draw(st.booleans()):
            return draw(over(f"({table}) AS t", columns))
        return f"WITH t AS ({table}) " + draw(over("t", columns))
    if kind == "join":
        a, b = columns_of(schemas["Item"], "a"), columns_of(schemas["other"], "b")
        right, key = '"other" AS b', 'a."key" = b."ref"'
        if draw(st.integers(0, 3)) == 0:
            b, right, key = columns_of(schemas["Item"], "b"), '"Item" AS b', 'a."key" = b."key"'
        join = draw(st.sampled_from(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN")))
        more = (
            f" AND {draw(conditions(draw(st.sampled_from((a, b))), 1))}"
            if draw(st.booleans()) and join != "FULL JOIN"
            else ""
        )
        over = draw(st.sampled_from((_rows, _groups)))
        return draw(over(f'"Item" AS a {join} {right} ON {key}{more}', {**a, **b}))
    if kind == "union":
        i, o = draw(st.sampled_from(list(item))), draw(st.sampled_from(list(other)))
        first = f'SELECT count({i}) AS n, max("key") AS m FROM "Item"{draw(_where(item))}'
        return f'{first} UNION ALL SELECT count({o}) + 1, min("ref") FROM "other"{draw(_where(other))}'
    if kind == "window":
        name = draw(st.sampled_from(list(item)))
        return f'SELECT {name} AS c, count(*) OVER (PARTITION BY "key") AS n FROM "Item"{draw(_where(item))}'
    inner = draw(
        st.sampled_from(
            (
                '"key" IN (SELECT "ref" FROM "other" WHERE {c})',
                'EXISTS (SELECT 1 FROM "other" WHERE "ref" = "Item"."key" AND {c})',
                '"key" > (SELECT min("ref") FROM "other" WHERE {c})',
                '"key" NOT IN (SELECT coalesce("ref", 0) FROM "other" WHERE {c})',
            )
        )
    )
    condition = inner.replace("{c}", draw(conditions(columns_of(schemas["other"], '"other"'))))
    name = draw(st.sampled_from(list(item)))
    return f'SELECT {name} AS c, "key" FROM "Item" WHERE {condition} AND {draw(conditions(item, 1))}'
