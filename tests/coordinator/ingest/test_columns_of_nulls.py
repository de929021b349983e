"""Columns of only nulls have any type: they fit what is recorded, and new ones wait until a value comes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.data.schemas.arrow import to_arrow
from odfpy.errors import BadValue, SchemaError

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: rows
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {read}
      {preprocess}
      merge: {merge}
"""
QUERY = 'preprocess: {kind: Sql, engine: %s, query: "select * from input"}'
Rows = list[dict[str, Any]]


def ndjson(rows: Rows, file: Path) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def document(rows: Rows, file: Path) -> None:
    file.write_text(json.dumps(rows), encoding="utf-8")


def csv(rows: Rows, file: Path) -> None:
    lines = [",".join("" if value is None else str(value) for value in row.values()) for row in rows]
    file.write_text("\n".join([",".join(rows[0]), *lines]), encoding="utf-8")


def features(rows: Rows, file: Path) -> None:
    ndjson([{"type": "Feature", "geometry": None, "properties": row} for row in rows], file)


def parquet(rows: Rows, file: Path) -> None:
    pq.write_table(pa.Table.from_pylist(rows), file)


Writer = Callable[[Rows, Path], None]
FLAT: dict[str, Writer] = {
    "{kind: Csv, header: true, inferSchema: true}": csv,
    "{kind: NdJson}": ndjson,
    "{kind: Json}": document,
    "{kind: NdGeoJson}": features,
    "{kind: Parquet}": parquet,
}
NESTED = {read: write for read, write in FLAT.items() if write is not csv}


def dataset(folder: Path, read: str, preprocess: str = "", merge: str = "{kind: Append}") -> Workspace:
    return workspace_with(folder, MANIFEST.format(read=read, preprocess=preprocess, merge=merge))


def types(workspace: Workspace) -> dict[str, str]:
    """The types of the data columns."""
    schema = workspace.datasets.state("rows").schema
    assert schema is not None
    return {field.name: str(field.type) for field in list(to_arrow(schema))[4:] if field.name != "geometry"}


def take_in(workspace: Workspace, write: Writer, *rows: dict[str, Any]) -> dict[str, str]:
    """Types of the columns after some rows."""
    file = workspace.root / "input"
    write(list(rows), file)
    list(workspace.ingest("rows", [file]))
    return types(workspace)


@pytest.mark.parametrize("preprocess", ["", QUERY % "datafusion"], ids=["as it is", "queried"])
@pytest.mark.parametrize(("read", "write"), FLAT.items(), ids=[write.__name__ for write in FLAT.values()])
def test_a_first_column_of_nulls_waits_and_later_ones_have_the_recorded_type(
    tmp_path: Path, read: str, write: Writer, preprocess: str
) -> None:
    workspace = dataset(tmp_path, read, preprocess)
    assert take_in(workspace, write, {"id": 1, "x": None}) == {"id": "int64"}
    assert take_in(workspace, write, {"id": 2, "x": 5}) == {"id": "int64", "x": "int64"}
    assert take_in(workspace, write, {"id": 3, "x": None, "y": None}) == {"id": "int64", "x": "int64"}
    assert take_in(workspace, write, {"id": 4, "x": 6, "y": "a"}) == {"id": "int64", "x": "int64", "y": "string"}
    rows = workspace.tail("rows").select(["id", "x", "y"]).to_pylist()
    assert rows == [
        {"id": 1, "x": None, "y": None},
        {"id": 2, "x": 5, "y": None},
        {"id": 3, "x": None, "y": None},
        {"id": 4, "x": 6, "y": "a"},
    ]
    (report,) = workspace.verify(["rows"])
    assert report.ok, report.findings


@pytest.mark.parametrize("preprocess", ["", QUERY % "datafusion"], ids=["as it is", "queried"])
@pytest.mark.parametrize(("read", "write"), NESTED.items(), ids=[write.__name__ for write in NESTED.values()])
def test_members_of_structs_wait_too(tmp_path: Path, read: str, write: Writer, preprocess: str) -> None:
    workspace = dataset(tmp_path, read, preprocess)
    assert take_in(workspace, write, {"id": 1, "s": {"a": 1, "b": None}})["s"] == "struct<a: int64>"
    assert take_in(workspace, write, {"id": 2, "s": {"a": None, "b": 1.5}})["s"] == "struct<a: int64, b: double>"
    assert take_in(workspace, write, {"id": 3, "s": {"a": 2, "b": None}})["s"] == "struct<a: int64, b: double>"
    rows = [row["s"] for row in workspace.tail("rows").to_pylist()]
    assert rows == [{"a": 1, "b": None}, {"a": None, "b": 1.5}, {"a": 2, "b": None}]
    (report,) = workspace.verify(["rows"])
    assert report.ok, report.findings


@pytest.mark.spark
def test_columns_of_nulls_pass_queries_of_spark(tmp_path: Path) -> None:
    """But members of structs are text there, which has no type for nulls inside of others."""
    workspace = dataset(tmp_path, "{kind: NdJson}", QUERY % "spark")
    nulls = {"id": 1, "x": None, "s": {"a": 1, "b": None}}
    struct = "struct<a: int64, b: string>"
    assert take_in(workspace, ndjson, nulls) == {"id": "int64", "s": struct}
    workspace.config.set("ingest.lane", "spark")
    assert take_in(workspace, ndjson, {**nulls, "id": 2}) == {"id": "int64", "s": struct}
    assert take_in(workspace, ndjson, {**nulls, "x": 3}) == {"id": "int64", "s": struct, "x": "int64"}
    assert take_in(workspace, ndjson, nulls) == {"id": "int64", "s": struct, "x": "int64"}


def test_an_unused_column_of_nulls_makes_no_change_of_a_state(tmp_path: Path) -> None:
    workspace = dataset(tmp_path, "{kind: NdJson}", merge="{kind: Snapshot, primaryKey: [id], compareColumns: [x]}")
    take_in(workspace, ndjson, {"id": 1, "x": None}, {"id": 2, "x": None})
    take_in(workspace, ndjson, {"id": 1, "x": None}, {"id": 2, "x": 5})
    assert workspace.tail("rows").select(["op", "id", "x"]).to_pylist() == [
        {"op": 0, "id": 1, "x": None},
        {"op": 0, "id": 2, "x": None},
        {"op": 2, "id": 2, "x": None},
        {"op": 3, "id": 2, "x": 5},
    ]


def test_operations_that_are_null_are_refused_by_name(tmp_path: Path) -> None:
    workspace = dataset(tmp_path, "{kind: NdJson}", merge="{kind: UpsertStream, primaryKey: [id]}")
    with pytest.raises(BadValue, match=r"Column 'op' holds None in row 1, which is not an operation type"):
        take_in(workspace, ndjson, {"id": 1, "op": None})


def test_what_has_a_type_is_still_refused(tmp_path: Path) -> None:
    workspace = dataset(tmp_path, "{kind: NdJson}")
    take_in(workspace, ndjson, {"id": 1, "x": 1})
    with pytest.raises(SchemaError, match=r"'x' is String .* Int64 is recorded"):
        take_in(workspace, ndjson, {"id": 1, "x": "1"})


def test_a_header_alone_tells_no_types(tmp_path: Path) -> None:
    workspace = dataset(tmp_path, "{kind: Csv, header: true, inferSchema: true}")
    (tmp_path / "input").write_text("id,x\n")
    list(workspace.ingest("rows", [tmp_path / "input"]))
    assert workspace.datasets.state("rows").schema is None
    assert take_in(workspace, csv, {"id": 1, "x": 2}) == {"id": "int64", "x": "int64"}
