"""Aggregates in two phases: partial aggregates of each source, and how the client combines them.

    sum(x)            sum(x), exact numbers with 38 digits  sum(partial), cast to the engine's type of sum(x)
    count(x)          count(x)                              sum(partial), 0 without any rows
    min(x), max(x)    min(x), max(x)                        min(partial), max(partial)
    avg(x)            sum(x), count(x)                      sum(sums) / sum(counts)
    count(DISTINCT x) x as an additional group              count(DISTINCT x)
    approx_distinct(x) the minimum hash of each bucket      an estimate (`sketches`)

One sketch can be combined with sums and counts, which are then per bucket, so that a source reads its rows once. If
several values are counted, each sketch is a fragment of its own, since combined buckets would multiply the number of
groups. Values are counted exactly where that transfers less, or where engines write them differently.

The mean of integers and doubles is a quotient of doubles; that of decimals has four more digits, as in the engines: the
division is done by the engine itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.errors import InvalidFragment
from odfpy.federation.sql.expressions import Constant, Expression
from odfpy.federation.sql.flavors import Flavor
from odfpy.federation.sql.fragment import Fragment, Output
from odfpy.federation.sql.operators import NULL, all_of, call
from odfpy.federation.sql.reading import FindColumn, read_tree
from odfpy.federation.sql.splitting.relations import Relation
from odfpy.federation.sql.splitting.sketches import ERROR, SketchTable, bucket_of, estimate, least_of, sketch_hash
from odfpy.federation.sql.types import INT, MAX_DIGITS, kind_of

_GROUPING: Final = ("rollup", "cube", "grouping_sets", "totals", "all")


def partial_aggregates(
    select: Any, alias: str, relation: Relation, conditions: Sequence[Expression], flavor: Flavor
) -> Fragment | SketchTable | None:
    """Split the aggregates of a query over one table; return None where a source cannot do its part.

    If this succeeds, the query is modified: it then reads columns of the fragment, or tables built from sketches.

    Args:
        select: the query, from which all conditions have been removed.
        alias: alias of its table.
        relation: the relation behind the table.
        conditions: the removed conditions.
        flavor: flavor of the query.
    """
    from sqlglot import exp

    group = select.args.get("group")
    if select.find(exp.Window) or (group is not None and any(group.args.get(part) for part in _GROUPING)):
        return None
    parts = _Parts(alias, relation.finder(alias), flavor)
    try:
        keys = [] if group is None else group.expressions
        places = [(key, parts.key(key)) for key in keys]
        parts.has_groups = bool(places)
        changed = {
            "expressions": [parts.changed(expression, places) for expression in select.expressions],
            "having": parts.changed(select.args.get("having"), places),
            "order": parts.changed(select.args.get("order"), places),
        }
        partial = parts.found(relation.entity, all_of([*relation.conditions, *conditions]))
    except InvalidFragment:
        return None
    fragments = (
        [table_fragment for table_fragment, _ in partial.parts] if isinstance(partial, SketchTable) else [partial]
    )
    if any(output.dtype is None for fragment in fragments for output in fragment.outputs):
        return None  # engines do not agree on the type of NULL
    for key, value in changed.items():
        select.set(key, value)
    if group is not None:
        group.set("expressions", [column.copy() for _, column in places])
    return partial


class _Parts:
    """A collector of the outputs of the sources' fragments."""

    def __init__(self, alias: str, find: FindColumn, flavor: Flavor) -> None:
        self.groups: list[Expression] = []
        self.outputs: dict[tuple[str, Expression], str] = {}
        self.sketches: dict[Expression, str] = {}
        self.has_groups = False
        self._alias = alias
        self._find = find
        self._flavor = flavor

    def found(self, entity: str, where: Expression | None) -> Fragment | SketchTable:
        """Return the fragments for the sources, and the table built from their answers.

        Args:
            entity: the entity.
            where: conditions on its rows.

        Raises:
            InvalidFragment: they cannot be combined.
        """

        def grouped(outputs: Sequence[Output], groups: Sequence[Expression]) -> Fragment:
            unique = tuple(dict.fromkeys(groups))
            return Fragment(
                entity, tuple(outputs) or (Output("n", call("count_all")),), where, is_grouped=True, groups=unique
            )

        outputs = {name: Output(name, expression) for (_, expression), name in self.outputs.items()}
        sketches = [(Output(name, least_of(sketch)), bucket_of(sketch)) for sketch, name in self.sketches.items()]
        if not sketches:
            return grouped(list(outputs.values()), self.groups)
        keys = [outputs[name] for (prefix, _), name in self.outputs.items() if prefix == "g"]
        of_keys = [key.expression for key in keys]
        has_more, is_exact = len(outputs) > len(keys), any(prefix == "d" for prefix, _ in self.outputs)
        if len(sketches) == 1 and not is_exact:
            [(output, bucket)] = sketches
            whole_fragment = grouped([*outputs.values(), output], [*of_keys, bucket])
            parts: list[tuple[Fragment, str | None]] = [(whole_fragment, None)] * has_more + [
                (whole_fragment, output.name)
            ]
        else:
            parts = [(grouped(list(outputs.values()), self.groups), None)] if has_more else []
            parts += [(grouped([*keys, output], [*of_keys, bucket]), output.name) for output, bucket in sketches]
        return SketchTable((*outputs, *self.sketches.values()), tuple(key.name for key in keys), tuple(parts))

    def key(self, node: Any) -> Any:
        """Return a fragment column for a GROUP BY key."""
        expression = self._read(node)
        self.groups.append(expression)
        return self._column("g", expression)

    def changed(self, node: Any, places: Sequence[tuple[Any, Any]]) -> Any:
        """Rewrite a part of the query over columns of the fragment.

        Raises:
            InvalidFragment: it needs the rows themselves.
        """
        from sqlglot import exp

        from odfpy.federation.sql.datafusion_dialect import is_known

        if node is None:
            return None
        rewritten = self._over_fragment(node.copy(), places)
        for column in rewritten.find_all(exp.Column):
            if column.table == self._alias and column.args.get("fragment") is None and not column.meta.get("fragment"):
                raise InvalidFragment("A column is neither in a group nor in an aggregate")
        for other in rewritten.find_all(exp.Anonymous, exp.AnonymousAggFunc, exp.ParameterizedAgg):
            if not is_known(other):
                raise InvalidFragment(f"{other.name} may be an aggregate")
        for query in rewritten.find_all(exp.Query):
            del query
            raise InvalidFragment("A query in a query stays where it is")
        return rewritten

    def _over_fragment(self, node: Any, places: Sequence[tuple[Any, Any]]) -> Any:
        from sqlglot import exp

        for key, column in places:
            if node == key:
                return column.copy()
        if isinstance(node, exp.Filter | exp.AggFunc):
            return self._combined(node)
        for key, value in list(node.args.items()):
            if isinstance(value, exp.Expression):
                node.set(key, self._over_fragment(value, places))
            elif isinstance(value, list):
                changed = [
                    self._over_fragment(item, places) if isinstance(item, exp.Expression) else item for item in value
                ]
                node.set(key, changed)
        return node

    # --- Single aggregates ---

    def _combined(self, node: Any) -> Any:
        """Return the expression with which the client combines the partial results of an aggregate."""
        from sqlglot import exp

        condition = None
        if isinstance(node, exp.Filter):
            condition = self._read(node.expression.this)
            node = node.this
        accuracy = node.args.get("accuracy")
        harmless = ("this", "big_int", "accuracy") if _is_met(accuracy) else ("this", "big_int")
        extra = {key for key, value in node.args.items() if value and key not in harmless}
        if extra or not isinstance(node, exp.Sum | exp.Count | exp.Min | exp.Max | exp.Avg | exp.ApproxDistinct):
            raise InvalidFragment(f"{node.sql()} needs all rows")
        if isinstance(node, exp.Count) and isinstance(node.this, exp.Star):
            return self._sum_of_counts(self._where(Constant(1, INT), condition) if condition is not None else None)
        argument = node.this
        if isinstance(argument, exp.Distinct) or isinstance(node, exp.ApproxDistinct):
            return self._distinct(node, condition)
        value = self._where(self._read(argument), condition)
        if isinstance(node, exp.Count):
            return self._sum_of_counts(value)
        if isinstance(node, exp.Sum):
            return self._sum(value)
        if isinstance(node, exp.Avg):
            return self._mean(value)
        return type(node)(this=self._column("p", call(node.key, value)))

    def _distinct(self, node: Any, condition: Expression | None) -> Any:
        from sqlglot import exp

        values = node.this.expressions if isinstance(node.this, exp.Distinct) else [node.this]
        if len(values) != 1 or (isinstance(node.this, exp.Distinct) and node.this.args.get("on")):
            raise InvalidFragment("Several values are counted together")
        value = self._where(self._read(values[0]), condition)
        is_estimate = isinstance(node, exp.ApproxDistinct)
        hashed = sketch_hash(value) if is_estimate else None
        if hashed is not None:
            name = self.sketches.setdefault(hashed, f"s{len(self.sketches)}")
            return self._counted(estimate(self._named(name), self._flavor.sqlglot))
        self.groups.append(value)
        kind = exp.Count if is_estimate else type(node)
        count = kind(this=exp.Distinct(expressions=[self._column("d", value)]))
        return self._counted(count) if is_estimate else count

    def _counted(self, count: Any) -> Any:
        """Cast an estimate to the engine's type."""
        from sqlglot import exp

        return exp.cast(count, "BIGINT" if self._flavor.zero_fails else _unsigned(), copy=False)

    def _sum_of_counts(self, value: Expression | None) -> Any:
        from sqlglot import exp

        count = exp.Sum(this=self._column("p", call("count_all") if value is None else call("count", value)))
        return count if self.has_groups else exp.Coalesce(this=count, expressions=[exp.Literal.number(0)])

    def _sum(self, value: Expression) -> Any:
        from sqlglot import exp

        total = exp.Sum(this=self._column("p", call("sum", value)))
        match kind_of(value.dtype):
            case "int":
                unsigned = pa.types.is_unsigned_integer(value.dtype) and not self._flavor.zero_fails
                return exp.cast(total, _unsigned() if unsigned else "BIGINT", copy=False)
            case "decimal":
                digits = min(MAX_DIGITS, value.dtype.precision + 10)
                return exp.cast(total, f"DECIMAL({digits}, {value.dtype.scale})", copy=False)
        return total

    def _mean(self, value: Expression) -> Any:
        from sqlglot import exp

        count = exp.Sum(this=self._column("p", call("count", value)))
        total = exp.Sum(this=self._column("p", call("sum", value)))
        if kind_of(value.dtype) != "decimal":
            number = exp.func("NULLIF", exp.cast(count, "DOUBLE", copy=False), exp.Literal.number(0))
            return exp.paren(_quotient(exp.cast(total, "DOUBLE", copy=False), number), copy=False)
        precision, scale = value.dtype.precision, value.dtype.scale
        if scale + 4 > MAX_DIGITS or precision + 10 > MAX_DIGITS:
            raise InvalidFragment("A mean has too many digits")
        exact = exp.cast(total, f"DECIMAL({precision + 10}, {scale})", copy=False)
        number = exp.func("NULLIF", exp.cast(count, "DECIMAL(20, 0)", copy=False), exp.Literal.number(0))
        return exp.cast(_quotient(exact, number), f"DECIMAL({precision + 4}, {scale + 4})", copy=False)

    @staticmethod
    def _where(value: Expression, condition: Expression | None) -> Expression:
        return value if condition is None else call("case", condition, value, NULL)

    def _read(self, node: Any) -> Expression:
        return read_tree(node, self._find, self._flavor)

    def _column(self, prefix: str, expression: Expression) -> Any:
        """Return a fragment column for an expression; equal expressions share it."""
        return self._named(self.outputs.setdefault((prefix, expression), f"{prefix}{len(self.outputs)}"))

    def _named(self, name: str) -> Any:
        from sqlglot import exp

        column = exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(self._alias, quoted=True))
        column.meta["fragment"] = True
        return column


def _quotient(dividend: Any, divisor: Any) -> Any:
    from sqlglot import exp

    return exp.Div(this=dividend, expression=divisor, typed=True, safe=False)


def _unsigned() -> Any:
    """Return DataFusion's name of the unsigned type, which no dialect of sqlglot has."""
    from sqlglot import exp

    return exp.DataType(this=exp.DType.USERDEFINED, kind="BIGINT UNSIGNED")


def _is_met(accuracy: Any) -> bool:
    """Return whether a sketch is as accurate as the query demands."""
    from sqlglot import exp

    if not isinstance(accuracy, exp.Literal) or accuracy.is_string:
        return False
    return float(str(accuracy.this)) >= ERROR
