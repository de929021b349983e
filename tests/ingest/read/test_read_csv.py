"""CSV: dialects, headers, types, errors that say where, and no row lost."""

from __future__ import annotations

import csv
import io
from datetime import date, datetime, timezone
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

from odfpy.chain.read_steps import ReadCsv
from odfpy.data.schemas.schema import Bool, DataSchema, Date, Decimal, Float64, Int64, List, String, Timestamp
from odfpy.errors import BadValue, IngestError, InvalidValue, OdfError, SchemaError
from odfpy.ingest.inference.delimited import names_of

A_AND_B = required(a=Int64(), b=String())
WITH_HEADER = ReadCsv(header=True)


def rows(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


# --- Dialects ---

DIALECTS = [
    (ReadCsv(), "x,y\n", [("x", "y")]),
    (ReadCsv(), "x,y", [("x", "y")]),
    (ReadCsv(), "x,y\r\nz,\r\n", [("x", "y"), ("z", None)]),
    (ReadCsv(), "x,y\rz,w\r", [("x", "y"), ("z", "w")]),
    (ReadCsv(), "\n\nx,y\n\n\r\nz,w\n\n", [("x", "y"), ("z", "w")]),
    (ReadCsv(), "\ufeffx,y\n", [("x", "y")]),
    (ReadCsv(), '"x, ""y""","a\nb"\n', [('x, "y"', "a\nb")]),
    (ReadCsv(), '"a\\"b","c\\\\"\n', [('a"b', "c\\")]),
    (ReadCsv(), 'C:\\temp,"C:\\temp"\n', [("C:\\temp", "C:\\temp")]),
    (ReadCsv(), '5" pipe,"x"y\n', [('5" pipe', "xy")]),
    (ReadCsv(), ' "x",y\n', [(' "x"', "y")]),
    (ReadCsv(), '"",x\n', [(None, "x")]),
    (ReadCsv(), "x,y\0z\n", [("x", "y\0z")]),
    (ReadCsv(escape=""), '"a\\",b\n', [("a\\", "b")]),
    (ReadCsv(escape='"'), '"a\\","b"""\n', [("a\\", 'b"')]),
    (ReadCsv(escape="~"), '"a~"b",~\n', [('a"b', "~")]),
    (ReadCsv(quote=""), '"a",b"\n', [('"a"', 'b"')]),
    (ReadCsv(quote="'"), "'a,b',\"c\n", [("a,b", '"c')]),
    (ReadCsv(separator=";"), "x;y,z\n", [("x", "y,z")]),
    (ReadCsv(separator="\t"), "x\ty\n", [("x", "y")]),
    (ReadCsv(separator="\\t"), "x\ty\n", [("x", "y")]),
    (ReadCsv(separator="|", quote="'", escape="^"), "'x^'|'|y\n", [("x'|", "y")]),
    (ReadCsv(null_value="NA"), 'NA,"NA"\n"",x\n', [(None, None), ("", "x")]),
]


@pytest.mark.parametrize(
    ("step", "text", "wanted"), DIALECTS, ids=lambda value: repr(value) if isinstance(value, str) else ""
)
def test_dialect(read_input: Reader, step: ReadCsv, text: str, wanted: list[tuple[Any, ...]]):
    assert rows(read_input(step, text)) == wanted


@pytest.mark.parametrize(
    ("encoding", "text"),
    [("utf8", "ž,1\n"), ("UTF-8", "ž,1\n"), ("windows-1250", "ž,1\n"), ("latin-1", "é,1\n"), ("utf-16", "ž,1\n")],
)
def test_encoding(read_input: Reader, encoding: str, text: str):
    assert rows(read_input(ReadCsv(encoding=encoding), text.encode(encoding))) == [(text[0], "1")]


@pytest.mark.parametrize(
    "step",
    [
        ReadCsv(separator="ab"),
        ReadCsv(separator=""),
        ReadCsv(separator='"'),
        ReadCsv(separator="\n"),
        ReadCsv(quote="§"),
        ReadCsv(escape="\\\\"),
        ReadCsv(encoding="utf-9"),
        ReadCsv(encoding="hex"),
        ReadCsv(date_format="%Q"),
        ReadCsv(timestamp_format="yyyy-bb"),
    ],
)
def test_option_that_cannot_be_used_is_refused(read_input: Reader, step: ReadCsv):
    with pytest.raises(InvalidValue):
        read_input(step, "x,y\n")


# --- Columns ---


def test_a_schema_renames_columns(read_input: Reader):
    table = read_input(ReadCsv(header=True, schema=A_AND_B), "Id,Name\n1,x\n")
    assert table.to_pydict() == {"a": [1], "b": ["x"]}


def test_a_header_with_the_same_names_in_another_order_is_taken_by_name(read_input: Reader):
    table = read_input(ReadCsv(header=True, schema=A_AND_B), "b,a\nx,1\n")
    assert table.to_pydict() == {"a": [1], "b": ["x"]}


@pytest.mark.parametrize(
    ("schema", "header", "words"),
    [
        ("time id deaths cases", "time,id,Cases,Deaths", "'Deaths' as column 4, and 'Cases' as column 3, which is 'deaths' in the schema"),
        ("id people deaths", "id,deaths,population", "'deaths' as column 2, and 'population' as column 3"),
        ("id people deaths", "people,key,deaths", "'people' as column 1, and 'key' as column 2"),
        ("a b", "b,B", "'b' as column 1"),
        ("a b c", "b,a,a", "'a' as column 2, and 'b' as column 1, which is 'a' in the schema"),
        ("a b", " b, a", "' a' as column 2, and ' b' as column 1"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("has_rows", [True, False])
def test_a_header_that_names_columns_in_other_places_is_refused(
    read_input: Reader, schema: str, header: str, words: str, has_rows: bool
):
    names = schema.split()
    row = ",".join("1" * len(names)) + "\n"
    with pytest.raises(IngestError) as caught:
        read_input(
            ReadCsv(header=True, schema=required(**dict.fromkeys(names, Int64()))), f"{header}\n{row * has_rows}"
        )
    assert words in caught.value.message
    assert "in any order" in (caught.value.hint or "")


@pytest.mark.parametrize("header", ["ID,Deaths", "Id,dead", "key, deaths", "id,id", "DEATHS?,Deaths", "x,y"])
def test_names_in_their_places_may_differ_in_case(read_input: Reader, header: str):
    table = read_input(ReadCsv(header=True, schema=required(id=Int64(), deaths=Int64())), f"{header}\n1,2\n")
    assert table.to_pydict() == {"id": [1], "deaths": [2]}


@pytest.mark.parametrize("header", ["a,a,a_2", ",column_1", " a,a", "a,A,A_2,a", "x,y"])
def test_names_that_are_made_up_for_a_header_are_in_their_places(read_input: Reader, header: str):
    names = names_of(header.split(","))
    table = read_input(
        ReadCsv(header=True, schema=required(**dict.fromkeys(names, Int64()))),
        f"{header}\n" + ",".join(map(str, range(len(names)))),
    )
    assert [column[0].as_py() for column in table.columns] == list(range(len(names)))


def test_without_a_schema_all_columns_are_optional_strings(read_input: Reader):
    table = read_input(WITH_HEADER, "id,n\n1,\n")
    assert table.schema == pa.schema([("id", pa.string()), ("n", pa.string())])
    assert table.to_pydict() == {"id": ["1"], "n": [None]}


def test_columns_without_header_are_numbered(read_input: Reader):
    assert read_input(ReadCsv(), "x,y\n").column_names == ["column_1", "column_2"]


def test_nullability_is_that_of_the_schema(read_input: Reader):
    schema = DataSchema((*required(a=Int64()).fields, *optional(b=String()).fields))
    table = read_input(ReadCsv(schema=schema), "1,\n")
    assert table.schema == pa.schema([pa.field("a", pa.int64(), nullable=False), pa.field("b", pa.string())])


@pytest.mark.parametrize("text", ["", "\n", "\r\n\n", "a,b\n", "a,b", '"a",b'])
def test_file_without_records_has_no_rows(read_input: Reader, text: str):
    table = read_input(ReadCsv(header=True, schema=A_AND_B), text)
    assert (table.num_rows, table.column_names) == (0, ["a", "b"])


def test_nothing_at_all_has_no_columns_without_a_schema(read_input: Reader):
    assert read_input(WITH_HEADER, "").num_columns == 0
    assert read_input(WITH_HEADER, "a,b\n").column_names == ["a", "b"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("a\n", "The header of input has 1 column where the schema has 2; missing: 'b'"),
        ("a,b,c\n", "The header of input has 3 columns where the schema has 2; not in the schema: 'c'"),
    ],
)
def test_missing_and_extra_columns_are_named(read_input: Reader, header: str, message: str):
    with pytest.raises(IngestError) as caught:
        read_input(ReadCsv(header=True, schema=A_AND_B), header)
    assert caught.value.message == message


def test_messages_stay_short(read_input: Reader):
    names = ",".join(f"c{i}" + "x" * 1000 for i in range(1000))
    with pytest.raises(IngestError, match="and 990 more") as caught:
        read_input(ReadCsv(header=True, schema=A_AND_B), names)
    assert len(caught.value.message) < 2000


@pytest.mark.parametrize(
    ("header", "message"),
    [("a,b,a\n", "The header of input has 'a' twice"), ("a,\n", "The header of input leaves a column without a name")],
)
def test_header_that_gives_no_names_is_refused(read_input: Reader, header: str, message: str):
    with pytest.raises(IngestError) as caught:
        read_input(WITH_HEADER, header + "1,2,3\n"[: len(header)])
    assert caught.value.message == message


@pytest.mark.parametrize("schema", [None, A_AND_B, required(a=String())])
def test_a_line_for_excel_is_no_header(read_input: Reader, schema: DataSchema | None):
    """With two columns that a schema may rename, the header below it would be a row."""
    with pytest.raises(IngestError, match=r"begins with 'sep='.* is no header") as caught:
        read_input(ReadCsv(header=True, separator=";", schema=schema), "sep=;\r\na;b\r\n1;2\r\n")
    assert "command: [tail, '-n', '+2']" in str(caught.value.hint)
    table = read_input(ReadCsv(header=True, schema=required(**{"sep=": String(), "b": String()})), "sep=,b\n1,2\n")
    assert table.num_rows == 1, "a column may be called so"


def test_nested_columns_are_refused(read_input: Reader):
    with pytest.raises(SchemaError, match="'a' cannot be read from CSV"):
        read_input(ReadCsv(schema=required(a=List(Int64()))), "1\n")


# --- Types ---


def test_typed_columns(read_input: Reader):
    schema = required(t=Timestamp(), d=Date(), x=Float64(), m=Decimal(10, 2), f=Bool(), s=String())
    table = read_input(ReadCsv(schema=schema), "2024-01-01T12:00:00+02:00,2024-02-29,1.5,1e2,TRUE,ž\n")
    assert rows(table) == [
        (datetime(2024, 1, 1, 10, tzinfo=timezone.utc), date(2024, 2, 29), 1.5, Dec("100.00"), True, "ž")
    ]


def test_formats_of_dates_and_timestamps(read_input: Reader):
    step = ReadCsv(
        schema=required(d=Date(), t=Timestamp()), date_format="dd.MM.yyyy", timestamp_format="%m/%d/%Y %I:%M %p"
    )
    assert rows(read_input(step, "31.1.2024,9/25/2022 1:02 PM\n")) == [
        (date(2024, 1, 31), datetime(2022, 9, 25, 13, 2, tzinfo=timezone.utc))
    ]


INFERRED = [
    (["1", "-2", ""], pa.int64(), [1, -2, None]),
    (["1", "2.5"], pa.float64(), [1.0, 2.5]),
    (["1", "inf"], pa.float64(), [1.0, float("inf")]),
    (["true", "FALSE"], pa.bool_(), [True, False]),
    (["2024-01-01", "2024-01-02"], pa.date32(), [date(2024, 1, 1), date(2024, 1, 2)]),
    (
        ["2024-01-01T00:00:00Z", "2024-01-02"],
        pa.timestamp("ms", "UTC"),
        [datetime(2024, 1, 1, tzinfo=timezone.utc), datetime(2024, 1, 2, tzinfo=timezone.utc)],
    ),
    (["1", "x"], pa.string(), ["1", "x"]),
    (["true", "1"], pa.string(), ["true", "1"]),
    (["inf", "nan"], pa.string(), ["inf", "nan"]),
    (["", ""], pa.null(), [None, None]),
    (["1", "9223372036854775808"], pa.string(), ["1", "9223372036854775808"]),
]


@pytest.mark.parametrize(("texts", "wanted", "values"), INFERRED, ids=str)
def test_inferred_types(
    read_input: Reader, small_pieces: None, texts: list[str], wanted: pa.DataType, values: list[Any]
):
    lines = "".join(f"{text},x\n" for text in texts)
    table = read_input(ReadCsv(header=True, infer_schema=True), "v,s\n" + lines)
    assert table.schema == pa.schema([("v", wanted), ("s", pa.string())])
    assert table["v"].to_pylist() == values


# --- Errors that say where ---

BAD_LINES = [
    ("1,x\n2.5,y\n", "input, line 2: column 'a' has '2.5', which is not a valid Int64"),
    ('1,"x\ny"\n\n,y\n', "input, line 4: column 'a' has no value, but Int64 is required"),
    ("1,x\r1,\r", "input, line 2: column 'b' has no value, but String is required"),
    ("1,x\n2\n", "input, line 2: 1 value for 2 columns"),
    ("1,x\n\n2,y,z\n", "input, line 3: 3 values for 2 columns"),
    ('1,x\n2,"y\n3,z\n', 'input, line 2: a value begins with " and is never closed'),
    ('1,x\n2,"y', 'input, line 2: a value begins with " and is never closed'),
    ('1,x\n2,"y\\"\n', 'input, line 2: a value begins with " and is never closed'),
]


@pytest.mark.parametrize(("text", "message"), BAD_LINES, ids=lambda value: repr(value)[:30])
@pytest.mark.parametrize("lines_before", [0, 40])
def test_bad_line_is_named(read_input: Reader, small_pieces: None, text: str, message: str, lines_before: int):
    head, line, tail = message.partition("line ")
    number, rest = tail.split(":", 1)
    with pytest.raises(BadValue) as caught:
        read_input(ReadCsv(schema=A_AND_B), '0,"a ""\n"\n' * (lines_before // 2) + text)
    assert caught.value.message == f"{head}{line}{int(number) + lines_before}:{rest}"
    assert caught.value.hint


def test_header_counts_as_a_line(read_input: Reader):
    with pytest.raises(BadValue, match=r"^input, line 4: column 'a'"):
        read_input(ReadCsv(header=True, schema=A_AND_B), '"a\n",b\n1,x\ny,y\n')


def test_first_bad_line_is_named_whatever_the_column(read_input: Reader):
    with pytest.raises(BadValue, match=r"^input, line 2: column 'b'"):
        read_input(ReadCsv(schema=required(a=Int64(), b=Int64())), "1,1\n2,x\nx,3\n")


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        (b"1,x\n1,\xff\n", None, "input, line 2: byte 0xff is not utf-8"),
        (b"1,x\n1,\x81\n", "windows-1252", "input, line 2: byte 0x81 is not cp1252"),
    ],
)
def test_bytes_of_another_encoding_are_an_error(read_input: Reader, content: bytes, encoding: str | None, message: str):
    with pytest.raises(BadValue) as caught:
        read_input(ReadCsv(schema=A_AND_B, encoding=encoding), content)
    assert caught.value.message == message


def test_file_that_is_not_there():
    from odfpy.ingest.read import read

    with pytest.raises(IngestError, match="There is no file"):
        read(ReadCsv(), Path("nowhere.csv"))


# --- Nothing is lost ---

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ['"', '""', "a\nb", "\r\n", ",", "\\", '\\"', " x ", "\0", "NULL "]
)
NOT_NULL = TEXTS.filter(lambda text: text != "NULL")
RECORDS = st.lists(
    st.tuples(
        # Python's writer leaves a CR without quotes where lines end with LF.
        st.none() | NOT_NULL.filter(lambda text: "\r" not in text or "\n" in text),
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.decimals(-(10**6), 10**6, places=2),
        st.none() | st.datetimes(timezones=st.just(timezone.utc)).map(lambda t: t.replace(microsecond=0)),
        st.booleans(),
    ),
    max_size=12,
)
SCHEMA = DataSchema(
    (
        *optional(s=String(), i=Int64(), m=Decimal(9, 2), t=Timestamp()).fields,
        *required(f=Bool()).fields,
    )
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    records=RECORDS,
    separator=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    line_end=st.sampled_from(["\n", "\r\n"]),
    header=st.booleans(),
    piece_size=st.integers(1, 200),
)
def test_what_was_written_is_read(
    read_input: Reader, records, separator: str, quoting: Any, line_end: str, header: bool, piece_size: int
):
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, quoting=quoting, lineterminator=line_end)
    if header:
        writer.writerow(SCHEMA.names)
    for record in records:
        writer.writerow("NULL" if value is None else as_text(value) for value in record)
    # The escape character is off: Python's writer only doubles quotes.
    step = ReadCsv(schema=SCHEMA, separator=separator, header=header, escape="", null_value="NULL")
    with pytest.MonkeyPatch.context() as patch:
        set_piece_size(patch, piece_size)
        assert rows(read_input(step, text.getvalue().encode())) == records


def test_a_head_that_ends_within_a_character_is_no_damage(read_input: Reader, small_pieces: None):
    """The first megabyte of a file, in which the header is looked for, may end anywhere."""
    rows_ = [(f"{'a' * at}é", "ü€😀") for at in range(9)]
    text = "".join(f"{left},{right}\n" for left, right in rows_).encode()
    assert rows(read_input(ReadCsv(schema=required(a=String(), b=String())), text)) == rows_


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(records=st.lists(st.tuples(NOT_NULL, NOT_NULL), max_size=12), piece_size=st.integers(1, 100))
def test_escaped_text_is_read(read_input: Reader, records: list[tuple[str, str]], piece_size: int):
    def quoted(text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    text = "".join(",".join(map(quoted, record)) + "\n" for record in records)
    with pytest.MonkeyPatch.context() as patch:
        set_piece_size(patch, piece_size)
        table = read_input(ReadCsv(schema=required(a=String(), b=String()), null_value="NULL"), text.encode())
    assert rows(table) == records


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(100, 300))
@given(content=st.lists(st.sampled_from([b'"', b",", b"\n", b"\r", b"1", b"x", b"\\", b"\xff", b" "]), max_size=30))
def test_pieces_make_no_difference(read_input: Reader, content: list[bytes]):
    """Whatever the bytes, small pieces give the same rows as one, or the same error."""
    step = ReadCsv(schema=optional(a=String(), b=String()))
    outcomes = []
    for size in (1 << 20, 5):
        with pytest.MonkeyPatch.context() as patch:
            set_piece_size(patch, size)
            try:
                outcomes.append(rows(read_input(step, b"".join(content))))
            except OdfError as error:
                outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]


def as_text(value: Any) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value).lower() if isinstance(value, bool) else str(value)
