"""Runs: sorted files of a key index or of an arrangement, with entries ordered by fingerprint.

A run is a sequence of blocks, followed by a directory to find and check them:

| part | content |
|---|---|
| block | the fingerprints, 8 bytes each, then the rows as an Arrow record batch |
| schema | schema of the rows, as an Arrow message |
| directory | for each block its minimum fingerprint, offset, sizes, and the BLAKE3 hashes of both parts |

`RunInfo`, which is stored in the index or the manifest, has the BLAKE3 hash of schema and directory. So every byte is
checked before it is used, and only the required parts are read: files are memory-mapped, and blocks that cannot match
are not accessed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import pyarrow as pa

from odfpy.data.memory import from_numpy
from odfpy.data.multihash import BLAKE3
from odfpy.data.scalars import U64
from odfpy.state.fingerprints import Entries, Fingerprints, Places, places_of
from odfpy.values import dataclass

_ALIGNMENT = 64
_DIRECTORY = np.dtype(
    [
        ("first", "<u8"),
        ("at", "<u8"),
        ("entries", "<u4"),
        ("rows_size", "<u8"),
        ("fingerprints_hash", "V32"),
        ("rows_hash", "V32"),
    ]
)


class StateDamaged(Exception):
    """Signals that a part of a key index or arrangement is missing or damaged; it has to be rebuilt."""


@contextlib.contextmanager
def damage_found() -> Iterator[None]:
    """Convert all errors that damaged files can cause to `StateDamaged`."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise StateDamaged(str(error)) from error


@dataclass(frozen=True, slots=True)
class RunInfo:
    """The description of a run, stored in the index or the manifest.

    Attributes:
        name: name of the file.
        rows: number of entries.
        size: size of the file in bytes.
        schema_at: offset of the schema.
        directory_at: offset of the directory, which extends to the end of the file.
        digest: BLAKE3 of schema and directory, in hexadecimal.
    """

    name: str
    rows: U64
    size: U64
    schema_at: U64
    directory_at: U64
    digest: str


class RunWriter:
    """Writer of a run; leaving the context without `finish` removes the file."""

    def __init__(self, path: Path, schema: pa.Schema, block_rows: int) -> None:
        """Create the file.

        Args:
            path: path of a new file.
            schema: schema of the rows.
            block_rows: maximum number of entries of a block: the amount that is read to look up one key.

        Raises:
            OSError: the file cannot be written, now or later.
        """
        self._path = path
        self._schema = schema
        self._block_rows = block_rows
        self._directory: list[tuple[Any, ...]] = []
        self._at = 0
        self._rows = 0
        self._done = False
        self._file = path.open("xb")

    def write(self, entries: Entries) -> None:
        """Append entries; their fingerprints must not be less than earlier ones."""
        start = 0
        for batch in entries.rows.to_batches(self._block_rows):
            fingerprints = entries.fingerprints[start : start + batch.num_rows]
            if len(fingerprints):
                self._write_block(np.ascontiguousarray(fingerprints, "<u8"), batch)
            start += batch.num_rows

    def finish(self) -> RunInfo:
        """Complete the file. It is not synced to disk: damage by a power loss is detected, and the file rebuilt."""
        schema_at = self._at
        schema = self._schema.serialize().to_pybytes()
        directory = np.array(self._directory, _DIRECTORY).tobytes()
        self._file.write(schema)
        self._file.write(directory)
        self._file.close()
        self._done = True
        size = schema_at + len(schema) + len(directory)
        digest = _hash(schema + directory).hex()
        return RunInfo(self._path.name, self._rows, size, schema_at, schema_at + len(schema), digest)

    def __enter__(self) -> RunWriter:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            with contextlib.suppress(OSError):  # a full disk cannot store buffered data
                self._file.close()
            self._path.unlink(missing_ok=True)

    def _write_block(self, fingerprints: Fingerprints, batch: pa.RecordBatch) -> None:
        head, rows = fingerprints.tobytes(), memoryview(batch.serialize())
        self._directory.append((fingerprints[0], self._at, len(fingerprints), rows.nbytes, _hash(head), _hash(rows)))
        padding = -(len(head) + rows.nbytes) % _ALIGNMENT
        for part in (head, rows, bytes(padding)):
            self._file.write(part)
        self._at += len(head) + rows.nbytes + padding
        self._rows += len(fingerprints)


