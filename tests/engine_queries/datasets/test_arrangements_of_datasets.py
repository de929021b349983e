"""Arrangements in a workspace: they follow the dataset, whatever happens to it, and are never needed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.spark_here import SparkHere, in_place

from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.engine.spark.incremental.state import arrangement, worth_arranging

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("here")]

SUM = "select event_time, name, id, sum(id) over (partition by name order by event_time, id) as s from source"


@pytest.fixture(scope="module")
def pulled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace with a derivative that has been pulled twice, so that its earlier rows are arranged."""
    folder = tmp_path_factory.mktemp("pulled")
    manifests = root("one", "{kind: Append}"), derivative("made", "one", SUM, "spark")
    with pytest.MonkeyPatch.context() as patch:
        arranged_from_the_first_row_on(patch, folder)
        in_place(patch, spark)
        made = workspace_with(folder / "w", *manifests)
        feed(made, "one", "1 a", "2 a", "3 b")
        pull(made)
        feed(made, "one", "4 b", day=3)
        pull(made)
    return made.root


@pytest.fixture
def workspace(pulled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it."""
    arranged_from_the_first_row_on(monkeypatch, tmp_path)
    return Workspace.open(shutil.copytree(pulled, tmp_path / "w"))


def arranged_from_the_first_row_on(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Arrange rows however few there are, in a cache of one's own."""
    patch.setenv("HOME", str(home))
    patch.setattr(worth_arranging, "MIN_ROWS", 0)
    patch.setattr(worth_arranging, "WORTH", 0)


def pull(workspace: Workspace) -> None:
    for result in workspace.pull(["made"]):
        if result.error is not None:
            raise result.error


def place(workspace: Workspace) -> Path:
    return workspace.storage.get("made").cache / "arrangement"


def folder(workspace: Workspace) -> Path:
    return place(workspace) / str(workspace.datasets.state("made").head)


def sums(workspace: Workspace) -> list[tuple[int, int]]:
    return [(row["id"], row["s"]) for row in workspace.tail("made", 100).to_pylist()]


SUMS = [(1, 1), (2, 3), (3, 3), (4, 7), (5, 8), (6, 13)]


def is_as_ever(workspace: Workspace) -> None:
    assert sums(workspace) == SUMS
    (report,) = workspace.verify(["made"])
    assert report.ok, report.findings


def test_a_pull_reads_no_history(workspace: Workspace, here: SparkHere) -> None:
    assert [path.name for path in place(workspace).iterdir()] == [folder(workspace).name]
    feed(workspace, "one", "5 a", "6 b", day=4)
    pull(workspace)
    assert [source.history_paths for request in here.asked for source in request.query_inputs] == [None]
    assert [path.name for path in place(workspace).iterdir()] == [folder(workspace).name]
    is_as_ever(workspace)


def test_a_pull_that_brings_nothing_keeps_it(workspace: Workspace, here: SparkHere) -> None:
    workspace.set_watermark("one", Timestamp.parse("2024-01-03T12:00:00Z"))
    pull(workspace)
    here.asked.clear()
    feed(workspace, "one", "5 a", "6 b", day=4)
    pull(workspace)
    assert [source.history_paths for request in here.asked for source in request.query_inputs] == [None]
    is_as_ever(workspace)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("damage", ["gone", "rows", "manifest", "another head"])
def test_what_is_damaged_is_made_again(damage: str, workspace: Workspace, here: SparkHere) -> None:
    there = folder(workspace)
    if damage == "gone":
        shutil.rmtree(there)
    elif damage == "another head":
        there.rename(there.with_name("f1620" + "0" * 64))
    else:
        for path in there.iterdir():
            if (path.name == "manifest") == (damage == "manifest"):
                data = bytearray(path.read_bytes())
                data[len(data) // 2] ^= 1
                data[0] ^= 1
                path.write_bytes(data)
    feed(workspace, "one", "5 a", "6 b", day=4)
    pull(workspace)
    assert here.asked[-1].query_inputs[0].history_paths is not None
    assert [path.name for path in place(workspace).iterdir()] == [folder(workspace).name]
    is_as_ever(workspace)


def test_after_a_reset_it_is_of_no_use(workspace: Workspace, here: SparkHere) -> None:
    feed(workspace, "one", "5 a", "6 b", day=4)
    before = workspace.datasets.state("made").head
    pull(workspace)
    workspace.maintenance.reset("made", str(before))
    here.asked.clear()
    pull(workspace)
    assert here.asked[-1].query_inputs[0].history_paths is not None
    is_as_ever(workspace)


def test_a_place_that_cannot_be_written_is_done_without(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(shutil, "move", fails)
    feed(workspace, "one", "5 a", "6 b", day=4)
    pull(workspace)
    is_as_ever(workspace)


def test_an_engine_without_room_for_it_does_without(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(arrangement, "add_entries", fails)
    feed(workspace, "one", "5 a", day=4)
    pull(workspace)
    monkeypatch.setattr(arrangement, "write_run", fails)
    feed(workspace, "one", "6 b", day=4)
    pull(workspace)
    assert sums(workspace) == SUMS


JOINED = "select t.event_time, t.id, n.id as other from source t left join names n on t.name = n.name"


@pytest.fixture
def joined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A workspace with a join of five rows and four names, all of which are arranged."""
    arranged_from_the_first_row_on(monkeypatch, tmp_path)
    monkeypatch.setattr(worth_arranging, "WORTH", 4)
    source = "{datasetRef: one, alias: source}"
    manifest = derivative("made", "one", JOINED, "spark").replace(source, f"{source}, {{datasetRef: names}}")
    made = workspace_with(tmp_path / "w", root("one", "{kind: Append}"), root("names", "{kind: Append}"), manifest)
    feed(made, "names", "1 a", "2 b", "3 c", "4 d")
    feed(made, "one", "1 a", "2 b", "3 c", "4 d")
    pull(made)
    feed(made, "one", "5 a", day=2)
    pull(made)
    return made


def reads_history(workspace: Workspace, here: SparkHere) -> bool:
    here.asked.clear()
    pull(workspace)
    return any(source.history_paths is not None for request in here.asked for source in request.query_inputs)


def test_many_rows_of_one_input_do_not_end_the_arrangement_of_the_other(joined: Workspace, here: SparkHere) -> None:
    feed(joined, "one", "6 a", "7 b", day=3)
    assert not reads_history(joined, here)
    feed(joined, "one", "8 c", day=4)
    assert not reads_history(joined, here)
    assert sorted((row["id"], row["other"]) for row in joined.tail("made", 100).to_pylist()) == [
        *((1, 1), (2, 2), (3, 3), (4, 4), (5, 1), (6, 1), (7, 2), (8, 3))
    ]


def test_one_row_that_has_to_do_with_most_others_ends_it(joined: Workspace, here: SparkHere) -> None:
    feed(joined, "one", *(f"{number} a" for number in range(6, 16)), day=3)
    assert not reads_history(joined, here)
    feed(joined, "names", "5 a", day=4)
    assert not reads_history(joined, here)
    feed(joined, "names", "6 a", day=5)
    assert reads_history(joined, here)
