"""Sources in this process or on this machine: DuckDB, files, datasets."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest
from pyarrow import csv

from odfpy.federation.model.arrow_types import dtype_name
from odfpy.federation.model.connections import DuckdbConnection, FilesConnection
from odfpy.federation.sources.contract import Source
from odfpy.federation.sources.duckdb_file import DuckdbSource
from odfpy.federation.sources.files import FilesSource
from odfpy.testing.sources import TABLES, SourceContract

MEMORY = 1 << 30


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("duckdb") / "x.db"
    with duckdb.connect(path) as opened:
        for name, table in TABLES.items():
            opened.register("rows", table)
            opened.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows')
            opened.unregister("rows")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables as files of all formats."""
    place = tmp_path_factory.mktemp("files")
    for name, table in TABLES.items():
        pq.write_table(table, place / f"{name}.parquet", row_group_size=10_000)
        csv.write_csv(table, place / f"{name}.csv")
        rows = (json.dumps(row, default=str) for row in table.to_pylist())
        (place / f"{name}.ndjson").write_text("".join(f"{row}\n" for row in rows))
    return place


class TestDuckdb(SourceContract):
    @pytest.fixture
    def source(self, database: Path) -> Source:
        return DuckdbSource("ducks", DuckdbConnection(kind="duckdb", path=str(database)), memory=MEMORY)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Source:
        return DuckdbSource("ducks", DuckdbConnection(kind="duckdb", path=str(tmp_path / "nosuch.db")), memory=MEMORY)


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
