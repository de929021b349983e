"""Sketches: estimates of the number of distinct values, from at most 4 096 hashes for each source and group.

A value is hashed (MD5 of its text, which is the same in every engine). The first three hexadecimal digits of the hash
select one of 4 096 buckets. For each bucket, the minimum hash is sent, eleven digits of it. The eight digits after the
bucket are a fraction between 0 and 1, whose minimum shrinks as the number of values grows. With m buckets, k of them
not empty, and the sum s of their minimum fractions, the maximum likelihood estimate is

    m * k / (m - k + s)

since the minimum of many fractions is distributed exponentially, and empty buckets count as 1. Its standard error
is 1 / sqrt(m) = 1.6 % for many values, less for few, and none for one. Unlike HyperLogLog, it needs no bias correction
and no second formula for few values. The minimum hash of several sources is the minimum of theirs: so the estimate is
that of all rows together, however they are distributed, and duplicates across sources count once. All sums are of
integers below 2^53, so that their order does not matter.
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
"""The minimum relative error that a query may request and still get a sketch."""

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
"""Uses the minimum fractions times `_ONE`, each in the middle of its interval; a number whatever peers send."""
_FRACTION: Final = " + ".join(
    f"CAST(POSITION(SUBSTRING(MIN(s), {_BUCKET_DIGITS + at}, 1) IN '{_DIGITS}') AS DOUBLE)"
    f" * {16 ** (_FRACTION_DIGITS - at)}E0"
    for at in range(1, _FRACTION_DIGITS + 1)
)
"""Of the hashes of a bucket: the least fraction times `_ONE`, which is exact as a double."""


def sketch_hash(value: Expression) -> Expression | None:
    """Return the hash of a value; None where exact counting transfers less, or engines write the value differently.

    Args:
        value: the expression that is counted.
    """
    text = _text_of(value)
    return None if text is None else call("md5", text)


def _text_of(value: Expression) -> Expression | None:
    match kind_of(value.dtype):
        case "text":
            return value
        case "int" if value.dtype.bit_width > 8:  # smaller integers have at most 256 values
            return cast(value, TEXT)
        case "decimal" if value.dtype.scale < MAX_DIGITS:
            # Some engines omit a 0 before the decimal point if the type has no digit for it.
            return cast(cast(value, pa.decimal128(MAX_DIGITS, value.dtype.scale)), TEXT)
        case "date":
            year, month, day = (cast(call(part, value), TEXT) for part in ("year", "month", "day"))
            dash = Constant("-", TEXT)
            return call("concat", year, dash, month, dash, day)
    return None


def bucket_of(hashed: Expression) -> Expression:
    """Return the bucket of a hash: an additional GROUP BY key.

    Args:
        hashed: the hash.
    """
    return call("substring", hashed, Constant(1, INT), Constant(_BUCKET_DIGITS, INT))


def least_of(hashed: Expression) -> Expression:
    """Return the minimum hash of a bucket, with the digits that are needed.

    Args:
        hashed: the hash.
    """
    digits = _BUCKET_DIGITS + _FRACTION_DIGITS
    return call("min", call("substring", hashed, Constant(1, INT), Constant(digits, INT)))


def estimate(column: Any, dialect: str) -> Any:
    """Return the estimate over the rows of a sketch: an integer, as a double.

    Args:
        column: column of the minimum fractions.
        dialect: sqlglot dialect.
    """
    return _over(_ESTIMATE, column, dialect)


def _over(text: str, column: Any, dialect: str) -> Any:
    """Parse a text, and replace the column in it."""
    from sqlglot import exp, parse_one

    tree = parse_one(text, dialect=dialect)
    return tree.transform(lambda node: column.copy() if isinstance(node, exp.Column) else node)


@dataclass(frozen=True, slots=True)
class SketchTable:
    """A table of the rest that combines sketches with other aggregates of the same rows.

    Attributes:
        columns: columns of the table.
        keys: the GROUP BY keys among them.
        parts: the fragments that its rows come from; each with the column of its sketch, None for its rows as they are.
    """

    columns: tuple[str, ...]
    keys: tuple[str, ...]
    parts: tuple[tuple[Fragment, str | None], ...]

    def query(self, names: Mapping[Fragment, str], dialect: str) -> Any:
        """Return a UNION ALL of the rows of all parts; columns that a part lacks are NULL.

        Args:
            names: names of the answers to the fragments.
            dialect: sqlglot dialect.
        """
        from sqlglot import exp

        first, *others = (self._part(fragment, sketch, names[fragment], dialect) for fragment, sketch in self.parts)
        for other in others:
            first = exp.Union(this=first, expression=other, distinct=False)
        return first

    def _part(self, fragment: Fragment, sketch: str | None, table: str, dialect: str) -> Any:
        """Return the rows of a part; those of a sketch are the buckets of all sources, each once."""
        from sqlglot import exp

        own_outputs = {*self.keys, sketch} if sketch is not None else {output.name for output in fragment.outputs}
        shown = []
        for name in self.columns:
            value: Any = _column(name, table)
            if name == sketch:
                value = _over(_FRACTION, value, dialect)
            elif name in self._sketches:
                value = exp.cast(exp.Null(), "DOUBLE")  # DataFusion has no sum of untyped NULL
            elif name not in own_outputs:
                value = exp.Null()
            shown.append(exp.alias_(value, name, quoted=True))
        query = exp.select(*shown).from_(exp.Table(this=exp.to_identifier(table, quoted=True)))
        if sketch is None:
            return query
        bucket = exp.Substring(
            this=_column(sketch, table), start=exp.Literal.number(1), length=exp.Literal.number(_BUCKET_DIGITS)
        )
        return query.group_by(*(_column(name, table) for name in self.keys), bucket)

    @property
    def _sketches(self) -> tuple[str, ...]:
        return tuple(sketch for _, sketch in self.parts if sketch is not None)


def _column(name: str, table: str) -> Any:
    from sqlglot import exp

    return exp.column(exp.to_identifier(name, quoted=True), exp.to_identifier(table, quoted=True))
