"""Requests as SQL: whatever names and values consist of, the query means what the request says."""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any

import duckdb
import pytest
import sqlglot
from hypothesis import example, given
from hypothesis import strategies as st

from odfpy.errors import InvalidValue, UsageError
from odfpy.flight import Filter, FlightSql, OdfCommands, Request, filters_from_json, filters_of, filters_to_json
from odfpy.flight.commands.protobuf import bytes_of, data, number, number_of, packed, text, unpacked
from odfpy.flight.errors import FlightFailed
from odfpy.flight.filters import OPERATORS
from odfpy.serving.flight.messages import message, unwrap, wrap

SQL = FlightSql()

# --- Names and clauses ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (Request("orders"), 'SELECT * FROM "orders"'),
        (Request("com.example.rates"), 'SELECT * FROM "com.example.rates"'),
        (Request("t", schema="s", catalog="c"), 'SELECT * FROM "c"."s"."t"'),
        (Request('a"b', columns=("x", 'y"')), 'SELECT "x", "y""" FROM "a""b"'),
        (
            Request("t", filters=filters_of([("a", ">", 1), ("b", "is null")]), limit=5),
            'SELECT * FROM "t" WHERE "a" > 1 AND "b" IS NULL LIMIT 5',
        ),
        (Request("t", filters=(Filter("a", "in", ()),)), 'SELECT * FROM "t" WHERE 1 = 0'),
        (Request(query="SELECT 1"), "SELECT 1"),
        (Request(query="SELECT 1 AS a", columns=("a",)), 'SELECT "a" FROM (SELECT 1 AS a) AS "t"'),
    ],
)
def test_a_request_as_sql(request_: Request, expected: str):
    assert SQL.sql(request_) == expected


def test_names_in_other_quotes():
    assert FlightSql("`").sql(Request("a`b", columns=('c"d',))) == 'SELECT `c"d` FROM `a``b`'


@pytest.mark.parametrize(
    ("commands", "expected"),
    [
        (OdfCommands(), '"com.example.rates"'),
        (OdfCommands(current=True), "odf_current('com.example.rates')"),
        (OdfCommands(as_at="2024-03-01"), "odf_as_at('com.example.rates', '2024-03-01')"),
        (OdfCommands(as_of="2024-03-01"), "odf_as_of('com.example.rates', '2024-03-01')"),
        (OdfCommands(as_at="v1", as_of="2024-03-01"), "odf_as_at_of('com.example.rates', 'v1', '2024-03-01')"),
    ],
)
def test_moments_of_a_dataset(commands: OdfCommands, expected: str):
    assert commands.sql(Request("com.example.rates")) == f"SELECT * FROM {expected}"


def test_moments_that_do_not_go_together():
    with pytest.raises(UsageError, match="current state cannot be combined"):
        OdfCommands(current=True, as_at="2024-03-01")


@pytest.mark.parametrize(
    "wrong", [{}, {"table": "t", "query": "q"}, {"table": "t", "limit": -1}], ids=["nothing", "both", "limit"]
)
def test_requests_that_make_no_sense(wrong: dict[str, Any]):
    with pytest.raises(UsageError):
        Request(**wrong)


@pytest.mark.parametrize(
    "wrong",
    [("a", "~", 1), ("a", "in", 1), ("a", "is null", 1), ("a", "=", None), ("a", "contains", 1), ("a",), "a=1", 7],
)
def test_conditions_that_make_no_sense(wrong: Any):
    with pytest.raises(InvalidValue):
        filters_of([wrong])


@pytest.mark.parametrize("wrong", ["", "{", "{}", '[["a", "=", {"wat": "1"}]]', '[["a", "=", {"date": "x"}]]', "[1]"])
def test_texts_that_are_no_conditions(wrong: str):
    with pytest.raises(InvalidValue):
        filters_from_json(wrong)


def test_what_sql_cannot_say():
    with pytest.raises(InvalidValue, match="NUL"):
        SQL.sql(Request("a\0b"))
    with pytest.raises(InvalidValue, match="no decimal"):
        SQL.sql(Request("t", filters=(Filter("a", "=", Decimal("NaN")),)))


# --- An oracle --------------------------------------------------------------------------------------------------------

TEXTS = st.text(
    st.characters(exclude_characters="\0", exclude_categories=("Cs",)) | st.sampled_from("%_\\'\"ab"), max_size=6
)
FIRST, LAST = datetime.fromisoformat("0001-01-02"), datetime.fromisoformat("9999-12-30")
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "BOOLEAN": st.booleans(),
    "BIGINT": st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3),
    "DOUBLE": st.floats(allow_nan=False),
    "DECIMAL(12, 3)": st.decimals(-(10**8), 10**8, places=3),
    "VARCHAR": TEXTS,
    "BLOB": st.binary(max_size=4),
    "DATE": st.dates(date(1, 1, 1)),
    "TIMESTAMP": st.datetimes(FIRST, LAST),
    "TIMESTAMPTZ": st.datetimes(FIRST, LAST, timezones=st.just(timezone.utc)),
    "TIME": st.times(),
}


