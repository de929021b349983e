"""Files of the index: columns of numbers and blocks of bytes, each part with its own checksum.

| part | what |
|---|---|
| chunks | of the columns, 4096 numbers each, and blocks, in the order in which they were written |
| directory | their positions, their CRC-32, the first number of each chunk, and the writer's notes |

`FileInfo`, in the list of files, has the CRC-32 of the directory. So every byte is verified before it is used, and only
what is used is read. Files are read, not mapped: truncating a mapped file would crash the process.
"""

from __future__ import annotations

import json
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final
from zlib import crc32

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from odfpy.data.lru_cache import LruCache

CHUNK: Final = 4096
"""Numbers per chunk."""

_KEPT: Final = 128
"""Chunks per file kept in memory, at most 32 kB each; larger reads bypass the cache."""


class IndexDamaged(Exception):
    """Part of the index is missing or damaged; the index must be rebuilt."""


@contextmanager
def damage_found() -> Iterator[None]:
    """Translate any error caused by a damaged file to `IndexDamaged`."""
    try:
        yield
    except (OSError, pa.ArrowException, ValueError, KeyError, TypeError, IndexError, OverflowError) as error:
        raise IndexDamaged(str(error)) from error


@dataclass(frozen=True, slots=True)
class FileInfo:
    """The entry of a file in the list of files.

    Attributes:
        name: name of the file.
        size: size of the file in bytes.
        directory_at: offset of the directory, which extends to the end.
        checksum: CRC-32 of the directory.
    """

    name: str
    size: int
    directory_at: int
    checksum: int


class CheckedFileWriter:
    """A writer for a file; leaving the context without `finish` removes the file."""

    def __init__(self, path: Path) -> None:
        """Create the file.

        Raises:
            OSError: the file cannot be written; also raised by later writes.
        """
        self._path = path
        self._at = 0
        self._columns: dict[str, tuple[str, int, int]] = {}
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._blocks: list[tuple[int, int, int]] = []
        self._done = False
        self._file = path.open("xb")

    def column(self, name: str, values: npt.NDArray[Any]) -> None:
        """Write a column of numbers."""
        values = np.ascontiguousarray(values)
        self._columns[name] = (values.dtype.str, len(values), self._at)
        chunks = [values[at : at + CHUNK].tobytes() for at in range(0, len(values), CHUNK)]
        self._arrays[f"{name} checksums"] = np.array([crc32(chunk) for chunk in chunks], np.uint32)
        self._arrays[f"{name} firsts"] = values[::CHUNK].copy()
        for chunk in chunks:
            self._write(chunk)

    def block(self, data: bytes | pa.Buffer) -> int:
        """Write a block of bytes and return its number."""
        view = memoryview(data)
        self._blocks.append((self._at, view.nbytes, crc32(view)))
        self._write(view)
        return len(self._blocks) - 1

    def finish(self, notes: dict[str, Any]) -> FileInfo:
        """Complete the file. It is not flushed to disk: files lost in a power failure are detected and rebuilt.

        Args:
            notes: JSON value returned by `CheckedFile.notes`.
        """
        self._arrays["blocks"] = np.array(self._blocks, np.int64).reshape(-1, 3)
        arrays = {name: np.ascontiguousarray(array) for name, array in self._arrays.items()}
        shapes = {name: [array.dtype.str, list(array.shape)] for name, array in arrays.items()}
        head = json.dumps({"columns": self._columns, "arrays": shapes, "notes": notes}).encode()
        directory = b"".join([len(head).to_bytes(8, "little"), head, *(array.tobytes() for array in arrays.values())])
        info = FileInfo(self._path.name, self._at + len(directory), self._at, crc32(directory))
        self._write(directory)
        self._file.close()
        self._done = True
        return info

    def __enter__(self) -> CheckedFileWriter:  # noqa: PYI034 - Self is newer than Python 3.10
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._done:
            with suppress(OSError):  # a full disk cannot accept what is still buffered
                self._file.close()
            self._path.unlink(missing_ok=True)

    def _write(self, data: bytes | memoryview) -> None:
        self._file.write(data)
        self._at += len(data) if isinstance(data, bytes) else data.nbytes


