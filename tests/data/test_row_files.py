"""Files of rows for others: every type of column, in every form; what is in memory is bounded."""

from __future__ import annotations

import csv
import io
import json
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.rows.files import RowFile, RowFileOptions, RowFormat
from odfpy.data.rows.folder import RowFolder
from odfpy.data.rows.plain_values import columns_of, plain
from odfpy.data.rows.text import as_json, csv_columns, ndjson_lines
from odfpy.errors import UsageError

NOON = datetime(2024, 3, 1, 12, 0, 0, 500_000, tzinfo=timezone.utc)
COLUMNS = {
    "whole": pa.array([1, None, -3], pa.int64()),
    "huge": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "flag": pa.array([True, None, False]),
    "short": pa.array([0.1, None, float("nan")], pa.float32()),
    "double": pa.array([1.0, None, float("-inf")]),
    "exact": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(10, 2)),
    "text": pa.array(['a "b"\n', None, ""]),
    "large": pa.array(["ü", None, "x"], pa.large_string()),
    "coded": pa.array(["a", None, "a"]).dictionary_encode(),
    "bytes": pa.array([b"\x00\xff", None, b""]),
    "day": pa.array([date(2024, 3, 1), None, date(1, 1, 1)]),
    "instant": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
    "local": pa.array([NOON.replace(tzinfo=None), None, None], pa.timestamp("ns")),
    "span": pa.array([timedelta(seconds=1.5), None, timedelta(0)], pa.duration("ms")),
    "list": pa.array([[1, None], None, []], pa.list_(pa.int32())),
    "parts": pa.array([{"a": 1, "b": NOON}, None, {"a": None, "b": None}]),
    "nothing": pa.nulls(3),
}
BATCH = pa.record_batch(list(COLUMNS.values()), names=list(COLUMNS))


def plain_rows(batch: pa.RecordBatch) -> list[dict[str, object]]:
    columns = columns_of(pa.Table.from_batches([batch]))
    rows = zip(*([plain(value) for value in column] for column in columns), strict=True)
    return [dict(zip(batch.schema.names, row, strict=True)) for row in rows]


def test_lines_of_json_are_what_is_printed() -> None:
    assert ndjson_lines(BATCH).to_pylist() == [as_json(row) for row in plain_rows(BATCH)]


def test_values_of_csv_are_what_is_printed() -> None:
    written = csv_columns(BATCH).to_pylist()
    for row, printed in zip(written, plain_rows(BATCH), strict=True):
        for name, value in printed.items():
            if isinstance(value, (dict, list)):
                assert row[name] == as_json(value)
            else:
                assert (row[name] if isinstance(row[name], (bool, int, type(None))) else str(row[name])) == (
                    value if isinstance(value, (bool, int, type(None))) else str(value)
                )


@given(st.lists(st.tuples(st.none() | st.text(max_size=5), st.none() | st.floats()), max_size=5), st.integers(1, 4))
def test_text_files_can_be_read_again(rows: list[tuple[str | None, float | None]], cut: int) -> None:
    batch = pa.record_batch(
        [pa.array([one for one, _ in rows], pa.string()), pa.array([two for _, two in rows], pa.float64())],
        names=["a", "b"],
    )
    lines = [line for start in range(0, len(rows), cut) for line in ndjson_lines(batch.slice(start, cut)).to_pylist()]
    assert [json.loads(line) for line in lines] == plain_rows(batch)


@pytest.mark.parametrize("name", ["x.parquet", "x.csv", "x.csv.gz", "x.ndjson", "x.ndjson.zst"])
def test_batches_make_no_difference_to_the_bytes(name: str, tmp_path: Path) -> None:
    rows = pa.record_batch([pa.array(range(1000)), pa.array([str(one) for one in range(1000)])], names=["a", "b"])
    options = RowFileOptions.of(name, **({"row_group": 300} if "parquet" in name else {}))
    infos = []
    for cut in (1000, 7):
        file = RowFile(tmp_path / f"{cut}-{name}", rows.schema, options)
        for start in range(0, 1000, cut):
            file.write(rows.slice(start, cut))
            assert file.waiting < 300
        infos.append(file.finish())
    assert infos[0].num_rows == 1000
    if options.compression is None or options.format is RowFormat.PARQUET:
        assert infos[0] == infos[1]
    if options.format is RowFormat.PARQUET:
        assert pq.read_table(tmp_path / f"7-{name}").equals(pa.Table.from_batches([rows]))
    if name == "x.csv":
        found = list(csv.reader(io.StringIO((tmp_path / "7-x.csv").read_text())))
        assert (found[0], found[-1], len(found)) == (["a", "b"], ["999", "999"], 1001)


def test_no_rows_are_a_file_without_any(tmp_path: Path) -> None:
    schema = pa.schema([("a", pa.int64()), ("b", pa.string())])
    for name, size in (("x.parquet", None), ("x.csv", 8), ("x.ndjson", 0)):
        info = RowFile(tmp_path / name, schema, RowFileOptions.of(name)).finish()
        assert info.num_rows == 0
        assert info.size == size or size is None
    (one,) = RowFolder(tmp_path / "cut", schema, RowFileOptions.of("cut"), rows_per_file=5).finish()
    assert (one.path, one.info.num_rows) == ("data_0.parquet", 0)


def test_the_name_says_the_format_unless_something_else_does() -> None:
    of = RowFileOptions.of
    assert (of("a.csv.GZ").format, of("a.csv.GZ").compression) == (RowFormat.CSV, "gzip")
    assert (of("a.jsonl").format, of("a.jsonl").compression) == (RowFormat.NDJSON, None)
    assert (of("folder").format, of("folder").compression) == (RowFormat.PARQUET, "zstd")
    assert of("a.csv", "parquet", "Uncompressed").compression is None
    assert of("a.csv", "ndjson", "zstd").suffix == ".ndjson.zst"
    with pytest.raises(UsageError, match="not compressed by 'lzma'"):
        of("a.csv", compression="lzma")