@st.composite
def questions(draw: st.DrawFn) -> tuple[str, str, list[Any], Filter]:
    """A type, the name of a column, values in it, and a condition on it."""
    kind = draw(st.sampled_from(sorted(VALUES)))
    values = draw(st.lists(VALUES[kind] | st.none(), max_size=6))
    operator = draw(
        st.sampled_from([one for one in OPERATORS if kind == "VARCHAR" or not one.endswith(("with", "contains"))])
    )
    known = [value for value in values if value is not None]
    value = VALUES[kind] | st.sampled_from(known) if known else VALUES[kind]
    if operator.startswith("is "):
        wanted: Any = None
    elif operator == "in":
        wanted = tuple(draw(st.lists(value, max_size=3)))
    elif operator in {"starts with", "ends with", "contains"}:
        wanted = draw(TEXTS.map(lambda found: found[:2]))
    else:
        wanted = draw(value)
    name = draw(st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), min_size=1, max_size=5))
    return kind, name, values, Filter(name, operator, wanted)


def holds(condition: Filter, value: Any) -> bool:
    """The meaning of a condition, in Python."""
    wanted = condition.value
    if condition.operator in {"is null", "is not null"}:
        return (value is None) == (condition.operator == "is null")
    if value is None:
        return False
    return {
        "=": lambda: value == wanted,
        "!=": lambda: value != wanted,
        "<": lambda: value < wanted,
        "<=": lambda: value <= wanted,
        ">": lambda: value > wanted,
        ">=": lambda: value >= wanted,
        "in": lambda: value in wanted,
        "starts with": lambda: value.startswith(wanted),
        "ends with": lambda: value.endswith(wanted),
        "contains": lambda: wanted in value,
    }[condition.operator]()


@pytest.fixture(scope="module")
def database() -> Any:
    with duckdb.connect() as found:
        yield found


@given(question=questions())
@example(question=("VARCHAR", 'x" --', ["a%b", "a_b", "ab", "a\\b"], Filter('x" --', "contains", "%")))
@example(question=("DOUBLE", "d", [math.inf, -math.inf, 0.0, 1e308], Filter("d", ">=", math.inf)))
def test_sql_finds_the_rows_for_which_the_condition_holds(database: Any, question: tuple[str, str, list[Any], Filter]):
    kind, name, values, condition = question
    columns = f"{SQL.name(name + ' number')} INTEGER, {SQL.name(name)} {kind}"
    database.execute(f"CREATE OR REPLACE TEMP TABLE rows ({columns})")
    if values:
        database.executemany("INSERT INTO rows VALUES (?, ?)", list(enumerate(values)))
    found = database.execute(SQL.sql(Request("rows", filters=(condition,)))).fetchall()
    assert sorted(row[0] for row in found) == [place for place, value in enumerate(values) if holds(condition, value)]


@given(TEXTS)
def test_texts_for_servers_with_backticks_are_read_as_they_are(text: str):
    """A backslash is an escape there, so that one that stands alone would let a text run on."""
    assert sqlglot.parse_one(FlightSql("`").constant(text), read="spark").this == text
    assert sqlglot.parse_one(FlightSql("`").constant(text), read="mysql").this == text


@given(questions().map(lambda question: question[3]))
def test_conditions_survive_json(condition: Filter):
    assert filters_from_json(filters_to_json([condition])) == (condition,)


# --- Bytes ------------------------------------------------------------------------------------------------------------


@given(st.text(max_size=300))
def test_a_command_is_a_message_of_flight_sql(query: str):
    found = unwrap(SQL.command(Request(query=query)))
    assert (type(found).__name__, found.query) == ("CommandStatementQuery", query)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_of_a_server(count: int):
    assert number_of(message("DoPutUpdateResult", record_count=count).SerializeToString(), 1) == (count or None)


@given(st.binary(max_size=300))
def test_bytes_of_a_server(handle: bytes):
    found = unpacked(wrap(message("ActionCreatePreparedStatementResult", prepared_statement_handle=handle)))
    assert bytes_of(found, 1) == handle


@given(st.binary(max_size=40))
def test_no_bytes_break_the_reader(noise: bytes):
    with suppress(FlightFailed):
        bytes_of(unpacked(noise), 1)
        number_of(noise, 1)


def test_a_write_says_table_place_and_transaction():
    descriptor = SQL.write_descriptor(Request("t", schema="s", catalog="c"), replace=True, transaction=b"x")
    expected = data(1, number(1, 1) + number(2, 3)) + text(2, "t") + text(3, "s") + text(4, "c") + data(6, b"x")
    assert descriptor.command == packed("CommandStatementIngest", expected)


def test_times_keep_their_zone():
    noon = datetime(2024, 3, 1, 12, tzinfo=timezone(timedelta(hours=2)))
    assert SQL.constant(noon) == "CAST('2024-03-01T10:00:00+00:00' AS TIMESTAMP WITH TIME ZONE)"
    assert SQL.constant(time(12, 30)) == "TIME '12:30:00'"
