"""Iceberg tables as shared tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat, ManifestContent
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.snapshots import Operation, Summary
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType
from support.shared_tables import changes_of, in_order, rows_of, view

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.checked import shared_files
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.model import SourceKind
from odfpy.sharing.tables.contract import NoSuchVersion
from odfpy.sharing.tables.difference import whole_file_changes
from odfpy.sharing.tables.iceberg import IcebergTable, _catalog
from odfpy.sharing.tables.opener import open_files

SCHEMA = Schema(
    NestedField(1, "id", LongType()), NestedField(2, "name", StringType()), NestedField(3, "country", StringType())
)
BY_COUNTRY = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "country"))


def people(*rows: tuple[int, str, str | None]) -> pa.Table:
    ids, names, countries = zip(*rows, strict=True)
    return pa.table({"id": ids, "name": names, "country": pa.array(countries, pa.string())})


@pytest.fixture
def catalog(tmp_path: Path) -> Iterator[SqlCatalog]:
    found = SqlCatalog("tests", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=f"file://{tmp_path}/warehouse")
    found.create_namespace("eu")
    yield found
    found.engine.dispose()


@pytest.fixture
def iceberg(catalog: SqlCatalog) -> Table:
    """Six snapshots: two rows, a third one, a deletion that writes a file anew, one of a whole file, a replacement."""
    table = catalog.create_table("eu.people", SCHEMA, properties={"comment": "All of us"})
    table.append(people((1, "Ann", "DE"), (2, "Bob", "FR")))
    table.append(people((3, "Cid", None)))
    table.delete("id = 2")
    table.delete("id = 3")
    table.overwrite(people((4, "Dan", "DE")))
    return table


def shared(table: Table) -> IcebergTable:
    return IcebergTable(path_of(table.metadata_location))


def path_of(url: str) -> str:
    return url.removeprefix("file://")


def read(table: Table, place: int | None = None) -> list[dict[str, Any]]:
    snapshot = None if place is None else table.snapshots()[place - 1].snapshot_id
    return in_order(table.scan(snapshot_id=snapshot).to_arrow().to_pylist())


# --- Versions ---


def test_every_version_has_the_rows_that_the_library_reads(iceberg: Table, tmp_path: Path) -> None:
    table = shared(iceberg)
    count = len(iceberg.snapshots())
    assert table.latest.number == count == 6
    assert rows_of(table, 0, tmp_path) == []
    for number in range(1, count + 1):
        assert rows_of(table, number, tmp_path) == read(iceberg, number)
        assert table.schema(table.version(number)).names == ["id", "name", "country"]
    assert table.description == "All of us"
    with pytest.raises(NoSuchVersion, match="no version 7"):
        table.version(7)


def test_times_are_those_of_the_snapshots(iceberg: Table) -> None:
    table = shared(iceberg)
    times = [Timestamp.from_millis(snapshot.timestamp_ms) for snapshot in iceberg.snapshots()]
    assert [table.version(number).time for number in range(1, 7)] == times
    assert table.version(0).time <= times[0]
    assert table.as_of(times[-1]).number == 6
    assert table.as_of(times[0]).time == table.first_from(times[0]).time == times[0]
    with pytest.raises(NoSuchVersion):
        table.as_of(Timestamp(table.version(0).time.nanos - 1))
    with pytest.raises(NoSuchVersion):
        table.first_from(Timestamp(times[-1].nanos + 1))


def test_a_table_without_snapshots(catalog: SqlCatalog, tmp_path: Path) -> None:
    table = shared(catalog.create_table("eu.empty", SCHEMA))
    assert table.latest.number == 0
    assert table.schema(table.latest).names == ["id", "name", "country"]
    assert rows_of(table, None, tmp_path) == []


def test_numbers_stay_when_snapshots_expire(iceberg: Table, tmp_path: Path) -> None:
    expected = {number: read(iceberg, number) for number in range(3, 7)}
    expired = [snapshot.snapshot_id for snapshot in iceberg.snapshots()[:2]]
    iceberg.maintenance.expire_snapshots().by_ids(expired).commit()
    iceberg.refresh()
    table = shared(iceberg)
    assert {number: rows_of(table, number, tmp_path) for number in range(3, 7)} == expected
    for number in (0, 2):
        with pytest.raises(NoSuchVersion, match=f"no version {number}"):
            table.version(number)
    with pytest.raises(NoSuchVersion, match="has expired"):
        list(table.changes(table.version(3), table.latest))


def test_other_branches_are_not_shared(iceberg: Table, tmp_path: Path) -> None:
    expected = read(iceberg)
    iceberg.manage_snapshots().create_branch(iceberg.snapshots()[-1].snapshot_id, "draft").commit()
    iceberg.append(people((9, "secret", None)), branch="draft")
    table = shared(iceberg)
    assert (table.latest.number, rows_of(table, None, tmp_path)) == (6, expected)
    iceberg.append(people((5, "Eve", "DE")))
    table = shared(iceberg)
    assert table.latest.number == 8
    assert rows_of(table, 7, tmp_path) == expected  # nothing was published by the draft
    assert changes_of(table, 7, 8, tmp_path) == [(8, "insert", {"id": 5, "name": "Eve", "country": "DE"})]


def test_tables_of_format_1_have_numbers_by_their_place(catalog: SqlCatalog, tmp_path: Path) -> None:
    iceberg = catalog.create_table("eu.old", SCHEMA, properties={"format-version": "1"})
    iceberg.append(people((1, "Ann", "DE")))
    iceberg.append(people((2, "Bob", "FR")))
    table = shared(iceberg)
    assert table.latest.number == 2
    assert [rows_of(table, number, tmp_path) for number in (0, 1, 2)] == [[], read(iceberg, 1), read(iceberg, 2)]


# --- Changes ---


def test_changes_are_the_differences_of_files(iceberg: Table, tmp_path: Path) -> None:
    table = shared(iceberg)
    rows: list[dict[str, Any]] = []
    for number in range(7):
        for _, kind, row in sorted(changes_of(table, number, number, tmp_path), key=lambda change: change[1]):
            rows.append(row) if kind == "insert" else rows.remove(row)
        assert in_order(rows) == (read(iceberg, number) if number else [])
    assert changes_of(table, 2, 2, tmp_path) == [(2, "insert", {"id": 3, "name": "Cid", "country": None})]


def test_files_that_are_only_written_anew_are_no_changes(iceberg: Table) -> None:
    """As Spark's `rewrite_data_files` does, which the library cannot write."""
    table = shared(iceberg)
    rewrite = table._snapshots[2].model_copy(update={"summary": Summary(Operation.REPLACE)})
    table.__dict__["_snapshots"] = [*table._snapshots[:2], rewrite, *table._snapshots[3:]]
    first, last = table.version(2), table.version(4)
    assert {change.file.version.number for change in table.changes(first, last)} == {2, 4}
    assert {change.file.version.number for change in whole_file_changes(table, first, last)} == {2, 4}


