"""Folders of Parquet files as shared tables."""

from __future__ import annotations

import os
from datetime import datetime, timezone
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from support.shared_tables import in_order, rows_of, view

from odfpy.data.timestamp import Timestamp
from odfpy.errors import SchemaError, UsageError
from odfpy.sharing.checked import shared_files
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.files.schema import as_shared
from odfpy.sharing.files.statistics import file_statistics
from odfpy.sharing.model import SourceKind
from odfpy.sharing.tables.contract import NoSuchVersion
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.parquet import ParquetTable


def put(path: Path, **columns: list[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "not=one/orders"
    put(root / "country=DE/year=2024/a.parquet", n=[1, 2], word=["x", "y"])
    put(root / "country=DE/year=2023/b.parquet", n=[3], word=["z"])
    put(root / "country=__HIVE_DEFAULT_PARTITION__/year=2024/c.parquet", n=[4], word=["w"])
    put(root / "country=C%C3%B4te/year=2024/d.parquet", n=[5], word=["v"])
    return root


def test_rows_are_those_that_pyarrow_reads(folder: Path, tmp_path: Path) -> None:
    table = ParquetTable(folder)
    expected = ds.dataset(folder, format="parquet", partitioning=ds.HivePartitioning.discover()).to_table()
    assert table.schema(table.latest) == expected.schema
    assert table.partition_columns == ("country", "year")
    assert rows_of(table, None, tmp_path) == in_order(expected.to_pylist())
    values = {file.path.name: dict(file.partition_values) for file in table.files(table.latest)}
    assert values["a.parquet"] == {"country": "DE", "year": "2024"}
    assert values["c.parquet"] == {"country": None, "year": "2024"}
    assert values["d.parquet"] == {"country": "Côte", "year": "2024"}


def test_hidden_files_and_others_are_passed_over(folder: Path, tmp_path: Path) -> None:
    before = rows_of(ParquetTable(folder), None, tmp_path)
    put(folder / "_temporary/x.parquet", n=[9])
    put(folder / "country=DE/year=2024/.x.parquet", n=[9])
    (folder / "_SUCCESS").touch()
    (folder / "README.md").write_text("not a table")
    assert rows_of(ParquetTable(folder), None, tmp_path) == before


def test_a_view_may_be_one_of_partition_columns(folder: Path, tmp_path: Path) -> None:
    """Files made for it have these columns, so that a cell of them can be hidden."""
    table = ParquetTable(folder)
    found = rows_of(table, None, tmp_path, view("country = 'DE' AND year = 2024", ("n", "year")))
    assert found == [{"n": 1, "year": 2024}, {"n": 2, "year": 2024}]
    assert rows_of(table, None, tmp_path, view("country IS NULL", ("n",))) == [{"n": 4}]
    assert rows_of(table, None, tmp_path, view("word = 'z'")) == [
        {"n": 3, "word": "z", "country": "DE", "year": 2023}
    ]  # fmt: skip


def test_columns_of_all_files_are_there(tmp_path: Path) -> None:
    put(tmp_path / "t/a.parquet", n=[1])
    pq.write_table(pa.table({"n": pa.array([2], pa.int32()), "more": ["x"]}), tmp_path / "t/b.parquet")
    table = ParquetTable(tmp_path / "t")
    assert table.schema(table.latest) == pa.schema({"n": pa.int64(), "more": pa.string()})
    assert rows_of(table, None, tmp_path) == [{"n": 1, "more": None}, {"n": 2, "more": "x"}]


def test_nanoseconds_are_cut_off(tmp_path: Path) -> None:
    """As pandas writes times: the tables of clients have microseconds."""
    times = pa.array([1_709_294_400_123_456_789, None], pa.timestamp("ns"))
    inner = pa.StructArray.from_arrays([times.cast(pa.timestamp("ns", "Europe/Berlin"))], ["at"])
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"n": [1, 2], "t": times, "inner": inner}), tmp_path / "t/a.parquet")
    zoned = datetime(2024, 3, 1, 12, 0, 0, 123456, tzinfo=timezone.utc)
    whole = zoned.replace(tzinfo=None)
    rows = [{"n": 1, "t": whole, "inner": {"at": zoned}}, {"n": 2, "t": None, "inner": {"at": None}}]
    assert rows_of(ParquetTable(tmp_path / "t"), None, tmp_path) == rows
    assert rows_of(ParquetTable(tmp_path / "t"), None, tmp_path, view("t < '2024-03-02'")) == rows[:1]
    batch, schema = pa.record_batch({"t": times}), pa.schema({"t": pa.timestamp("us")})
    assert as_shared(batch, schema).to_pylist() == [{"t": whole}, {"t": None}]
    with pytest.raises(SchemaError, match="does not fit"):  # rows that somebody brings to compare are as they are
        as_shared(batch, schema, is_exact=True)


