"""JSON and newline-delimited JSON: kinds of values, nesting, inference, places of errors, and one meaning for both ways
of reading.
"""

from __future__ import annotations

import json
import math
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal as Dec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chains.schemas import optional, required
from support.examples import examples
from support.ingest.reading import Reader, set_piece_size

import odfpy.ingest.read.json as json_reader
from odfpy.chain.read_steps import ReadJson, ReadNdJson
from odfpy.data.schemas.schema import (
    Binary,
    Bool,
    DataField,
    DataSchema,
    DataType,
    Date,
    Decimal,
    Duration,
    Float16,
    Float32,
    Float64,
    Int8,
    Int64,
    List,
    Map,
    Option,
    String,
    Struct,
    Time,
    Timestamp,
    TimeUnit,
    UInt64,
)
from odfpy.errors import BadValue, OdfError

POINT = Struct((DataField("x", Float64()), DataField("label", Option(String()))))


def utc(*args: int) -> datetime:
    return datetime(*args, tzinfo=timezone.utc)


@pytest.fixture(params=["both ways", "by Python"])
def either_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once with Arrow's reader where it can be trusted, once without it."""
    if request.param == "by Python":
        monkeypatch.setattr(json_reader, "_series_by_arrow", lambda *_: None)
        monkeypatch.setattr(json_reader, "_array_by_arrow", lambda *_: None)


FITS: list[tuple[DataType, str, Any]] = [
    (Bool(), "true", True),
    (Int64(), "9223372036854775807", 2**63 - 1),
    (Int64(), "-0", 0),
    (Int64(), "1.0", 1),
    (Int64(), "1e3", 1000),
    (Int64(), '"42"', 42),
    (UInt64(), "18446744073709551615", 2**64 - 1),
    (Float64(), "1", 1.0),
    (Float64(), "-0.0", -0.0),
    (Float64(), '"1.5"', 1.5),
    (Float64(), "Infinity", math.inf),
    (Float32(), "1.1", 1.100000023841858),
    (Float16(), "1.5", 1.5),
    (Decimal(10, 2), "1.10", Dec("1.10")),
    (Decimal(10, 2), '"1.10"', Dec("1.10")),
    (Decimal(10, 2), "1e2", Dec("100.00")),
    (Decimal(10, 2), "150e-2", Dec("1.50")),
    (Decimal(30, 10), "12345678901234567890.0123456789", Dec("12345678901234567890.0123456789")),
    (Decimal(50, 2), "123456789012345678901234567890123456789.25", Dec("123456789012345678901234567890123456789.25")),
    (String(), '"\\u017e\\n\\"x\\" \\ud83d\\ude00"', 'ž\n"x" 😀'),
    (String(), '"NULL"', "NULL"),
    (String(), '""', ""),
    (Date(), '"2024-02-29"', date(2024, 2, 29)),
    (Time(), '"12:34:56.789"', time(12, 34, 56, 789000)),
    (Timestamp(), '"2024-01-01T12:00:00+02:00"', utc(2024, 1, 1, 10)),
    (Timestamp(), '"2024-01-01 12:00:00"', utc(2024, 1, 1, 12)),
    (Timestamp(TimeUnit.MILLISECOND), "1704067200123", utc(2024, 1, 1, 0, 0, 0, 123000)),
    (Timestamp(TimeUnit.SECOND), "-1", utc(1969, 12, 31, 23, 59, 59)),
    (Duration(TimeUnit.SECOND), "0", timedelta(0)),
    (Binary(), '"00ff"', b"\x00\xff"),
    (List(Int64()), "[1, 2]", [1, 2]),
    (List(Option(Int64())), "[null]", [None]),
    (List(Int64()), "[]", []),
    (List(Int64(), 2), "[1, 2]", [1, 2]),
    (List(List(String())), '[["a"], []]', [["a"], []]),
    (POINT, '{"x": 1, "extra": 2}', {"x": 1.0, "label": None}),
    (List(POINT), '[{"label": "p", "x": -1}]', [{"x": -1.0, "label": "p"}]),
    (Map(String(), Int64()), '{"a": 1, "b": 2}', [("a", 1), ("b", 2)]),
    (Struct((DataField("t", Timestamp()),)), '{"t": "2024-01-01"}', {"t": utc(2024, 1, 1)}),
]