# --- Columns and partitions ---


def test_partitions_are_columns_of_the_files(catalog: SqlCatalog, tmp_path: Path) -> None:
    iceberg = catalog.create_table("eu.parts", SCHEMA, partition_spec=BY_COUNTRY)
    iceberg.append(people((1, "Ann", "DE"), (2, "Bob", "FR"), (3, "Cid", None)))
    table = shared(iceberg)
    assert len(list(table.files(table.latest))) == 3
    assert rows_of(table, None, tmp_path) == read(iceberg)
    assert rows_of(table, None, tmp_path, view("country = 'FR'", ("id",))) == [{"id": 2}]


def test_columns_that_are_added_widened_and_dropped(iceberg: Table, tmp_path: Path) -> None:
    with iceberg.update_schema() as update:
        update.add_column("age", LongType())
        update.delete_column("country")
    table = shared(iceberg)
    assert table.schema(table.latest).names == ["id", "name", "age"]
    assert table.schema(table.version(5)).names == ["id", "name", "country"]
    assert rows_of(table, None, tmp_path) == read(iceberg)


def renamed(update: Any) -> None:
    update.rename_column("name", "called")


def dropped_and_added_again(update: Any) -> None:
    update.delete_column("name")


@pytest.mark.parametrize("change", [renamed, dropped_and_added_again])
def test_files_whose_columns_have_other_names_are_refused(change: Callable[[Any], None], iceberg: Table) -> None:
    with iceberg.update_schema() as update:
        change(update)
    if change is dropped_and_added_again:
        with iceberg.update_schema() as update:
            update.add_column("name", StringType())
    table = shared(iceberg)
    with pytest.raises(CannotShare, match="name") as raised:
        list(table.files(table.latest))
    assert "rewrite_data_files" in str(raised.value.hint)
    assert list(table.files(table.version(5))) == []  # older versions have the columns of then


