"""Stores of side files: the contract for each of them, and what is special about files."""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.chain.stores.side_files import LocalSideFiles, MemorySideFiles, SideFiles
from odfpy.errors import OdfError
from odfpy.testing.side_files import FIRST, SideFilesContract


class TestLocal(SideFilesContract):
    def make(self, folder: Path) -> SideFiles:
        return LocalSideFiles(folder / "dataset")


class TestMemory(SideFilesContract):
    def make(self, folder: Path) -> SideFiles:
        return MemorySideFiles()


def test_what_a_killed_writer_has_left_is_no_file_and_can_be_removed(tmp_path: Path):
    side = LocalSideFiles(tmp_path)
    side.write(FIRST, b"x")
    left = tmp_path / "info" / "signatures" / ".tmp-1"
    left.write_bytes(b"half")
    assert list(side.names("info/signatures")) == ["f1620aa"]
    side.clean()
    assert not left.exists()


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    (tmp_path / "info").write_text("in the way")
    with pytest.raises(OdfError, match="Cannot write"):
        LocalSideFiles(tmp_path).write(FIRST, b"x")
    (tmp_path / "refs").mkdir()
    (tmp_path / "refs" / "folder").mkdir()
    with pytest.raises(OdfError, match="Cannot read"):
        LocalSideFiles(tmp_path).read("refs/folder", 1)