DOES_NOT_FIT: list[tuple[DataType, str, str]] = [
    (Bool(), "1", "column 'v' has '1', which is not a valid Bool"),
    (Bool(), '"true"', "column 'v' has '\"true\"', which is not a valid Bool"),
    (Int64(), "9223372036854775808", "column 'v' has '9223372036854775808', which is not a valid Int64"),
    (Int64(), "1.5", "column 'v' has '1.5', which is not a valid Int64"),
    (Int64(), "1e999999999", "column 'v' has '1e999999999', which is not a valid Int64"),
    (Int64(), "true", "column 'v' has 'true', which is not a valid Int64"),
    (Int8(), "128", "column 'v' has '128', which is not a valid Int8"),
    (Int8(), '" 1"', "column 'v' has ' 1', which is not a valid Int8"),
    (Float64(), "1e400", "column 'v' has '1e400', which is not a valid Float64"),
    (Float32(), "1e39", "column 'v' has '1e39', which is not a valid Float32"),
    (Decimal(10, 2), "1.005", "column 'v' has '1.005', which is not a valid Decimal(10, 2)"),
    (Decimal(10, 2), "100000000", "column 'v' has '100000000', which is not a valid Decimal(10, 2)"),
    (Decimal(10, 2), "1e-77", "column 'v' has '1e-77', which is not a valid Decimal(10, 2)"),
    (Decimal(38, 38), "40130", "column 'v' has '40130', which is not a valid Decimal(38, 38)"),
    (Decimal(38, 31), "-184024328e1", "column 'v' has '-184024328e1', which is not a valid Decimal(38, 31)"),
    (List(Decimal(38, 38)), "[40130]", "column 'v[]' has '40130', which is not a valid Decimal(38, 38)"),
    (Decimal(10, 2), "NaN", "column 'v' has 'NaN', which is not a valid Decimal(10, 2)"),
    (String(), "1", "column 'v' has '1', which is not a valid String"),
    (String(), '{"a": [1]}', "column 'v' has '{\"a\": [1]}', which is not a valid String"),
    (String(), '"\\ud800"', "column 'v' has '\"\\\\ud800\"', which is not a valid String"),
    (Date(), '"2024-02-30"', "column 'v' has '2024-02-30', which is not a valid Date"),
    (Date(), "19723", "column 'v' has '19723', which is not a valid Date"),
    (Timestamp(), '"yesterday"', "column 'v' has 'yesterday', which is not a valid Timestamp"),
    (Timestamp(), "1.5", "column 'v' has '1.5', which is not a valid Timestamp"),
    (Timestamp(), "99999999999999999", "column 'v' has '99999999999999999', which is not a valid Timestamp"),
    (List(Int64()), "{}", "column 'v' has '{}', which is not a valid List"),
    (List(Int64()), '[1, "x"]', "column 'v[]' has 'x', which is not a valid Int64"),
    (List(Int64()), "[1, null]", "column 'v[]' has no value, but Int64 is required"),
    (List(Int64(), 2), "[1]", "column 'v' has '1 items', which is not a valid List of 2 items"),
    (POINT, "[]", "column 'v' has '[]', which is not a valid Struct"),
    (POINT, "{}", "column 'v.x' has no value, but Float64 is required"),
    (List(POINT), '[{"x": 1}, {"x": "y"}]', "column 'v[].x' has 'y', which is not a valid Float64"),
    (Map(String(), Int64()), '{"a": null}', "column 'v{}' has no value, but Int64 is required"),
    (Int64(), "null", "column 'v' has no value, but Int64 is required"),
    (Int64(), '1, "v": 2', "column 'v' has 'two values', which is not a valid Int64"),
]


@pytest.mark.parametrize(("wanted", "text", "value"), FITS, ids=str)
def test_value_fits(read_input: Reader, either_way: None, wanted: DataType, text: str, value: Any):
    lines = f'{{"v": {text}}}\n{{}}\n{{"v": null}}\n'
    table = read_input(ReadNdJson(schema=optional(v=wanted)), lines)
    assert table["v"].to_pylist() == [value, None, None]
    array = read_input(ReadJson(schema=optional(v=wanted)), f'[{{"v": {text}}}, {{}}, {{"v": null}}]')
    assert array.equals(table)


