"""The first rows of many partitions, looked up in the arrangement: what comes out is the same, to the bit.

The Runner arranges them from the first row on. A run of all tests tries one history of some queries; `ODF_LAWS=50` so
many of each.
"""

from __future__ import annotations

import os
from dataclasses import replace
from unittest import mock

import pytest
from support.queries.arranging import (
    BEGINNING,
    SPOILED,
    arranged_runner,
    begin,
    both,
    case_of,
    hashes_of,
    in_random_histories,
    parts,
    pulled_with,
    resumed,
    within,
)
from support.queries.cases import Pull, corpus, locked
from support.queries.stories import only_appended, told_further

from odfpy.engine.spark.incremental.state import arranged, worth_arranging
from odfpy.engine.spark.incremental.state.arrangement import Arrangement

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
HASHES = locked()
RANKED = "SELECT event_time, k, v, n FROM (SELECT *, {rank}() OVER (PARTITION BY {key} ORDER BY {order}) AS n FROM a)"
QUERIES = {
    "latest": RANKED.format(rank="row_number", key="k", order="event_time DESC, v") + " WHERE n = 1",
    "first two": RANKED.format(rank="row_number", key="k", order="v, event_time") + " WHERE n <= 2",
    "ties": RANKED.format(rank="rank", key="k", order="v") + " WHERE n < 3",
    "dense": RANKED.format(rank="dense_rank", key="k, v % 2", order="v DESC") + " WHERE n <= 2",
    "of some rows": "SELECT event_time, k, n FROM (SELECT event_time, k, row_number() OVER (PARTITION BY k ORDER BY"
    " event_time, v) AS n FROM a WHERE v > 0) WHERE n <= 2",
    "joined": "SELECT b.event_time, b.k, x.v FROM b JOIN (SELECT *, row_number() OVER (PARTITION BY k ORDER BY"
    " event_time DESC, v) AS n FROM a) x ON b.k = x.k WHERE x.n = 1",
}
NOT_LOOKED_UP = {
    "all rows": "SELECT event_time, k, v FROM a ORDER BY event_time DESC, k, v LIMIT 3",
    "doubles have two zeros": RANKED.format(rank="row_number", key="cast(v AS double)", order="event_time, k")
    + " WHERE n = 1",
}
TRIED = QUERIES if EXAMPLES else ("first two", "ties")


@pytest.mark.slow  # the next test begins with these pulls
@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same(name, spark):
    case = case_of(QUERIES[name])
    pulls = only_appended(told_further(case.inputs))
    assert both(spark, replace(case, pulls=pulls), pulls) >= 4


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same_when_some_are_taken_back(name, spark):
    case = case_of(QUERIES[name])
    pulls = [*only_appended(told_further(case.inputs)), *told_further(case.inputs)[3:]]
    assert both(spark, replace(case, pulls=pulls), pulls) >= 4


@pytest.mark.parametrize("name", QUERIES if EXAMPLES else ("first two",))
@pytest.mark.parametrize("most_times", [0, 2, 100])
def test_rows_are_the_same_in_random_histories(name, most_times, spark):
    """Whether rows are put together in each pull, now and then, or never."""
    case = case_of(QUERIES[name])

    def law(pulls):
        with mock.patch.object(worth_arranging, "MAX_TIMES", most_times):
            both(spark, replace(case, pulls=pulls), pulls)
            appended = only_appended(pulls)
            both(spark, replace(case, pulls=appended), appended)

    in_random_histories(case, EXAMPLES or 1, law)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NOT_LOOKED_UP)
def test_what_cannot_be_looked_up_is_kept_in_the_checkpoint(name, spark):
    case = case_of(NOT_LOOKED_UP[name])
    pulls = only_appended(told_further(case.inputs))
    assert both(spark, replace(case, pulls=pulls), pulls) == 0


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("case", [case for case in corpus() if "top" in case.name], ids=lambda case: case.name)
def test_a_case_of_the_corpus(case, spark, tmp_path):
    assert hashes_of(spark, case, tmp_path) == HASHES[case.name]


# --- Where they are ---


def runner_of(spark, folder):
    pulls = only_appended(told_further(["a"]))
    return arranged_runner(spark, QUERIES["first two"], pulls, folder), pulls


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    """The beginning of a story, which several tests go on with, each in a copy."""
    return begin(spark, QUERIES["first two"], only_appended(told_further(["a"])), tmp_path_factory.mktemp("begun"))


def test_rows_are_in_one_of_the_two_places(begun, tmp_path):
    places = pulled_with(begun, tmp_path, lambda runner: None)
    assert places[0] == (0, 0, 0)
    assert set(places[1:]) == {(0, 1, 1)}


@pytest.mark.parametrize("spoil", SPOILED)
def test_an_arrangement_that_is_of_no_use_is_made_again_from_history(spoil, begun, tmp_path):
    assert pulled_with(begun, tmp_path, spoil)[5:] == [(0, 1, 1)] * 3


def test_a_lost_checkpoint_is_made_again_from_history(begun, tmp_path):
    def lose(runner):
        runner.checkpoint = None

    assert pulled_with(begun, tmp_path, lose)[5:] == [(0, 1, 1)] * 3


@pytest.mark.parametrize(("rows_new", "place"), [(0, (1, 0, 0)), (1000, (0, 1, 1))])
def test_pulls_of_most_partitions_read_and_write_all_of_them(rows_new, place, begun, spark, tmp_path):
    """Unless they bring that many rows themselves, as after a break."""
    runner, pulls = runner_of(spark, tmp_path)
    made = [runner.pull(pull).lines for pull in pulls[:3]]
    before = parts(runner)
    new = mock.patch.object(arranged, "_num_new_rows", return_value=rows_new)
    with new, within(runner, mock.patch.multiple(worth_arranging, MIN_ROWS=0, WORTH=100, MAX_TIMES=10_000)):
        made.append(runner.pull(pulls[3]).lines)
    assert (before, parts(runner)) == ((0, 1, 1), place)
    made += [runner.pull(pull).lines for pull in pulls[4:]]
    assert made == begun.lines


def test_a_pull_without_rows_reads_none(begun, tmp_path):
    runner = resumed(begun.runner, tmp_path / "other")
    for pull in begun.pulls[BEGINNING:]:
        runner.pull(pull)
    before = {path.name for path in runner.arrangement.glob("run-*")}
    assert runner.pull(Pull({}, {"a": "2024-02-01T00:00"})).lines == []
    assert {path.name for path in runner.arrangement.glob("run-*")} == before
    assert parts(runner) == (0, 1, 1)


def test_rows_that_are_kept_are_looked_up(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    for pull in pulls[:2]:
        runner.pull(pull)
    never = mock.patch.object(Arrangement, "write_all", side_effect=AssertionError)
    with never, mock.patch.object(worth_arranging, "MAX_TIMES", 100):
        for pull in pulls[2:]:
            runner.pull(pull)
    assert runner.looked_up == len(pulls) - 2


def test_few_rows_stay_in_the_checkpoint(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    with within(runner, mock.patch.object(worth_arranging, "MIN_ROWS", 50)):
        for pull in pulls[:BEGINNING]:
            runner.pull(pull)
    assert parts(runner) == (1, 0, 0)
