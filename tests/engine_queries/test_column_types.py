"""Every type of Spark in every place where rows of several pulls are looked at together.

Either `odf add` refuses it, and says where it is, or pulls two and three work, the second of which takes a row back. What
is not refused runs in one query a place, with a column of each type. A run of all tests tries some of the places;
`ODF_LAWS=1` all of them.
"""

from __future__ import annotations

import os
import re

import pyarrow as pa
import pytest
from support.engine.requests import Source, analyze_request
from support.queries.cases import QUICK, Case, Pull, Tuned, instant, run_case

from odfpy.engine.contract import AnalyzeResponseSuccess
from odfpy.engine.spark.execution import operations

pytestmark = pytest.mark.spark

FIELDS = (pa.field("k", pa.string()), pa.field("v", pa.int32()))

PLAIN = {
    "binary": "encode({k}, 'UTF-8')",
    "char": "CAST({k} AS CHAR(3))",
    "varchar": "CAST({k} AS VARCHAR(3))",
    "decimal": "CAST({v} AS DECIMAL(38, 3))",
    "double": "{v} / 3D",
    "struct": "struct({k}, {v})",
    "array": "array({k})",
    "time": "make_time({v}, 0, 0)",
    "ntz": "to_timestamp_ntz(make_date(2024, 1, 1 + {v}))",
    "days": "make_dt_interval({v})",
}
MAPS = {"map": "map({k}, {v})", "map in struct": "struct(map({k}, {v}) AS m)", "map in array": "array(map({k}, {v}))"}
NOT_STORED = {
    "months": "make_ym_interval({v})",
    "months in array": "array(make_ym_interval({v}))",
    "empty struct": "named_struct()",
    "array of nothing": "array()",
}
NOT_COMPARED = {
    "months and days": "make_interval(0, {v})",
    "geometry": "st_geomfromwkb(X'0101000000000000000000F03F0000000000000040')",
    "variant": "parse_json('[' || {v} || ']')",
    "variant in struct": "struct(parse_json('[' || {v} || ']') AS j)",
}
COLLATED = {"collated": "{k} COLLATE UTF8_LCASE"}
TYPES = PLAIN | MAPS | NOT_STORED | NOT_COMPARED | COLLATED


def values(types, table=""):
    """The expressions of some types over the columns of a table."""
    return [TYPES[name].format(k=f"{table}k", v=f"{table}v") for name in types]


def listed(types, table=""):
    return ", ".join(values(types, table))


def named(types):
    return ", ".join(f"{text} AS x{at}" for at, text in enumerate(values(types)))


def below(query):
    """A query over a step that has columns of the types."""
    return lambda types: [("s", f"SELECT event_time, k, v, {named(types)} FROM a"), (None, query)]


def counted(types):
    """Columns of the types, made of what a group is."""
    made = (TYPES[name].format(k="k", v="cast(count(*) AS int)") for name in types)
    return ", ".join(f"{text} AS x{at}" for at, text in enumerate(made))


BY_TIME = "PARTITION BY k ORDER BY event_time"
NEAR = "b.event_time BETWEEN s.event_time AND s.event_time + INTERVAL 1 HOUR"
UNSORTED = MAPS.keys() | NOT_COMPARED.keys()
"""What Spark has no order for."""
NOT_GROUPED = NOT_COMPARED.keys() - {"months and days"}