@pytest.mark.parametrize(("wanted", "text", "message"), DOES_NOT_FIT, ids=str)
def test_value_does_not_fit(read_input: Reader, either_way: None, wanted: DataType, text: str, message: str):
    schema = DataSchema((DataField("v", wanted), DataField("w", Option(Int64()))))
    with pytest.raises(BadValue) as caught:
        read_input(ReadNdJson(schema=schema), f'\n{{"v": {text}}}\n')
    assert caught.value.message == f"input, line 2: {message}"


def test_numbers_of_milliseconds_do_not_pass_for_seconds(read_input: Reader):
    """A number is counted in the unit of the type; without a schema it stays a number."""
    assert read_input(ReadNdJson(), '{"event_time": 1704067200}').to_pydict() == {"event_time": [1704067200]}


def test_numbers_may_follow_a_format(read_input: Reader):
    step = ReadNdJson(schema=required(t=Timestamp(), d=Date()), timestamp_format="%Y%m%d", date_format="%d.%m.%Y")
    table = read_input(step, '{"t": 20240131, "d": "1.2.2024"}')
    assert table.to_pylist() == [{"t": utc(2024, 1, 31), "d": date(2024, 2, 1)}]


def test_fields_may_come_in_any_order_be_missing_or_be_more(read_input: Reader, either_way: None):
    step = ReadNdJson(schema=optional(a=Int64(), b=String()))
    table = read_input(step, '{"b":"x","zzz":{"deep":[1]},"a":1}\n\n  {"a":2}{"b":"y"}\r\n{}')
    assert table.to_pydict() == {"a": [1, 2, None, None], "b": ["x", None, "y", None]}


def test_objects_may_span_lines(read_input: Reader, either_way: None, small_pieces: None):
    text = "".join(json.dumps({"a": i, "b": None, "c": [None, i]}, indent=1) + "\n" for i in range(30))
    table = read_input(ReadNdJson(schema=optional(a=Int64(), c=List(Option(Int64())))), text)
    assert table["a"].to_pylist() == list(range(30))
    assert table["c"].to_pylist() == [[None, i] for i in range(30)]


@pytest.mark.parametrize("text", ["", "\n", " \r\n\n"])
def test_nothing_is_no_rows(read_input: Reader, text: str):
    assert read_input(ReadNdJson(schema=required(a=Int64())), text).num_rows == 0
    assert read_input(ReadNdJson(), text).num_rows == 0


# --- Places ---