def test_times_of_spark_are_not_wrapped_around(tmp_path: Path) -> None:
    """As INT96, in which those before 1677 and after 2262 are no number of nanoseconds."""
    (tmp_path / "t").mkdir()
    never = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc).replace(tzinfo=None)
    table = pa.table({"n": [1], "t": pa.array([never], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "t/a.parquet", use_deprecated_int96_timestamps=True)
    for shown in (view("TRUE"), view("t > '9999-01-01'")):
        assert rows_of(ParquetTable(tmp_path / "t"), None, tmp_path, shown) == [{"n": 1, "t": never}]


def test_a_value_that_does_not_fit_is_named_by_its_column(tmp_path: Path) -> None:
    (tmp_path / "t").mkdir()
    pq.write_table(pa.table({"t": pa.array([1], pa.timestamp("us"))}), tmp_path / "t/a.parquet")
    pq.write_table(pa.table({"t": pa.array([2**60], pa.timestamp("ms"))}), tmp_path / "t/b.parquet")
    with pytest.raises(SchemaError, match=r"'t' \(timestamp\[ms\]\) does not fit the type timestamp\[us\]") as error:
        rows_of(ParquetTable(tmp_path / "t"), None, tmp_path, view("TRUE"))
    assert str(2**60) not in error.value.message


@pytest.mark.parametrize(
    "times",
    [
        pa.array([0, 253_402_300_799_999_999], pa.timestamp("us")),  # the last microsecond of the year 9999
        pa.array([0, 253_402_300_799_999_999], pa.timestamp("us", "UTC")),
        pa.array([0, 400_000_000_000_000_000], pa.timestamp("us")),
        pa.array([-100_000_000_000_000_000, 0], pa.timestamp("us", "UTC")),
        pa.array([-800_000, 0], pa.int32()).cast(pa.date32()),
        pa.array([0, 4_000_000], pa.int32()).cast(pa.date32()),
    ],
)
def test_times_at_the_ends_have_no_bounds(times: pa.Array, tmp_path: Path) -> None:
    """Bounds are rounded to milliseconds, away from the values, and are texts with years from 1 to 9999."""
    pq.write_table(pa.table({"n": [1, 2], "t": times}), tmp_path / "a.parquet")
    found = file_statistics(tmp_path / "a.parquet", {"n": None, "t": None})
    assert found == {"numRecords": 2, "minValues": {"n": 1}, "maxValues": {"n": 2}, "nullCount": {"n": 0, "t": 0}}


def test_a_field_of_a_struct_has_no_bounds_in_the_name_of_a_column(tmp_path: Path) -> None:
    """A name of a column may have dots, like the path of a field."""
    inner = pa.StructArray.from_arrays([pa.array([1, 2])], ["n"])
    for at, columns in enumerate([{"a.n": [8, 9], "a": inner}, {"a": inner, "a.n": [8, 9]}]):
        path = tmp_path / f"{at}.parquet"
        pq.write_table(pa.table(columns), path)
        found = file_statistics(path, dict.fromkeys(columns))
        assert (found["minValues"], found["maxValues"]) == ({"a.n": 8}, {"a.n": 9})


def test_conditions_are_not_on_columns_that_differ_in_case_only(tmp_path: Path) -> None:
    """A grant on `country` must not show rows by `Country`."""
    put(tmp_path / "t/a.parquet", n=[1, 2], Country=["DE", "FR"], country=["FR", "DE"])
    table = ParquetTable(tmp_path / "t")
    assert len(rows_of(table, None, tmp_path, view("n = 1"))) == 1
    with pytest.raises(CannotShare, match="differ in case only"):
        rows_of(table, None, tmp_path, view("country = 'DE'"))


def test_columns_of_types_that_duckdb_does_not_know(tmp_path: Path) -> None:
    """They may stand beside those of a condition."""
    (tmp_path / "t").mkdir()
    halves = pa.array(np.array([0.5, 1.5], np.float16))
    pq.write_table(pa.table({"n": [1, 2], "half": halves}), tmp_path / "t/a.parquet")
    table = ParquetTable(tmp_path / "t")
    assert rows_of(table, None, tmp_path, view("n = 2")) == [{"n": 2, "half": 1.5}]
    assert rows_of(table, None, tmp_path, view("'DE' = 'FR'")) == []
    with pytest.raises(CannotShare, match="NotImplementedException"):
        rows_of(table, None, tmp_path, view("half = 0.5"))


def test_the_one_version_is_another_after_each_change(folder: Path) -> None:
    def version() -> tuple[int, Timestamp]:
        latest = ParquetTable(folder).latest
        return latest.number, latest.time

    seen = [version(), version()]
    assert seen[0] == seen[1]
    os.utime(folder, ns=(seen[0][1].nanos + 10**9,) * 2)  # as if a file had been removed from it
    seen.append(version())
    written = put(folder / "e.parquet", n=[6], word=["v"])
    os.utime(written, ns=(seen[2][1].nanos + 10**9,) * 2)
    seen.append(version())
    assert seen[0][0] < seen[2][0] < seen[3][0]
    assert [Timestamp.from_millis(number) for number, _ in seen] == [time for _, time in seen]


def test_there_is_no_other_version(folder: Path) -> None:
    table = ParquetTable(folder)
    latest = table.latest
    assert table.as_of(latest.time) == table.first_from(latest.time) == table.version(latest.number) == latest
    for number in (0, latest.number - 1, latest.number + 1):
        with pytest.raises(NoSuchVersion):
            table.version(number)
    with pytest.raises(NoSuchVersion):
        table.as_of(Timestamp(latest.time.nanos - 1))
    with pytest.raises(NoSuchVersion):
        table.first_from(Timestamp(latest.time.nanos + 1))
    assert not table.has_changes
    with pytest.raises(UsageError, match="has no change data"):
        table.changes(latest, latest)


def test_identities_are_of_the_bytes(folder: Path) -> None:
    def identities() -> set[str]:
        table = ParquetTable(folder)
        return {file.identity for file in table.files(table.latest)}

    before = identities()
    assert len(before) == 4
    put(folder / "country=DE/year=2023/b.parquet", n=[7], word=["z"])
    os.utime(folder / "country=DE/year=2023/b.parquet", ns=(1, 1))
    assert len(before & identities()) == 3


def test_an_empty_folder_has_no_columns(tmp_path: Path) -> None:
    table = ParquetTable(tmp_path)
    assert table.schema(table.latest).names == []
    assert list(table.files(table.latest)) == []


def test_a_folder_may_be_a_link(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(folder)
    assert rows_of(ParquetTable(tmp_path / "current"), None, tmp_path) == rows_of(ParquetTable(folder), None, tmp_path)
    source = shared_files(SourceKind.PARQUET, str(tmp_path / "current"))
    assert source.location == str(tmp_path / "current")


def secret(tmp_path: Path) -> Path:
    return put(tmp_path / "elsewhere/secret.parquet", n=[42], word=["secret"])


def link_to_a_file(root: Path, tmp_path: Path) -> None:
    (root / "x.parquet").symlink_to(secret(tmp_path))


def link_to_a_folder(root: Path, tmp_path: Path) -> None:
    (root / "more").symlink_to(secret(tmp_path).parent)


def link_to_itself(root: Path, _: Path) -> None:
    (root / "again").symlink_to(root)


def link_in_a_circle(root: Path, _: Path) -> None:
    (root / "x.parquet").symlink_to(root / "y.parquet")
    (root / "y.parquet").symlink_to(root / "x.parquet")


def pipe(root: Path, _: Path) -> None:
    os.mkfifo(root / "x.parquet")


def no_parquet(root: Path, _: Path) -> None:
    (root / "x.parquet").write_bytes(b"something else")


def other_columns(root: Path, _: Path) -> None:
    put(root / "x.parquet", n=["text"])


def two_of_one_name(root: Path, _: Path) -> None:
    pq.write_table(pa.table([pa.array([1]), pa.array([2])], names=["m", "m"]), root / "x.parquet")


def no_text(root: Path, _: Path) -> None:
    put(root / "country=%FF/year=2024/x.parquet", n=[1])


@pytest.mark.parametrize(
    "harm",
    [link_to_a_file, link_to_a_folder, link_to_itself, link_in_a_circle, pipe, no_parquet, other_columns,
     two_of_one_name, no_text],
)  # fmt: skip
def test_hostile_folders_harm_nothing(harm, folder: Path, tmp_path: Path) -> None:
    harm(folder, tmp_path)
    with pytest.raises(CannotShare) as raised:
        shared_files(SourceKind.PARQUET, str(folder))
    assert raised.value.hint


def test_a_link_inside_of_the_folder_is_a_file_of_it(folder: Path, tmp_path: Path) -> None:
    (folder / "country=DE/year=2024/b.parquet").symlink_to(folder / "country=DE/year=2023/b.parquet")
    found = rows_of(ParquetTable(folder), None, tmp_path)
    assert [row["year"] for row in found if row["n"] == 3] == [2023, 2024]


@pytest.mark.parametrize("name", ["nothing", "a.parquet"])
def test_what_is_no_folder(name: str, tmp_path: Path) -> None:
    put(tmp_path / "a.parquet", n=[1])
    with pytest.raises(CannotShare):
        open_files(SourceKind.PARQUET, str(tmp_path / name))


def test_columns_come_in_the_order_of_the_files(tmp_path: Path) -> None:
    for number in range(9):
        pq.write_table(pa.table({f"c{8 - number}": [number], "all": [number]}), tmp_path / f"{number}.parquet")
    table = ParquetTable(tmp_path)
    assert table.schema(table.latest).names == ["c8", "all", *(f"c{number}" for number in range(7, -1, -1))]
