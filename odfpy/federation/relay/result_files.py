"""Files of a result: rows cut into Parquet files, each small enough to be fetched again when a connection breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from odfpy.data.memory import bytes_of
from odfpy.data.multihash import SHA3_256, Multihash
from odfpy.data.slices.hashing_file import HashingFile

MAX_SIZE: Final = 64 << 20
"""Bytes of Arrow data after which the next file begins."""


@dataclass(frozen=True, slots=True)
class ResultFile:
    """A file of a result.

    Attributes:
        hash: sha3-256 of its bytes.
        bytes: its size in bytes.
        rows: number of its rows.
    """

    hash: Multihash
    bytes: int
    rows: int

    def to_json(self) -> dict[str, Any]:
        """Return the file for `json.dumps`."""
        return {"hash": str(self.hash), "bytes": self.bytes, "rows": self.rows}

    @classmethod
    def parse(cls, tree: Any) -> ResultFile:
        """Parse the result of `to_json`.

        Raises:
            ValueError, TypeError, KeyError, InvalidValue: it is invalid.
        """
        return cls(Multihash.parse(tree["hash"]), int(tree["bytes"]), int(tree["rows"]))


def written_files(
    batches: Iterator[pa.RecordBatch],
    schema: pa.Schema,
    folder: Path,
    keep: Callable[[Path, ResultFile], None],
) -> list[ResultFile]:
    """Write rows into files, at least one.

    Args:
        batches: the rows.
        schema: their columns.
        folder: an existing folder that files are written in.
        keep: called with each complete file, which it moves away.
    """
    import pyarrow.parquet as pq

    written: list[ResultFile] = []
    left: pa.RecordBatch | None = next(batches, None)
    while left is not None or not written:
        path = folder / f"{len(written)}.parquet"
        file = HashingFile(path)
        rows = size = 0
        try:
            with pq.ParquetWriter(file, schema, compression="zstd") as writer:
                while left is not None and size <= MAX_SIZE:
                    writer.write_batch(left)
                    rows, size = rows + left.num_rows, size + bytes_of(left)
                    left = next(batches, None)
            file.finish()
            result_file = ResultFile(Multihash(SHA3_256.code, file.hasher.digest()), file.size, rows)
            keep(path, result_file)
        except BaseException:
            file.discard()
            with suppress(OSError):
                path.unlink(missing_ok=True)
            raise
        written.append(result_file)
    return written
