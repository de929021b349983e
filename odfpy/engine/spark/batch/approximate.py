"""Approximate equality of rows: up to the last digits of fractions, which depend on the order of additions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import pyarrow as pa

from odfpy.data.schemas.arrow import has_within
from odfpy.engine.spark.batch.request import ABSOLUTE, RELATIVE

_RELATIVE_OF_SHORT: Final = 1e-6
"""For fractions of single precision, which have about seven digits."""


class ApproximateComparison:
    """Comparison of rows of a table, for `compare`.

    Attributes:
        exact: positions of the columns without fractions.
        fractions: positions of all others.
    """

    def __init__(self, schema: pa.Schema, greatest: Sequence[float | None]) -> None:
        """Prepare for rows of a schema; `greatest` has the greatest absolute values of columns, where known."""
        self.fractions = tuple(at for at, field in enumerate(schema) if has_within(field.type, pa.types.is_floating))
        self.exact = tuple(at for at in range(len(schema)) if at not in self.fractions)
        self._relative = [_RELATIVE_OF_SHORT if _is_short(field.type) else RELATIVE for field in schema]
        self._absolute = [(scale or 0.0) * ABSOLUTE for scale in greatest]

    def differing(self, one: Sequence[Any], other: Sequence[Any]) -> list[int]:
        """Return the positions at which two rows differ."""
        return [at for at in range(len(one)) if not self._is_near(at, one[at], other[at])]

    def _is_near(self, at: int, one: Any, other: Any) -> bool:
        if at not in self.fractions:
            return bool(one == other)
        return near(one, other, self._relative[at], self._absolute[at])


def near(one: Any, other: Any, relative: float, absolute: float) -> bool:
    """Return whether two values are equal up to the last digits of fractions, including within lists and structs.

    Args:
        one: one value.
        other: the other value.
        relative: largest relative difference of fractions.
        absolute: largest absolute difference of fractions.
    """
    if isinstance(one, float) and isinstance(other, float):
        same_kind = math.isnan(one) and math.isnan(other)
        return same_kind or math.isclose(one, other, rel_tol=relative, abs_tol=absolute)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(near(one[key], other[key], relative, absolute) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        pairs = zip(one, other, strict=False)
        return len(one) == len(other) and all(near(a, b, relative, absolute) for a, b in pairs)
    return bool(one == other)


def _is_short(kind: pa.DataType) -> bool:
    return has_within(kind, lambda one: pa.types.is_float32(one) or pa.types.is_float16(one))
