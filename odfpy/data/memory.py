"""A pool for Arrow's memory while a lot of it comes and goes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

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
