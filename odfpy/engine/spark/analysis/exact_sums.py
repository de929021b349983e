"""Exact sums: no intermediate rounding, so that the result does not depend on the order of additions.

A DOUBLE is split into four integers of 31 bits, which are added up as LONG, exactly. They cover all of its bits if it
is between 2^-10 and 2^62, as most numbers are. Others are first multiplied by a power of two: its exponent, their
*zone*, is a further key of the GROUP BY, and the sums of the zones (few, mostly one) are added up in the order of their
values. The sum of a zone is exact up to its last bit. Infinities and NaN have zones of their own, and are counted. A
LONG is split into two parts, so that only the result can overflow; shorter integers are added up as they are.

All of these are integers, which Spark may add up in parts and in any order: that makes it fast. What has been added can
also be subtracted again, without any trace.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from odfpy.engine.spark.plan.builder import Builder
from odfpy.engine.spark.plan.catalyst import Node, children, expression_name

_BITS: Final = 31
_MASK: Final = f"{(1 << _BITS) - 1}L"
_TWO_62: Final = f"{float(1 << 62)!r}D"
_MIN_MAGNITUDE: Final = f"{2.0**-10!r}D"
_NOT_FINITE: Final = {97: "double('infinity')", 98: "double('-infinity')", 99: "double('nan')"}
"""Zones of values that cannot be split."""

_FLOAT_PIECES: Final = 4

_OVERFLOW: Final = "A sum of BIGINT overflows: `try_sum` gives NULL instead, and sums of DECIMAL(20) have room"

_FLOATS: Final = ("float", "double")
_LONG: Final = ("long", "bigint")
_INTEGERS: Final = (*_LONG, "integer", "int", "byte", "short", "tinyint", "smallint")


@dataclass(frozen=True, slots=True)
class Summand:
    """An argument of sums and means, split into integers.

    Attributes:
        value: the expression, of type DOUBLE or BIGINT.
        num_pieces: 4 for a DOUBLE, 2 for a LONG, 1 for an integer that was shorter.
        name: the prefix of the names of the columns made from it.
    """

    value: Node
    num_pieces: int
    name: str

    @property
    def is_float(self) -> bool:
        """True if the argument is a DOUBLE."""
        return self.num_pieces == _FLOAT_PIECES

    @property
    def pieces(self) -> list[str]:
        """Return the columns to be added up. A LONG can hold sums of four billion rows."""
        return [f"{self.name}_{at}" for at in range(1, self.num_pieces + 1)]

    @property
    def zone(self) -> str:
        """Return the column with the zone of a DOUBLE."""
        return f"{self.name}_zone"

    @property
    def count(self) -> str:
        """Return the column with the number of values."""
        return f"{self.name}_n"

    def cut(self) -> list[str]:
        """Return the columns to be computed from a value, as SQL, in order; each of them is exact."""
        x = self.name
        if self.num_pieces == 1:
            return [f"{x} as {x}_1"]
        if not self.is_float:
            return [f"shiftright({x}, 32) as {x}_1", f"{x} & 4294967295L as {x}_2"]
        usual = f"{x} is null or {x} = 0 or (abs({x}) >= {_MIN_MAGNITUDE} and abs({x}) < {_TWO_62})"
        odd = " ".join(f"when {x} = {value} then {zone}" for zone, value in _NOT_FINITE.items())
        odd_zone = f"{x}_zone in ({', '.join(map(str, _NOT_FINITE))})"
        scaled = f"{x} * pow(2D, -32 * {x}_zone) * pow(2D, -32 * {x}_zone)"
        return [
            f"case when {usual} then 0 {odd} else cast(floor((log2(abs({x})) + 2) / 64) as int) end as {x}_zone",
            f"case when {x}_zone = 0 then coalesce({x}, 0D) when {odd_zone} then 0D else {scaled} end as {x}_near",
            f"cast({x}_near as bigint) as {x}_whole",
            f"cast(({x}_near - {x}_whole) * {_TWO_62} as bigint) as {x}_below",
            f"shiftright({x}_whole, {_BITS}) as {x}_1",
            f"{x}_whole & {_MASK} as {x}_2",
            f"shiftright({x}_below, {_BITS}) as {x}_3",
            f"{x}_below & {_MASK} as {x}_4",
        ]

    def zone_sum(self) -> str:
        """Return the sum of a zone as SQL: carries are propagated, and the pieces are combined.

        All pieces but the first are positive then. The sum is a column with the name of the summand.
        """
        x, (*above, carried) = self.name, self.pieces
        digits = []
        for name in reversed(above):
            digits.append(f"({carried} & {_MASK})")
            carried = f"({name} + shiftright({carried}, {_BITS}))"
        weight = 2.0**_BITS
        total = f"{carried} * {weight!r}D"
        for digit in reversed(digits):
            weight /= 2.0**_BITS
            total = f"({total} + {digit} * {weight!r}D)"
        odd = " ".join(f"when {x}_zone = {zone} then if({x}_n = 0, 0D, {value})" for zone, value in _NOT_FINITE.items())
        return f"case {odd} else {total} * pow(2D, 32 * {x}_zone) * pow(2D, 32 * {x}_zone) end as {x}"

    def total(self, call: Node) -> str:
        """Return the result of a call as SQL: NULL without values, else the sum, or the sum divided by their number.

        Args:
            call: a call with this argument; the sums of zones are in an array with the name of the summand.
        """
        x, is_mean = self.name, expression_name(call.aggregateFunction()).endswith("Average")
        high, low = f"({x}_1 + shiftright({x}_2, 32))", f"({x}_2 & 4294967295L)"
        if self.is_float:
            total = f"aggregate(sort_array({x}), 0D, (a, b) -> a + b)"
        elif self.num_pieces == 1:
            total = f"{x}_1"
        elif is_mean:
            total = f"({high} * 4294967296D + {low})"
        else:
            too_large = "null" if _is_try(call) else f"cast(raise_error('{_OVERFLOW}') as bigint)"
            total = f"if({high} between {-(1 << 31)}L and {(1 << 31) - 1}L, {high} * 4294967296L + {low}, {too_large})"
        return f"if({x}_n = 0, null, {total}{f' / {x}_n' if is_mean else ''})"


def can_be_exact(build: Builder, call: Node) -> bool:
    """Return whether a call of an aggregate function is a sum or mean of a supported type."""
    function = build.replacement(call.aggregateFunction())
    if expression_name(function) not in {"aggregate.Sum", "aggregate.Average"} or call.isDistinct():
        return False
    return children(function)[0].dataType().typeName() in _FLOATS + _INTEGERS


def is_sum_of_long(build: Builder, call: Node) -> bool:
    """Return whether a call adds up BIGINT to a BIGINT, including DISTINCT calls."""
    function = build.replacement(call.aggregateFunction())
    is_sum = expression_name(function) == "aggregate.Sum"
    return is_sum and children(function)[0].dataType().typeName() in _LONG


def wide_sum(build: Builder, call: Node) -> Node:
    """Return a sum of BIGINT of which only the final result can overflow, not an intermediate one.

    It is for sums that cannot be split into a `Summand`, which is faster.

    Args:
        build: makes expressions.
        call: a call for which `is_sum_of_long` is true.
    """
    function = build.replacement(call.aggregateFunction())
    value = build.cast_to(children(function)[0], build.decimal(20))
    wide = function.withNewChildren(build.catalyst.seq([value]))
    total = call.withNewChildren(build.catalyst.seq([wide, *children(call)[1:]]))
    least, most = (build.cast_to(build.number(bound), build.decimal(30)) for bound in (-(1 << 63), (1 << 63) - 1))
    is_far = build.expression(
        "Or", build.expression("LessThan", total, least), build.expression("GreaterThan", total, most)
    )
    sum_ = build.cast(total, "bigint")
    too_large = build.null(sum_.dataType()) if _is_try(call) else build.failure(_OVERFLOW, sum_.dataType())
    return build.expression("If", is_far, too_large, sum_)


def _is_try(call: Node) -> bool:
    return "TRY" in call.aggregateFunction().evalContext().evalMode().toString()


def summands_of(build: Builder, calls: list[Node]) -> tuple[list[Summand], list[Summand]]:
    """Return the distinct arguments of exact calls, and the argument of each call."""
    summands: list[Summand] = []
    of_call = []
    for call in calls:
        value = children(build.replacement(call.aggregateFunction()))[0]
        name = value.dataType().typeName()
        pieces = _FLOAT_PIECES if name in _FLOATS else 2 if name in _LONG else 1
        if call.filter().isDefined():
            value = build.only_if(call.filter().get(), value)
        value = build.cast(value, "double" if name in _FLOATS else "bigint")
        same = next((other for other in summands if other.value.semanticEquals(value)), None)
        if same is None:
            same = Summand(value, pieces, f"__odf_sum{len(summands)}")
            summands.append(same)
        of_call.append(same)
    return summands, of_call
