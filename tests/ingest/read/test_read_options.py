"""Every option of every read step does something; and what no reader may let pass."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any

import pytest
from support.chains.schemas import optional
from support.ingest.reading import Reader, set_piece_size
from support.ingest.shapefiles import files, zipped

from odfpy.chain.read_steps import (
    ReadCsv,
    ReadEsriShapefile,
    ReadGeoJson,
    ReadJson,
    ReadNdGeoJson,
    ReadNdJson,
    ReadParquet,
    ReadStep,
)
from odfpy.data.schemas.schema import Bool, DataType, Date, Decimal, Float32, Float64, Int8, Int64, Timestamp, UInt8
from odfpy.errors import BadValue, OdfError

DAY = optional(a=Date())
NOW = optional(a=Timestamp())
TWO_SHAPEFILES = zipped({**files("null", [(None, {"id": 1, "name": "x"})], name="a"), **files("null", [], name="b")})

# Step without the option, the option, its value, and a file that is then read in another way, or at all.
OPTIONS: list[tuple[ReadStep, str, Any, str | bytes]] = [
    (ReadCsv(), "separator", ";", "1;2\n"),
    (ReadCsv(), "encoding", "latin-1", b"\xe9\n"),
    (ReadCsv(), "quote", "'", "'1,2'\n"),
    (ReadCsv(), "escape", "~", '"1~"2"\n'),
    (ReadCsv(), "header", True, "1\n2\n"),
    (ReadCsv(), "infer_schema", True, "1\n2\n"),
    (ReadCsv(), "null_value", "NA", "NA\n"),
    (ReadCsv(schema=DAY), "date_format", "%d.%m.%Y", "31.12.2024\n"),
    (ReadCsv(schema=NOW), "timestamp_format", "%d.%m.%Y %H:%M", "31.12.2024 12:30\n"),
    (ReadCsv(), "schema", optional(a=Int64()), "1\n"),
    (ReadCsv(), "ddl_schema", ("a BIGINT",), "1\n"),
    (ReadJson(), "sub_path", "b.c", '{"b": {"c": [{"a": 1}]}}'),
    (ReadJson(), "encoding", "latin-1", b'[{"a": "\xe9"}]'),
    (ReadJson(schema=DAY), "date_format", "dd.MM.yyyy", '[{"a": "31.12.2024"}]'),
    (ReadJson(schema=NOW), "timestamp_format", "dd.MM.yyyy HH:mm", '[{"a": "31.12.2024 12:30"}]'),
    (ReadJson(), "schema", optional(a=Float64()), '[{"a": 1}]'),
    (ReadJson(), "ddl_schema", ("a DOUBLE",), '[{"a": 1}]'),
    (ReadNdJson(), "encoding", "latin-1", b'{"a": "\xe9"}'),
    (ReadNdJson(schema=DAY), "date_format", "%d.%m.%Y", '{"a": "31.12.2024"}'),
    (ReadNdJson(schema=NOW), "timestamp_format", "%d.%m.%Y %H:%M", '{"a": "31.12.2024 12:30"}'),
    (ReadNdJson(), "schema", optional(a=Float64()), '{"a": 1}'),
    (ReadNdJson(), "ddl_schema", ("a DOUBLE",), '{"a": 1}'),
    (ReadGeoJson(), "schema", optional(a=Float64()), '{"type": "FeatureCollection", "features": []}'),
    (ReadGeoJson(), "ddl_schema", ("a DOUBLE",), '{"type": "FeatureCollection", "features": []}'),
    (ReadNdGeoJson(), "schema", optional(a=Float64()), '{"type": "Feature", "properties": {}, "geometry": null}'),
    (ReadNdGeoJson(), "ddl_schema", ("a DOUBLE",), '{"type": "Feature", "properties": {}, "geometry": null}'),
    (ReadEsriShapefile(), "sub_path", "a.*", TWO_SHAPEFILES),
    (ReadEsriShapefile(sub_path="a.shp"), "schema", optional(id=Float64()), TWO_SHAPEFILES),
    (ReadEsriShapefile(sub_path="a.shp"), "ddl_schema", ("id DOUBLE",), TWO_SHAPEFILES),
    (ReadParquet(), "schema", optional(id=Float64()), b""),
    (ReadParquet(), "ddl_schema", ("id DOUBLE",), b""),
]


def test_every_option_is_tried():
    steps = (ReadCsv, ReadJson, ReadNdJson, ReadGeoJson, ReadNdGeoJson, ReadEsriShapefile, ReadParquet)
    every = {(step, field.name) for step in steps for field in fields(step)}
    assert {(type(step), option) for step, option, _, _ in OPTIONS} == every


@pytest.mark.parametrize(("step", "option", "value", "content"), OPTIONS)
def test_option_makes_a_difference(read_input: Reader, step: ReadStep, option: str, value: Any, content: str | bytes):
    table = read_input(replace(step, **{option: value}), content)
    try:
        without = read_input(step, content)
    except OdfError:
        return
    assert without.schema != table.schema or without.to_pylist() != table.to_pylist()


# --- What no reader may let pass ---

WRONG: list[tuple[DataType, str]] = [
    (Int64(), "9223372036854775808"),
    (Int8(), "128"),
    (UInt8(), "-1"),
    (Int64(), "1.5"),
    (Int64(), "1e-1"),
    (Float64(), "1e999"),
    (Float32(), "1e39"),
    (Decimal(4, 2), "1.005"),
    (Decimal(4, 2), "100"),
    (Date(), "2023-02-29"),
    (Date(), "2024-13-01"),
    (Date(), "0000-01-01"),
    (Timestamp(), "2024-01-01T25:00:00Z"),
    (Timestamp(), "2024-02-30T00:00:00Z"),
    (Timestamp(), "yesterday"),
    (Bool(), "yes"),
]


def as_feature(text: str) -> str:
    return json.dumps({"type": "Feature", "properties": {"a": text}, "geometry": None})


FORMATS: list[tuple[str, ReadStep, Callable[[str], str]]] = [
    ("csv", ReadCsv(), lambda text: f"{text}\n"),
    ("json", ReadJson(), lambda text: json.dumps([{"a": text}])),
    ("ndjson", ReadNdJson(), lambda text: json.dumps({"a": text})),
    ("ndjson number", ReadNdJson(), lambda text: f'{{"a": {text}}}'),
    ("geojson", ReadGeoJson(), lambda text: '{"type": "FeatureCollection", "features": [' + as_feature(text) + "]}"),
    ("ndgeojson", ReadNdGeoJson(), as_feature),
]  # fmt: skip


@pytest.mark.parametrize(("wanted", "text"), WRONG, ids=str)
@pytest.mark.parametrize(
    ("step", "write"), [(step, write) for _, step, write in FORMATS], ids=[name for name, _, _ in FORMATS]
)
def test_numbers_out_of_range_and_days_that_do_not_exist(
    read_input: Reader, wanted: DataType, text: str, step: ReadStep, write: Callable[[str], str]
):
    content = write(text)
    is_number = content == f'{{"a": {text}}}'
    if is_number and not isinstance(wanted, Int64 | Int8 | UInt8 | Float64 | Float32 | Decimal):
        content = write(f'"{text}"')
    with pytest.raises(BadValue, match=r"^input, line 1: column 'a' has '") as caught:
        read_input(replace(step, schema=optional(a=wanted)), content)
    assert text in caught.value.message


LINES = ['{"a": 1}', '{"a": 2}', '{"a": "x"}']


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("ends", [("\n", "\r\n", "\n"), ("\r\n", "\n", ""), ("\n\n", "\r\n\r\n", "\n")])
def test_marks_and_mixed_line_ends_change_nothing_but_the_numbers_of_lines(
    read_input: Reader, small_pieces: None, mark: str, ends: tuple[str, str, str]
):
    schema = optional(a=Int64())
    csv = mark + "".join(f"{number}{end}" for number, end in zip((1, 2, 3), ends, strict=True))
    assert read_input(ReadCsv(schema=schema), csv).column("a").to_pylist() == [1, 2, 3]
    line = 1 + sum(max(1, end.count("\n")) for end in ends[:2])
    with pytest.raises(BadValue, match=f"^input, line {line}: column 'a' has 'x'"):
        read_input(ReadCsv(schema=schema), csv.replace("3", "x"))
    with pytest.raises(BadValue, match=f"^input, line {line}: column 'a' has 'x'"):
        read_input(ReadNdJson(schema=schema), mark + "".join(map("".join, zip(LINES, ends, strict=True))))


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r", "\n\n\n"])
def test_line_breaks_in_quotes_are_part_of_the_value(read_input: Reader, small_pieces: None, line_break: str):
    rows = 30
    content = f"a,b\n{f'1,{chr(34)}x{line_break}y{chr(34)}{chr(10)}' * rows}"
    table = read_input(ReadCsv(header=True), content)
    assert table.column("b").to_pylist() == [f"x{line_break}y"] * rows
    breaks = len(line_break.replace("\r\n", "\n"))
    with pytest.raises(BadValue, match=f"^input, line {2 + rows * (1 + breaks)}: 1 value for 2 columns"):
        read_input(ReadCsv(header=True), content + "1\n")


@pytest.mark.parametrize("piece_size", [1 << 20, 7])
def test_a_byte_order_mark_within_a_file_is_not_overlooked(
    read_input: Reader, piece_size: int, monkeypatch: pytest.MonkeyPatch
):
    set_piece_size(monkeypatch, piece_size)
    assert read_input(ReadCsv(), "\ufeffabcdef\n\ufeffx\n").column(0).to_pylist() == ["abcdef", "\ufeffx"]
    with pytest.raises(BadValue, match="line 2: this is not JSON"):
        read_input(ReadNdJson(schema=optional(a=Int64())), '\ufeff{"a": 1}\n\ufeff{"a": 2}')
