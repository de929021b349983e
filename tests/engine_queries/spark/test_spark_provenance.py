"""What rows are made of, for each class of query: the rows that are cited alone make the row, and no others are needed.

A run of all tests tries a few queries of the corpus; `ODF_LAWS=200` all of them, with several rows each.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.queries.cases import QUICK, Case, Tuned, corpus
from support.queries.traces import Traces, without

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "1"))
QUICK_CASES = (
    "tumbling-window",
    "session-window-of-different-values",
    "top-n",
    "interval-left-join",
    "equi-semi-and-anti-join",
)
CASES = [case for case in corpus() if EXAMPLES > 1 or case.name in QUICK_CASES]
GROUPED_BY_COUNTS = ("groups-of-hidden-groups",)
"""Where a row that goes lets others fall into another group: what is said of a group then depends on what is not in it."""


@pytest.fixture(scope="module")
def quick(spark: Any) -> Tuned:
    return Tuned(spark, **QUICK)


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.name == "interval-left-join" else [])
        for case in CASES
    ],
)
def test_what_is_cited_makes_the_row_and_nothing_else_is_needed(case: Case, quick: Tuned, tmp_path: Path) -> None:
    traces = Traces(quick, case, tmp_path)
    for pull in case.pulls:
        traces.arrive(pull)
    holds(traces, others=case.name not in GROUPED_BY_COUNTS)


@pytest.mark.parametrize(
    "case", [case for case in CASES if EXAMPLES > 1 or case.name == "tumbling-window"], ids=lambda case: case.name
)
def test_what_rows_were_made_of_earlier_is_found_later(case: Case, quick: Tuned, tmp_path: Path) -> None:
    """A row that has stayed, and of which no way has newer rows, was made in just these ways."""
    traces, then = Traces(quick, case, tmp_path), []
    for pull in case.pulls:
        traces.arrive(pull)
        ends = [source.end for source in traces.sources.values()]
        then.append((ends, ways_by_row(traces.traced() or [])))
    last = traces.traced(for_earlier=True)
    if last is None:
        return
    now = ways_by_row(last)
    for at, (ends, found) in enumerate(then):
        for text, ways in found.items():
            stays = all(len(later.get(text, ())) == len(ways) for _, later in then[at:])
            if stays and all(offset < ends[source] for way in now[text] for source, offset in way):
                assert now[text] == ways, (at, text)


@pytest.mark.parametrize("frame", ["2147483647 PRECEDING AND CURRENT ROW", "CURRENT ROW AND 2147483647 FOLLOWING"])
def test_frames_that_reach_beyond_all_rows_end_with_these(frame: str, quick: Tuned, tmp_path: Path) -> None:
    """Spark runs such a query, and the sum of a place and a distance may not overflow."""
    case = next(case for case in corpus() if case.name == "frames")
    steps = [(alias, query.replace("1 PRECEDING AND 1 FOLLOWING", frame)) for alias, query in case.steps]
    assert steps != case.steps
    traces = Traces(quick, replace(case, steps=steps), tmp_path)
    for pull in case.pulls:
        traces.arrive(pull)
    assert traces.traced()


def test_groups_that_rows_do_not_show_may_stand_for_each_other(quick: Tuned, tmp_path: Path) -> None:
    case = next(case for case in corpus() if case.name == "window-without-keys-shown")
    traces = Traces(quick, case, tmp_path)
    traces.arrive(case.pulls[0])
    assert traces.traced(for_earlier=True) is None


def ways_by_row(found: list[tuple[str, list[frozenset[tuple[int, int]]]]]) -> dict[str, list[list[tuple[int, int]]]]:
    """All ways in which rows are made, by what they say."""
    return {text: sorted(sorted(way) for way in ways) for text, ways in found}


def holds(traces: Traces, *, others: bool = True) -> list[tuple[str, frozenset[tuple[int, int]]]]:
    """The laws, for some rows of the result; gives back all rows with the first way in which each is made."""
    found = traces.traced() or []
    present = list(traces.present())
    assert all(ways for _, ways in found), [text for text, ways in found if not ways]
    for text, ways in found[: 1 + EXAMPLES]:
        for cited in ways[:1]:
            assert cited <= set(present)
            assert text in traces.result(cited), (text, cited)
            rest = [one for one in present if one not in cited] if others else []
            for other in rest[:: max(1, len(rest) // EXAMPLES)][:EXAMPLES]:
                assert text in traces.result(without(present, other)), (text, cited, other)
    return [(text, ways[0]) for text, ways in found]
