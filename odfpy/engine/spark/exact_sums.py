"""Sums without rounding on the way, so that no order of additions can be seen in them.

A DOUBLE is cut into four integers of 31 bits, which are added up as LONG, exactly. They cover all of its bits where it
is between 2^-10 and 2^62, as most numbers are. Others are multiplied by a power of two first: that, their *zone*, is a
further key of the GROUP BY, and the sums of the zones (few, mostly one) are added up in the order of their values.
The sum of a zone is the true one but for its last bit. A LONG is cut into two, so that only the result can overflow.

All of this are aggregates that Spark may add up in parts, in memory or not, in any order: that is what makes it fast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.builder import Builder
from odfpy.engine.spark.catalyst import Node, children, columns, expression_name, items, same_column

_BITS: Final = 31
_MASK: Final = f"{(1 << _BITS) - 1}L"
_TWO_62: Final = f"{float(1 << 62)!r}D"
_LEAST: Final = f"{2.0**-10!r}D"
_NOT_FINITE: Final = 99
_PIECES: Final = 4

_FLOATS: Final = ("float", "double")
_INTEGERS: Final = ("long", "bigint", "integer", "int")
_MERGED: Final = {
    "Count": "coalesce(sum({0}), 0L)",
    "Min": "min({0})",
    "Max": "max({0})",
    "BitAndAgg": "bit_and({0})",
    "BitOrAgg": "bit_or({0})",
    "BitXorAgg": "bit_xor({0})",
    "Sum": "cast(sum({0}) as {1})",
}
"""How results for parts of a group become that of the group, as SQL; `{1}` is the type."""


@dataclass(frozen=True, slots=True)
class Summand:
    """An argument of sums and means.

    Attributes:
        value: the expression, of type DOUBLE or BIGINT.
        is_float: which of the two.
        name: begins the names of the columns that are made of it.
    """

    value: Node
    is_float: bool
    name: str

    def columns(self) -> list[str]:
        """The columns to be added up. A sum of LONG holds those of four billion rows."""
        return [f"{self.name}_{at}" for at in range(1, (_PIECES if self.is_float else 2) + 1)]


def can_be_exact(build: Builder, call: Node) -> bool:
    """Whether a call of an aggregate function that adds up is a sum or mean of a kind that is known here."""
    function = build.replacement(call.aggregateFunction())
    if expression_name(function) not in {"aggregate.Sum", "aggregate.Average"} or call.isDistinct():
        return False
    return children(function)[0].dataType().typeName() in _FLOATS + _INTEGERS


def can_be_merged(build: Builder, call: Node) -> bool:
    """Whether the result of a call for a group follows from its results for parts of the group."""
    name = expression_name(build.replacement(call.aggregateFunction())).removeprefix("aggregate.")
    return name in _MERGED and not call.isDistinct()


def needs_zones(build: Builder, calls: list[Node]) -> bool:
    """Whether any of these exact calls is one of floating point numbers."""
    types = (children(build.replacement(call.aggregateFunction()))[0].dataType().typeName() for call in calls)
    return any(name in _FLOATS for name in types)


def exact_aggregate(
    build: Builder, child: Node, groupings: list[Node], exact: list[Node], others: list[Node]
) -> tuple[Node, list[Node], list[Node], list[Node]]:
    """The plan with one row a group: what it groups by, the results of exact calls, and those of other calls.

    Args:
        build: makes the nodes.
        child: the rows.
        groupings: expressions of GROUP BY.
        exact: calls of which `can_be_exact` is true.
        others: calls of which `can_be_merged` is true, or any others where `needs_zones` is not.
    """
    catalyst = build.catalyst
    summands, of_call = _summands(build, exact)
    groups = [catalyst.alias(grouping, f"__odf_group{at}") for at, grouping in enumerate(groupings)]
    values = [catalyst.alias(summand.value, summand.name) for summand in summands]
    given = [*columns(child), *groups, *values]
    plan = catalyst.plan(catalyst.dataframe(catalyst.project(given, child)))
    # Spark may give columns other identities where parts of a plan occur twice in it.
    others = [_renamed(build, call, list(zip(columns(child), columns(plan), strict=False))) for call in others]
    plan = _select(build, plan, [text for summand in summands for text in _cut(summand)])
    keys = [group.name() for group in groups]
    floats = [summand for summand in summands if summand.is_float]
    sums = [f"sum({name}) as {name}" for summand in summands for name in summand.columns()]
    sums += [f"sum({summand.name}_odd) as {summand.name}_odd" for summand in floats]
    sums += [f"count({summand.name}) as {summand.name}_n" for summand in summands]
    zones = [f"{summand.name}_zone" for summand in floats]
    rest = [catalyst.alias(call, f"__odf_other{at}") for at, call in enumerate(others)]
    plan = _grouped(build, plan, keys + zones, sums, rest)
    if floats:
        plan = _select(build, plan, [_zone_sum(summand) for summand in floats])
        plan = _grouped(build, plan, keys, _merges(build, summands, others), [])
    totals = [f"{_total(of_call[at], call)} as __odf_result{at}" for at, call in enumerate(exact)]
    plan = _select(build, plan, totals)
    found = {column.name(): column for column in columns(plan)}
    return (
        plan,
        [found[key] for key in keys],
        [found[f"__odf_result{at}"] for at in range(len(exact))],
        [found[column.name()] for column in rest],
    )


def _renamed(build: Builder, call: Node, pairs: list[tuple[Node, Node]]) -> Node:
    """A call that reads columns under the identities that they have now."""

    def found(part: Node) -> Node | None:
        if expression_name(part) != "AttributeReference":
            return None
        return next((now for before, now in pairs if same_column(part, before)), None)

    return build.substitute(call, found)


def _summands(build: Builder, calls: list[Node]) -> tuple[list[Summand], list[Summand]]:
    """The different arguments of calls, and that of each call."""
    found: list[Summand] = []
    of_call = []
    for call in calls:
        value = children(build.replacement(call.aggregateFunction()))[0]
        is_float = value.dataType().typeName() in _FLOATS
        if call.filter().isDefined():
            value = build.only_if(call.filter().get(), value)
        value = build.cast(value, "double" if is_float else "bigint")
        same = next((other for other in found if other.value.semanticEquals(value)), None)
        if same is None:
            same = Summand(value, is_float, f"__odf_sum{len(found)}")
            found.append(same)
        of_call.append(same)
    return found, of_call


def _select(build: Builder, plan: Node, made: list[str]) -> Node:
    """SELECT *, made FROM plan, where a column may be made of those before it."""
    catalyst = build.catalyst
    return catalyst.plan(catalyst.dataframe(plan).selectExpr("*", *made)) if made else plan


def _grouped(build: Builder, plan: Node, keys: list[str], made: list[str], more: list[Node]) -> Node:
    """SELECT keys, made, more FROM plan GROUP BY keys."""
    from pyspark.sql import functions

    catalyst = build.catalyst
    frame = catalyst.dataframe(plan).groupBy(*keys).agg(*map(functions.expr, made))
    node = catalyst.plan(frame)
    return catalyst.aggregate(
        items(node.groupingExpressions()), [*items(node.aggregateExpressions()), *more], node.child()
    )


def _cut(summand: Summand) -> list[str]:
    """Columns to be made of a value, one after the other; each of them is exact."""
    x = summand.name
    if not summand.is_float:
        return [f"shiftright({x}, 32) as {x}_1", f"{x} & 4294967295L as {x}_2"]
    usual = f"{x} is null or {x} = 0 or (abs({x}) >= {_LEAST} and abs({x}) < {_TWO_62})"
    odd = f"when isnan({x}) or abs({x}) = double('infinity') then {_NOT_FINITE}"
    scaled = f"{x} * pow(2D, -32 * {x}_zone) * pow(2D, -32 * {x}_zone)"
    return [
        f"case when {usual} then 0 {odd} else cast(floor((log2(abs({x})) + 2) / 64) as int) end as {x}_zone",
        f"case {x}_zone when 0 then coalesce({x}, 0D) when {_NOT_FINITE} then 0D else {scaled} end as {x}_near",
        f"if({x}_zone = {_NOT_FINITE}, {x}, null) as {x}_odd",
        f"cast({x}_near as bigint) as {x}_whole",
        f"cast(({x}_near - {x}_whole) * {_TWO_62} as bigint) as {x}_below",
        f"shiftright({x}_whole, {_BITS}) as {x}_1",
        f"{x}_whole & {_MASK} as {x}_2",
        f"shiftright({x}_below, {_BITS}) as {x}_3",
        f"{x}_below & {_MASK} as {x}_4",
    ]


def _zone_sum(summand: Summand) -> str:
    """The sum of a zone: carries go up, so that all pieces but the first are positive, then they are put together."""
    x, (*above, carried) = summand.name, summand.columns()
    digits = []
    for name in reversed(above):
        digits.append(f"({carried} & {_MASK})")
        carried = f"({name} + shiftright({carried}, {_BITS}))"
    weight = 2.0**_BITS
    total = f"{carried} * {weight!r}D"
    for digit in reversed(digits):
        weight /= 2.0**_BITS
        total = f"({total} + {digit} * {weight!r}D)"
    return (
        f"if({x}_zone = {_NOT_FINITE}, {x}_odd, {total} * pow(2D, 32 * {x}_zone) * pow(2D, 32 * {x}_zone)) as {x}_part"
    )


def _merges(build: Builder, summands: list[Summand], others: list[Node]) -> list[str]:
    merged = [f"coalesce(sum({summand.name}_n), 0L) as {summand.name}_n" for summand in summands]
    for summand in summands:
        if summand.is_float:
            merged.append(f"collect_list({summand.name}_part) as {summand.name}_parts")
        else:
            merged += [f"sum({name}) as {name}" for name in summand.columns()]
    for at, call in enumerate(others):
        name = expression_name(build.replacement(call.aggregateFunction())).removeprefix("aggregate.")
        merged.append(_MERGED[name].format(f"__odf_other{at}", call.dataType().sql()) + f" as __odf_other{at}")
    return merged


def _total(summand: Summand, call: Node) -> str:
    """The result of a call: NULL without values, else the sum, or the sum divided by their number."""
    x, is_mean = summand.name, expression_name(call.aggregateFunction()).endswith("Average")
    high, low = f"({x}_1 + shiftright({x}_2, 32))", f"({x}_2 & 4294967295L)"
    if summand.is_float:
        total = f"aggregate(sort_array({x}_parts), 0D, (a, b) -> a + b)"
    elif is_mean:
        total = f"({high} * 4294967296D + {low})"
    elif "TRY" in call.aggregateFunction().evalContext().evalMode().toString():
        total = f"try_add(try_multiply({high}, 4294967296L), {low})"
    else:
        total = f"{high} * 4294967296L + {low}"
    return f"if({x}_n = 0, null, {total}{f' / {x}_n' if is_mean else ''})"
