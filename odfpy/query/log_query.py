"""Queries that need no engine: columns of a range of rows of one table, or totals from the chain.

    SELECT * FROM ds [WHERE offset >= 10 AND offset < 20] [ORDER BY offset [DESC]] [LIMIT 5 [OFFSET 5]]
    SELECT count(*), max(offset) AS last FROM ds

All other queries, including invalid ones, are left to an engine.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from sqlglot import exp

    from odfpy.query.dialects import Dialect

_PARTS: Final = frozenset(("expressions", "from_", "where", "order", "limit", "offset"))


@dataclass(frozen=True, slots=True)
class LogQuery:
    """A query of one log.

    Attributes:
        table: name of the table.
        columns: the requested columns with their names in the result; None for all columns.
        totals: the requested totals: `count`, `min` or `max` (of the offset), with their names in the result.
        low: minimum requested offset.
        high: maximum requested offset; None for no limit.
        ordered: whether an order is requested.
        descending: whether the last rows come first.
        skip: number of rows to skip.
        limit: maximum number of rows.
    """

    table: str
    columns: tuple[tuple[str, str], ...] | None = None
    totals: tuple[tuple[str, str], ...] = ()
    low: int = 0
    high: int | None = None
    ordered: bool = False
    descending: bool = False
    skip: int = 0
    limit: int | None = None

    def rows(self, num_rows: int, skip: int, limit: int | None) -> tuple[int, int]:
        """Return the first and the last requested offset of a log; if there are no rows, the last is less than the
        first.

        Args:
            num_rows: number of rows in the log.
            skip: number of rows to skip in the result.
            limit: maximum number of rows of the result.
        """
        low, high = max(self.low, 0), num_rows - 1 if self.high is None else min(self.high, num_rows - 1)
        for left_out, most in ((self.skip, self.limit), (skip, limit)):
            if self.descending:
                high -= left_out
                low = low if most is None else max(low, high - most + 1)
            else:
                low += left_out
                high = high if most is None else min(high, low + most - 1)
        return low, high


def simple_query(text: str, dialect: Dialect, offset: str) -> LogQuery | None:
    """Return a query in this form; None if it has another form.

    Args:
        text: the query.
        dialect: the dialect of the query.
        offset: name of the offset column of its table.
    """
    from sqlglot import exp

    tree = dialect.tree(text)
    if not isinstance(tree, exp.Select) or not _has_only(tree, _PARTS):
        return None
    commas = sum(token.token_type.name == "COMMA" for token in dialect.tokens(text))
    if commas != len(tree.expressions) - 1:
        return None  # sqlglot ignores superfluous commas, engines do not
    source = tree.args.get("from_")
    table = source.this if source is not None else None
    if not isinstance(table, exp.Table) or not _has_only(table, {"this", "db", "catalog", "alias"}):
        return None
    if not all(isinstance(part, exp.Identifier) for part in table.parts) or table.alias_column_names:
        return None
    reader = _Reader(dialect, offset, {table.alias or table.name})
    return reader.read(tree, ".".join(part.name for part in table.parts))


def _has_only(node: exp.Expr, parts: Sequence[str] | frozenset[str] | set[str]) -> bool:
    return all(name in parts for name, value in node.args.items() if value)


class _Reader:
    def __init__(self, dialect: Dialect, offset: str, qualifiers: set[str]) -> None:
        self._dialect = dialect
        self._offset = offset
        self._qualifiers = qualifiers

    def read(self, tree: exp.Select, table: str) -> LogQuery | None:
        """Return the query in this form; None if it has another form."""
        from sqlglot import exp

        shown = tree.expressions
        totals = [self._total(expression) for expression in shown]
        if len(shown) == 1 and isinstance(shown[0], exp.Star) and _has_only(shown[0], ()):
            found: LogQuery | None = LogQuery(table)
        elif all(totals):
            bare = not any(tree.args.get(part) for part in ("where", "order", "limit", "offset"))
            found = LogQuery(table, totals=tuple(total for total in totals if total)) if bare else None
        else:
            columns = [self._shown_column(expression) for expression in shown]
            found = LogQuery(table, tuple(column for column in columns if column)) if all(columns) else None
        for more in (self._with_order, self._with_limit, self._with_conditions):
            found = None if found is None else more(tree, found)
        return found

    def _shown_column(self, shown: exp.Expr) -> tuple[str, str] | None:
        from sqlglot import exp

        inner = shown.this if isinstance(shown, exp.Alias) else shown
        name = self._column(inner)
        return None if name is None else (name, shown.alias if isinstance(shown, exp.Alias) else name)

    def _total(self, shown: exp.Expr) -> tuple[str, str] | None:
        from sqlglot import exp

        inner = shown.this if isinstance(shown, exp.Alias) else shown
        is_spark = self._dialect.name == "spark"
        if isinstance(inner, exp.Count) and _has_only(inner, {"this", "big_int"}) and isinstance(inner.this, exp.Star):
            what, name = "count", "count(1)" if is_spark else "count(*)"
        elif isinstance(inner, exp.Max | exp.Min) and _has_only(inner, {"this"}):
            if self._column(inner.this) != self._offset:
                return None
            what = "max" if isinstance(inner, exp.Max) else "min"
            name = f"{what}({self._offset})"
            if not is_spark and inner is shown:
                return None  # DataFusion includes the table in its name
        else:
            return None
        return what, shown.alias if isinstance(shown, exp.Alias) else name

    def _column(self, node: exp.Expr) -> str | None:
        """Return the name of a column of the table."""
        from sqlglot import exp

        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        parts = [part.name for part in node.parts]
        if len(parts) > 2 or (len(parts) == 2 and parts[0] not in self._qualifiers):
            return None
        return parts[-1]

    def _with_order(self, tree: exp.Select, found: LogQuery) -> LogQuery | None:
        from sqlglot import exp

        order = tree.args.get("order")
        if order is None:
            return found
        by = order.expressions
        if len(by) != 1 or not isinstance(by[0], exp.Ordered) or self._column(by[0].this) != self._offset:
            return None
        if any(shown == self._offset and name != shown for name, shown in found.columns or ()):
            return None  # ordered by another column, which has this name in the result
        return replace(found, ordered=True, descending=bool(by[0].args.get("desc")))

    def _with_limit(self, tree: exp.Select, found: LogQuery) -> LogQuery | None:
        limit, offset = tree.args.get("limit"), tree.args.get("offset")
        if limit is not None:
            most = _integer(limit.args.get("expression"))
            if most is None:
                return None
            found = replace(found, limit=most)
        if offset is not None:
            skip = _integer(offset.args.get("expression"))
            if skip is None:
                return None
            found = replace(found, skip=skip)
        return found

    def _with_conditions(self, tree: exp.Select, found: LogQuery) -> LogQuery | None:
        from sqlglot import exp

        where = tree.args.get("where")
        conditions = [] if where is None else list(where.this.flatten()) if _is_and(where.this) else [where.this]
        low, high = 0, None
        for condition in conditions:
            number = _integer(condition.args.get("expression"))
            kinds = (exp.GTE, exp.GT, exp.LTE, exp.LT, exp.EQ)
            if not isinstance(condition, kinds) or number is None or self._column(condition.this) != self._offset:
                return None
            if isinstance(condition, exp.GTE | exp.GT | exp.EQ):
                low = max(low, number + isinstance(condition, exp.GT))
            if isinstance(condition, exp.LTE | exp.LT | exp.EQ):
                most = number - isinstance(condition, exp.LT)
                high = most if high is None else min(high, most)
        return replace(found, low=low, high=high)


def _is_and(node: exp.Expr) -> bool:
    from sqlglot import exp

    return isinstance(node, exp.And)


def _integer(node: exp.Expr | None) -> int | None:
    from sqlglot import exp

    if not isinstance(node, exp.Literal) or node.is_string or not str(node.this).isdecimal():
        return None
    return int(node.this)
