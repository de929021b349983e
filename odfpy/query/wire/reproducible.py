"""Reproducible queries: those with the same answer, row by row, whenever they are run at the same blocks.

A proof is binding for ever, so a query that is not reproducible gets none. The following is rejected:

- functions of time, chance and the machine: `now()`, `random()`, `uuid()`, `current_user` and others
- references to blocks by a name that may move: `NAME@v1`, `odf_as_at('NAME', 'v1')`
- rows without an order, or with one that leaves ties; the same for rows picked by LIMIT, a window or an aggregate
- sums of floats in Spark, which adds in the order in which tasks end

A query is also rejected if its reproducibility cannot be determined.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import EngineError
from odfpy.query.plan import QueryPlan, plan
from odfpy.query.references import AtBlock, PointInTime
from odfpy.query.service import QueryService
from odfpy.query.wire.request import QueryRequest

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

_ELSEWHERE: Final = frozenset(
    """now today curdate rand randn random uuid gen_random_uuid monotonically_increasing_id spark_partition_id shuffle
    input_file_name input_file_block_start input_file_block_length current_date current_timestamp current_time localtime
    localtimestamp current_user session_user user current_database current_catalog current_schema current_timezone
    version unix_timestamp randstr uniform aes_encrypt""".split()  # noqa: SIM905
)
"""Functions that depend on more than the data."""

_WITHOUT_PARENTHESES: Final = frozenset(
    "current_date current_timestamp current_time localtime localtimestamp current_user session_user tablesample".split()  # noqa: SIM905
)
_MOVING_WORDS: Final = ("now", "today", "yesterday", "tomorrow")
_BY_ORDER: Final = frozenset(
    """array_agg string_agg listagg group_concat collect_list collect_set first last any_value first_value last_value
    nth_value mode max_by min_by arg_max arg_min histogram_numeric""".split()  # noqa: SIM905
)
"""Aggregates that depend on the order of rows."""

_ESTIMATES: Final = re.compile(r"approx|sketch")
"""Part of the names of approximate aggregates, which depend on the order, too."""

_PEERS: Final = ("Rank", "DenseRank", "PercentRank", "CumeDist")
_FRACTIONS: Final = ("Sum", "Avg")
_ADDS: Final = re.compile(r"(try_)?(sum|avg|mean|std|var|regr|corr|covar|kurtosis|skewness)", re.IGNORECASE)
_FULL_HASH: Final = re.compile(r"f16[0-9a-f]{60,}")
_ORDER: Final = (
    "End the query with ORDER BY the offset of its dataset, its primary key where it is a current state, "
    "all that it groups by, or all its columns."
)


class NotReproducible(EngineError, code="E724"):
    """A proof was requested for an answer that is not reproducible."""


def check_reproducible(service: QueryService, request: QueryRequest) -> None:
    """Check that a request has a unique answer.

    Raises:
        NotReproducible: the answer may vary; the message has the reason.
        OdfError: as `QueryService.run`.
    """
    planned = plan(service.resolver, request.to_query())
    for message, hint in _problems(planned):
        if planned.dialect.tree(planned.text) is None:
            service.prepare(planned.query)  # which reports the error if the query is invalid
        raise NotReproducible(f"No proof can be given of this answer: {message}", hint=hint)


def depends_on_more(planned: QueryPlan) -> bool:
    """Return whether the answer of a query depends on more than the blocks that it reads, so that it may change."""
    looks_up = any(_may_move(reference.at) for reference, _ in planned.tables)
    return looks_up or next(_of_something_else(planned), None) is not None


def _problems(planned: QueryPlan) -> Iterator[tuple[str, str]]:
    if planned.is_explained:
        yield "it is a plan, not data", "Omit EXPLAIN."
    yield from _of_something_else(planned)
    for reference, _ in planned.tables:
        if "@" in reference.dataset or _may_move(reference.at):
            block = reference.at.text if isinstance(reference.at, AtBlock) else None
            where = planned.place(reference)
            yield (
                f"{block or reference.dataset} may become another block{where}",
                "Write the whole hash of the block in odf_as_at or VERSION AS OF.",
            )
    if planned.path in ("chain", "slices"):
        return  # always ordered by offset
    tree = planned.dialect.tree(planned.text)
    if tree is None:
        yield "the order of its rows cannot be determined", "Simplify the query."
        return
    yield from _Reader(planned).problems(tree)


def _may_move(moment: PointInTime | None) -> bool:
    """Return whether a point in time is a block given by a name that may move to another block."""
    return isinstance(moment, AtBlock) and not _FULL_HASH.fullmatch(moment.text)


def _of_something_else(planned: QueryPlan) -> Iterator[tuple[str, str]]:
    """Yield problems for words that refer to the time, to chance or to the machine."""
    from sqlglot.errors import TokenError

    try:
        tokens = planned.dialect.tokens(planned.text)
    except TokenError:
        yield "its dataset cannot be determined", "Simplify the query."
        return
    hint = "Take the value from a column, or write it as a constant."
    for before, token, after in zip([None, *tokens], tokens, [*tokens[1:], None], strict=False):
        word, is_call = token.text.lower(), after is not None and after.token_type.name == "L_PAREN"
        is_word = token.token_type.name != "STRING" and (is_call or token.token_type.name != "IDENTIFIER")
        is_moving = token.token_type.name == "STRING" and word.strip() in _MOVING_WORDS and _is_time(before)
        if is_moving or (is_word and word in (_ELSEWHERE if is_call else _WITHOUT_PARENTHESES)):
            yield f"{token.text} is not deterministic{_place(planned, token)}", hint


def _is_time(token: Token | None) -> bool:
    return token is not None and token.text.lower() in ("timestamp", "date", "timestamp_ltz", "timestamp_ntz")


def _place(planned: QueryPlan, token: Token) -> str:
    return SourceText(planned.shown).at(token.start, token.end + 1)


@dataclass(frozen=True)
class _Reader:
    """Search for places in a query where the order of rows matters but is undefined."""

    planned: QueryPlan

    def problems(self, tree: exp.Expr) -> Iterator[tuple[str, str]]:
        """Yield all reasons why a query is not reproducible."""
        from sqlglot import exp

        outermost = tree.unnest() if isinstance(tree, exp.Subquery) else tree
        if not isinstance(outermost, exp.Query):
            yield "the order of its rows cannot be determined", "Write a SELECT."
            return
        for query in tree.find_all(exp.Query):
            picks = any(query.args.get(part) for part in ("limit", "offset")) or _has_distinct_on(query)
            if picks and query is not outermost and not self._is_ordered(query):
                yield (
                    "the rows of LIMIT or DISTINCT ON in a subquery are undefined",
                    'Give the subquery an ORDER BY "offset" of its dataset.',
                )
        for window in tree.find_all(exp.Window):
            if not self._is_settled(window):
                yield (
                    f"rows of a window have no complete order: {window.sql(comments=False)}",
                    "Add the offset of the dataset to its ORDER BY.",
                )
        for call in tree.find_all(exp.Func):
            written = [call.name] if isinstance(call, exp.Anonymous) else type(call).sql_names()
            depends = any(name.lower() in _BY_ORDER or _ESTIMATES.search(name.lower()) for name in written)
            if depends and not call.find_ancestor(exp.Window):
                yield (
                    f"{call.sql(comments=False)} depends on the order of rows",
                    "Omit it, or use an aggregate such as min, max, sum or count.",
                )
        if not self._is_ordered(outermost) or _has_distinct_on(outermost):
            yield "its rows have no order, or an order with ties", _ORDER
        if self.planned.path == "spark":
            yield from self._sums_of_fractions(tree)

    def _is_ordered(self, query: exp.Query) -> bool:
        """Return whether the rows of a query have a defined order, except for equal rows."""
        from sqlglot import exp

        shown = query.selects
        if isinstance(query, exp.Select) and _is_one_row(query):
            return True
        order = query.args.get("order")
        if order is None:
            return False
        keys = [expression.this for expression in order.expressions if isinstance(expression, exp.Ordered)]
        if isinstance(query, exp.Select) and self._are_told_apart(query, keys):
            return True
        group = query.args.get("group")
        if group is not None and not any(value for name, value in group.args.items() if name != "expressions"):
            return bool(group.expressions) and all(
                _is_among(expression, keys, shown) for expression in group.expressions
            )
        return not any(expression.is_star for expression in shown) and all(
            _is_among(expression, keys, shown) for expression in shown
        )

    def _is_settled(self, window: exp.Window) -> bool:
        """Return whether a window function's result is independent of the order that its ORDER BY leaves undefined."""
        from sqlglot import exp

        function = window.this.this if isinstance(window.this, exp.IgnoreNulls | exp.RespectNulls) else window.this
        order, frame = window.args.get("order"), window.args.get("spec")
        by_rows = frame is not None and str(frame.args.get("kind", "")).upper() != "RANGE"
        plain = isinstance(function, exp.AggFunc) and type(function).__name__ in ("Sum", "Avg", "Count", "Min", "Max")
        if (plain or type(function).__name__ in _PEERS) and not by_rows:
            return True
        select = window.find_ancestor(exp.Select)
        keys = [expression.this for expression in order.expressions] if order is not None else []
        return select is not None and not window.args.get("alias") and self._are_told_apart(select, keys)

    def _are_told_apart(self, select: exp.Select, keys: Sequence[exp.Expr]) -> bool:
        """Return whether rows are those of one dataset, each once, and the keys include its offset or primary key."""
        from sqlglot import exp

        source = select.args.get("from_")
        table = source.this if source is not None else None
        if not isinstance(table, exp.Table) or table.args.get("pivots"):
            return False
        if any(select.args.get(part) for part in ("joins", "laterals", "group")):
            return False
        name = ".".join(part.name for part in table.parts)
        if any(cte.alias == name for cte in select.root().find_all(exp.CTE)):
            return False  # the name does not refer to a dataset
        if any(expression.find(exp.Explode, exp.Unnest, exp.Anonymous) for expression in select.selects):
            return False
        found = {_column_of(key, select, table) for key in keys}
        return any(unique <= found for unique in self._unique.get(name, ()))

    @cached_property
    def _unique(self) -> dict[str, list[set[str]]]:
        """The columns of each table that are unique in terms of ORDER BY."""
        from odfpy.data.schemas.arrow import has_one_form, to_arrow

        found = {}
        for (reference, resolved), scan in zip(self.planned.tables, self.planned.scans, strict=True):
            found[reference.table] = [{resolved.state.vocab.offset_column}]
            types = {field.name: field.type for field in to_arrow(scan.schema)}
            key = scan.projection.key if scan.projection is not None else None
            if key and all(name in types and has_one_form(types[name]) for name in key):
                found[reference.table].append({*key})
        return found

    def _sums_of_fractions(self, tree: exp.Expr) -> Iterator[tuple[str, str]]:
        from sqlglot import exp

        calls = [*tree.find_all(exp.AggFunc), *tree.find_all(exp.Anonymous)]
        hint = "Make it CAST(... AS DECIMAL(38, 9)) before the sum, or use DataFusion (SqlDataFusion)."
        for call in calls:
            name = type(call).__name__
            if isinstance(call, exp.Anonymous) and not _ADDS.match(call.name):
                continue
            if name in ("Count", "Min", "Max", "CountIf", *_PEERS, "RowNumber", "Lag", "Lead", "Ntile"):
                continue
            if name not in _FRACTIONS or not self._is_exact(call):
                yield f"Spark adds fractions in an undefined order: {call.sql(comments=False)}", hint

    def _is_exact(self, call: exp.Expr) -> bool:
        """Return whether the values of a sum are certainly not floats."""
        from sqlglot import exp

        if call.find(exp.Div, exp.Anonymous, exp.Subquery):
            return False
        casts = list(call.find_all(exp.Cast))
        if any(cast.to.is_type("decimal") for cast in casts if cast is call.this):
            return True
        if any(cast.to.is_type("float", "double") for cast in casts):
            return False
        exact = self._exact_columns()
        return all(column.name.lower() in exact for column in call.find_all(exp.Column))

    def _exact_columns(self) -> set[str]:
        """Return the names that are columns of integers or decimals in every input dataset that has them."""
        import pyarrow as pa

        from odfpy.data.schemas.arrow import to_arrow

        exact: set[str] = set()
        others: set[str] = set()
        for _, resolved in self.planned.tables:
            for field in to_arrow(resolved.state.schema) if resolved.state.schema is not None else ():
                is_exact = pa.types.is_integer(field.type) or pa.types.is_decimal(field.type)
                (exact if is_exact else others).add(field.name.lower())
        return exact - others


