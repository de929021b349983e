"""Tables of files over the protocol: folders of Parquet files, Delta and Iceberg tables."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.sql import SqlCatalog
from serving.sharing.conftest import Shared
from support.processes.pandas_client import PandasClient
from support.shared_tables import in_order

from odfpy.sharing.checked import shared_files
from odfpy.sharing.model import SourceKind
from odfpy.sharing.names import SharePath

ROWS = pa.table({"id": [1, 2, 3], "country": ["DE", "FR", "DE"], "name": ["Ann", "Bob", "Cid"]})
TABLES = "shares/files/schemas/main/tables"


@pytest.fixture(scope="module")
def files(shared: Shared, tmp_path_factory: pytest.TempPathFactory) -> Shared:
    """The same rows as tables of each kind, for `whole`, `german` (some rows) and `cells` (some cells)."""
    folder = tmp_path_factory.mktemp("files")
    pq.write_to_dataset(ROWS, folder / "parquet", partition_cols=["country"])
    write_deltalake(
        folder / "delta", ROWS, partition_by=["country"], configuration={"delta.enableChangeDataFeed": "true"}
    )
    catalog = SqlCatalog("tests", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/iceberg")
    catalog.create_namespace("eu")
    table = catalog.create_table("eu.people", ROWS.schema)
    table.append(ROWS)
    catalog.engine.dispose()
    places = {
        SourceKind.PARQUET: str(folder / "parquet"),
        SourceKind.DELTA: str(folder / "delta"),
        SourceKind.ICEBERG: table.metadata_location.removeprefix("file://"),
    }
    shared.sharing.shares.add_share("files")
    for kind, place in places.items():
        shared.sharing.shares.add_table(SharePath("files", "main", kind.value), shared_files(kind, place))
    share = SharePath("files")
    shared.recipient("whole", path=share)
    shared.recipient("german", path=share, rows="country = 'DE'")
    shared.recipient("cells", path=share, columns=["id"])
    shared.sharing.grants.add("cells", share, columns=["country", "name"], rows="id = 1")
    return shared


def rows_of(shared: Shared, lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of an answer, with the values of partitions as text."""
    names = [field["name"] for field in json.loads(lines[1]["metaData"]["schemaString"])["fields"]]
    found = []
    for line in lines[2:]:
        ((kind, action),) = line.items()
        beside = action["partitionValues"]
        assert set(beside) == set(lines[1]["metaData"]["partitionColumns"])
        answer = shared.ask(action["url"], None)
        assert answer.status == 200
        for row in pq.read_table(io.BytesIO(answer.body)).to_pylist():
            seen = {name: row.get(name) for name in names} | beside
            found.append(seen if kind == "file" else {**seen, "_change_type": row.get("_change_type", kind)})
    return in_order(found)


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_everybody_gets_their_rows(files: Shared, kind: str) -> None:
    def seen(who: str) -> list[dict[str, Any]]:
        return rows_of(files, files.lines(f"{TABLES}/{kind}/query", who, {}))

    rows = ROWS.to_pylist()
    order = [{name: row[name] for name in seen("whole")[0]} for row in rows]
    assert seen("whole") == in_order(order)
    assert seen("german") == in_order(row for row in order if row["country"] == "DE")
    cells = [{name: value if name == "id" or row["id"] == 1 else None for name, value in row.items()} for row in order]
    assert seen("cells") == in_order(cells)


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_values_of_partitions_tell_nothing_of_hidden_cells(files: Shared, kind: str) -> None:
    for who in ("german", "cells"):
        lines = files.lines(f"{TABLES}/{kind}/query", who, {})
        assert lines[1]["metaData"]["partitionColumns"] == []
        assert all(line["file"]["partitionValues"] == {} for line in lines[2:])
        stats = [json.loads(line["file"]["stats"]) for line in lines[2:]]
        bounds = {one[bound].get("country") for one in stats for bound in ("minValues", "maxValues")}
        assert bounds <= {"DE", None}