PLACES = {
    "GROUP BY": (
        lambda types: f"SELECT max(event_time) AS event_time, count(*) AS n FROM a GROUP BY {listed(types)}",
        NOT_GROUPED,
    ),
    "GROUP BY, rows are kept": (
        lambda types: f"SELECT max(event_time) AS event_time, count(DISTINCT v) AS n FROM a GROUP BY {listed(types)}",
        NOT_GROUPED,
    ),
    "GROUP BY with a window": (
        lambda types: "SELECT window.end AS event_time, count(DISTINCT v) AS n FROM a "
        f"GROUP BY window(event_time, '1 day'), {listed(types)}",
        NOT_GROUPED,
    ),
    "GROUP BY with a session": (
        lambda types: "SELECT session_window.end AS event_time, count(*) AS n FROM a "
        f"GROUP BY session_window(event_time, '1 hour'), {listed(types)}",
        NOT_GROUPED,
    ),
    "DISTINCT": (
        lambda types: [("s", f"SELECT DISTINCT event_time, {named(types)} FROM a"), (None, "SELECT event_time FROM s")],
        MAPS.keys() | NOT_STORED.keys() | NOT_COMPARED.keys() | COLLATED.keys(),
    ),
    "PARTITION BY": (
        lambda types: f"SELECT event_time, k, count(*) OVER (PARTITION BY {listed(types)}) AS n FROM a",
        UNSORTED,
    ),
    "join by": (
        lambda types: "SELECT a.event_time, b.v AS n FROM a JOIN b ON "
        + " AND ".join(
            f"{a} = {b}" for a, b in zip(values(types, "a."), values(types, "b."), strict=True)
        ),
        UNSORTED,
    ),
    "column below groups": (
        below("SELECT max(event_time) AS event_time, k, count(*) AS n FROM s GROUP BY k"), set()
    ),
    "column below groups, rows are read again": (
        below("SELECT max(event_time) AS event_time, k, count(DISTINCT v) AS n FROM s GROUP BY k"), NOT_COMPARED.keys()
    ),
    "column below windows": (
        below("SELECT window.end AS event_time, count(DISTINCT k) AS n FROM s GROUP BY window(event_time, '1 day')"),
        NOT_STORED.keys() | NOT_COMPARED.keys(),
    ),
    "column below a join": (
        below("SELECT s.event_time, b.v AS n FROM s JOIN b ON s.k = b.k"), NOT_COMPARED.keys()
    ),
    "column below an interval join": (
        below(f"SELECT s.event_time, b.v AS n FROM s LEFT JOIN b ON s.k = b.k AND {NEAR}"),
        NOT_STORED.keys() | NOT_COMPARED.keys(),
    ),
    "column below rank": (
        below(f"SELECT event_time, k, n FROM (SELECT *, rank() OVER ({BY_TIME}) AS n FROM s)"), NOT_COMPARED.keys()
    ),
    "column below row_number": (
        below(f"SELECT event_time, k, n FROM (SELECT *, row_number() OVER ({BY_TIME}) AS n FROM s)"),
        UNSORTED,
    ),
    "column below LIMIT": (
        below("SELECT event_time, k FROM (SELECT * FROM s ORDER BY event_time, k LIMIT 2)"),
        UNSORTED | NOT_STORED.keys(),
    ),
    "result of a step": (
        lambda types: [
            ("s", f"SELECT max(event_time) AS event_time, k, {counted(types)} FROM a GROUP BY k"),
            (None, "SELECT event_time, k FROM s"),
        ],
        NOT_STORED.keys() | NOT_COMPARED.keys(),
    ),
    "result": (
        lambda types: f"SELECT max(event_time) AS event_time, k, {counted(types)} FROM a GROUP BY k",
        UNSORTED | NOT_STORED.keys() | {"days"},
    ),
    "EXCEPT": (
        lambda types: [
            ("s", f"SELECT event_time, {named(types)} FROM a EXCEPT SELECT event_time, {named(types)} FROM b"),
            (None, "SELECT event_time FROM s"),
        ],
        MAPS.keys() | NOT_STORED.keys() | NOT_COMPARED.keys() | COLLATED.keys(),
    ),
}  # fmt: skip


TRIED = list(PLACES) if "ODF_LAWS" in os.environ else list(PLACES)[::5]


def inputs_of(query):
    text = query if isinstance(query, str) else " ".join(part for _, part in query)
    return "ab" if " b" in text else "a"


def story(alias):
    """Three pulls, of which the second takes a row back."""
    first = [("+A", instant("2024-01-01T01:00"), "x", 0), ("+A", instant("2024-01-01T02:00"), "y", 1)]
    second = [("-R", *first[0][1:]), ("+A", instant("2024-01-02T01:00"), "x", 2)]
    third = [("+A", instant("2024-01-03T01:00"), "y", 1)]
    return {f"2024-01-0{day}T05:00": {alias: rows} for day, rows in enumerate((first, second, third), start=1)}


