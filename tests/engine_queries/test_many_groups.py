"""Partial results of groups that are looked up in the arrangement: what comes out is the same, to the bit.

The Runner arranges them from the first group on. A run of all tests tries one history of some queries; `ODF_LAWS=50` so
many of each.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from support.queries.arranging import both, case_of
from support.queries.cases import QUICK, Pull, Runner, Tuned, corpus, locked
from support.queries.histories import histories
from support.queries.stories import told_further

from odfpy.engine.arrangement import Manifest
from odfpy.engine.checkpoint import read_manifest
from odfpy.engine.spark.incremental.state import arranged_groups, groups
from odfpy.engine.spark.incremental.state.arrangement import Arrangement

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

    @settings(max_examples=EXAMPLES or 1, suppress_health_check=list(HealthCheck), deadline=None)
    @given(histories(tuple(case.inputs), pulls=(3, 6)))
    def law(pulls):
        with mock.patch.object(groups, "MOST_TIMES", most_times):
            both(spark, replace(case, pulls=pulls), pulls)

    law()


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
    runner = Runner(Tuned(spark, **QUICK), case, tmp_path, arranged=True)
    made = [runner.pull(pull) for pull in case.pulls]
    assert [one.logical_hash or "none" for one in made] == HASHES[case.name]


# --- Where they are ---


def runner_of(spark, folder: Path) -> tuple[Runner, list]:
    case = case_of(QUERIES["values"])
    pulls = told_further(case.inputs)
    return Runner(Tuned(spark, **QUICK), replace(case, pulls=pulls), folder, arranged=True), pulls


def parts(runner: Runner) -> tuple[int, int, int]:
    """How many stateful inputs are in the checkpoint, are said to be arranged, and are."""
    manifest = read_manifest(Path(runner.checkpoint or ""))
    assert manifest is not None
    found = Manifest.read(runner.arrangement) if runner.arrangement else None
    return (
        len(manifest.rows),
        len(manifest.arranged or ()),
        sum(bool(one.runs) for one in found.arranged) if found else 0,
    )


def pulled(spark, folder: Path, between) -> list[tuple[int, int, int]]:
    """Pull, and do something before the sixth pull; rows are compared with those of an undisturbed engine."""
    (folder / "plain").mkdir()
    (folder / "other").mkdir()
    runner, pulls = runner_of(spark, folder / "other")
    plain = Runner(Tuned(spark, **QUICK), runner.case, folder / "plain")
    places = []
    for number, pull in enumerate(pulls):
        if number == 5:
            between(runner)
        assert runner.pull(pull).lines == plain.pull(pull).lines
        places.append(parts(runner))
    return places


def test_groups_are_in_one_of_the_two_places(spark, tmp_path):
    places = pulled(spark, tmp_path, lambda runner: None)
    assert places[0] == (0, 0, 0)
    assert set(places[2:]) == {(0, 1, 1)}


def test_a_lost_arrangement_is_made_again_from_history(spark, tmp_path):
    def lose(runner):
        runner.arrangement = None

    assert pulled(spark, tmp_path, lose)[5:] == [(0, 1, 1)] * 3


def test_a_damaged_arrangement_is_made_again_from_history(spark, tmp_path):
    def damage(runner):
        for run in runner.arrangement.glob("run-*"):
            run.write_bytes(run.read_bytes()[:100])

    assert pulled(spark, tmp_path, damage)[5:] == [(0, 1, 1)] * 3


def test_an_arrangement_of_another_pull_is_not_used(spark, tmp_path):
    def swap(runner):
        runner.arrangement = runner.folder / "pull-3" / "arrangement"

    assert pulled(spark, tmp_path, swap)[5:] == [(0, 1, 1)] * 3


def test_pulls_of_most_groups_read_and_write_all_of_them(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    made = [runner.pull(pull).lines for pull in pulls[:3]]
    before = parts(runner)
    with mock.patch.object(arranged_groups, "_MOST_NEW", 0):
        made.append(runner.pull(pulls[3]).lines)
    assert (before, parts(runner)) == ((0, 1, 1), (1, 0, 0))
    made.append(runner.pull(pulls[4]).lines)
    assert parts(runner) == (0, 1, 1)
    made += [runner.pull(pull).lines for pull in pulls[5:]]
    assert made == undisturbed(spark, tmp_path, pulls)


def undisturbed(spark, folder: Path, pulls) -> list:
    (folder / "plain").mkdir()
    plain = Runner(Tuned(spark, **QUICK), case_of(QUERIES["values"]), folder / "plain")
    return [plain.pull(pull).lines for pull in pulls]


def test_a_pull_without_rows_reads_no_groups(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    for pull in pulls:
        runner.pull(pull)
    arranged_before = {path.name for path in runner.arrangement.glob("run-*")}
    with mock.patch.object(Arrangement, "write_all", side_effect=AssertionError):
        assert runner.pull(Pull({}, {"a": "2024-02-01T00:00"})).lines == []
    assert {path.name for path in runner.arrangement.glob("run-*")} == arranged_before
    more = replace(pulls[1], watermarks={})
    (tmp_path / "plain").mkdir()
    plain = Runner(Tuned(spark, **QUICK), runner.case, tmp_path / "plain")
    for pull in pulls:
        plain.pull(pull)
    assert runner.pull(more).lines == plain.pull(more).lines


def test_few_groups_stay_in_the_checkpoint(spark, tmp_path):
    runner, pulls = runner_of(spark, tmp_path)
    respond = runner.respond

    def with_limit(request):
        with mock.patch.object(arranged_groups, "LEAST_GROUPS", 50):
            return respond(request)

    runner.respond = with_limit
    for pull in pulls:
        runner.pull(pull)
    assert parts(runner) == (1, 0, 0)