class SortedRun:
    """A run opened for reading."""

    def __init__(self, folder: Path, info: RunInfo) -> None:
        """Open the file and check its schema and directory.

        Raises:
            StateDamaged: the file is missing or damaged; later reads may raise it, too.
        """
        self.info = info
        with damage_found():
            self._bytes = _mapped(folder / info.name)
            if self._bytes.size != info.size:
                raise StateDamaged(f"{info.name} has {self._bytes.size} bytes, not {info.size}")
            end = self._bytes[info.schema_at :]
            if _hash(memoryview(end)).hex() != info.digest:
                raise StateDamaged(f"{info.name}: the directory is damaged")
            self.schema = pa.ipc.read_schema(end[: info.directory_at - info.schema_at])
            self._directory = np.frombuffer(end[info.directory_at - info.schema_at :], _DIRECTORY)
            self._firsts: Fingerprints = np.ascontiguousarray(self._directory["first"])

    def all(self) -> Entries:
        """Return all entries."""
        return self._entries(range(len(self._directory)))

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows of all entries, one block at a time."""
        return map(self._rows, range(len(self._directory)))

    def between(self, low: int, high: int | None) -> Entries:
        """Return entries with fingerprints from `low` up to, but not including, `high`; None for the end."""
        # Equal fingerprints may be on both sides of a block boundary.
        first = max(0, int(np.searchsorted(self._firsts, np.uint64(low))) - 1)
        last = len(self._firsts) if high is None else int(np.searchsorted(self._firsts, np.uint64(high)))
        return self._entries(range(first, last)).between(low, high)

    def matching(self, wanted: Fingerprints) -> Entries:
        """Return entries with one of the given fingerprints, which are ascending and distinct."""
        blocks = self._touched(wanted)
        known = np.concatenate([np.empty(0, np.uint64), *map(self._fingerprints, blocks)])
        places = places_of(wanted, known)
        # Rows are taken from all blocks with matches at once, which is faster than block by block. Positions count
        # across all blocks, so the sizes of blocks that are not read are subtracted.
        sizes = self._directory["entries"][blocks].astype(np.int64)
        ends = np.cumsum(sizes)
        read, block_of = np.unique(np.searchsorted(ends, places, side="right"), return_inverse=True)
        left_out = ends[read] - np.cumsum(sizes[read])
        rows = pa.Table.from_batches(map(self._rows, blocks[read]), self.schema)
        return Entries(known[places], rows.take(from_numpy(places - left_out[block_of])))

    # --- Blocks ---

    def _touched(self, wanted: Fingerprints) -> Places:
        """Return the indices of blocks that may have one of the given fingerprints."""
        left = np.maximum(np.searchsorted(self._firsts, wanted) - 1, 0)
        right = np.searchsorted(self._firsts, wanted, side="right")
        starts = np.zeros(len(self._firsts) + 1, np.int64)
        np.add.at(starts, left, 1)
        np.subtract.at(starts, right, 1)
        return np.flatnonzero(np.cumsum(starts[:-1]) > 0)

    def _entries(self, blocks: range) -> Entries:
        fingerprints = [np.empty(0, np.uint64), *map(self._fingerprints, blocks)]
        return Entries(np.concatenate(fingerprints), pa.Table.from_batches(map(self._rows, blocks), self.schema))

    def _fingerprints(self, block: int) -> Fingerprints:
        entry = self._directory[block]
        with damage_found():
            part = self._checked(int(entry["at"]), 8 * int(entry["entries"]), entry["fingerprints_hash"])
            fingerprints: Fingerprints = np.frombuffer(part, "<u8")
            return fingerprints

    def _rows(self, block: int) -> pa.RecordBatch:
        entry = self._directory[block]
        with damage_found():
            at = int(entry["at"]) + 8 * int(entry["entries"])
            part = self._checked(at, int(entry["rows_size"]), entry["rows_hash"])
            return pa.ipc.read_record_batch(part, self.schema)

    def _checked(self, at: int, size: int, digest: np.void) -> pa.Buffer:
        part = self._bytes[at : at + size]
        if _hash(memoryview(part)) != digest.tobytes():
            raise StateDamaged(f"{self.info.name}: {size} bytes at {at} are damaged")
        return part


def _mapped(path: Path) -> pa.Buffer:
    with pa.memory_map(str(path)) as file:
        return file.read_buffer()


def _hash(data: bytes | memoryview) -> bytes:
    hasher = BLAKE3.hasher()
    hasher.update(data)
    return hasher.digest()
