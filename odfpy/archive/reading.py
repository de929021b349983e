"""Content read from a store, hashed while it is read, so that readers only get the archived bytes."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from odfpy.archive.errors import WrongContent

if TYPE_CHECKING:
    from odfpy.archive.record import FileRecord


def checked_stream(stream: BinaryIO, record: FileRecord, where: str) -> BinaryIO:
    """Wrap the stream of a file's content. The last read fails if the bytes differ from those of the record.

    Args:
        stream: the bytes from the beginning; closed with the result.
        record: record of the file.
        where: location of the file, for messages.
    """
    return cast("BinaryIO", io.BufferedReader(_Checked(stream, record, where), 1 << 20))


class _Checked(io.RawIOBase):
    """A stream that counts and hashes its bytes while it is read."""

    def __init__(self, stream: BinaryIO, record: FileRecord, where: str) -> None:
        super().__init__()
        self._stream = stream
        self._record = record
        self._where = where
        self._hasher = record.object.algorithm.hasher()
        self._count = 0
        self._is_checked = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        # One byte is held back until all are verified: a reader of exactly `size` bytes would otherwise never reach the
        # end of the stream, and never notice wrong content.
        left = self._record.size - self._count
        wanted = min(len(view), left - 1) if left > 1 else min(len(view), max(left, 1))
        data = self._stream.read(wanted)
        self._hasher.update(data)
        self._count += len(data)
        if not data or self._count >= self._record.size:
            self._check(at_end=not data)
        view[: len(data)] = data
        return len(data)

    def _check(self, *, at_end: bool) -> None:
        if self._is_checked:
            return
        self._is_checked = True
        is_short = at_end and self._count < self._record.size
        if is_short or self._stream.read(1) or self._hasher.digest() != self._record.object.digest:
            raise WrongContent(
                f"{self._where}: the bytes differ from those that were archived as {self._record.path}"
                f" ({self._record.id}): {self._record.size} bytes with the hash {self._record.object}",
                hint="`odf verify --repair` fetches them again from another copy.",
            )

    def close(self) -> None:
        if not self.closed:
            self._stream.close()
        super().close()
