"""Schemas that change as data comes: what goes in comes out, whoever reads it; what may not change is refused by name."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.queries.grown import FIRST, MANIFEST, SECOND, data_of, expected, grown, table

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.schemas.arrow import to_arrow
from odfpy.errors import SchemaError

DERIVED = """
kind: DatasetSnapshot
version: 1
content:
  name: derived
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{datasetRef: grown}]
      transform: {kind: Sql, engine: datafusion, query: "select what, * except (at, what, since) from grown"}
    - {kind: SetVocab, eventTimeColumn: day, offsetColumn: at, operationTypeColumn: what, systemTimeColumn: since}
"""


# --- In and out ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return grown(tmp_path_factory.mktemp("grown"))


def test_the_schema_grows_at_its_end_and_in_its_structs(workspace: Workspace):
    schema = workspace.datasets.state("grown").schema
    assert schema is not None
    names = "at what since day u8 u16 u32 u64 d elements anything lists s fine offset op gone more later"
    assert list(schema.names) == names.split()
    assert [str(field.type) for field in to_arrow(schema)][3:] == [
        "date32[day]", "uint8", "uint16", "uint32", "uint64", "decimal128(38, 10)",
        "list<item: uint16>", "list<item: string>", "list<item: list<item: int32>>",
        "struct<a: int64, inner: struct<u: uint64, d: decimal128(20, 3), l: list<item: string>>, c: double>",
        "timestamp[ms, tz=UTC]", "uint16", "string", "float", "string", "list<item: uint64>",
    ]  # fmt: skip


def test_tail_shows_what_went_in(workspace: Workspace):
    rows = workspace.tail("grown")
    schema = workspace.datasets.state("grown").schema
    assert schema is not None
    assert rows.schema == to_arrow(schema)
    assert data_of(rows) == expected()


def test_sql_as_the_reference_reads_it_shows_what_went_in(workspace: Workspace):
    """DataFusion, over all slices under the schema in force."""
    rows = workspace.sql("select * from grown order by at", engine="datafusion")
    assert rows.schema.types == workspace.tail("grown").schema.types
    assert data_of(rows) == expected()


def test_each_slice_is_plain_parquet(workspace: Workspace):
    files = sorted(
        (workspace.odf / "datasets").rglob("data/*"), key=lambda path: pq.read_table(path, columns=["at"])[0][0].as_py()
    )
    for file, row in zip(files, expected(), strict=True):
        (found,) = data_of(pq.read_table(file))
        assert {name: shown(value) for name, value in found.items()}.items() <= {
            name: shown(_without_new(value, found.get(name))) for name, value in row.items()
        }.items()


def test_the_dataset_verifies_and_what_is_derived_from_it_is_the_same(tmp_path: Path):
    workspace = grown(tmp_path)
    workspace.add(load_snapshots(DERIVED, "derived.yaml"))
    (result,) = workspace.pull(["derived"])
    assert result.error is None
    assert data_of(workspace.tail("derived")) == expected()
    reports = list(workspace.verify(all=True))
    assert [report.findings for report in reports] == [(), ()]


@pytest.mark.parametrize(
    ("merge", "more"),
    [
        ("{kind: Ledger, primaryKey: [u64]}", 0),
        ("{kind: Snapshot, primaryKey: [u64]}", 2),
        ("{kind: UpsertStream, primaryKey: [u64]}", 2),
    ],
)
def test_rows_of_before_and_after_have_the_same_keys(tmp_path: Path, merge: str, more: int):
    workspace = Workspace.init(tmp_path)
    workspace.add(load_snapshots(MANIFEST % merge, "grown.yaml"))
    counts = []
    for columns in (FIRST, SECOND, SECOND):
        pq.write_table(table(columns), tmp_path / "x.parquet")
        (result,) = workspace.ingest("grown", [tmp_path / "x.parquet"])
        counts.append(result.num_records)
    assert counts == [1, more, 0]


def _without_new(value: Any, found: Any) -> Any:
    """A struct as it was when there were fewer members."""
    if isinstance(value, dict) and isinstance(found, dict):
        return {name: _without_new(value[name], found[name]) for name in found}
    return value


def shown(value: Any) -> str:
    return str(sorted(value.items(), key=str) if isinstance(value, dict) else value)


# --- Refused ---------------------------------------------------------------------------------------------------------

TIME = pa.array([0], pa.timestamp("ms", "UTC"))


def column(value: Any, arrow: pa.DataType | None = None, *, required: bool = False) -> tuple[pa.Field, pa.Array]:
    array = pa.array([value], arrow)
    return pa.field("x", array.type, nullable=not required), array


def struct(**members: pa.DataType) -> pa.DataType:
    return pa.struct(list(members.items()))


CHANGES = {
    "a number gets wider": (column(1, pa.int32()), column(1, pa.int64()), "'x' is Int64 .* Int32 is recorded"),
    "a number gets narrower": (column(1, pa.int64()), column(1, pa.int32()), "'x' is Int32 .* Int64 is recorded"),
    "a number loses its sign": (column(1, pa.int32()), column(1, pa.uint32()), "'x' is UInt32 .* Int32 is recorded"),
    "a number becomes text": (column(1), column("1"), "'x' is String .* Int64 is recorded"),
    "a decimal gets another scale": (
        column(Decimal(1), pa.decimal128(9, 2)), column(Decimal(1), pa.decimal128(9, 3)),
        r"'x' is Decimal\(9, 3\) .* Decimal\(9, 2\) is recorded",
    ),
    "a date becomes a time": (column(date(2024, 1, 1)), column(0, pa.timestamp("ms", "UTC")), "'x' is Timestamp"),
    "an item becomes text": (column([1]), column(["1"]), r"'x\.item' is String .* Int64 is recorded"),
    "a list becomes its item": (column([1]), column(1), "'x' is Int64 .* List"),
    "a list gets a length": (column([1]), column([1], pa.list_(pa.int64(), 1)), "'x' is List"),
    "a member becomes text": (column({"a": 1}), column({"a": "1"}), r"'x\.a' is String .* Int64 is recorded"),
    "a member of a member": (
        column({"a": {"b": 1}}), column({"a": {"b": 1.5}}), r"'x\.a\.b' is Float64 .* Int64 is recorded"
    ),
    "a struct becomes text": (column({"a": 1}), column("{}"), "'x' is String .* Struct"),
    "a required column gets nulls": (
        column(1, required=True), column(None, pa.int64()), "'x' is required but has nulls"
    ),
}  # fmt: skip


def ingest(workspace: Workspace, field: pa.Field | None, values: pa.Array | None) -> PullOutcome:
    fields, arrays = [pa.field("event_time", TIME.type)], [TIME]
    if field is not None:
        fields, arrays = [*fields, field], [*arrays, values]
    pq.write_table(pa.table(arrays, schema=pa.schema(fields)), workspace.root / "x.parquet")
    (result,) = workspace.ingest("a", [workspace.root / "x.parquet"])
    return result.outcome


def plain(folder: Path) -> Workspace:
    workspace = Workspace.init(folder)
    text = "{kind: DatasetSnapshot, version: 1, content: {name: a, kind: Root, metadata: [{kind: AddPushSource, sourceName: default, read: {kind: Parquet}, merge: {kind: Append}}]}}"
    workspace.add(load_snapshots(text, "a.yaml"))
    return workspace


@pytest.mark.parametrize(("before", "after", "words"), CHANGES.values(), ids=CHANGES)
def test_what_may_not_change_is_refused_with_the_field_named(
    tmp_path: Path, before: tuple[pa.Field, pa.Array], after: tuple[pa.Field, pa.Array], words: str
):
    workspace = plain(tmp_path)
    ingest(workspace, *before)
    state = workspace.datasets.state("a")
    with pytest.raises(SchemaError, match=words) as caught:
        ingest(workspace, *after)
    assert str(caught.value).startswith(f"a: {workspace.root / 'x.parquet'}: ")
    assert caught.value.hint
    assert workspace.datasets.state("a") == state


@pytest.mark.parametrize(
    "unstorable",
    [pa.duration("s"), pa.list_(pa.struct([("a", pa.int64())])), pa.map_(pa.string(), pa.int64())],
    ids=str,
)
def test_a_type_that_no_slice_can_have_is_not_recorded_without_rows_either(tmp_path: Path, unstorable: pa.DataType):
    workspace = plain(tmp_path)
    before = workspace.datasets.state("a")
    pq.write_table(pa.schema([("event_time", TIME.type), ("x", unstorable)]).empty_table(), tmp_path / "empty.parquet")
    with pytest.raises(SchemaError, match=r"Column 'x' has type .* no logical hash") as caught:
        list(workspace.ingest("a", [tmp_path / "empty.parquet"]))
    assert caught.value.hint
    assert workspace.datasets.state("a") == before
    ingest(workspace, *column(1))
    assert workspace.tail("a").column("x").to_pylist() == [1]


def test_a_required_column_may_not_be_missing(tmp_path: Path):
    workspace = plain(tmp_path)
    ingest(workspace, *column(1, required=True))
    with pytest.raises(SchemaError, match="Required field 'x' is missing") as caught:
        ingest(workspace, None, None)
    assert caught.value.hint


def test_the_event_time_stays_a_date_or_a_timestamp(tmp_path: Path):
    workspace = plain(tmp_path)
    ingest(workspace, None, None)
    pq.write_table(pa.table({"event_time": pa.array([0], pa.date32())}), tmp_path / "day.parquet")
    with pytest.raises(SchemaError, match=r"'event_time' is Date .* Timestamp"):
        list(workspace.ingest("a", [tmp_path / "day.parquet"]))


ALLOWED = {
    "values where there may be nulls": (column(None, pa.int64()), column(1, required=True)),
    "no column where it is optional": (column(1), (None, None)),
    "a column of nothing but nulls": (column(1), column(None)),
    "a finer timestamp": (column(0, pa.timestamp("ms", "UTC")), column(1_000, pa.timestamp("us", "UTC"))),
    "another layout of the same": (column("x"), column("x", pa.large_string())),
    "items called otherwise": (
        column([1], pa.list_(pa.field("element", pa.int64()))), column([1], pa.list_(pa.field("i", pa.int64())))
    ),
    "members in another order": (
        column({"a": 1, "b": 2}), column({"b": 2, "a": 1}, struct(b=pa.int64(), a=pa.int64()))
    ),
    "a new member": (column({"a": 1}), column({"a": 1, "b": 2})),
    "a member less": (column({"a": 1, "b": 2}), column({"a": 1})),
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), ALLOWED.values(), ids=ALLOWED)
def test_what_may_change(tmp_path: Path, before: tuple[pa.Field, pa.Array], after: tuple[Any, Any]):
    workspace = plain(tmp_path)
    ingest(workspace, *before)
    assert ingest(workspace, *after) is PullOutcome.UPDATED
    assert workspace.tail("a").num_rows == 2
    (report,) = workspace.verify(["a"])
    assert report.ok, report.findings
