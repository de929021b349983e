"""Sources in this process or on this machine: DuckDB, files, datasets."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.federation.stored import duckdb_file, files

from odfpy.federation.errors import SourceFailed
from odfpy.federation.model.arrow_types import dtype_name
from odfpy.federation.model.connections import DuckdbConnection, FilesConnection
from odfpy.federation.sources.contract import Source
from odfpy.federation.sources.duckdb_file import DuckdbSource
from odfpy.federation.sources.files import FilesSource
from odfpy.testing.sources import TABLES, SourceContract

MEMORY = 1 << 30


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return duckdb_file(tmp_path_factory.mktemp("duckdb"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return files(tmp_path_factory.mktemp("files"))


class TestDuckdb(SourceContract):
    @pytest.fixture
    def source(self, database: Path) -> Source:
        return DuckdbSource("ducks", DuckdbConnection(kind="duckdb", path=str(database)), memory=MEMORY)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Source:
        return DuckdbSource("ducks", DuckdbConnection(kind="duckdb", path=str(tmp_path / "nosuch.db")), memory=MEMORY)

    @pytest.mark.parametrize(
        "sql",
        [
            "SELECT count(*) AS x FROM read_csv('/etc/passwd')",
            "SELECT count(*) AS x FROM '/etc/passwd'",
            "SELECT count(*) AS x FROM glob('/etc/*')",
            "CREATE TABLE x AS SELECT 1 AS x",
            "DELETE FROM typed",
        ],
    )
    def test_nothing_beside_the_database_is_read_and_nothing_changed(self, source: Source, sql: str) -> None:
        with pytest.raises(SourceFailed):
            source.read(sql, pa.schema([("x", pa.int64())])).read_all()


class TestParquet(SourceContract):
    suffix = "parquet"

    @pytest.fixture
    def source(self, folder: Path, tmp_path: Path) -> Source:
        return self.opened(folder, tmp_path)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Source:
        return self.opened(tmp_path / "nosuch", tmp_path)

    def opened(self, folder: Path, scratch: Path) -> Source:
        tables = {name: {"location": str(folder / f"{name}.{self.suffix}"), **self.options(name)} for name in TABLES}
        connection = FilesConnection.model_validate({"kind": "files", "tables": tables})
        return FilesSource("files", connection, copies=scratch / "copies", memory=MEMORY)

    def options(self, name: str) -> dict[str, object]:
        return {}


class TestCsv(TestParquet):
    suffix = "csv"

    def options(self, name: str) -> dict[str, object]:
        return {"columns": {field.name: dtype_name(field.type) for field in TABLES[name].schema}}


class TestNdjson(TestCsv):
    suffix = "ndjson"


def test_parquet_with_texts_as_arrow_rs_lays_them_out(tmp_path: Path) -> None:
    names = pa.array(["N", "R", None], pa.string_view())
    lists = pa.array([["x"], None, []], pa.list_(pa.string_view()))
    table = pa.table({"flag": names, "more": lists, "id": [1, 2, 3]})
    pq.write_table(table, tmp_path / "we[i]rd %41 1.parquet")
    pq.write_table(table.append_column("late", pa.array([7, 8, 9])), tmp_path / "we[i]rd %41 2.parquet")
    tables = {"t": {"location": str(tmp_path), "format": "parquet"}}
    connection = FilesConnection.model_validate({"kind": "files", "tables": tables})
    source = FilesSource("files", connection, copies=tmp_path / "copies", memory=MEMORY)
    wanted = pa.schema([("flag", pa.string()), ("id", pa.int64()), ("late", pa.int64())])
    found = source.read("SELECT flag, id, late FROM t WHERE flag = 'N'", wanted).read_all()
    assert found.to_pylist() == [{"flag": "N", "id": 1, "late": None}, {"flag": "N", "id": 1, "late": 7}]


def test_columns_of_files_that_were_changed_are_looked_up_again(tmp_path: Path) -> None:
    connection = FilesConnection.model_validate(
        {"kind": "files", "tables": {"t": {"location": str(tmp_path / "t.csv")}}}
    )
    source = FilesSource("files", connection, copies=tmp_path / "copies", memory=MEMORY)
    (tmp_path / "t.csv").write_text("a\n1\n")
    assert source.schema("SELECT * FROM t") == source.schema("SELECT * FROM t") == pa.schema([("a", pa.int64())])
    (tmp_path / "t.csv").write_text("a,b\nx,2\n")
    assert source.schema("SELECT * FROM t") == pa.schema([("a", pa.string()), ("b", pa.int64())])
    (tmp_path / "t.csv").unlink()
    with pytest.raises(SourceFailed):
        source.schema("SELECT * FROM t")
