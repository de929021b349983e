"""Datasets that other writers began in forms that ours do not have are continued in these forms."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import AddData, DataSlice, SetDataSchema
from odfpy.coordinator.storage.commit import commit_time
from odfpy.coordinator.workspace import Workspace
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.data.schemas.system_columns import system_columns_first
from odfpy.data.slices.writer import SliceWriter
from odfpy.data.timestamp import Timestamp

DAY = Timestamp.parse("2024-01-01T00:00:00Z")
TIME = odf.Timestamp(odf.TimeUnit.MILLISECOND, "UTC")


def recorded(offset: DataType, op: DataType, *, order: str = "offset op system_time event_time id name") -> DataSchema:
    types = {"offset": offset, "op": op, "system_time": TIME, "event_time": TIME, "id": odf.Int64()}
    return DataSchema(tuple(DataField(name, types.get(name, odf.Option(odf.String()))) for name in order.split()))


def begin(folder: Path, schema: DataSchema, merge: str) -> Workspace:
    """A dataset with one row, `1 x`, whose schema and slice are as somebody else wrote them."""
    workspace = workspace_with(folder, root("a", merge))
    with workspace.storage.get("a").writing() as dataset:
        state = dataset.state
        form = system_columns_first(schema, state.vocab)
        row = {
            "offset": 0,
            "op": 0,
            "system_time": DAY.to_datetime(),
            "event_time": DAY.to_datetime(),
            "id": 1,
            "name": "x",
        }
        with SliceWriter(folder / "slice", form, state.vocab) as writer:
            writer.write(pa.Table.from_pylist([row], to_arrow(form)))
            info = writer.finish()
        data = DataSlice(info.logical_hash, info.physical_hash, OffsetInterval(0, 0), info.size)
        new = dataset.chain.prepare(
            state, [SetDataSchema(schema=schema), AddData(new_data=data, new_watermark=DAY)], commit_time(state)
        )
        dataset.layout.data.insert_file(folder / "slice", data.physical_hash)
        dataset.chain.commit(new)
    return workspace


def slices(workspace: Workspace) -> list[pa.Schema]:
    files = sorted((workspace.odf / "datasets").rglob("data/*"), key=lambda path: path.stat().st_mtime_ns)
    return [pq.read_schema(path) for path in files]


MERGES = {
    "Append": ("{kind: Append}", ["+A 1 x", "+A 1 y", "+A 2 z"]),
    "Ledger": ("{kind: Ledger, primaryKey: [id]}", ["+A 1 x", "+A 2 z"]),
    "Snapshot": ("{kind: Snapshot, primaryKey: [id]}", ["+A 1 x", "-C 1 x", "+C 1 y", "+A 2 z"]),
    "UpsertStream": ("{kind: UpsertStream, primaryKey: [id]}", ["+A 1 x", "-C 1 x", "+C 1 y", "+A 2 z"]),
}


@pytest.mark.parametrize(
    "types", [(odf.UInt64(), odf.UInt8()), (odf.Int64(), odf.UInt8()), (odf.UInt64(), odf.Int32())]
)
@pytest.mark.parametrize("merge", MERGES)
def test_unsigned_offsets_and_operation_types_stay_unsigned(
    tmp_path: Path, merge: str, types: tuple[DataType, DataType]
):
    schema = recorded(*types)
    workspace = begin(tmp_path, schema, MERGES[merge][0])
    feed(workspace, "a", "1 y", "2 z", day=2)
    assert rows(workspace, "a") == MERGES[merge][1]
    assert workspace.datasets.state("a").schema == schema
    assert [found.equals(to_arrow(schema)) for found in slices(workspace)] == [True, True]
    (report,) = workspace.verify(["a"])
    assert report.ok, report.findings
    (after,) = workspace.sql('select max("offset") as n from a', engine="datafusion").to_pylist()
    assert after["n"] == len(MERGES[merge][1]) - 1


def test_what_is_derived_from_such_datasets_has_signed_columns(tmp_path: Path):
    workspace = begin(tmp_path, recorded(odf.UInt64(), odf.UInt8()), MERGES["Snapshot"][0])
    workspace.add(load_snapshots(derivative("d", "a", "select op, event_time, id, name from source"), "d.yaml"))
    feed(workspace, "a", "1 y", day=2)
    (result,) = workspace.pull(["d"])
    assert result.error is None
    assert rows(workspace, "d") == rows(workspace, "a") == ["+A 1 x", "-C 1 x", "+C 1 y"]
    assert [str(field.type) for field in workspace.tail("d").schema][:2] == ["int64", "int32"]


def test_fields_recorded_in_another_order_are_shown_so_and_written_as_slices_have_them(tmp_path: Path):
    schema = recorded(odf.Int64(), odf.Int32(), order="id name event_time offset op system_time")
    workspace = begin(tmp_path, schema, MERGES["Snapshot"][0])
    feed(workspace, "a", "1 y", day=2)
    assert rows(workspace, "a") == ["+A 1 x", "-C 1 x", "+C 1 y"]
    assert workspace.datasets.state("a").schema == schema
    assert workspace.tail("a").column_names == list(schema.names)
    assert slices(workspace)[1].names[:4] == ["offset", "op", "system_time", "event_time"]
    (report,) = workspace.verify(["a"])
    assert report.ok, report.findings


def test_an_optional_event_time_may_stay_optional(tmp_path: Path):
    fields = recorded(odf.Int64(), odf.Int32()).fields
    optional = tuple(DataField(f.name, odf.Option(f.type)) if f.name == "event_time" else f for f in fields)
    workspace = begin(tmp_path, DataSchema(optional), MERGES["Ledger"][0])
    feed(workspace, "a", "2 y", day=2)
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 y"]
    assert workspace.datasets.state("a").schema == DataSchema(optional)