def pulled(spark, folder, query):
    """Run all pulls; an AssertionError has the answer that is not a success."""
    aliases = inputs_of(query)
    told = [story(alias) for alias in aliases]
    pulls = [
        Pull({key: rows for one in told for key, rows in one[mark].items()}, dict.fromkeys(aliases, mark))
        for mark in told[0]
    ]
    steps = [(None, query)] if isinstance(query, str) else query
    return run_case(Tuned(spark, **QUICK), Case("types", "", steps, dict.fromkeys(aliases, FIELDS), {}, pulls), folder)


def analyzed(spark, folder, query):
    sources = [Source(folder, alias, FIELDS) for alias in inputs_of(query)]
    return operations.analyze(Tuned(spark, **QUICK), analyze_request(query, *sources))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", TRIED)
def test_what_is_added_can_be_pulled_again_and_again(spark, tmp_path, name):
    query, refused = PLACES[name]
    together = [kind for kind in TYPES if kind not in refused]
    # By a collated text and an interval at once there are no groups.
    apart = [kind for kind in together if kind in COLLATED] if "months and days" in together else []
    for kinds in filter(None, ([kind for kind in together if kind not in apart], apart)):
        made = query(kinds)
        answer = analyzed(spark, tmp_path, made)
        assert isinstance(answer, AnalyzeResponseSuccess), answer
        folder = tmp_path / f"{len(kinds)} types"
        folder.mkdir()
        assert len(pulled(spark, folder, made)) == 3


def test_groups_by_an_interval_beside_a_collated_text_are_refused(spark, tmp_path):
    query, _ = PLACES["GROUP BY"]
    answer = analyzed(spark, tmp_path, query(["months and days", "collated"]))
    assert re.match(
        r"There are no groups by `make_interval\(0, a\.v, .*`, an INTERVAL, beside a collated text", answer.message
    )


@pytest.mark.parametrize("name", TRIED)
def test_what_cannot_be_pulled_again_is_not_added_and_the_user_is_told_in_words_of_the_query(spark, tmp_path, name):
    query, refused = PLACES[name]
    for kind in sorted(refused):
        answer = analyzed(spark, tmp_path, query([kind]))
        assert not isinstance(answer, AnalyzeResponseSuccess), kind
        assert "__odf_" not in answer.message, kind
        assert "`c" not in answer.message, kind
        assert "`k0" not in answer.message, kind
        assert '"_w' not in answer.message, kind


@pytest.mark.parametrize("name", ["column below row_number", "column below LIMIT"])
def test_the_place_where_rows_cannot_be_put_into_an_order_is_told(spark, tmp_path, name):
    answer = analyzed(spark, tmp_path, PLACES[name][0](["map"]))
    assert not isinstance(answer, AnalyzeResponseSuccess)
    assert answer.message.startswith("`x0` has the type MAP<STRING, INT>, which has no order")
    assert "step 2" in answer.message
    assert "map_entries" in answer.hint


@pytest.mark.parametrize(
    ("steps", "message", "place"),
    [
        (
            below(
                "SELECT window.end AS event_time, count(DISTINCT k) AS n FROM s GROUP BY window(event_time, '1 day')"
            ),
            "`x0` has the type VARIANT, whose values cannot be compared",
            "line 1, column 64 of step 2",
        ),
        (
            lambda types: [
                ("s", f"SELECT max(event_time) AS event_time, k, {counted(types)} FROM a GROUP BY k"),
                (None, "SELECT event_time, k FROM s"),
            ],
            "`x0` has the type VARIANT, whose values cannot be compared",
            "line 1, column 42 of step 1",
        ),
    ],
)
def test_the_place_of_what_cannot_be_known_again_is_told(spark, tmp_path, steps, message, place):
    answer = analyzed(spark, tmp_path, steps(["variant"]))
    assert not isinstance(answer, AnalyzeResponseSuccess)
    assert answer.message.startswith(message)
    assert place in answer.message
    assert "to_json" in answer.hint