class CheckedFile:
    """A reader for a file, which remains readable after its removal; thread-safe."""

    def __init__(self, folder: Path, info: FileInfo) -> None:
        """Open the file and check its directory.

        Raises:
            FileNotFoundError: there is no such file.
            IndexDamaged: the file is not the one that was written; also raised by later reads.
        """
        self.info = info
        self._kept: LruCache[tuple[str, int], npt.NDArray[Any]] = LruCache(_KEPT)
        try:
            self._descriptor = os.open(folder / info.name, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise IndexDamaged(str(error)) from error
        weakref.finalize(self, os.close, self._descriptor)
        with damage_found():
            if os.fstat(self._descriptor).st_size != info.size:
                raise IndexDamaged(f"{info.name} does not have {info.size} bytes")
            directory = self._read(info.directory_at, info.size - info.directory_at, info.checksum)
            at = 8 + int.from_bytes(directory[:8], "little")
            head = json.loads(directory[8:at])
            self.notes: dict[str, Any] = head["notes"]
            self._columns: dict[str, tuple[str, int, int]] = head["columns"]
            self._arrays: dict[str, npt.NDArray[Any]] = {}
            for name, (kind, shape) in head["arrays"].items():
                count = int(np.prod(shape))
                self._arrays[name] = np.frombuffer(directory, kind, count, at).reshape(shape)
                at += self._arrays[name].nbytes

    def __len__(self) -> int:
        """The number of blocks."""
        return len(self._arrays["blocks"])

    def length(self, column: str) -> int:
        """Return the number of values in a column, 0 if there is no such column."""
        return self._columns[column][1] if column in self._columns else 0

    def block(self, number: int) -> bytes:
        """Return a block."""
        at, size, checksum = self._arrays["blocks"][number].tolist()
        return self._read(at, size, checksum)

    def part(self, column: str, first: int, last: int) -> npt.NDArray[Any]:
        """Return the numbers of a column in a range of positions.

        Args:
            column: name of the column.
            first: position of the first number.
            last: position after the last one.
        """
        if first >= last:
            return np.zeros(0, self._columns[column][0]) if column in self._columns else np.zeros(0, np.int64)
        chunks = range(first // CHUNK, (last - 1) // CHUNK + 1)
        parts = [self._chunk(column, chunk, keep=len(chunks) < _KEPT // 4) for chunk in chunks]
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        begin = chunks.start * CHUNK
        return numbers[first - begin : last - begin]

    def at(self, column: str, places: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return the numbers of a column at given positions, in their order."""
        values = np.zeros(len(places), self._columns[column][0])
        chunks = places // CHUNK
        order = np.argsort(chunks, kind="stable")
        ends = np.flatnonzero(np.diff(chunks[order])) + 1
        for rows in np.split(order, ends):
            if len(rows):
                chunk = int(chunks[rows[0]])
                values[rows] = self._chunk(column, chunk, keep=len(ends) < _KEPT // 4)[places[rows] - chunk * CHUNK]
        return values

    def place(self, column: str, value: int, first: int, last: int, *, right: bool = False) -> int:
        """Return the insertion position of a number in an ascending part of a column.

        Args:
            column: the column.
            value: the number.
            first: start of the part.
            last: end of the part, exclusive.
            right: whether to insert after equal numbers instead of before.
        """
        if first >= last:
            return first
        side: Any = "right" if right else "left"
        begin = first // CHUNK
        heads = self._arrays[f"{column} firsts"][begin + 1 : (last - 1) // CHUNK + 1]
        wanted = np.array(value, heads.dtype)
        chunk = begin + int(np.searchsorted(heads, wanted, side))
        low, high = max(first, chunk * CHUNK), min(last, (chunk + 1) * CHUNK)
        numbers = self._chunk(column, chunk)[low - chunk * CHUNK : high - chunk * CHUNK]
        return low + int(np.searchsorted(numbers, wanted, side))

    def find(self, column: str, wanted: npt.NDArray[Any]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Find numbers in an ascending column without duplicates.

        Args:
            column: the column.
            wanted: ascending numbers.

        Returns:
            Indices into `wanted`, and the positions in the column.
        """
        hits, places = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        if self.length(column) and len(wanted):
            chunks = np.searchsorted(self._arrays[f"{column} firsts"], wanted, "right") - 1
            ends = np.flatnonzero(np.diff(chunks)) + 1
            for first, last in zip([0, *ends.tolist()], [*ends.tolist(), len(wanted)], strict=True):
                chunk = int(chunks[first])
                if chunk < 0:
                    continue
                numbers = self._chunk(column, chunk, keep=len(ends) < _KEPT // 4)
                at = np.minimum(np.searchsorted(numbers, wanted[first:last]), len(numbers) - 1)
                same = np.flatnonzero(numbers[at] == wanted[first:last])
                hits.append(first + same)
                places.append(chunk * CHUNK + at[same])
        return np.concatenate(hits), np.concatenate(places)

    def _chunk(self, column: str, chunk: int, *, keep: bool = True) -> npt.NDArray[Any]:
        if keep:
            return self._kept.get((column, chunk), lambda: self._chunk(column, chunk, keep=False))
        kind, length, at = self._columns[column]
        dtype = np.dtype(kind)
        count = min(CHUNK, length - chunk * CHUNK)
        checksum = int(self._arrays[f"{column} checksums"][chunk])
        return np.frombuffer(self._read(at + chunk * CHUNK * dtype.itemsize, count * dtype.itemsize, checksum), dtype)

    def _read(self, at: int, size: int, checksum: int) -> bytes:
        with damage_found():
            data = os.pread(self._descriptor, size, at)
        if len(data) != size or crc32(data) != checksum:
            raise IndexDamaged(f"{self.info.name}: {size} bytes at {at} are damaged")
        return data