def test_names_inside_of_structs_count_too(catalog: SqlCatalog) -> None:
    rows = pa.table({"at": [{"lat": 1.0, "lon": 2.0}], "many": [[{"n": 1}]]})
    iceberg = catalog.create_table("eu.places", rows.schema)
    iceberg.append(rows)
    assert len(list(shared(iceberg).files(shared(iceberg).latest))) == 1
    with iceberg.update_schema() as update:
        update.rename_column("many.element.n", "m")
    with pytest.raises(CannotShare, match="'m'"):
        list(shared(iceberg).files(shared(iceberg).latest))


def test_files_that_were_taken_in_without_ids(catalog: SqlCatalog, tmp_path: Path) -> None:
    iceberg = catalog.create_table("eu.taken", SCHEMA)
    path = tmp_path / "warehouse/eu/taken/x.parquet"
    pq.write_table(people((1, "Ann", "DE")), path)
    iceberg.add_files([f"file://{path}"])
    table = shared(iceberg)
    assert rows_of(table, None, tmp_path) == read(iceberg)
    with iceberg.update_schema() as update:
        update.rename_column("name", "called")
    with pytest.raises(CannotShare, match="by another name"):
        list(shared(iceberg).files(shared(iceberg).latest))
    with iceberg.update_schema() as update:
        update.add_column("name", StringType())  # which the old files now are said to have
    assert rows_of(shared(iceberg), None, tmp_path) == read(iceberg)


# --- Deletes ---


