"""The profile of pulls by Spark: which stages queries row by row, windows, keys and several steps have.

Of a worker, `tests/engine/test_engine_worker.py` has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import BY_DAY, TOTALS, derivative, feed, root, workspace_with
from support.engine.spark_here import SparkHere

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.spark.process.counting import count_jobs
from odfpy.stages import StageTime, profiling

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

APPEND = "{kind: Append}"
BY_COUNT = f"select max(event_time) as event_time, n, count(*) as names from ({TOTALS}) group by n"


@pytest.fixture
def workspace(here: SparkHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    monkeypatch.setenv("HOME", str(tmp_path))
    return workspace_with(tmp_path / "w", root("root", APPEND))


def pulled(workspace: Workspace, spark: SparkSession, query: str) -> StageTime:
    """The profile of the third pull of a query: it is known by then, as it is recorded after the first."""
    workspace.add(load_snapshots(derivative("made", query=query, engine="spark"), "made"))
    for day, names in ((1, "ab"), (3, "ac")):
        feed(workspace, "root", *(f"{day}{at} {name}" for at, name in enumerate(names)), day=day)
        assert [result.error for result in workspace.pull(["made"])] == [None]
    feed(workspace, "root", "9 a", day=5)
    with profiling("test") as whole:
        count_jobs(spark)  # those of before are none of this
        (result,) = workspace.pull(["made"])
    assert result.error is None
    assert result.profile is whole.at("made")
    assert result.profile is not None
    for _, one in whole.walk():
        assert sum(part.seconds for part in one.parts.values()) <= one.seconds or not one.parts, one.name
    return result.profile


def has(profile: StageTime, *path: str) -> bool:
    return profile.at(*path) is not None


def test_row_by_row(workspace: Workspace, spark: SparkSession) -> None:
    found = pulled(workspace, spark, "select event_time, id * 2 as twice from source")
    wanted = ["session", "analysis", "plan", "watermark", "output", "late rows", "answer", "commit"]
    assert [name for name in found.parts if name in wanted] == wanted
    assert list(found.parts["output"].parts) == ["optimize", "Spark job", "Parquet", "logical hash", "flush to disk"]
    job = found.at("output", "Spark job")
    assert job is not None
    assert (job.times, job.all_jobs) == (1, 1)
    assert 20 < found.all_calls < 150


def test_a_query_with_state(workspace: Workspace, spark: SparkSession) -> None:
    found = pulled(workspace, spark, TOTALS)
    assert has(found, "plan", "groups", "Spark job")
    assert has(found, "plan", "affected keys")
    assert has(found, "output", "Spark job")
    assert has(found, "kept rows")
    assert has(found, "checkpoint")
    assert has(found, "commit", "hash")
    assert found.all_jobs == sum(one.jobs for _, one in found.walk()) > 0


def test_windows_keep_rows(workspace: Workspace, spark: SparkSession) -> None:
    found = pulled(workspace, spark, BY_DAY)
    assert has(found, "kept rows")
    assert has(found, "output", "optimize")


def test_groups_of_groups_have_an_intermediate_result(workspace: Workspace, spark: SparkSession) -> None:
    found = pulled(workspace, spark, BY_COUNT)
    assert has(found, "intermediate result", "plan")
    assert has(found, "output", "Spark job")
