"""Delta tables as shared tables."""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Callable
from datetime import date, datetime, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable as Log
from deltalake import QueryBuilder, write_deltalake
from support.shared_tables import changes_of, in_order, rows_of, view

from odfpy.data.timestamp import Timestamp
from odfpy.sharing.checked import shared_files
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.model import SourceKind
from odfpy.sharing.tables.contract import ChangeKind, NoSuchVersion
from odfpy.sharing.tables.delta import DeltaTable
from odfpy.sharing.tables.difference import whole_file_changes
from odfpy.sharing.tables.opener import open_files

NOON = datetime(2024, 3, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)


def people(*rows: tuple[int, str, str | None]) -> pa.Table:
    ids, names, countries = zip(*rows, strict=True)
    return pa.table({"id": ids, "name": names, "country": pa.array(countries, pa.string())})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four versions: two rows, a third one, an update, a deletion."""
    path = tmp_path / "a folder/people"
    path.mkdir(parents=True)
    write_deltalake(path, people((1, "Ann", "DE"), (2, "Bob", "FR")), name="people", description="All of us")
    write_deltalake(path, people((3, "Cid", "DE")), mode="append")
    Log(path).update(predicate="id = 1", updates={"name": "'Anna'"})
    Log(path).delete("id = 2")
    return path


def read_by_the_library(path: Path, version: int | None = None) -> list[dict[str, Any]]:
    log = Log(path, version=version)
    return in_order(pa.table(QueryBuilder().register("t", log).execute("SELECT * FROM t").read_all()).to_pylist())


def read_changes(path: Path, first: int, last: int) -> list[tuple[int, str, dict[str, Any]]]:
    found = []
    for row in pa.table(Log(path).load_cdf(first, last)).to_pylist():
        row.pop("_commit_timestamp")
        found.append((row.pop("_commit_version"), row.pop("_change_type"), row))
    return sorted(found, key=repr)


# --- Versions ---


def test_every_version_has_the_rows_that_the_library_reads(folder: Path, tmp_path: Path) -> None:
    table = DeltaTable(folder)
    assert table.latest.number == 3
    for number in range(4):
        assert rows_of(table, number, tmp_path) == read_by_the_library(folder, number)
        assert table.schema(table.version(number)).names == ["id", "name", "country"]
    assert table.description == "All of us"
    with pytest.raises(NoSuchVersion, match="no version 4"):
        table.version(4)


def test_times_are_those_of_the_log(folder: Path) -> None:
    table = DeltaTable(folder)
    times = [Timestamp.from_millis(entry["timestamp"]) for entry in Log(folder).history()][::-1]
    assert [table.version(number).time for number in range(4)] == times
    for number, time in enumerate(times):
        assert table.as_of(time).time == time
        assert table.first_from(time).number <= number <= table.as_of(time).number
    with pytest.raises(NoSuchVersion):
        table.as_of(Timestamp(times[0].nanos - 1))
    with pytest.raises(NoSuchVersion):
        table.first_from(Timestamp(times[3].nanos + 1))


def test_times_of_versions_rise_whatever_the_clocks_said(folder: Path) -> None:
    own = [1_700_000_000_000, 1_700_000_009_000, 1_700_000_001_000, 1_700_000_009_500]
    for number, time in enumerate(own):
        path = folder / f"_delta_log/{number:020}.json"
        trees = [json.loads(line) for line in path.read_text().splitlines()]
        for info in (tree["commitInfo"] for tree in trees if "commitInfo" in tree):
            info["timestamp"] = time
        path.write_text("".join(f"{json.dumps(tree)}\n" for tree in trees))
    table = DeltaTable(folder)
    times = [table.version(number).time.millis for number in range(4)]
    assert times == [own[0], own[1], own[1] + 1, own[3]]
    for number, time in enumerate(times):
        assert table.as_of(Timestamp.from_millis(time)).number == number
        assert table.first_from(Timestamp.from_millis(time)).number == number
    assert table.as_of(Timestamp.from_millis(own[2])).number == 0


def test_a_log_that_begins_with_a_checkpoint(folder: Path, tmp_path: Path) -> None:
    expected = {number: read_by_the_library(folder, number) for number in (2, 3)}
    log = Log(folder, version=2)
    log.create_checkpoint()
    for number in (0, 1, 2):
        (folder / f"_delta_log/{number:020}.json").unlink()
    table = DeltaTable(folder)
    assert {number: rows_of(table, number, tmp_path) for number in (2, 3)} == expected
    with pytest.raises(NoSuchVersion, match="no version 1"):
        table.version(1)
    assert [change[0] for change in changes_of(table, 3, 3, tmp_path)] == [3, 3, 3]
    with pytest.raises(NoSuchVersion, match="does not have version 1"):
        list(table.changes(table.version(2), table.version(3)))


# --- Partitions and statistics ---


@pytest.fixture
def parts(tmp_path: Path) -> Path:
    path = tmp_path / "parts"
    columns = {
        "n": [1, 2, 3],
        "f": [0.5, float("nan"), None],
        "at": pa.array([NOON] * 3),
        "word": ["a", "b c", "ü/%"],
        "when": pa.array([NOON, None, NOON]),
        "day": pa.array([date(2024, 3, 1), date(2024, 3, 2), None]),
        "price": pa.array([Decimal("1.50"), Decimal("2.50"), Decimal("3.50")]),
        "ok": [True, False, None],
    }
    write_deltalake(path, pa.table(columns), partition_by=["word", "when", "day", "price", "ok"])
    return path


def test_values_of_partitions(parts: Path, tmp_path: Path) -> None:
    table = DeltaTable(parts)
    assert table.partition_columns == ("word", "when", "day", "price", "ok")
    found = {file.partition_values["word"]: dict(file.partition_values) for file in table.files(table.latest)}
    when = "2024-03-01 12:00:00.123456"
    assert found == {
        "a": {"word": "a", "when": when, "day": "2024-03-01", "price": "1.50", "ok": "true"},
        "b c": {"word": "b c", "when": None, "day": "2024-03-02", "price": "2.50", "ok": "false"},
        "ü/%": {"word": "ü/%", "when": when, "day": None, "price": "3.50", "ok": None},
    }
    assert repr(rows_of(table, None, tmp_path)) == repr(read_by_the_library(parts))  # with NaN


def test_a_view_of_partition_columns(parts: Path, tmp_path: Path) -> None:
    table = DeltaTable(parts)
    seen = view("word = 'a' AND day = DATE '2024-03-01' AND ok", ("n", "word"))
    assert rows_of(table, None, tmp_path, seen) == [{"n": 1, "word": "a"}]


def test_statistics_are_those_of_the_log(parts: Path) -> None:
    table = DeltaTable(parts)
    found = next(file for file in table.files(table.latest) if file.partition_values["word"] == "a")
    assert found.num_rows == 1
    assert found.stats is not None
    assert found.stats["numRecords"] == 1
    assert found.stats["minValues"] == {"n": 1, "at": "2024-03-01T12:00:00.123Z"}
    assert found.stats["maxValues"]["n"] == 1
    assert "2024-03-01T12:00:00.123456Z" < found.stats["maxValues"]["at"] <= "2024-03-01T12:00:00.125Z"
    assert found.stats["nullCount"] == {"n": 0, "f": 0, "at": 0}


# --- Changes ---


def test_changes_without_files_of_changes(folder: Path, tmp_path: Path) -> None:
    """Their sum is right, although files that were written anew come as deletes and inserts."""
    table = DeltaTable(folder)
    rows: list[dict[str, Any]] = []
    for number in range(4):
        for _, kind, row in sorted(changes_of(table, number, number, tmp_path), key=lambda change: change[1]):
            rows.append(row) if kind == "insert" else rows.remove(row)  # deletes come first
        assert in_order(rows) == read_by_the_library(folder, number)
    assert changes_of(table, 1, 1, tmp_path) == [(1, "insert", {"id": 3, "name": "Cid", "country": "DE"})]


def test_changes_are_those_of_files_of_changes(tmp_path: Path) -> None:
    path = tmp_path / "people"
    configuration = {"delta.enableChangeDataFeed": "true"}
    rows = people((1, "Ann", "DE"), (2, "Bob", "FR"), (3, "Cid", None))
    write_deltalake(path, rows, partition_by=["country"], configuration=configuration)
    Log(path).update(predicate="id < 3", updates={"name": "concat(name, '!')"})
    Log(path).delete("id = 2")
    table = DeltaTable(path)
    found = changes_of(table, 0, 2, tmp_path)
    assert found == read_changes(path, 0, 2)
    assert {kind for _, kind, _ in found} == {"insert", "delete", "update_preimage", "update_postimage"}
    assert {change.kind for change in table.changes(table.version(1), table.version(2))} == {ChangeKind.BY_ROW}
    # Halves of an update need not follow each other, so whoever sees some rows gets deletes and inserts.
    assert changes_of(table, 1, 2, tmp_path, view("country = 'DE'")) == [
        (1, "delete", {"id": 1, "name": "Ann", "country": "DE"}),
        (1, "insert", {"id": 1, "name": "Ann!", "country": "DE"}),
    ]


def test_compaction_changes_nothing(folder: Path, tmp_path: Path) -> None:
    write_deltalake(folder, people((4, "Dan", "DE")), mode="append")
    before = read_by_the_library(folder)
    Log(folder).optimize.compact()
    table = DeltaTable(folder)
    assert table.latest.number == 5
    assert rows_of(table, 5, tmp_path) == before
    assert changes_of(table, 5, 5, tmp_path) == []


def test_compaction_adds_and_removes_no_files_for_followers(folder: Path) -> None:
    """Spark follows whole files; those of a compaction have rows that it has already."""
    write_deltalake(folder, people((4, "Dan", "DE")), mode="append")
    Log(folder).optimize.compact()
    write_deltalake(folder, people((5, "Eve", "DE")), mode="append")
    table = DeltaTable(folder)
    found = whole_file_changes(table, table.version(4), table.version(6))
    assert [(change.file.version.number, change.kind, change.file.num_rows) for change in found] == [
        (4, ChangeKind.ADDED, 1),
        (6, ChangeKind.ADDED, 1),
    ]


def test_a_schema_that_has_grown(folder: Path, tmp_path: Path) -> None:
    more = people((5, "Eve", "DE")).append_column("age", pa.array([50]))
    write_deltalake(folder, more, mode="append", schema_mode="merge")
    table = DeltaTable(folder)
    assert table.schema(table.version(3)).names == ["id", "name", "country"]
    assert rows_of(table, None, tmp_path) == read_by_the_library(folder)


# --- Deletion vectors ---


def commit(path: Path, number: int, *actions: dict[str, Any]) -> None:
    text = "".join(json.dumps(action) + "\n" for action in actions)
    (path / f"_delta_log/{number:020}.json").write_text(text)


def first_add(path: Path) -> dict[str, Any]:
    lines = (path / f"_delta_log/{0:020}.json").read_text().splitlines()
    return next(json.loads(line)["add"] for line in lines if '"add"' in line)


def vector(rows: list[int]) -> dict[str, Any]:
    """A deletion vector beside its file (Delta protocol, "Deletion Vector Format")."""
    bitmap = struct.pack("<IIHHI", 12346, 1, 0, len(rows) - 1, 16) + struct.pack(f"<{len(rows)}H", *rows)
    data = struct.pack("<IQI", 1681511377, 1, 0) + bitmap
    letters = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
    padded = data + bytes(-len(data) % 4)
    text = ""
    for (word,) in struct.iter_unpack(">I", padded):
        text += "".join(letters[word // 85**power % 85] for power in (4, 3, 2, 1, 0))
    return {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(data), "cardinality": len(rows)}


def deleting(path: Path, number: int, new: dict[str, Any], old: dict[str, Any] | None = None) -> None:
    add = first_add(path)
    removed = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1, "size": add["size"]}
    features = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": ["deletionVectors"],
                "writerFeatures": ["deletionVectors"]}  # fmt: skip
    commit(
        path,
        number,
        {"commitInfo": {"timestamp": add["modificationTime"] + number, "operation": "DELETE"}},
        {"protocol": features},
        {"remove": {**removed, **({"deletionVector": old} if old else {})}},
        {"add": {**add, "deletionVector": new}},
    )


def test_deletion_vectors(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    write_deltalake(path, pa.table({"n": list(range(10))}))
    deleting(path, 1, vector([2, 5]))
    deleting(path, 2, vector([2, 5, 9]), vector([2, 5]))
    table = DeltaTable(path)
    for number in range(3):
        assert rows_of(table, number, tmp_path) == read_by_the_library(path, number)
    assert changes_of(table, 1, 2, tmp_path) == [(1, "delete", {"n": 2}), (1, "delete", {"n": 5}),
                                                 (2, "delete", {"n": 9})]  # fmt: skip
    identities = [next(table.files(table.version(number))).identity for number in range(3)]
    assert len(set(identities)) == 3


# --- Hostile tables ---


def secret(path: Path) -> Path:
    place = path.parent.parent / "elsewhere"
    place.mkdir(exist_ok=True)
    pq.write_table(people((42, "secret", None)), place / "secret.parquet")
    return place / "secret.parquet"


def adding(name: Callable[[Path], str]) -> Callable[[Path], None]:
    def harm(path: Path) -> None:
        secret(path)
        write = {**first_add(path), "path": name(path)}
        commit(path, 4, {"add": write})

    return harm


def escaped_folder(path: Path) -> None:
    path.rename(path.parent / "%2e%2e")
    path.symlink_to(path.parent / "%2e%2e")


def linked_file(path: Path) -> None:
    (path / "x.parquet").symlink_to(secret(path))
    commit(path, 4, {"add": {**first_add(path), "path": "x.parquet"}})


def pipe(path: Path) -> None:
    os.mkfifo(path / "x.parquet")
    commit(path, 4, {"add": {**first_add(path), "path": "x.parquet"}})


def circle(path: Path) -> None:
    (path / "x.parquet").symlink_to(path / "y.parquet")
    (path / "y.parquet").symlink_to(path / "x.parquet")
    commit(path, 4, {"add": {**first_add(path), "path": "x.parquet"}})


def no_json(path: Path) -> None:
    (path / f"_delta_log/{4:020}.json").write_bytes(b"\xff not json {")


def deep_json(path: Path) -> None:
    (path / f"_delta_log/{4:020}.json").write_text('{"add":' + "[" * 100_000)


def other_json(path: Path) -> None:
    (path / f"_delta_log/{4:020}.json").write_text('["add"]\n17\n')


def huge_number(path: Path) -> None:
    (path / f"_delta_log/{'9' * 20}.json").write_text("{}")


def huge_time(path: Path) -> None:
    commit(path, 4, {"commitInfo": {"timestamp": 2**62}})


def linked_commit(path: Path) -> None:
    (path / f"_delta_log/{4:020}.json").symlink_to("/etc/hostname")


def piped_commit(path: Path) -> None:
    os.mkfifo(path / f"_delta_log/{4:020}.json")


def linked_log(path: Path) -> None:
    (path / "_delta_log").rename(path.parent / "log")
    (path / "_delta_log").symlink_to(path.parent / "log")


def no_log(path: Path) -> None:
    (path / "_delta_log").rename(path / "log")


def no_first_commit(path: Path) -> None:
    (path / f"_delta_log/{0:020}.json").unlink()


def no_file(path: Path) -> None:
    for file in path.glob("*.parquet"):
        file.unlink()


def vector_elsewhere(path: Path) -> None:
    deleting(path, 4, {**vector([0]), "storageType": "p", "pathOrInlineDv": "file:///dev/zero", "offset": 1})


def vector_of_nothing(path: Path) -> None:
    deleting(path, 4, {**vector([0]), "pathOrInlineDv": "0" * 40})


def other_names(path: Path) -> None:
    field = {"name": "id", "type": "long", "nullable": True,
             "metadata": {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}}  # fmt: skip
    meta = {"id": "x", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [],
            "schemaString": json.dumps({"type": "struct", "fields": [field]}),
            "configuration": {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "1"}}  # fmt: skip
    commit(path, 4, {"protocol": {"minReaderVersion": 2, "minWriterVersion": 5}}, {"metaData": meta})


HARMS = [
    adding(lambda path: str(secret(path))),
    adding(lambda path: secret(path).as_uri()),
    adding(lambda path: "../../elsewhere/secret.parquet"),
    adding(lambda path: "%2e%2e/%2e%2e/elsewhere/secret.parquet"),
    adding(lambda path: "s3://bucket/secret.parquet"),
    adding(lambda path: "a\0b"),
    adding(lambda path: "a%00b"),
    escaped_folder, linked_file, pipe, circle, no_json, deep_json, other_json, huge_number, huge_time, linked_commit, piped_commit,
    linked_log, no_log, no_first_commit, no_file, vector_elsewhere, vector_of_nothing, other_names,
]  # fmt: skip


@pytest.mark.parametrize("harm", HARMS)
def test_hostile_tables_harm_nothing(harm, folder: Path) -> None:
    harm(folder)
    with pytest.raises(CannotShare) as raised:
        shared_files(SourceKind.DELTA, str(folder))
    assert raised.value.hint
    assert "secret" not in raised.value.message or "secret.parquet" in raised.value.message


def test_files_of_changes_outside_of_the_folder(folder: Path) -> None:
    secret(folder)
    change = {"path": "../../elsewhere/secret.parquet", "partitionValues": {}, "size": 1, "dataChange": False}
    commit(folder, 4, {"cdc": change})
    table = DeltaTable(folder)
    with pytest.raises(CannotShare, match="outside of its folder"):
        list(table.changes(table.latest, table.latest))


def test_what_was_added_is_opened_again(folder: Path, tmp_path: Path) -> None:
    source = shared_files(SourceKind.DELTA, str(folder))
    assert rows_of(open_files(source.kind, source.location), None, tmp_path) == read_by_the_library(folder)
