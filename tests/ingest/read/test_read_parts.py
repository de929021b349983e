"""Files in parts: read side by side, they give the rows of the file, or say that they were cut within a record."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.chain.read_steps import ReadCsv, ReadGeoJson, ReadJson, ReadNdGeoJson, ReadNdJson, ReadParquet, ReadStep
from odfpy.data.schemas.schema import DataField, DataSchema, Int64, Option, String
from odfpy.errors import BadValue
from odfpy.ingest.read import FilePart, inferred_schema, parts_of, read, read_part
from odfpy.ingest.read.files import PIECE_SIZE, Incomplete, rewrite_as_utf8
from odfpy.ingest.read.part import WHOLE

SCHEMA = DataSchema((DataField("id", Int64()), DataField("text", Option(String()))))
ROWS = 5_000
QUOTED, MISLEADING = '"c\nd"', 'a"b'
FEATURE = '{"type": "Feature", "properties": {"b": 1, "a": "]}"}, "geometry": {"type": "Point", "coordinates": [1, 2]}}'


def in_parts(step: ReadStep, path: Path, size: int) -> pa.Table:
    """All parts; from one that ends within a record on, the rest of the file as one."""
    tables = []
    for part in parts_of(step, path, size=size):
        try:
            tables.append(read_part(step, path, part))
        except Incomplete:
            tables.append(read_part(step, path, FilePart(part.start)))
            break
    return pa.concat_tables(tables)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def csv_text(value: str) -> str:
    return "id,text\n" + "".join(f"{number},{value}\n" for number in range(ROWS))


@pytest.mark.parametrize("value", ["plain", '"quoted, with\nline break"', 'a " in the middle', '"" ""', "ž\r"])
@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_parts_of_a_csv_file_are_the_file(tmp_path: Path, value: str, schema: DataSchema | None) -> None:
    path = write(tmp_path / "rows.csv", csv_text(value))
    step = ReadCsv(header=True, schema=schema)
    assert len(parts_of(step, path, size=10_000)) > 4
    assert in_parts(step, path, 10_000).equals(read(step, path))


def test_quotes_that_mislead_are_found_out(tmp_path: Path) -> None:
    chance = random.Random(1)
    values = ['a"b', '"c\nd"', '"e""f"', "g"]
    for number in range(20):
        text = "".join(f"{row},{chance.choice(values)}\n" for row in range(300))
        path = write(tmp_path / f"{number}.csv", text)
        step = ReadCsv(schema=SCHEMA)
        assert in_parts(step, path, 100).equals(read(step, path))


def test_parts_of_an_ndjson_file_are_the_file(tmp_path: Path) -> None:
    lines = (f'{{"id": {number}, "text": "line {number}"}}\n' for number in range(ROWS))
    path = write(tmp_path / "rows.ndjson", "".join(lines))
    step = ReadNdJson(schema=SCHEMA)
    assert len(parts_of(step, path, size=10_000)) > 4
    assert in_parts(step, path, 10_000).equals(read(step, path))


def test_an_object_over_several_lines_is_not_lost(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.ndjson", "".join(f'{{"id":\n{number}}}\n' for number in range(99)))
    step = ReadNdJson(schema=SCHEMA)
    assert in_parts(step, path, 20).equals(read(step, path))


@pytest.mark.parametrize("schema", [SCHEMA, None])
def test_parts_of_a_parquet_file_are_row_groups(tmp_path: Path, schema: DataSchema | None) -> None:
    path = tmp_path / "rows.parquet"
    table = pa.table({"id": range(ROWS), "text": ["text"] * ROWS})
    pq.write_table(table, path, row_group_size=700)
    step = ReadParquet(schema=schema)
    assert len(parts_of(step, path, size=10_000)) > 2
    assert in_parts(step, path, 10_000).equals(read(step, path))


def test_errors_in_a_part_name_the_place_in_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "rows.csv", csv_text("x") + "wrong,x\n")
    step = ReadCsv(header=True, schema=SCHEMA)
    *_, last = parts_of(step, path, size=1_000)
    with pytest.raises(BadValue, match=f"line {ROWS + 2}: column 'id' has 'wrong'"):
        read_part(step, path, last)
    rows = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"id": pa.array([1, 2, 3, None])}), rows, row_group_size=1)
    *_, last = parts_of(ReadParquet(schema=SCHEMA), rows, size=1)
    with pytest.raises(BadValue, match="row 4: column 'id' has no value"):
        read_part(ReadParquet(schema=SCHEMA), rows, last)


def test_the_rest_of_a_file_may_mislead_too(tmp_path: Path) -> None:
    """What is read again from a place on, since a part ended within a record, is more than a piece."""
    text = f"0,start\n1,{MISLEADING}\n" + f"2,{QUOTED}\n" * (3 * PIECE_SIZE // 8)
    path = write(tmp_path / "rows.csv", text)
    step = ReadCsv(schema=SCHEMA)
    rest = read_part(step, path, FilePart(len("0,start\n")))
    assert rest.equals(read(step, path).slice(1))


@pytest.mark.parametrize(
    ("step", "text"),
    [
        (ReadCsv(header=True, infer_schema=True), "id,text,real\n" + "1,a,1\n" * 200 + "2,b,1.5\n"),
        (ReadJson(), '[{"id": 1, "list": [1]}' + ', {"list": [1.5], "text": "a"}' * 200 + "]"),
        (ReadNdJson(), '{"id": 1, "list": [1]}\n' + '{"list": [1.5], "text": "a"}\n' * 200),
        (ReadGeoJson(), '{"type": "FeatureCollection", "features": [' + f"{FEATURE},\n" * 200 + f"{FEATURE}]}}"),
        (ReadNdGeoJson(), f"{FEATURE}\n" * 200),
    ],
    ids=lambda step: type(step).__name__,
)
def test_parts_can_be_read_with_the_inferred_schema(tmp_path: Path, step: ReadStep, text: str) -> None:
    path = write(tmp_path / "rows", text)
    expected = read(step, path)
    schema = inferred_schema(step, path)
    assert schema is not None
    with_schema = replace(step, schema=schema)
    assert len(parts_of(with_schema, path, size=300)) > 4
    assert in_parts(with_schema, path, 300).equals(expected)
    assert in_parts(with_schema, path, 300).schema.equals(expected.schema)


def test_no_schema_is_inferred_where_there_is_one_or_nothing_tells_any(tmp_path: Path) -> None:
    path = write(tmp_path / "rows", "")
    for step in (ReadCsv(infer_schema=True), ReadJson(), ReadNdJson(), ReadGeoJson(), ReadNdGeoJson(), ReadParquet()):
        assert inferred_schema(step, path) is None
    write(path, '{"id": 1}')
    assert inferred_schema(ReadNdJson(schema=SCHEMA), path) is None
    assert inferred_schema(ReadCsv(), path) is None, "all is text"


@pytest.mark.parametrize("encoding", ["utf-16", "windows-1252", "utf-8"])
def test_text_that_is_written_again_stays_what_it_is(tmp_path: Path, encoding: str) -> None:
    marks = "\ufeff" if encoding == "utf-16" else ""
    path = tmp_path / "rows.csv"
    path.write_bytes((marks + "é,1\n").encode(encoding))
    rewrite_as_utf8(path, "rows.csv", encoding, tmp_path / "again")
    assert read(ReadCsv(), tmp_path / "again").equals(read(ReadCsv(encoding=encoding), path))


def test_what_cannot_be_cut_is_one_part(tmp_path: Path) -> None:
    path = write(tmp_path / "rows", csv_text("x"))
    for step in (ReadCsv(infer_schema=True), ReadCsv(encoding="latin-1", schema=SCHEMA), ReadJson(), ReadNdJson()):
        assert parts_of(step, path, size=100) == [WHOLE]
    assert parts_of(ReadParquet(), write(tmp_path / "empty", ""), size=1) == [WHOLE]