BROKEN = [
    ('{"a":1}\n{"a":\n', "input, line 2: this is not JSON: expecting value"),
    ('{"a":1}\n{"a":1\n{"a":2}\n', "input, line 2: this is not JSON: expecting ',' delimiter"),
    ('{"a":1}\n\n[1]\n', "input, line 3: '[1]' is not an object"),
    ("null\n", "input, line 1: 'null' is not an object"),
    ('{"a":1}\nnull\n', "input, line 2: 'null' is not an object"),
    ('{"a":1} 5\n', "input, line 1: '5' is not an object"),
    ('{"a":1}\n{"a":01}\n', "input, line 2: this is not JSON: expecting ',' delimiter"),
    ("{'a':1}\n", "input, line 1: this is not JSON: expecting property name enclosed in double quotes"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
@pytest.mark.parametrize("lines_before", [0, 30])
def test_broken_record_is_named(read_input: Reader, small_pieces: None, text: str, message: str, lines_before: int):
    number = int(message.partition("line ")[2].partition(":")[0])
    with pytest.raises(BadValue) as caught:
        read_input(ReadNdJson(schema=optional(a=Int64())), '{"a":0}\n' * lines_before + text)
    assert caught.value.message == message.replace(f"line {number}:", f"line {number + lines_before}:")


def test_bytes_that_are_not_utf8_are_an_error_wherever_they_are(read_input: Reader):
    with pytest.raises(BadValue, match=r"^input, line 2: byte 0xff is not utf-8$"):
        read_input(ReadNdJson(schema=optional(a=Int64())), b'{"a":1}\n{"b":"\xff"}\n')


def test_other_encodings(read_input: Reader):
    step = ReadNdJson(schema=required(a=String()), encoding="utf-16")
    assert read_input(step, '{"a":"ž"}'.encode("utf-16"))["a"].to_pylist() == ["ž"]


@pytest.mark.parametrize("infer", [False, True])
def test_very_deep_nesting_is_an_error(read_input: Reader, infer: bool):
    deep = '{"a":' + "[" * 200_000 + "]" * 200_000 + "}"
    with pytest.raises(BadValue, match="nested too deeply"):
        read_input(ReadNdJson(schema=None if infer else required(a=Int64())), deep)


# --- Arrays ---


def test_array_below_a_path(read_input: Reader, either_way: None):
    step = ReadJson(sub_path="result.cities", schema=required(city=String(), population=Int64()))
    text = (
        '{"ok": true, "result": {"n": 2, "cities": [{"city": "A", "population": 1}, {"population": 2, "city": "B"}]}}'
    )
    assert read_input(step, text).to_pydict() == {"city": ["A", "B"], "population": [1, 2]}


@pytest.mark.parametrize(("step", "text"), [(ReadJson(), "[]"), (ReadJson(sub_path="a.b"), '{"a": {"b": []}}')])
def test_empty_array_is_no_rows(read_input: Reader, either_way: None, step: ReadJson, text: str):
    assert read_input(step, text).num_rows == 0
    table = read_input(ReadJson(sub_path=step.sub_path, schema=required(x=Int64())), text)
    assert (table.num_rows, table.column_names) == (0, ["x"])


@pytest.mark.parametrize(
    ("sub_path", "text", "message"),
    [
        (None, "{}", "input, line 1: the document is not an array"),
        (None, '[\n{"x": 1},\n2]', "input, line 3: '2' is not an object"),
        (None, '[\n{"x": 1},\n{"x": "y"}]', "input, line 3: column 'x' has 'y', which is not a valid Int64"),
        (None, '[{"x": 1}', "input, line 1: a comma or the end of the array is missing"),
        (None, '[{"x": 1}] 2', "input, line 1: something follows after the end of the document"),
        (None, '[{"x": 1}], "y": [2]', "input, line 1: something follows after the end of the document"),
        (None, "[{'x': 1}]", "input, line 1: this is not JSON: expecting property name enclosed in double quotes"),
        ("a", "[]", "input, line 1: the document is not an object"),
        ("a", "{}", "input, line 1: there is nothing under 'a'"),
        ("a.b", '{"a": {"c": []}}', "input, line 1: there is nothing under 'a.b'"),
        ("a.b", '{"a":\n {"b": null}}', "input, line 2: 'a.b' is not an array"),
        ("a", '{"a": [], "a": []}', "input, line 1: key 'a' occurs twice"),
        ("a", '{"a": [] "b": 1}', "input, line 1: a comma or the end of the object is missing"),
        ("a", '{"a": []} {"a": []}', "input, line 1: something follows after the end of the document"),
    ],
)
@pytest.mark.parametrize("piece_size", [1 << 20, 4, 9])
def test_document_without_such_an_array(
    read_input: Reader, sub_path: str | None, text: str, message: str, piece_size: int, monkeypatch: pytest.MonkeyPatch
):
    set_piece_size(monkeypatch, piece_size)
    with pytest.raises(BadValue) as caught:
        read_input(ReadJson(sub_path=sub_path, schema=required(x=Int64())), text)
    assert caught.value.message == message


# --- Inference ---

INFERRED = [
    (["1", "null"], pa.int64()),
    (["1", "2.5"], pa.float64()),
    (["true", "false"], pa.bool_()),
    (['"x"', "null"], pa.string()),
    (['"2024-01-01T00:00:00Z"'], pa.string()),
    (["null"], pa.null()),
    (['{"x": null}', '{"x": null, "y": 1}'], pa.struct([("x", pa.null()), ("y", pa.int64())])),
    (["[null]", "[]"], pa.list_(pa.string())),
    (['[{"x": null}]'], pa.list_(pa.struct([("x", pa.string())]))),
    (["[]", "[1]"], pa.list_(pa.int64())),
    (["[]"], pa.list_(pa.string())),
    (['{"x": 1}', '{"y": "a"}'], pa.struct([("x", pa.int64()), ("y", pa.string())])),
]


@pytest.mark.parametrize(("values", "wanted"), INFERRED, ids=str)
def test_inferred_types(read_input: Reader, either_way: None, values: list[str], wanted: pa.DataType):
    table = read_input(ReadNdJson(), "".join(f'{{"b": 1, "v": {value}}}\n' for value in values) + '{"a": 1}')
    assert table.schema == pa.schema([("b", pa.int64()), ("v", wanted), ("a", pa.int64())])
    array = read_input(ReadJson(), "[" + ",".join(f'{{"v": {value}}}' for value in values) + "]")
    assert array.schema == pa.schema([("v", wanted)])


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["1", '"x"'],
            "input, line 2: column 'v' has '\"x\"', which is not a valid number as in the records before it",
        ),
        (["[1]", "{}"], "input, line 2: column 'v' has '{}', which is not a valid array as in the records before it"),
        (["{}"], "input, line 1: column 'v' has '{}', which is not a valid Struct with members"),
        (["9223372036854775808"], "input, line 1: column 'v' has '9223372036854775808', which is not a valid Int64"),
        (
            ["1.5", "9007199254740993"],
            "input, line 2: column 'v' has '9007199254740993', which is not a valid Float64 without loss",
        ),
    ],
)
def test_what_has_no_common_type_is_an_error(read_input: Reader, either_way: None, values: list[str], message: str):
    with pytest.raises(BadValue) as caught:
        read_input(ReadNdJson(), "".join(f'{{"v": {value}}}\n' for value in values))
    assert caught.value.message == message


