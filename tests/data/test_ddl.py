"""The older `ddlSchema`."""

from __future__ import annotations

import contextlib
import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from odfpy.data.schemas import ddl
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.ddl import parse_ddl, plain_field
from odfpy.data.schemas.schema import DataField, DataSchema, TimeUnit
from odfpy.errors import SchemaError

MILLIS = odf.Timestamp(TimeUnit.MILLISECOND, "UTC")

TYPES = {
    "BOOLEAN": odf.Bool(), "BOOL": odf.Bool(),
    "TINYINT": odf.Int8(), "SMALLINT": odf.Int16(), "INT": odf.Int32(), "INTEGER": odf.Int32(), "BIGINT": odf.Int64(),
    "TINYINT UNSIGNED": odf.UInt8(), "SMALLINT UNSIGNED": odf.UInt16(), "INT UNSIGNED": odf.UInt32(),
    "INTEGER UNSIGNED": odf.UInt32(), "BIGINT UNSIGNED": odf.UInt64(), "UNSIGNED": odf.UInt32(), "UINT32": odf.UInt32(),
    "FLOAT": odf.Float32(), "DOUBLE": odf.Float64(), "DOUBLE PRECISION": odf.Float64(),
    "DECIMAL(10,2)": odf.Decimal(10, 2), "DECIMAL(38, 0)": odf.Decimal(38, 0), "DECIMAL(5)": odf.Decimal(5, 0),
    "NUMERIC(5, 2)": odf.Decimal(5, 2),
    "DATE": odf.Date(),
    "TIMESTAMP": MILLIS, "TIMESTAMP(3)": MILLIS, "TIMESTAMP(9)": MILLIS, "TIMESTAMP WITH TIME ZONE": MILLIS,
    "STRING": odf.String(), "TEXT": odf.String(), "VARCHAR": odf.String(), "VARCHAR(10)": odf.String(),
    "CHAR(3)": odf.String(),
    "BINARY": odf.Binary(), "VARBINARY": odf.Binary(),
    "ARRAY<INT>": odf.List(odf.Option(odf.Int32())), "INT[]": odf.List(odf.Option(odf.Int32())),
    "ARRAY<ARRAY<STRING>>": odf.List(odf.Option(odf.List(odf.Option(odf.String())))),
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), TYPES.items(), ids=TYPES)
@pytest.mark.parametrize("case", [str.upper, str.lower])
def test_types(text, expected, case):
    assert parse_ddl([f"c {case(text)}"]) == DataSchema((DataField("c", odf.Option(expected)),))
    assert parse_ddl([f"c {case(text)} NOT NULL"]) == DataSchema((DataField("c", expected),))
    assert parse_ddl([f"c {case(text)} NULL"]) == DataSchema((DataField("c", odf.Option(expected)),))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Id INT", "Id"), ("`a b` INT", "a b"), ('"a b" INT', "a b"), ("`select` INT", "select"), ("é INT", "é"),
        ("date INT", "date"), ("timestamp INT", "timestamp"), ("order INT", "order"), ("offset INT", "offset"),
        ("primary INT", "primary"), ("key INT", "key"), ("index INT", "index"), ("`back``tick` INT", "back`tick"),
    ],
)  # fmt: skip
def test_names(text, name):
    assert parse_ddl([text]).names == (name,)


def test_columns_keep_their_order():
    lines = ["id BIGINT NOT NULL", "city STRING", "population INT, area DOUBLE"]
    assert parse_ddl(lines).names == ("id", "city", "population", "area")
    assert parse_ddl([]) == DataSchema(())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("c FOO", "Unsupported type FOO"),
        ("c DECIMAL", "Unsupported type DECIMAL"),
        ("c DECIMAL(5, 9)", "Unsupported type"),
        ("c DECIMAL(100, 2)", "Unsupported type"),
        ("c STRUCT<a INT>", "Unsupported type"),
        ("c MAP<STRING, INT>", "Unsupported type"),
        ("c ARRAY", "Unsupported type"),
        ("c INT PRIMARY KEY", "Only NOT NULL"),
        ("c INT DEFAULT 5", "Only NOT NULL"),
        ("c INT NOT", "Not a column definition"),
        ("c", "Not a column definition"),
        ("", "Not a column definition"),
        ("c INT); DROP TABLE t; --", "Not a column definition"),
        ("select INT", "Not a column definition"),
        ("a.b INT", "Not a column definition"),
        ("null INT", "Not a name"),
    ],
)
def test_errors_name_the_line(line, message):
    with pytest.raises(SchemaError, match=message) as caught:
        parse_ddl(["fine INT", line])
    assert "line 2" in caught.value.message
    assert repr(line) in caught.value.message
    assert caught.value.hint


