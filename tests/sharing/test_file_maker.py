"""Files made for shared tables are kept within a limit."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.decisions import View, VisiblePart
from odfpy.sharing.files.maker import FileMaker, ServedFile
from odfpy.sharing.tables.contract import TableFile, TableVersion
from odfpy.sharing.tables.difference import with_live

ROWS = 100
SCHEMA = pa.schema([pa.field("n", pa.int64())])


@pytest.fixture
def whole(tmp_path: Path) -> TableFile:
    """A file of a table."""
    path = tmp_path / "whole.parquet"
    pq.write_table(pa.table({"n": range(ROWS)}, schema=SCHEMA), path)
    return TableFile("whole", path.stat().st_size, TableVersion(1, Timestamp.now()), path, num_rows=ROWS)


def made(maker: FileMaker, whole: TableFile, number: int) -> ServedFile:
    """The file without one of its rows."""
    live = np.ones(ROWS, np.bool_)
    live[number] = False
    found = maker.served(with_live(whole, live), SCHEMA)
    assert found is not None
    return found


def test_what_was_used_last_is_kept(tmp_path: Path, whole: TableFile) -> None:
    size = made(FileMaker(tmp_path / "one", 1), whole, 0).size
    folder, most = tmp_path / "made", 20 * size
    maker = FileMaker(folder, most)
    for number in range(60):
        newest = made(maker, whole, number)
        assert newest.path.exists()
        assert sum(path.stat().st_size for path in folder.glob("*/*.parquet")) <= most
    assert len(list(folder.glob("*/*.parquet"))) >= 16


def test_many_files_are_not_looked_through_for_each_one(
    tmp_path: Path, whole: TableFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, tidy = [], FileMaker.tidy
    monkeypatch.setattr(FileMaker, "tidy", lambda maker: looked.append(1) or tidy(maker))
    maker = FileMaker(tmp_path / "made", 2**30)
    for number in range(60):
        made(maker, whole, number)
    assert len(looked) == 1


def test_a_file_that_others_remove_at_once_is_made_again(
    tmp_path: Path, whole: TableFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process, which has a smaller limit, makes room for its own file."""
    folder = tmp_path / "made"

    def removed(_: FileMaker) -> None:
        for path in folder.glob("*/*.parquet"):
            path.unlink()

    with monkeypatch.context() as patch:
        patch.setattr(FileMaker, "tidy", removed)
        first = made(FileMaker(folder, 1), whole, 0)
    assert not first.path.exists()
    again = made(FileMaker(folder, 2**30), whole, 0)
    assert (again, again.path.stat().st_size) == (first, first.size)


def test_a_column_that_is_large_only_when_it_is_read_takes_no_memory(tmp_path: Path) -> None:
    """A megabyte once in the file, and in each of 1 500 rows: 1.5 GB, if somebody writes it out."""
    text = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1_500, np.int32)), pa.array(["x" * 2**20]))
    pq.write_table(pa.table({"id": np.arange(1_500), "text": text}), tmp_path / "bomb.parquet", store_schema=False)
    assert (tmp_path / "bomb.parquet").stat().st_size < 2**20
    schema = pa.schema([("id", pa.int64()), ("text", pa.string())])
    size = (tmp_path / "bomb.parquet").stat().st_size
    bomb = TableFile("bomb", size, TableVersion(1, Timestamp.from_millis(0)), tmp_path / "bomb.parquet")
    pool = pa.system_memory_pool()
    before = pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        found = FileMaker(tmp_path / "made", 2**30).served(bomb, schema, View((VisiblePart(None, "id = 1499"),)))
        assert found is not None
        assert isinstance(found.path, Path)
        assert pq.read_table(found.path).column("id").to_pylist() == [1_499]
        assert 0 < pool.max_memory() < 2**29
    finally:
        pa.set_memory_pool(before)