def test_a_new_version_of_a_delta_table(files: Shared) -> None:
    place = next(table for table in files.sharing.shares.tables() if table.path.table == "delta").source.location
    before = int(files.ask(f"{TABLES}/delta/version", "whole").headers["delta-table-version"])
    DeltaTable(place).update(predicate="id = 1", updates={"name": "'Anna'"})
    assert files.ask(f"{TABLES}/delta/version", "whole").headers["delta-table-version"] == str(before + 1)
    changes = rows_of(files, files.lines(f"{TABLES}/delta/changes?startingVersion={before + 1}", "whole"))
    assert {(row["_change_type"], row["name"]) for row in changes} == {
        ("update_preimage", "Ann"),
        ("update_postimage", "Anna"),
    }
    old = rows_of(files, files.lines(f"{TABLES}/delta/query", "whole", {"version": before}))
    assert "Ann" in {row["name"] for row in old}
    DeltaTable(place).update(predicate="id = 1", updates={"name": "'Ann'"})


def test_a_folder_of_parquet_files_has_no_changes(files: Shared) -> None:
    version = files.ask(f"{TABLES}/parquet/version", "whole").headers["delta-table-version"]
    lines = files.lines(f"{TABLES}/parquet/metadata", "whole")
    assert lines[1]["metaData"]["configuration"] == {}
    answer = files.ask(f"{TABLES}/parquet/changes?startingVersion={version}", "whole")
    assert (answer.status, "has no change data" in answer.json["message"]) == (400, True)


def test_grants_name_columns_that_a_table_or_its_older_files_lack(files: Shared, tmp_path: Path) -> None:
    pq.write_table(pa.table({"id": [1, 2]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"id": [3, 4], "country": ["DE", "FR"]}), tmp_path / "b.parquet")
    path = SharePath("files", "grown", "people")
    files.sharing.shares.add_table(path, shared_files(SourceKind.PARQUET, str(tmp_path)))
    files.recipient("grown", path=path, rows="country = 'DE' OR country IS NULL AND id = 1")
    files.sharing.grants.add("grown", SharePath("files"), rows="region = 'EU'")
    found = rows_of(files, files.lines("shares/files/schemas/grown/tables/people/query", "grown", {}))
    assert found == [{"id": 1, "country": None}, {"id": 3, "country": "DE"}]
    files.recipient("elsewhere", path=SharePath("files"), rows="region = 'EU'")
    for answer in (
        files.ask("shares/files/schemas/grown/tables/people/metadata", "elsewhere"),
        files.ask("shares/files/schemas/grown/tables/people/query", "elsewhere", {}),
    ):
        assert (answer.status, answer.json["errorCode"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_a_table_that_is_gone(files: Shared, tmp_path: Path) -> None:
    pq.write_table(ROWS, tmp_path / "a.parquet")
    source = shared_files(SourceKind.PARQUET, str(tmp_path))
    files.sharing.shares.add_table(SharePath("files", "gone", "table"), source)
    (tmp_path / "a.parquet").unlink()
    (tmp_path / "a.parquet").symlink_to("/etc/hostname")
    answer = files.ask("shares/files/schemas/gone/tables/table/metadata", "whole")
    assert answer.status == 404
    assert str(tmp_path) not in answer.body.decode()


@pytest.mark.parametrize("use_delta_format", [False, True])
@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_pandas_reads_them(
    files: Shared, pandas: PandasClient, tmp_path: Path, kind: str, use_delta_format: bool
) -> None:
    def seen(who: str) -> list[tuple[int, str | None]]:
        asked = {"profile": files.profile(who, tmp_path), "share": "files", "table": kind}
        rows = pandas.ask("rows", options={"use_delta_format": use_delta_format}, **asked)
        return sorted((row["id"], row["country"]) for row in rows)

    assert seen("whole") == [(1, "DE"), (2, "FR"), (3, "DE")]
    assert seen("german") == [(1, "DE"), (3, "DE")]
    assert seen("cells") == [(1, "DE"), (2, None), (3, None)]
