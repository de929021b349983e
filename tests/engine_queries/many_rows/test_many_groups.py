"""Partial results of groups that are looked up in the arrangement: what comes out is the same, to the bit.

The Runner arranges them from the first group on. A run of all tests tries one history of some queries; `ODF_LAWS=50` so
many of each.
"""

from __future__ import annotations

import os
import zipfile
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pyarrow.parquet as pq
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
from support.queries.cases import QUICK, Pull, Runner, Tuned, corpus, locked, parsed
from support.queries.stories import FIELDS, told_further

from odfpy.engine.checkpoint import read_manifest
from odfpy.engine.spark.incremental.state import arranged_groups, groups, worth_arranging
from odfpy.engine.spark.incremental.state.arrangement import Arrangement
from odfpy.engine.spark.incremental.state.hashes import HASH

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "0"))
HASHES = locked()
GROUPED = "SELECT max(event_time) AS event_time, {key} AS k, {what} FROM a GROUP BY {key}"
QUERIES = {
    # The event time is counted only: a greatest value can be taken back, and then values are keys.
    "counts": "SELECT date'2024-01-01' AS event_time, k, count(*) AS n, sum(v) AS s FROM a GROUP BY k",
    "values": GROUPED.format(key="k", what="count(v) AS n, sum(v) AS s, min(v) AS l"),
    "exact averages": GROUPED.format(key="k", what="avg(v / 3D) AS s, avg(v) AS m"),
    "by number": GROUPED.format(key="v % 2", what="count(*) AS n"),
    "by two": "SELECT max(event_time) AS event_time, k, v, count(*) AS n FROM a GROUP BY k, v",
    "distinct rows": "SELECT DISTINCT event_time, k FROM a",
    "some groups": GROUPED.format(key="k", what="count(*) AS n") + " HAVING count(*) > 1",
    "groups of groups": "SELECT max(event_time) AS event_time, n, count(*) AS c FROM "
    "(SELECT k, max(event_time) AS event_time, count(*) AS n FROM a GROUP BY k) GROUP BY n",
    "joined groups": "SELECT b.event_time, b.k, n FROM b JOIN (SELECT k, v, count(*) AS n FROM a GROUP BY k, v) c "
    "ON b.k = c.k",
}
NOT_LOOKED_UP = {
    "one group": "SELECT max(event_time) AS event_time, count(*) AS n FROM a",
    "windows, which settle": "SELECT w.end AS event_time, k, count(*) AS n FROM "
    "(SELECT window(event_time, '1 day') AS w, k FROM a) GROUP BY w, k",
    "doubles have two zeros": GROUPED.format(key="cast(v AS double)", what="count(*) AS n"),
    "beside other groups": "SELECT x.event_time, x.k, n, m FROM "
    "(SELECT max(event_time) AS event_time, k, count(*) AS n FROM a GROUP BY k) x JOIN "
    "(SELECT k, count(*) AS m FROM b GROUP BY k) y ON x.k = y.k",
    "ranked by less than the group": "SELECT event_time, k, v, n, rank() OVER (PARTITION BY k ORDER BY n) AS r FROM "
    "(SELECT max(event_time) AS event_time, k, v, count(*) AS n FROM a GROUP BY k, v)",
}
TRIED = QUERIES if EXAMPLES else ("counts", "values", "by two", "groups of groups")


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", TRIED)
def test_rows_are_the_same(name, spark):
    case = case_of(QUERIES[name])
    pulls = told_further(case.inputs)
    assert both(spark, replace(case, pulls=pulls), pulls) >= 3


@pytest.mark.parametrize("name", QUERIES if EXAMPLES else ("values", "exact averages"))
@pytest.mark.parametrize("most_times", [0, 2, 100])
def test_rows_are_the_same_in_random_histories(name, most_times, spark):
    """Whether partial results are put together in each pull, now and then, or never."""
    case = case_of(QUERIES[name])

    def law(pulls):
        with mock.patch.object(worth_arranging, "MAX_TIMES", most_times):
            both(spark, replace(case, pulls=pulls), pulls)

    in_random_histories(case, EXAMPLES or 1, law)


def test_groups_come_again_after_all_have_been_retracted(spark):
    """The arrangement is then without rows, and has no batch that tells its schema."""
    case = case_of(QUERIES["counts"])
    first, row = parsed("+A 2024-01-01T01:00 x 1", FIELDS), parsed("+A 2024-01-02T01:00 y 1", FIELDS)
    pulls = [Pull({"a": [one]}, {}) for one in (first, ("-R", *first[1:]), row, row)]
    with mock.patch.object(worth_arranging, "MAX_TIMES", 0):
        both(spark, replace(case, pulls=pulls), pulls)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", NOT_LOOKED_UP)
def test_what_cannot_be_looked_up_is_kept_in_the_checkpoint(name, spark):
    case = case_of(NOT_LOOKED_UP[name])
    pulls = told_further(case.inputs)
    assert both(spark, replace(case, pulls=pulls), pulls) == 0


