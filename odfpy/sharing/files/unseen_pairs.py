"""Corrections whose halves are equal in all visible columns, which are hidden from the caller.

They would reveal that a hidden column of the row changed. Without them, the changes have the same outcome.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.sharing.files.kinds import WORDS

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_FROM: Final = WORDS[OperationType.CORRECT_FROM]
_TO: Final = WORDS[OperationType.CORRECT_TO]


def without_unseen_pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield changes without the corrections whose halves are equal.

    Args:
        batches: visible columns of changes; the last column has the kinds of changes. The second half of a correction
            directly follows the first, perhaps in the next batch.
    """
    import pyarrow as pa

    held: pa.RecordBatch | None = None
    for found in batches:
        batch = found if held is None else pa.concat_batches([held, found])
        held = None
        if batch.num_rows and batch.column(batch.num_columns - 1)[-1].as_py() == _FROM:
            held, batch = batch.slice(batch.num_rows - 1), batch.slice(0, batch.num_rows - 1)
        yield batch.filter(pa.array(_is_seen(batch)))
    if held is not None:
        yield held


def _is_seen(batch: pa.RecordBatch) -> npt.NDArray[np.bool_]:
    """Return for each row whether it is not half of a correction with equal halves."""
    import numpy as np
    import pyarrow.compute as pc

    *columns, kinds = batch.columns
    is_from, is_to = (pc.equal(kinds, word).to_numpy(zero_copy_only=False) for word in (_FROM, _TO))
    first = np.flatnonzero(is_from[:-1] & is_to[1:])
    for column in columns:
        first = first[_equal(column, first)]
    seen = np.ones(batch.num_rows, np.bool_)
    seen[first] = seen[first + 1] = False
    return seen


def _equal(column: pa.Array, first: npt.NDArray[np.intp]) -> npt.NDArray[np.bool_]:
    """Return for each of the given rows whether its value equals the next one; two NULLs or two NaNs are equal."""
    import numpy as np
    import pyarrow as pa

    one, other = column.take(pa.array(first)), column.take(pa.array(first + 1))
    if one.equals(other):
        return np.ones(len(first), np.bool_)
    codes = _codes(pa.concat_arrays([one, other]))
    return np.equal(*np.split(codes, 2))


def _codes(values: pa.Array) -> npt.NDArray[np.int64]:
    """Return a number for each value; equal values have equal numbers."""
    import numpy as np
    import pyarrow as pa

    if pa.types.is_nested(values.type):
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(repr(value), len(numbers)) for value in values.to_pylist()], np.int64)
    indices = values.dictionary_encode("encode").indices
    return np.asarray(indices.to_numpy(zero_copy_only=False), np.int64)
