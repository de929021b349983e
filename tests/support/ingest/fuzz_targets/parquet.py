"""Parquet files, whose pages have checksums: they give their own rows, or an error."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
from support.ingest.fuzz_targets.target import Target, damaged

from odfpy.chain.read_steps import ReadParquet, ReadStep

_PARQUET = pa.table(
    {
        "id": pa.array(range(200), pa.int64()),
        "name": pa.array([f"name {i % 7}" if i % 5 else None for i in range(200)]),
        "x": pa.array([[float(i)] * (i % 3) for i in range(200)]),
    }
)


def _parquet() -> bytes:
    buffer = io.BytesIO()
    pq.write_table(_PARQUET, buffer, row_group_size=80, write_page_checksum=True, compression="none")
    return buffer.getvalue()


def _check_parquet(step: ReadStep, content: bytes, table: pa.Table) -> None:
    """Check the rows. Pages have checksums but the footer has none: its names and types of columns are not checked."""
    del step
    with pq.ParquetFile(io.BytesIO(content)) as file:
        assert table.num_rows == file.metadata.num_rows
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in _PARQUET.column_names and column.type == _PARQUET.schema.field(name).type:
            assert column.equals(_PARQUET.column(name))


PARQUET = Target([(ReadParquet(), [_parquet()])], (b"\0", b"\xff", b"\x15", b"PAR1"), _check_parquet, damaged)
