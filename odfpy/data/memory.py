"""Memory of Arrow: sizes of values, conversion of numpy arrays, and an allocator for bulk work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@contextmanager
def bulk_memory() -> Iterator[None]:
    """Let Arrow use jemalloc during the block, if this build of Arrow has it.

    Arrow's default allocator requests huge pages, which the system must clear again and again as large arrays are
    allocated and released; a large ingest took a quarter more CPU time with it (pyarrow 26). Existing arrays stay.
    """
    if "jemalloc" not in pa.supported_memory_backends():
        yield
        return
    before = pa.default_memory_pool()
    pa.set_memory_pool(pa.jemalloc_memory_pool())
    try:
        yield
    finally:
        pa.set_memory_pool(before)


def bytes_of(values: pa.Array | pa.ChunkedArray | pa.RecordBatch | pa.Table) -> int:
    """Return the number of bytes that values take in memory.

    Before pyarrow 24, `nbytes` does not support text views. For these, the result is the size of the buffers, which
    a slice shares with its array.
    """
    try:
        return int(values.nbytes)
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return int(values.get_total_buffer_size())


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Return numbers or booleans as an Arrow array without nulls; numbers are not copied.

    `pa.array` does the same, but first checks for masked arrays, for which numpy imports a module that takes a fortieth
    of the time of a small command.
    """
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data)])
