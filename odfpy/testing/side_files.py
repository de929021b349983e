"""Contract of stores of side files.

A test module inherits the suite and defines how to create a store:

    class TestMine(SideFilesContract):
        def make(self, folder: Path) -> SideFiles:
            return MySideFiles(folder)
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odfpy.chain.stores.side_files import SideFiles
from odfpy.errors import InvalidValue

HEAD_SIG, FIRST, SECOND = "refs/head.sig", "info/signatures/f1620aa", "info/signatures/f1620bb"
BAD_PATHS = (
    "",
    "head",
    "refs",
    "info/",
    "refs/../x",
    "data/x",
    "/refs/x",
    "info/a/b/c",
    "info/.x",
    "refs/é",
    "refs/x\n",
)


class SideFilesContract:
    """Tests of the guarantees that readers and writers rely on.

    Attributes:
        many: number of files; more than `odfpy.files.MANY` for stores that treat many files differently.
    """

    many: int = 300

    def make(self, folder: Path) -> SideFiles:
        """Create an empty store; `folder` is empty and at the suite's disposal."""
        raise NotImplementedError

    @pytest.fixture
    def side(self, tmp_path: Path) -> SideFiles:
        """An empty store."""
        return self.make(tmp_path)

    def test_what_is_not_there_is_none(self, side: SideFiles) -> None:
        assert side.read(HEAD_SIG, 10) is None
        assert list(side.names("info/signatures")) == []
        side.delete(HEAD_SIG)

    def test_a_file_is_written_replaced_and_deleted(self, side: SideFiles) -> None:
        for data in (b"one", b"", b"another"):
            side.write(HEAD_SIG, data)
            assert side.read(HEAD_SIG, 100) == data
        side.delete(HEAD_SIG)
        assert side.read(HEAD_SIG, 100) is None

    def test_no_more_is_read_than_tells_that_it_is_too_long(self, side: SideFiles) -> None:
        side.write(HEAD_SIG, b"0123456789")
        assert side.read(HEAD_SIG, 10) == b"0123456789"
        assert side.read(HEAD_SIG, 9) == b"0123456789"
        assert side.read(HEAD_SIG, 3) == b"0123"

    def test_files_of_a_folder_are_listed_in_order(self, side: SideFiles) -> None:
        for path in (SECOND, HEAD_SIG, FIRST):
            side.write(path, b"x")
        assert list(side.names("info/signatures")) == ["f1620aa", "f1620bb"]
        assert "f1620aa" in side.describe(FIRST)

    def test_many_files_are_written_and_read_together(self, side: SideFiles) -> None:
        for count in (2, self.many):
            files = {f"info/signatures/f1620{number:04x}": b"%d" % number for number in range(count)}
            side.write_all(files)
            assert side.read_all([*files, HEAD_SIG], 10) == files
            side.write_all(dict.fromkeys(files, b"other"))
            assert side.read_all(list(files)[:3], 2) == dict.fromkeys(list(files)[:3], b"oth")

    @pytest.mark.parametrize("path", BAD_PATHS)
    def test_paths_stay_beside_the_chain(self, side: SideFiles, path: str) -> None:
        with pytest.raises(InvalidValue):
            side.read(path, 1)
        with pytest.raises(InvalidValue):
            side.write(path, b"")
        with pytest.raises(InvalidValue):
            side.delete(path)
        with pytest.raises(InvalidValue):
            side.read_all([path], 1)
        with pytest.raises(InvalidValue):
            side.write_all({path: b""})
