"""Memory of Arrow: the size of values, arrays of numpy as they are, and a pool while a lot of values come and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa


@contextmanager
def bulk_memory() -> Iterator[None]:
    """Let Arrow use jemalloc, where it is built in, until the end of the block.

    Arrow's usual allocator asks for huge pages, which the system has to clear again and again as large arrays come and
    go; a large ingest took a quarter more processor time with it (pyarrow 26). What was allocated stays where it is.
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
    """Return the bytes that values take in memory.

    Before pyarrow 24, `nbytes` does not know views of text: for these, it is the bytes of the buffers, which a slice
    shares with the whole.
    """
    try:
        return int(values.nbytes)
    except (pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return int(values.get_total_buffer_size())


def from_numpy(values: npt.NDArray[Any]) -> pa.Array:
    """Return the same numbers or booleans as an Arrow array of their type, without nulls; numbers are not copied.

    `pa.array` does it, too, but looks first whether they are a masked array: for that, numpy loads a module that takes
    a small command a fortieth of its time.
    """
    data = np.packbits(values, bitorder="little") if values.dtype == np.bool_ else np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(data)])
