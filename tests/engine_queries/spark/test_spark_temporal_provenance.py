"""Rows of joins with temporal tables are made of the version in force at their time, and of no other row of its key.

The oracle is a replay: over nothing but the cited rows the query gives the row again, and with any of them left out it
does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.queries.cases import QUICK, Case, Pull, Tuned, parsed
from support.queries.traces import Traces, without

from odfpy.dataset.transform import TemporalTable

pytestmark = pytest.mark.spark

RATES = [pa.field("cur", pa.string()), pa.field("rate", pa.int32())]
FACTS = [pa.field("id", pa.int32()), pa.field("cur", pa.string())]
LATE = "2024-01-09T00:00"
IN_FORCE = "f.event_time >= r.valid_from AND f.event_time < r.valid_to"
AS_OF = "SELECT f.event_time, f.id, r.rate{more} FROM facts f {kind} JOIN rates r ON f.cur = r.cur AND {valid}"
GROWING = ["+A 2024-01-01T00:00 eur 1", "+A 2024-01-03T00:00 eur 2", "+A 2024-01-02T00:00 usd 7"]
UPDATED = ["+A 2024-01-01T00:00 eur 1", "-C 2024-01-01T00:00 eur 1", "+C 2024-01-03T00:00 eur 2"]
TWO_FACTS = ["+A 2024-01-02T00:00 1 eur", "+A 2024-01-04T00:00 2 eur"]
FIRST, SECOND = "+A 2024-01-02T00:00 1 1", "+A 2024-01-04T00:00 2 2"

Cited = frozenset[tuple[int, int]]


@pytest.fixture(scope="module")
def quick(spark: Any) -> Tuned:
    return Tuned(spark, **QUICK)


class AsOf:
    """A query over facts, the first input, and rates, the second one and a temporal table, all of which have come."""

    def __init__(self, quick: Tuned, folder: Path) -> None:
        self.quick = quick
        self.folder = folder

    def given(
        self,
        query: str | Sequence[tuple[str | None, str]],
        facts: Sequence[str],
        rates: Sequence[str],
        of: str = "rates",
    ) -> None:
        steps = [(None, query)] if isinstance(query, str) else query
        rows = {"facts": [parsed(one, FACTS) for one in facts], "rates": [parsed(one, RATES) for one in rates]}
        pull = Pull(rows, {"facts": LATE, "rates": LATE})
        case = Case("as of", "", steps, {"facts": FACTS, "rates": RATES}, {}, [pull])
        self.traces = Traces(self.quick, case, self.folder, (TemporalTable(of, ("cur",)),))
        self.traces.arrive(pull)

    def cited(self) -> dict[str, Cited]:
        """Of each row what it is made of, after a replay of all of it, and of all of it but one row."""
        found = {}
        for text, (cited, *_) in self.traces.traced() or []:
            assert text in self.traces.result(cited), (text, cited)
            for one in cited:
                assert text not in self.traces.result(without(sorted(cited), one)), (text, cited, one)
            found[text] = cited
        return found


@pytest.fixture
def as_of(quick: Tuned, tmp_path: Path) -> AsOf:
    return AsOf(quick, tmp_path)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("kind", "valid"), [("", IN_FORCE), ("LEFT", IN_FORCE), ("", "f.event_time BETWEEN r.valid_from AND r.valid_to")]
)
def test_the_version_in_force_is_cited_and_not_what_ended_it(kind: str, valid: str, as_of: AsOf) -> None:
    lonely = "+A 2024-01-01T00:00 3 usd"
    as_of.given(AS_OF.format(more="", kind=kind, valid=valid), [*TWO_FACTS, lonely], GROWING)
    expected = {FIRST: {(0, 0), (1, 0)}, SECOND: {(0, 1), (1, 1)}}
    assert as_of.cited() == expected | ({"+A 2024-01-01T00:00 3 -": {(0, 2)}} if kind else {})


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("rates", "first", "second"),
    [
        pytest.param(UPDATED, 0, 2, id="an update"),
        pytest.param([*GROWING[:2], "-C 2024-01-03T00:00 eur 2", "+C 2024-01-03T00:00 eur 2"], 0, 3, id="a correction"),
        pytest.param([*GROWING[:2], "+A 2024-01-03T12:00 eur 9", "-R 2024-01-03T12:00 eur 9"], 0, 1, id="as if never"),
        pytest.param([*GROWING[:2], "-R 2024-01-05T00:00 eur 2"], 0, 1, id="an end after it"),
        pytest.param(
            [GROWING[0], "-R 2024-01-01T00:00 eur 1", "+A 2024-01-01T00:00 eur 1", GROWING[1]], 2, 3, id="again"
        ),
    ],
)
def test_of_a_log_with_corrections_too(rates: list[str], first: int, second: int, as_of: AsOf) -> None:
    as_of.given(AS_OF.format(more="", kind="", valid=IN_FORCE), TWO_FACTS, rates)
    assert as_of.cited() == {FIRST: {(0, 0), (1, first)}, SECOND: {(0, 1), (1, second)}}


def test_where_the_end_is_shown_it_is_cited_as_well(as_of: AsOf) -> None:
    as_of.given(AS_OF.format(more=", r.valid_to", kind="", valid=IN_FORCE), TWO_FACTS[:1], GROWING)
    ((text, cited),) = as_of.cited().items()
    assert text.startswith(FIRST)
    assert cited == {(0, 0), (1, 0), (1, 1)}


def test_a_version_that_nobody_looked_up_is_shown_because_it_has_ended(as_of: AsOf) -> None:
    """Without the row that ended it, it would still wait."""
    query = f"SELECT r.event_time, r.rate FROM facts f RIGHT JOIN rates r ON f.cur = r.cur AND {IN_FORCE}"
    as_of.given(query, TWO_FACTS[1:], GROWING)
    cited = as_of.cited()
    assert cited["+A 2024-01-01T00:00 1"] == {(1, 0), (1, 1)}


def test_a_version_made_of_several_rows_is_cited_with_them(as_of: AsOf) -> None:
    best = "SELECT max(event_time) AS event_time, cur, sum(rate) AS rate FROM rates GROUP BY cur, window(event_time, '2 days')"
    steps = [("best", best), (None, AS_OF.format(more="", kind="", valid=IN_FORCE).replace("rates r", "best r"))]
    rates = ["+A 2024-01-01T00:00 eur 1", "+A 2024-01-01T12:00 eur 2", "+A 2024-01-03T00:00 eur 4"]
    as_of.given(steps, TWO_FACTS, rates, of="best")
    cited = as_of.cited()
    assert cited["+A 2024-01-02T00:00 1 3"] == {(0, 0), (1, 0), (1, 1)}
    assert cited["+A 2024-01-04T00:00 2 4"] == {(0, 1), (1, 2)}


def test_a_row_that_counts_without_a_version_must_not_find_one_that_was_over(as_of: AsOf) -> None:
    """The second fact is in the group of the first one, so that the end of the version is what it is made of, too."""
    query = f"""
        SELECT max(f.event_time) AS event_time, f.cur, count(*) AS n, count(r.rate) AS known
        FROM facts f {{kind}} JOIN rates r ON f.cur = r.cur AND {IN_FORCE} GROUP BY f.cur
    """
    ended = [GROWING[0], "-R 2024-01-03T00:00 eur 1"]
    as_of.given(query.format(kind="LEFT"), TWO_FACTS, ended)
    assert as_of.cited() == {"+A 2024-01-04T00:00 eur 2 1": {(0, 0), (0, 1), (1, 0), (1, 1)}}


def test_a_group_of_rows_that_have_found_a_version_is_made_of_what_they_found(as_of: AsOf) -> None:
    query = f"""
        SELECT max(f.event_time) AS event_time, f.cur, sum(r.rate) AS known
        FROM facts f JOIN rates r ON f.cur = r.cur AND {IN_FORCE} GROUP BY f.cur
    """
    as_of.given(query, [*TWO_FACTS, "+A 2024-01-06T00:00 3 eur"], [*GROWING, "-R 2024-01-05T00:00 eur 2"])
    assert as_of.cited() == {"+A 2024-01-04T00:00 eur 3": {(0, 0), (0, 1), (1, 0), (1, 1)}}


def test_a_table_that_is_read_twice_is_cited_with_its_ends(as_of: AsOf) -> None:
    """As of an hour before the version was in force, as of the row it was over."""
    before = IN_FORCE.replace("r.", "b.").replace("f.event_time", "f.event_time - INTERVAL '1' HOUR")
    query = f"""
        SELECT f.event_time, f.id, b.rate AS before, r.rate FROM facts f
        LEFT JOIN rates b ON f.cur = b.cur AND {before} LEFT JOIN rates r ON f.cur = r.cur AND {IN_FORCE}
    """
    as_of.given(query, ["+A 2024-01-03T00:00 1 eur"], [GROWING[0], "-R 2024-01-03T00:00 eur 1"])
    assert as_of.cited() == {"+A 2024-01-03T00:00 1 1 -": {(0, 0), (1, 0), (1, 1)}}