def _column_of(key: exp.Expr, select: exp.Select, table: exp.Table) -> str | None:
    """Return the column of a table that an item of ORDER BY refers to, by name or by position in the result."""
    from sqlglot import exp

    shown = select.selects
    if any(star.args.get("replace") or star.args.get("rename") for one in shown for star in one.find_all(exp.Star)):
        return None
    if isinstance(key, exp.Literal) and key.is_int and not any(expression.is_star for expression in shown):
        place = int(key.this) - 1
        key = shown[place].unalias() if 0 <= place < len(shown) else key
    if not isinstance(key, exp.Column) or key.table not in ("", table.alias_or_name) or key.args.get("db"):
        return None
    # A name refers to a column of the result first.
    others = [expression.unalias() for expression in shown if expression.alias_or_name == key.name]
    alone = all(
        isinstance(other, exp.Column) and other.name == key.name and other.table in ("", table.alias_or_name)
        for other in others
    )
    return key.name if alone else None


def _is_one_row(select: exp.Select) -> bool:
    """Return whether there is at most one row: overall totals, or constants."""
    from sqlglot import exp

    if select.args.get("group") or any(
        expression.find(exp.Explode, exp.Unnest, exp.Anonymous) for expression in select.selects
    ):
        return False
    if not any(select.args.get(part) for part in ("from_", "joins", "laterals")):
        return True
    return any(
        call.find_ancestor(exp.Window, exp.Select) is select
        for one in select.selects
        for call in one.find_all(exp.AggFunc)
    )


def _has_distinct_on(query: exp.Query) -> bool:
    from sqlglot import exp

    distinct = query.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and bool(distinct.args.get("on"))


def _is_among(wanted: exp.Expr, keys: Sequence[exp.Expr], shown: Sequence[exp.Expr]) -> bool:
    """Return whether an expression is one of the keys: in the same notation, by name, or by position among the columns.

    A key that is a name refers to a column of the result first. In GROUP BY it may refer to an input column, too: then
    both must be the same.
    """
    from sqlglot import exp

    def named(one: exp.Expr) -> exp.Expr:
        if isinstance(one, exp.Literal) and one.is_int and 0 < int(one.this) <= len(shown):
            return shown[int(one.this) - 1].unalias()
        if isinstance(one, exp.Column) and not one.table:
            return next((column.unalias() for column in shown if column.alias_or_name == one.name), one)
        return one

    if wanted in shown:
        found = wanted.unalias()
        if isinstance(found, exp.Literal):
            return True  # a constant
    else:
        found = named(wanted)
        if isinstance(wanted, exp.Column) and (not isinstance(found, exp.Column) or found.name != wanted.name):
            return False
    return any(named(key).sql(comments=False) == found.sql(comments=False) for key in keys)
