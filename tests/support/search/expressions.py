"""Expressions over the columns of a table: deterministic, free of errors, and with NULL where NULL is likely to hurt."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from support.search.relations import (
    DATE,
    DECIMAL,
    DOUBLE,
    FLAG,
    INT,
    LIST,
    LONG,
    NUMBERS,
    TEXT,
    TIME,
    Builder,
    Column,
    Table,
)


@dataclass(frozen=True)
class Expression:
    """The text of an expression, and the type of its value."""

    text: str
    kind: str
    nullable: bool


LITERALS = {
    TEXT: ("'x'", "'y'", "''"),
    INT: ("1", "0", "2"),
    LONG: ("1L", "0L"),
    DOUBLE: ("0.5D", "0D", "2D"),
    DECIMAL: ("1.50", "0.25"),
    FLAG: ("true", "false"),
    DATE: ("DATE'2024-01-31'", "DATE'2024-02-29'"),
    TIME: ("TIMESTAMP'2024-02-29 12:00:00'", "TIMESTAMP'2024-01-31 00:00:00'"),
    LIST: ("array(1, 2)",),
}

# `{}` is a column of the kind; expressions that may be NULL for a non-null column are marked.
_SAME_KIND: dict[str, Sequence[tuple[str, bool]]] = {
    TEXT: (("upper({})", False), ("concat({}, '-')", False), ("nullif({}, 'x')", True), ("substr({}, 1, 1)", False)),
    INT: (
        ("{} + 1", False), ("{} % 2", False), ("-{}", False), ("nullif({}, 1)", True), ("abs({})", False),
        ("{} * 2", False), ("if({} > 1, 1, 0)", False),
    ),
    LONG: (("{} + 1L", False), ("nullif({}, 1L)", True), ("greatest({}, 2L)", False)),
    DOUBLE: (("{} * 2D", False), ("{} + 0.5D", False), ("nullif({}, 0D)", True)),
    DECIMAL: (("{} + 1", False), ("nullif({}, 1.50)", True)),
    FLAG: (("(NOT {})", False), ("nullif({}, true)", True)),
    DATE: (("last_day({})", False), ("date_add({}, 1)", False), ("add_months({}, 1)", False), ("trunc({}, 'MM')", True)),
    TIME: (
        ("date_trunc('day', {})", True), ("{} + INTERVAL 1 HOUR", False), ("date_trunc('hour', {})", True),
        ("{} - INTERVAL 1 DAY", False), ("{} + INTERVAL 1 MONTH", False), ("date_trunc('month', {})", True),
        ("nullif({}, TIMESTAMP'2024-01-31 00:00:00')", True), ("CAST(to_date({}) AS TIMESTAMP)", False),
        ("date_trunc('hour', {} + INTERVAL 1 MONTH)", True), ("timestampadd(MONTH, -1, {})", False),
    ),
    LIST: (("array_sort({})", False), ("slice({}, 1, 1)", False), ("array_distinct({})", False)),
}  # fmt: skip

_OTHER_KIND: Sequence[tuple[str, str, str]] = (
    (TIME, INT, "hour({})"),
    (TIME, DATE, "to_date({})"),
    (TIME, INT, "day({})"),
    (DATE, TIME, "CAST({} AS TIMESTAMP)"),
    (DATE, INT, "month({})"),
    (TEXT, INT, "length({})"),
    (INT, TEXT, "CAST({} AS STRING)"),
    (INT, LONG, "CAST({} AS BIGINT)"),
    (INT, DOUBLE, "{} / 2D"),
    (INT, FLAG, "{} > 1"),
    (TEXT, FLAG, "{} = 'x'"),
    (FLAG, INT, "CAST({} AS INT)"),
    (LIST, INT, "size({})"),
    (LIST, INT, "try_element_at({}, 1)"),
    (DOUBLE, FLAG, "{} > 1D"),
)


def column_of(builder: Builder, columns: Sequence[Column], alias: str) -> Expression:
    """Return a column."""
    column = builder.one_of(columns)
    return Expression(f"{alias}.{column.name}", column.kind, column.nullable)


def expression(builder: Builder, table: Table, alias: str, *kinds: str) -> Expression:
    """Return an expression over one row of a table.

    Args:
        builder: builder of the query.
        table: the table to read.
        alias: the name of the table.
        kinds: permitted kinds; any if empty.
    """
    columns = table.of(*kinds) if kinds else list(table.columns)
    forms = ["column", "column", "column"]
    if columns:
        forms += ["changed", "coalesced"]
    converted = [
        (at, other) for at, other in enumerate(_OTHER_KIND) if (not kinds or other[1] in kinds) and table.of(other[0])
    ]
    forms += ["converted"] if converted else []
    if not columns and not converted:
        kind = builder.one_of(kinds)
        return Expression(builder.one_of(LITERALS[kind]), kind, nullable=False)
    form = builder.one_of(forms if columns else ["converted"])
    if form == "converted":
        _, (given, kind, text) = builder.one_of(converted)
        found = column_of(builder, table.of(given), alias)
        return Expression(text.format(found.text), kind, nullable=True)
    found = column_of(builder, columns, alias)
    if form == "changed":
        text, makes_null = builder.one_of(_SAME_KIND[found.kind])
        return Expression(text.format(found.text), found.kind, found.nullable or makes_null)
    if form == "coalesced":
        literal = builder.one_of(LITERALS[found.kind])
        return Expression(f"coalesce({found.text}, {literal})", found.kind, nullable=False)
    return found


def condition(builder: Builder, table: Table, alias: str) -> str:
    """Return a condition on one row of a table."""
    form = builder.one_of(("compare", "null", "in", "between", "two"))
    if form == "null":
        found = column_of(builder, table.columns, alias)
        return f"{found.text} IS {builder.one_of(('NOT NULL', 'NULL'))}"
    if form == "two":
        pairs = [(a, b) for a in table.columns for b in table.columns if a.name < b.name and a.kind == b.kind]
        if pairs:
            a, b = builder.one_of(pairs)
            sign = builder.one_of(("<", "<=", "=", "<>", "<=>"))
            return f"{alias}.{a.name} {sign} {alias}.{b.name}"
    found = expression(builder, table, alias, *NUMBERS, TEXT, TIME, DATE)
    if form == "in":
        listed = ", ".join(LITERALS[found.kind])
        return f"{found.text} {builder.one_of(('IN', 'NOT IN'))} ({listed})"
    literal = builder.one_of(LITERALS[found.kind])
    if form == "between":
        return f"{found.text} BETWEEN {literal} AND {LITERALS[found.kind][-1]}"
    return f"{found.text} {builder.one_of(('>=', '=', '<', '<>', '<=>'))} {literal}"
