"""Files in parts: read side by side, they give the rows of the file, or say that they were cut within a record."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.chain.sources import ReadCsv, ReadJson, ReadNdJson, ReadParquet, ReadStep
from odfpy.data.schema import DataField, DataSchema, Int64, Option, String
from odfpy.errors import BadValue
from odfpy.ingest.read import Part, parts_of, read, read_part
from odfpy.ingest.read.files import Incomplete
from odfpy.ingest.read.part import WHOLE

SCHEMA = DataSchema((DataField("id", Int64()), DataField("text", Option(String()))))
ROWS = 5_000


def in_parts(step: ReadStep, path: Path, size: int) -> pa.Table:
    """All parts; from one that ends within a record on, the rest of the file as one."""
    tables = []
    for part in parts_of(step, path, size=size):
        try:
            tables.append(read_part(step, path, part))
        except Incomplete:
            tables.append(read_part(step, path, Part(part.start)))
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


def test_what_cannot_be_cut_is_one_part(tmp_path: Path) -> None:
    path = write(tmp_path / "rows", csv_text("x"))
    for step in (ReadCsv(infer_schema=True), ReadCsv(encoding="latin-1", schema=SCHEMA), ReadJson(), ReadNdJson()):
        assert parts_of(step, path, size=100) == [WHOLE]
    assert parts_of(ReadParquet(), write(tmp_path / "empty", ""), size=1) == [WHOLE]