def test_names_are_there_once():
    with pytest.raises(SchemaError, match="'a' is defined twice, again in line 2"):
        parse_ddl(["a INT", "a BIGINT"])


@given(st.text("abcINT` \"'(),<>[]-;.0é\n", max_size=30))
@example("a " + "ARRAY<" * 2000 + "INT" + ">" * 2000)
@example("(" * 5000)
def test_any_text_is_a_schema_or_a_schema_error(line):
    with contextlib.suppress(SchemaError):
        assert parse_ddl([line]).names


# --- Lines that need no parser --------------------------------------------------------------------------------------


def words_of_sql() -> list[str]:
    """All words that mean something to the parser."""
    grammar = ddl._dialect()
    tables = ("FUNCTIONS", "FUNCTION_PARSERS", "NO_PAREN_FUNCTIONS", "CONSTRAINT_PARSERS", "PROPERTY_PARSERS")
    words = {str(getattr(word, "name", word)) for name in tables for word in getattr(grammar.parser_class, name)}
    return sorted(word for word in words | set(grammar.tokenizer_class.KEYWORDS) if re.fullmatch(r"[A-Za-z_]\w*", word))


def test_the_parser_would_say_the_same_of_every_name() -> None:
    for name in ("id", "_x1", "Mixed", *words_of_sql()):
        line = f"{name} BIGINT"
        if (plain := plain_field(line)) is not None:
            assert [plain] == ddl._parse_sql(line, "here"), name


@given(
    st.text("ab 'é-/*.,()$;?:@#%", min_size=1, max_size=8),
    st.sampled_from(['"', "`", ""]),
    st.sampled_from(
        [*ddl._PLAIN_TYPES, "decimal(5)", "DECIMAL (5, 2)", "numeric(38,0)", "DECIMAL(76,76)", "Decimal(07,1)", "INT "]
    ),
)
@example("select", '"', "INT")
@example("a b", "`", "DECIMAL(5,2)")
def test_the_parser_would_say_the_same_of_every_quoted_name(name: str, quote: str, kind: str) -> None:
    line = f"{quote}{name}{quote} {kind}"
    plain = plain_field(line)
    assert plain is not None or not quote
    if plain is not None:
        assert [plain] == ddl._parse_sql(line, "here")


@pytest.mark.parametrize(
    "name", [*ddl._PLAIN_TYPES, "Bigint", "string", "DECIMAL(5, 2)", "Numeric(38,10)", "DECIMAL(9)"]
)
@pytest.mark.parametrize("rest", ["", " NOT NULL", "  not\tnull "])
def test_the_parser_would_say_the_same_of_every_type(name: str, rest: str) -> None:
    line = f" a\t{name}{rest}"
    assert [plain_field(line)] == ddl._parse_sql(line, "here")


@pytest.mark.parametrize(
    "line",
    [
        '"a`b" INT',
        '"a""b" INT',
        '"" INT',
        '"a` INT',
        "a DECIMAL",
        "a DECIMAL(2, 5)",
        "a DECIMAL(77, 5)",
        "a DECIMAL(0)",
        "a VARCHAR(10)",
        "a INT(5)",
        "a INT PRIMARY KEY",
        "a INT, b INT",
        "a INT -- note",
        "a\nINT",
        "1a INT",
        "a",
        "ä INT",
        "table INT",
    ],
)
def test_other_lines_are_parsed(line: str) -> None:
    assert plain_field(line) is None
