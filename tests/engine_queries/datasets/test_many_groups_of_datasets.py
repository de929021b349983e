"""Groups in the arrangement of a dataset in a workspace: what leaves the workspace goes without it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.chains.workspaces import copied, derivative, feed, root, workspace_with
from support.engine.spark_here import SparkHere, in_place

from odfpy.coordinator.workspace import Workspace
from odfpy.engine.checkpoint import read_manifest
from odfpy.engine.spark.incremental.state import worth_arranging

pytestmark = pytest.mark.spark

GROUPED = "select max(event_time) as event_time, name, count(*) as n, sum(id) as s from source group by name"
ROWS = ("1 a", "2 a", "3 b"), ("4 b", "5 c"), ("6 a",), ("7 c", "8 d")


def arranged_from_the_first_group_on(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(worth_arranging, "MIN_ROWS", 0)
    patch.setattr(worth_arranging, "WORTH", 0)


@pytest.fixture(scope="module")
def pulled(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace with a derivative that has been pulled three times."""
    folder = tmp_path_factory.mktemp("pulled")
    manifests = root("one", "{kind: Append}"), derivative("made", "one", GROUPED, "spark")
    with pytest.MonkeyPatch.context() as patch:
        arranged_from_the_first_group_on(patch)
        patch.setenv("HOME", str(folder))
        in_place(patch, spark)
        made = workspace_with(folder / "w", *manifests)
        for day, rows in enumerate(ROWS[:3], start=2):
            feed(made, "one", *rows, day=day)
            pull(made)
    return made


@pytest.fixture
def workspace(here: SparkHere, pulled: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it."""
    arranged_from_the_first_group_on(monkeypatch)
    monkeypatch.setenv("HOME", str(tmp_path))
    return copied(pulled, tmp_path / "w")


def pull(workspace: Workspace) -> None:
    for result in workspace.pull(["made"]):
        if result.error is not None:
            raise result.error


def asked_for_history(here: SparkHere) -> list[bool]:
    return [source.history_paths is not None for request in here.asked for source in request.query_inputs]


def sums(workspace: Workspace) -> dict[str, tuple[int, int]]:
    rows = sorted(workspace.tail("made", 100).to_pylist(), key=lambda row: row["offset"])
    return {row["name"]: (row["n"], row["s"]) for row in rows if row["op"] in (0, 3)}


SUMS = {"a": (3, 9), "b": (2, 7), "c": (2, 12), "d": (1, 8)}


def go_on(workspace: Workspace, here: SparkHere) -> list[bool]:
    """Pull once more; tells for each attempt whether history was read."""
    here.asked.clear()
    feed(workspace, "one", *ROWS[3], day=5)
    pull(workspace)
    found = asked_for_history(here)
    assert sums(workspace) == SUMS
    return found


def test_groups_are_not_in_the_checkpoint(workspace: Workspace, here: SparkHere) -> None:
    dataset = workspace.storage.get("made")
    recorded = dataset.state.checkpoint
    assert recorded is not None
    path = dataset.layout.checkpoints.local_path(recorded.physical_hash)
    assert path is not None
    manifest = read_manifest(path)
    assert manifest is not None
    assert (manifest.rows, [rows.count for rows in manifest.arranged or ()]) == ((), [3])
    assert go_on(workspace, here) == [False]


@pytest.mark.parametrize("from_start", [False, True])
def test_verification_replays_with_an_arrangement_of_its_own(
    from_start: bool, workspace: Workspace, here: SparkHere
) -> None:
    shutil.rmtree(workspace.storage.get("made").cache)
    (report,) = workspace.verify(["made"], from_start=from_start)
    assert report.ok, report.findings
    # Otherwise each replay would read all of history before it.
    assert asked_for_history(here) == [False, False, False]
    assert not (workspace.storage.get("made").cache / "arrangement").exists()


def test_a_copy_reads_history_once(workspace: Workspace, here: SparkHere, tmp_path: Path) -> None:
    other = copied(workspace, tmp_path / "copy")
    shutil.rmtree(other.storage.get("made").cache)
    assert go_on(other, here) == [False, True]
    here.asked.clear()
    feed(other, "one", "9 e", day=6)
    pull(other)
    assert asked_for_history(here) == [False]


def test_caches_may_be_removed(workspace: Workspace, here: SparkHere) -> None:
    list(workspace.maintenance.gc(caches=True))
    assert go_on(workspace, here) == [False, True]