def deleting(table: Table, content: DataFileContent, positions: list[int], path: Path | None = None) -> None:
    """Add a snapshot with a file of deletes, which the library reads, but does not write."""
    data = next(iter(table.scan().plan_files())).file
    target = path or Path(path_of(table.location())) / f"data/deletes-{len(table.snapshots())}.parquet"
    fields = [pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": "2147483546"}),
              pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": "2147483545"})]  # fmt: skip
    pq.write_table(pa.table([[data.file_path] * len(positions), positions], schema=pa.schema(fields)), target)
    deletes = DataFile.from_args(
        content=content, file_path=f"file://{target}", file_format=FileFormat.PARQUET, partition=data.partition,
        record_count=len(positions), file_size_in_bytes=target.stat().st_size, column_sizes={}, value_counts={},
        null_value_counts={}, nan_value_counts={}, lower_bounds={}, upper_bounds={}, key_metadata=None,
        split_offsets=None, equality_ids=[1] if content is DataFileContent.EQUALITY_DELETES else None,
        sort_order_id=None,
    )  # fmt: skip
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, ManifestWriterV2
    from pyiceberg.table.update.snapshot import _FastAppendFiles

    class _Deletes(ManifestWriterV2):
        def content(self) -> ManifestContent:
            return ManifestContent.DELETES

        @property
        def _meta(self) -> dict[str, str]:
            return {**super()._meta, "content": "deletes"}

    class _Append(_FastAppendFiles):
        def _manifests(self) -> Any:
            with _Deletes(
                table.spec(), table.schema(), self.new_manifest_output(), self._snapshot_id, "null"
            ) as writer:
                entry = ManifestEntry.from_args(
                    status=ManifestEntryStatus.ADDED, snapshot_id=self._snapshot_id, sequence_number=None,
                    file_sequence_number=None, data_file=deletes,
                )  # fmt: skip
                writer.add_entry(entry)
            return [writer.to_manifest_file(), *self._existing_manifests()]

    with table.transaction() as transaction, _Append(Operation.DELETE, transaction, table.io):
        pass


def test_positions_that_were_deleted(catalog: SqlCatalog, tmp_path: Path) -> None:
    iceberg = catalog.create_table("eu.deleted", SCHEMA)
    iceberg.append(people(*((number, f"n{number}", "DE") for number in range(10))))
    deleting(iceberg, DataFileContent.POSITION_DELETES, [2, 5])
    deleting(iceberg, DataFileContent.POSITION_DELETES, [5, 9])
    table = shared(iceberg)
    assert [row["id"] for row in rows_of(table, 3, tmp_path)] == [0, 1, 3, 4, 6, 7, 8]
    for number in (1, 2, 3):
        assert rows_of(table, number, tmp_path) == read(iceberg, number)
    found = [(version, kind, row["id"]) for version, kind, row in changes_of(table, 2, 3, tmp_path)]
    assert found == [(2, "delete", 2), (2, "delete", 5), (3, "delete", 9)]


def test_deletes_by_values_are_refused(catalog: SqlCatalog) -> None:
    iceberg = catalog.create_table("eu.deleted", SCHEMA)
    iceberg.append(people((1, "Ann", "DE")))
    deleting(iceberg, DataFileContent.EQUALITY_DELETES, [0])
    table = shared(iceberg)
    with pytest.raises(CannotShare, match="equality deletes"):
        list(table.files(table.latest))
    assert len(list(table.files(table.version(1)))) == 1


# --- Catalogs ---


def test_a_table_of_a_catalog_is_read_as_it_is_now(
    iceberg: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"tests": {"uri": f"sqlite:///{tmp_path}/catalog.db", "type": "sql"}}
    from pyiceberg import catalog as catalogs

    monkeypatch.setattr(catalogs, "_ENV_CONFIG", catalogs.Config.__new__(catalogs.Config))
    monkeypatch.setattr(catalogs._ENV_CONFIG, "config", {"catalog": settings}, raising=False)
    _catalog.cache_clear()
    try:
        source = shared_files(SourceKind.ICEBERG, "tests:eu.people")
        assert rows_of(open_files(source.kind, source.location), None, tmp_path) == read(iceberg)
        iceberg.append(people((5, "Eve", "DE")))
        table = open_files(source.kind, source.location)
        assert (table.latest.number, rows_of(table, None, tmp_path)) == (7, read(iceberg))
        with pytest.raises(CannotShare, match="nothing"):
            open_files(SourceKind.ICEBERG, "tests:eu.nothing")
        with pytest.raises(CannotShare):
            open_files(SourceKind.ICEBERG, "other:eu.people")
    finally:
        _catalog("tests").engine.dispose()
        _catalog.cache_clear()


@pytest.mark.parametrize("location", ["no-such-file.metadata.json", "s3://bucket/x.metadata.json", "", "a:b", "/"])
def test_what_is_no_table(location: str) -> None:
    with pytest.raises(CannotShare):
        shared_files(SourceKind.ICEBERG, location)


# --- Hostile tables ---


def secret(root: Path) -> Path:
    path = root.parent / "elsewhere/secret.parquet"
    path.parent.mkdir(exist_ok=True)
    pq.write_table(people((42, "secret", None)), path)
    return path


def metadata(table: Table) -> tuple[Path, dict[str, Any]]:
    path = Path(path_of(table.metadata_location))
    return path, json.loads(path.read_text())


def changed(table: Table, change: Callable[[dict[str, Any]], None]) -> None:
    path, tree = metadata(table)
    change(tree)
    path.write_text(json.dumps(tree))


def data_file(table: Table) -> Path:
    return Path(path_of(next(iter(table.scan().plan_files())).file.file_path))


def linked_file(table: Table, root: Path) -> None:
    data_file(table).unlink()
    data_file(table).symlink_to(secret(root))


def piped_file(table: Table, root: Path) -> None:
    data_file(table).unlink()
    os.mkfifo(data_file(table))


def missing_file(table: Table, root: Path) -> None:
    data_file(table).unlink()


def damaged_file(table: Table, root: Path) -> None:
    data_file(table).write_bytes(b"something else")


def file_elsewhere(table: Table, root: Path) -> None:
    path = secret(root)
    pq.write_table(people((42, "secret", None)).cast(pq.read_schema(data_file(table))), path)
    table.add_files([path.as_uri()])


def deletes_elsewhere(table: Table, root: Path) -> None:
    deleting(table, DataFileContent.POSITION_DELETES, [0], secret(root))


def list_elsewhere(table: Table, root: Path) -> None:
    place = secret(root).with_name("list.avro")
    place.write_bytes(Path(path_of(table.snapshots()[-1].manifest_list)).read_bytes())
    changed(table, lambda tree: tree["snapshots"][-1].update({"manifest-list": str(place)}))


def list_in_a_store(table: Table, root: Path) -> None:
    changed(table, lambda tree: tree["snapshots"][-1].update({"manifest-list": "http://127.0.0.1:1/x.avro"}))


def list_that_never_ends(table: Table, root: Path) -> None:
    changed(table, lambda tree: tree["snapshots"][-1].update({"manifest-list": "/dev/zero"}))


def list_of_something_else(table: Table, root: Path) -> None:
    Path(path_of(table.snapshots()[-1].manifest_list)).write_bytes(b"no avro")


def circle(table: Table, root: Path) -> None:
    last = table.snapshots()[-1].snapshot_id
    changed(table, lambda tree: tree["snapshots"][0].update({"parent-snapshot-id": last}))


def huge_time(table: Table, root: Path) -> None:
    changed(table, lambda tree: tree["snapshots"][-1].update({"timestamp-ms": 2**62}))


def no_json(table: Table, root: Path) -> None:
    metadata(table)[0].write_bytes(b"\xff {")


def other_json(table: Table, root: Path) -> None:
    metadata(table)[0].write_text('["a"]')


def linked_metadata(table: Table, root: Path) -> None:
    path = metadata(table)[0]
    place = root.parent / "elsewhere.metadata.json"
    path.rename(place)
    path.symlink_to(place)


def piped_metadata(table: Table, root: Path) -> None:
    metadata(table)[0].unlink()
    os.mkfifo(metadata_path(table))


def metadata_path(table: Table) -> Path:
    return Path(path_of(table.metadata_location))


@pytest.mark.parametrize(
    "harm",
    [linked_file, piped_file, missing_file, damaged_file, file_elsewhere, deletes_elsewhere, list_elsewhere,
     list_in_a_store, list_that_never_ends, list_of_something_else, circle, huge_time, no_json, other_json,
     linked_metadata, piped_metadata],
)  # fmt: skip
def test_hostile_tables_harm_nothing(harm: Callable[[Table, Path], None], iceberg: Table, tmp_path: Path) -> None:
    harm(iceberg, tmp_path / "warehouse")
    with pytest.raises(CannotShare) as raised:
        shared_files(SourceKind.ICEBERG, path_of(iceberg.metadata_location))
    assert raised.value.hint


def test_sequence_numbers_far_apart_take_no_memory(iceberg: Table, tmp_path: Path) -> None:
    changed(iceberg, lambda tree: tree["snapshots"][-1].update({"sequence-number": 2**60}))
    changed(iceberg, lambda tree: tree.update({"last-sequence-number": 2**60}))
    assert shared(iceberg).latest.number == 6


def test_the_library_is_an_extra() -> None:
    program = (
        "import sys; sys.modules['pyiceberg'] = None\n"
        "from odfpy.sharing.model import SourceKind\n"
        "from odfpy.sharing.tables.opener import open_files\n"
        "from odfpy.sharing.errors import CannotShare\n"
        "try: open_files(SourceKind.ICEBERG, 'a:b.c')\n"
        "except CannotShare as error: print(error.message, error.hint)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "opendatafabric[iceberg]" in done.stdout
