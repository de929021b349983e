"""Side files of places that are far away: several of them are on their way at the same time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.chain.stores.side_files import MemorySideFiles, SideFiles
from odfpy.repository.side_files import RemoteSideFiles
from odfpy.testing.side_files import FIRST, SECOND, SideFilesContract


class Far(RemoteSideFiles):
    """Files that are asked for one by one; `meet` is called with each question."""

    def __init__(self) -> None:
        self._files = MemorySideFiles()
        self.meet = lambda: None

    def read(self, path: str, limit: int) -> bytes | None:
        self.meet()
        return self._files.read(path, limit)

    def write(self, path: str, data: bytes) -> None:
        self.meet()
        self._files.write(path, data)

    def delete(self, path: str) -> None:
        self._files.delete(path)

    def names(self, folder: str) -> Iterator[str]:
        return self._files.names(folder)


class TestFar(SideFilesContract):
    def make(self, folder: Path) -> SideFiles:
        return Far()


def test_files_are_written_and_read_at_the_same_time():
    side, both = Far(), threading.Barrier(2, timeout=60)
    side.meet = both.wait
    files = {SECOND: b"2", FIRST: b"1"}
    side.write_all(files)
    assert side.read_all(list(files), 10) == files


def test_the_first_error_is_told():
    side = Far()

    def refuse() -> None:
        raise OSError("refused")

    side.meet = refuse
    with pytest.raises(OSError, match="refused"):
        side.read_all([FIRST, SECOND], 10)
    with pytest.raises(OSError, match="refused"):
        side.write_all({FIRST: b"", SECOND: b""})