AGGREGATES = (
    "integers",
    "decimals",
    "doubles",
    "texts-and-others",
    "groups-of-hidden-groups",
    "having",
    "grouping-sets",
    "pivot",
    "aggregate-then-aggregate-then-limit",
)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("case", [case for case in corpus() if case.name in AGGREGATES], ids=lambda case: case.name)
def test_a_case_of_the_corpus(case, spark, tmp_path):
    assert hashes_of(spark, case, tmp_path) == HASHES[case.name]


# --- Where they are ---


def runner_of(spark, folder):
    pulls = told_further(["a"])
    return arranged_runner(spark, QUERIES["values"], pulls, folder), pulls


@pytest.fixture(scope="module")
def begun(spark, tmp_path_factory):
    """The beginning of a story, which several tests go on with, each in a copy."""
    return begin(spark, QUERIES["values"], told_further(["a"]), tmp_path_factory.mktemp("begun"))


def test_groups_are_in_one_of_the_two_places(begun, tmp_path):
    places = pulled_with(begun, tmp_path, lambda runner: None)
    assert places[0] == (0, 0, 0)
    assert set(places[2:]) == {(0, 1, 1)}


@pytest.mark.parametrize("spoil", SPOILED)
def test_an_arrangement_that_is_of_no_use_is_made_again_from_history(spoil, begun, tmp_path):
    assert pulled_with(begun, tmp_path, spoil)[5:] == [(0, 1, 1)] * 3


def test_pulls_of_most_groups_read_and_write_all_of_them(begun, spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    made = [runner.pull(pull).lines for pull in pulls[:3]]
    before = parts(runner)
    with mock.patch.object(arranged_groups, "_MAX_NEW", 0):
        made.append(runner.pull(pulls[3]).lines)
    assert (before, parts(runner)) == ((0, 1, 1), (1, 0, 0))
    made.append(runner.pull(pulls[4]).lines)
    assert parts(runner) == (0, 1, 1)
    made += [runner.pull(pull).lines for pull in pulls[5:]]
    assert made == begun.lines


def test_a_pull_without_rows_reads_no_groups(begun, tmp_path):
    runner = resumed(begun.runner, tmp_path / "arranged")
    for pull in begun.pulls[BEGINNING:]:
        runner.pull(pull)
    arranged_before = {path.name for path in runner.arrangement.glob("run-*")}
    with mock.patch.object(Arrangement, "write_all", side_effect=AssertionError):
        assert runner.pull(Pull({}, {"a": "2024-02-01T00:00"})).lines == []
    assert {path.name for path in runner.arrangement.glob("run-*")} == arranged_before
    more = replace(begun.pulls[1], watermarks={})
    assert runner.pull(more).lines == resumed(begun.plain, tmp_path / "plain").pull(more).lines


def test_few_groups_stay_in_the_checkpoint(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    with within(runner, mock.patch.object(worth_arranging, "MIN_ROWS", 50)):
        for pull in pulls[:BEGINNING]:
            runner.pull(pull)
    assert parts(runner) == (1, 0, 0)


# --- First rows in several tasks: their groups have hashes at once ----------------------------------------------------

MANY = {**QUICK, "spark__sql__shuffle__partitions": "3"}


def runner_in_tasks(spark, folder):
    folder.mkdir()
    return Runner(Tuned(spark, **MANY), case_of(QUERIES["values"]), folder, rows_in_one_task=1, arranged=True)


@pytest.mark.parametrize(
    "way",
    [
        pytest.param(
            mock.patch.object(groups, "sorted_entries", side_effect=AssertionError("computed again")),
            id="as they were computed",
        ),
        pytest.param(mock.patch.object(groups, "ROWS_AT_ONCE", 0), id="by Spark, if they are many"),
    ],
)
def test_groups_of_many_rows_are_arranged(way, begun, spark, tmp_path):
    pulls = begun.pulls[:BEGINNING]
    runner = runner_in_tasks(spark, tmp_path / "many")
    with way:
        made = [runner.pull(pull).lines for pull in pulls[:2]]
    assert parts(runner) == (0, 1, 1)
    made += [runner.pull(pull).lines for pull in pulls[2:]]
    assert made == begun.lines[:BEGINNING]


def test_few_groups_of_many_rows_are_kept_without_hashes(begun, spark, tmp_path):
    pulls = begun.pulls[:BEGINNING]
    runner = runner_in_tasks(spark, tmp_path / "many")
    with within(runner, mock.patch.object(worth_arranging, "MIN_ROWS", 50)):
        made = [runner.pull(pull).lines for pull in pulls[:2]]
        assert parts(runner) == (1, 0, 0)
        (kept,) = read_manifest(Path(runner.checkpoint)).rows
        with zipfile.ZipFile(runner.checkpoint) as archive, archive.open(kept.name) as file:
            assert HASH not in pq.read_schema(file).names
        made += [runner.pull(pull).lines for pull in pulls[2:]]
    assert made == begun.lines[:BEGINNING]
