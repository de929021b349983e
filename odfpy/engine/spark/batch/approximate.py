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

    def differing(self, left: Sequence[Any], right: Sequence[Any]) -> list[int]:
        """Return the positions at which two rows differ."""
        return [at for at in range(len(left)) if not self._is_near(at, left[at], right[at])]

    def _is_near(self, at: int, left: Any, right: Any) -> bool:
        if at not in self.fractions:
            return bool(left == right)
        return near(left, right, self._relative[at], self._absolute[at])


def near(left: Any, right: Any, relative: float, absolute: float) -> bool:
    """Return whether two values are equal up to the last digits of fractions, including within lists and structs.

    Args:
        left: one value.
        right: the other value.
        relative: largest relative difference of fractions.
        absolute: largest absolute difference of fractions.
    """
    if isinstance(left, float) and isinstance(right, float):
        same_kind = math.isnan(left) and math.isnan(right)
        return same_kind or math.isclose(left, right, rel_tol=relative, abs_tol=absolute)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(near(left[key], right[key], relative, absolute) for key in left)
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        pairs = zip(left, right, strict=False)
        return len(left) == len(right) and all(near(a, b, relative, absolute) for a, b in pairs)
    return bool(left == right)


def _is_short(kind: pa.DataType) -> bool:
    return has_within(kind, lambda part: pa.types.is_float32(part) or pa.types.is_float16(part))
