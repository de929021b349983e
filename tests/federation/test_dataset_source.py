"""Datasets of the workspace as sources: current, as at a block, as of a time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.federation.stored import ndjson

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.workspace import Workspace
from odfpy.federation.model.documents import LocalData
from odfpy.federation.model.relations import relation_sql
from odfpy.federation.sources.contract import Source
from odfpy.federation.sources.dataset import DatasetSource
from odfpy.federation.sources.opening import SourceContext, open_source
from odfpy.testing.sources import TABLES, SourceContract

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, ddlSchema: {columns}}}
      merge: {{kind: Append}}
"""
KINDS = {
    "int32": "INT",
    "int64": "BIGINT",
    "double": "DOUBLE",
    "decimal128(15, 2)": "DECIMAL(15, 2)",
    "bool": "BOOLEAN",
    "string": "STRING",
    "date32[day]": "DATE",
    "timestamp[us]": "STRING",
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("workspace")
    found = Workspace.init(folder)
    for name, table in TABLES.items():
        columns = [f"`{one.name}` {KINDS[str(one.type)]}" for one in table.schema]
        found.add(load_snapshots(MANIFEST.format(name=name, columns=repr(columns)), name))
        (folder / f"{name}.ndjson").write_text(ndjson(table))
        list(found.ingest(name, [folder / f"{name}.ndjson"]))
    return found


class TestDatasets(SourceContract):
    @pytest.fixture
    def source(self, workspace: Workspace) -> Source:
        return DatasetSource("datasets", workspace.queries.service)

    @pytest.fixture
    def broken(self, tmp_path: Path) -> Source:
        return DatasetSource("datasets", Workspace.init(tmp_path).queries.service)

    def table(self, name: str) -> str:
        columns = ", ".join(self.quoted(one) for one in TABLES[name].column_names)
        return f'(SELECT {columns} FROM "{name}")'


def local_data(connection: Mapping[str, Any], sql: str = "com.example.a") -> LocalData:
    fields = [{"name": "id"}, {"name": "who", "path": "name"}]
    source = {"name": "rows", "source_sql": sql, "fields": fields}
    return LocalData.model_validate(
        {"name": "own", "connection": {"kind": "dataset", **connection}, "data_sources": [source]}
    )


@pytest.mark.parametrize(
    ("connection", "rows"),
    [
        ({}, {(1, "c"), (2, "b")}),
        ({"as_at": "before"}, {(1, "a"), (2, "b")}),
        ({"as_of": "2024-01-01"}, {(1, "a"), (2, "b")}),
        ({"as_at": "before", "as_of": "2024-01-01"}, {(1, "a"), (2, "b")}),
        ({"shown": "changelog"}, {(1, "a"), (2, "b"), (1, "c")}),
        ({"shown": "changelog", "as_at": "before"}, {(1, "a"), (2, "b")}),
    ],
)
def test_a_dataset_as_it_is_or_was(connection: dict[str, str], rows: set[Any], tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.a", "{kind: UpsertStream, primaryKey: [id]}"))
    feed(workspace, "com.example.a", "1 a", "2 b", day=1)
    workspace.branches.create("com.example.a", ReferenceKind.TAG, "before")
    feed(workspace, "com.example.a", "1 c", day=5)
    data = local_data(connection)
    source = open_source(data, SourceContext(workspace.queries.service, workspace.odf))
    relation = relation_sql(data, data.data_sources[0])
    assert source.schema(relation).names == ["id", "who"]
    wanted = pa.schema([("id", pa.int32()), ("who", pa.string())])
    found = source.read(relation, wanted).read_all().to_pylist()
    assert {(row["id"], row["who"]) for row in found} == rows
    source.close()


def test_a_select_means_what_it_means_in_queries(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.a"))
    feed(workspace, "com.example.a", "1 a", "2 b")
    data = local_data({}, "SELECT max(id) AS id, 'x' AS name FROM \"com.example.a\"")
    source = open_source(data, SourceContext(workspace.queries.service, workspace.odf))
    wanted = pa.schema([("id", pa.int64()), ("who", pa.string())])
    found = source.read(relation_sql(data, data.data_sources[0]), wanted).read_all()
    assert found.to_pylist() == [{"id": 2, "who": "x"}]
