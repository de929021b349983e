"""Kinds of row changes: operation types of ODF, and change types of Delta (Delta protocol, "Change Data Files")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odfpy.data.vocabulary import OperationType
from odfpy.errors import MalformedData

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pyarrow as pa

_CHANGES: Final = {
    OperationType.APPEND: "insert",
    OperationType.RETRACT: "delete",
    OperationType.CORRECT_FROM: "update_preimage",
    OperationType.CORRECT_TO: "update_postimage",
}
WORDS: Final = [_CHANGES[OperationType(number)] for number in range(len(_CHANGES))]
"""The names of changes, indexed by operation type."""


def kinds_of(column: pa.Array, *, is_whole: bool) -> npt.NDArray[np.int32]:
    """Return operation types of rows, from a column with these or with Delta's change types.

    If rows are hidden, Delta's updates become deletes and inserts: their two halves need not be adjacent, so it cannot
    be determined whether both are visible.
    """
    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_integer(column.type):
        return np.asarray(column.to_numpy(zero_copy_only=False), np.int32)
    numbers = pc.index_in(column.cast(pa.string()), pa.array(WORDS))
    if numbers.null_count:
        raise MalformedData(
            "A file of changes says of a row neither insert, update nor delete",
            hint="Repair the table at its origin.",
        )
    found = np.array(numbers.to_numpy(zero_copy_only=False), np.int32)
    if not is_whole:
        found[found == OperationType.CORRECT_FROM] = OperationType.RETRACT
        found[found == OperationType.CORRECT_TO] = OperationType.APPEND
    return found
