"""Sketches: how many different values there are, about, from at most 4 096 hashes of each source and group.

A value is hashed (MD5 of its text, which is the same in every engine). The first three hexadecimal digits of a hash are
one of 4 096 buckets. Of each bucket, the least hash travels, eleven digits of it. The eight after the bucket are a
fraction from 0 to 1, which is less the more values there are. With m buckets, k of them not empty, and the sum s of
their least fractions, the most likely number of values is

    m * k / (m - k + s)

since the least of many fractions is distributed exponentially, and what is not there counts as 1. Its standard error
is 1 / sqrt(m) = 1.6 % for many values, less for few, and none for one. It needs no correction and no second formula
for few values, as those of HyperLogLog do. The least hash of several sources is the least of theirs: so the estimate
is that of all rows together, however they are divided, and what several sources have counts once. All sums are of
whole numbers below 2^53, so that their order changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa

from odfpy.federation.sql.casting import cast
from odfpy.federation.sql.expressions import Constant, Expression
from odfpy.federation.sql.fragment import Fragment
from odfpy.federation.sql.operators import call
from odfpy.federation.sql.types import INT, MAX_DIGITS, TEXT, kind_of

ERROR: Final = 0.02
"""The least relative error that a query may ask for, and still get a sketch."""

_BUCKETS: Final = 4096
_BUCKET_DIGITS: Final = 3
_FRACTION_DIGITS: Final = 8
_ONE: Final = 16**_FRACTION_DIGITS
_DIGITS: Final = "123456789abcdef"
_NUMBER: Final = "CAST(COUNT(s) AS DOUBLE)"
_ESTIMATE: Final = (
    f"FLOOR({_NUMBER} * {_BUCKETS * _ONE}E0"
    f" / (GREATEST({_BUCKETS}E0 - {_NUMBER}, 0E0) * {_ONE}E0 + COALESCE(SUM(s), 0E0) + {_NUMBER} * 5E-1) + 5E-1)"
)
"""Over the least fractions times `_ONE`, each in the middle of what its digits tell; a number, whatever peers say."""
_FRACTION: Final = " + ".join(
    f"CAST(POSITION(SUBSTRING(MIN(s), {_BUCKET_DIGITS + at}, 1) IN '{_DIGITS}') AS DOUBLE)"
    f" * {16 ** (_FRACTION_DIGITS - at)}E0"
    for at in range(1, _FRACTION_DIGITS + 1)
)
"""Of the hashes of a bucket: the least fraction times `_ONE`, which is exact as a double."""


def sketch_hash(value: Expression) -> Expression | None:
    """The hash of a value; None where counting exactly moves less, or engines write the value in different ways.

    Args:
        value: what is counted.
    """
    text = _text_of(value)
    return None if text is None else call("md5", text)


def _text_of(value: Expression) -> Expression | None:
    match kind_of(value.dtype):
        case "text":
            return value
        case "int" if value.dtype.bit_width > 8:  # there are no more than 256 others
            return cast(value, TEXT)
        case "decimal" if value.dtype.scale < MAX_DIGITS:
            # Some engines leave out a 0 before the point where there is no room for one.
            return cast(cast(value, pa.decimal128(MAX_DIGITS, value.dtype.scale)), TEXT)
        case "date":
            year, month, day = (cast(call(part, value), TEXT) for part in ("year", "month", "day"))
            dash = Constant("-", TEXT)
            return call("concat", year, dash, month, dash, day)
    return None


def bucket_of(hashed: Expression) -> Expression:
    """The bucket of a hash: what rows are grouped by.

    Args:
        hashed: the hash.
    """
    return call("substring", hashed, Constant(1, INT), Constant(_BUCKET_DIGITS, INT))


def least_of(hashed: Expression) -> Expression:
    """The least hash of a bucket, as many digits of it as are needed.

    Args:
        hashed: the hash.
    """
    digits = _BUCKET_DIGITS + _FRACTION_DIGITS
    return call("min", call("substring", hashed, Constant(1, INT), Constant(digits, INT)))


def estimate(column: Any, dialect: str) -> Any:
    """The estimate over the rows of a sketch: a whole number, as a double.

    Args:
        column: of the least fractions.
        dialect: of sqlglot.
    """
    return _over(_ESTIMATE, column, dialect)


def _over(text: str, column: Any, dialect: str) -> Any:
    """The tree of a text, with a column in the place of the one in it."""
    from sqlglot import exp, parse_one

    tree = parse_one(text, dialect=dialect)
    return tree.transform(lambda node: column.copy() if isinstance(node, exp.Column) else node)


@dataclass(frozen=True, slots=True)
class SketchTable:
    """A table of the rest that is made of sketches, and of what else was asked of the same rows.

    Attributes:
        columns: of the table.
        keys: those of them that rows are grouped by.
        parts: the fragments that its rows are of; each with the column of its sketch, None for its rows as they are.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    parts: tuple[tuple[Fragment, str | None], ...]

    def query(self, names: Mapping[Fragment, str], dialect: str) -> Any:
        """The rows of all parts, one below the other; what a part does not have is NULL.

        Args:
            names: of the tables that the answers to the fragments are.
            dialect: of sqlglot.
        """
        from sqlglot import exp

        first, *others = (self._part(fragment, sketch, names[fragment], dialect) for fragment, sketch in self.parts)
        for one in others:
            first = exp.Union(this=first, expression=one, distinct=False)
        return first

    def _part(self, fragment: Fragment, sketch: str | None, table: str, dialect: str) -> Any:
        """The rows of a part; those of a sketch are the buckets of all sources, each once."""
        from sqlglot import exp

        there = {*self.keys, sketch} if sketch is not None else {one.name for one in fragment.outputs}
        shown = []
        for name in self.columns:
            value: Any = _column(name, table)
            if name == sketch:
                value = _over(_FRACTION, value, dialect)
            elif name in self._sketches:
                value = exp.cast(exp.Null(), "DOUBLE")  # DataFusion has no sum of what has no type
            elif name not in there:
                value = exp.Null()
            shown.append(exp.alias_(value, name, quoted=True))
        found = exp.select(*shown).from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
        if sketch is None:
            return found
        bucket = exp.Substring(
            this=_column(sketch, table), start=exp.Literal.number(1), length=exp.Literal.number(_BUCKET_DIGITS)
        )
        return found.group_by(*(_column(name, table) for name in self.keys), bucket)

    @property
    def _sketches(self) -> tuple[str, ...]:
        return tuple(sketch for _, sketch in self.parts if sketch is not None)


def _column(name: str, table: str) -> Any:
    from sqlglot import exp

    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True))