def test_key_that_cannot_be_the_name_of_a_column_is_an_error(read_input: Reader, either_way: None):
    with pytest.raises(BadValue, match=r"line 1: .*ud800"):
        read_input(ReadNdJson(), '{"\\ud800": 1}')


def test_records_without_members_are_not_lost_silently(read_input: Reader, either_way: None):
    with pytest.raises(BadValue, match="line 1: the records have no members"):
        read_input(ReadNdJson(), "{}\n{}\n")
    assert read_input(ReadNdJson(schema=optional(a=Int64())), "{}\n{}\n").num_rows == 2


# --- Both ways have one meaning ---

SCHEMA = DataSchema(
    (
        DataField("i", Int64()),
        DataField("x", Option(Float64())),
        DataField("m", Option(Decimal(12, 3))),
        DataField("s", Option(String())),
        DataField("t", Option(Timestamp(TimeUnit.MICROSECOND))),
        DataField("d", Option(Date())),
        DataField("f", Option(Bool())),
        DataField("l", Option(List(Option(Int64())))),
        DataField("p", Option(Struct((DataField("x", Int64()), DataField("t", Option(Timestamp())))))),
    )
)
MILLIS = st.datetimes(timezones=st.just(timezone.utc)).map(
    lambda t: t.replace(microsecond=t.microsecond // 1000 * 1000)
)
INT64 = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6) | st.sampled_from(["} null", "[[[", "null", "\n"])
RECORDS = st.lists(
    st.fixed_dictionaries(
        {"i": INT64},
        optional={
            "x": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "m": st.none() | st.decimals(-(10**8), 10**8, places=3),
            "s": st.none() | TEXT,
            "t": st.none() | st.datetimes(timezones=st.just(timezone.utc)),
            "d": st.none() | st.dates(),
            "f": st.none() | st.booleans(),
            "l": st.none() | st.lists(st.none() | INT64, max_size=3),
            "p": st.none() | st.fixed_dictionaries({"x": INT64}, optional={"t": st.none() | MILLIS}),
        },
    ),
    max_size=8,
)


def to_text(value: Any, ascii_only: bool) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f'"{key}": {to_text(item, ascii_only)}' for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(to_text(item, ascii_only) for item in value) + "]"
    if isinstance(value, (datetime, date)):
        return f'"{value.isoformat()}"'
    return str(value) if isinstance(value, Dec) else json.dumps(value, ensure_ascii=ascii_only)


def complete(record: dict[str, Any]) -> dict[str, Any]:
    whole = {name: record.get(name) for name in SCHEMA.names}
    if whole["p"] is not None:
        whole["p"] = {"x": whole["p"]["x"], "t": whole["p"].get("t")}
    return whole


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=RECORDS, ascii_only=st.booleans(), piece_size=st.integers(1, 300))
def test_what_was_written_is_read(read_input: Reader, records: list[dict[str, Any]], ascii_only: bool, piece_size: int):
    texts = [to_text(record, ascii_only) for record in records]
    wanted = [complete(record) for record in records]
    with pytest.MonkeyPatch.context() as patch:
        set_piece_size(patch, piece_size)
        series = read_input(ReadNdJson(schema=SCHEMA), "\n".join(texts))
        array = read_input(ReadJson(sub_path="a", schema=SCHEMA), '{"a": [' + ",\n".join(texts) + "]}")
        patch.setattr(json_reader, "_series_by_arrow", lambda *_: None)
        by_python = read_input(ReadNdJson(schema=SCHEMA), "\n".join(texts))
    assert series.to_pylist() == wanted
    assert array.equals(series)
    assert by_python.equals(series)


BASE = [
    b'{"i":1,"x":1.5,"m":2.125,"s":"a","t":"2024-01-01","d":"2024-01-01","f":true,"l":[1,null],"p":{"x":1}}\n',
    b'{"i":2,"x":null,"m":"1e1","s":"null }","l":[],"p":null}\n',
]
TOKENS = [b"null", b"{", b"}", b"[", b"]", b",", b":", b'"', b"1", b"\n", b"true", b"\\", b"\0", b"\xff", b"1e99", b" "]


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    content = bytearray(b"".join(draw(st.lists(st.sampled_from(BASE), min_size=1, max_size=3))))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(content)))
        content[at : at + draw(st.integers(0, 6))] = draw(st.sampled_from([b"", *TOKENS]))
    return bytes(content)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(120, 400))
@given(content=mutated(), schema=st.sampled_from([SCHEMA, None]))
def test_damaged_input_gives_the_same_rows_or_error_either_way(
    read_input: Reader, content: bytes, schema: DataSchema | None
):
    outcomes = []
    with pytest.MonkeyPatch.context() as patch:
        for by_arrow in (json_reader._series_by_arrow, lambda *_: None):
            patch.setattr(json_reader, "_series_by_arrow", by_arrow)
            try:
                table = read_input(ReadNdJson(schema=schema), content)
                outcomes.append((table.schema, repr(table.to_pylist())))
            except OdfError as error:
                outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


@pytest.mark.parametrize("sub_path", [None, "a.b"])
def test_large_array_is_read_in_pieces(read_input: Reader, sub_path: str | None):
    items = [f'{{"i": {i}, "s": "]}} \\" ["}}' for i in range(100_000)]
    before, after = ('{"a": {"c": [[]], "b": ', ' , "d": "x"}, "e": {}}') if sub_path else ("", "")

    def document(more: str = "") -> str:
        return before + "[\n" + ",\n".join(items) + more + "]" + after

    step = ReadJson(sub_path=sub_path, schema=optional(i=Int64(), s=String()))
    table = read_input(step, document())
    assert table["i"].to_pylist() == list(range(100_000))
    assert table["s"].num_chunks > 1
    inferred = read_input(ReadJson(sub_path=sub_path), document(',{"x": 1.5}'))
    assert inferred.schema == pa.schema([("i", pa.int64()), ("s", pa.string()), ("x", pa.float64())])
    assert inferred.num_rows == 100_001
    with pytest.raises(BadValue, match=r"^input, line 100002: column 'i' has 'x', which is not a valid Int64"):
        read_input(step, document(',\n{"i": "x"}'))
    with pytest.raises(BadValue, match=r"^input, line 100001: something follows after|^input, line 100001: a comma or"):
        read_input(step, document() + "]")


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(80, 200))
@given(content=mutated(), schema=st.sampled_from([SCHEMA, None]), sub_path=st.sampled_from([None, "a.b"]))
def test_pieces_of_a_damaged_array_make_no_difference(
    read_input: Reader, content: bytes, schema: DataSchema | None, sub_path: str | None
):
    array = b"[" + content.rstrip(b"\n").replace(b"\n", b",\n") + b"]"
    document = b'{"a": {"b": ' + array + b', "c": 1}}' if sub_path else array
    outcomes: list[object] = []
    for size in (1 << 20, 7, 60):
        with pytest.MonkeyPatch.context() as patch:
            set_piece_size(patch, size)
            try:
                table = read_input(ReadJson(sub_path=sub_path, schema=schema), document)
                outcomes.append((table.schema, repr(table.to_pylist())))
            except OdfError as error:
                outcomes.append(type(error))
    assert outcomes[0] == outcomes[1] == outcomes[2]


def test_large_file_is_read_in_pieces(read_input: Reader, tmp_path: Path):
    lines = b'{"i": 1, "s": "some text to fill the piece"}\n' * 60_000 + b'{"i": "2"}\n' + b'{"i": 3}\n' * 100_000
    table = read_input(ReadNdJson(schema=optional(i=Int64(), s=String())), lines)
    assert table.num_rows == 160_001
    assert table["i"].to_pylist()[59_999:60_002] == [1, 2, 3]
