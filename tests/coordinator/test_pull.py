"""Pulling: roots, derivatives, copies; in order, each on its own."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from support.chains.workspaces import copy_of, derivative, feed, root, rows, workspace_with

from odfpy.chain.rules import WatermarkWentBack
from odfpy.coordinator.status import Condition
from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import DatasetLocked, DatasetNotFound, OdfError, UsageError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.seen_heads import SeenHeads
from odfpy.repository.transfer.simple import ForeignDataset, HistoryRewritten

POLLING = """
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: in/*.csv}
      read:
        kind: Csv
        header: true
        schema: {fields: [{name: event_time, type: Timestamp}, {name: id, type: Int64}, {name: name, type: String}]}
      merge: {kind: Append}
"""


def pull(workspace: Workspace, *names: str, recursive: bool = False) -> list[PullResult]:
    return list(workspace.pull(names, all=not names, recursive=recursive))


def outcomes(results: list[PullResult]) -> dict[str, str]:
    return {result.name: result.outcome.value for result in results}


def test_corrections_upstream_stay_corrections(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    feed(workspace, "root", "1 a", "2 b", "3 c")
    pull(workspace)
    feed(workspace, "root", "1 a", "2 B", "4 d", day=2)
    pull(workspace)
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "+A 3 c", "-C 2 b", "+C 2 B", "-R 3 c", "+A 4 d"]
    assert rows(workspace, "derived") == ["+A 2 B", "+A 3 C", "-C 2 B", "+C 2 B", "-R 3 C", "+A 4 D"]


def test_a_pull_without_anything_new_commits_nothing(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    feed(workspace, "root", "2 b")
    pull(workspace)
    head = workspace.datasets.state("derived").head
    assert outcomes(pull(workspace)) == {"root": "up to date", "derived": "up to date"}
    assert workspace.datasets.state("derived").head == head


def test_recursive_pull_runs_a_graph_in_order(tmp_path: Path) -> None:
    step = "select op, event_time, id, name from source"
    workspace = workspace_with(
        tmp_path, root(), derivative("b", "root", step), derivative("c", "b", step), derivative("d", "c", step)
    )
    feed(workspace, "root", "1 a")
    assert [result.name for result in pull(workspace, "d", recursive=True)] == ["root", "b", "c", "d"]
    assert rows(workspace, "d") == ["+A 1 a"]


def test_a_derivative_waits_for_the_first_data_of_its_input(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    (result,) = pull(workspace, "derived")
    assert result.outcome is PullOutcome.UP_TO_DATE
    assert result.notes == ("waiting for the first data of root",)


def test_what_is_derived_from_a_failure_is_skipped_and_the_rest_goes_on(tmp_path: Path) -> None:
    workspace = workspace_with(
        tmp_path, POLLING, derivative("derived", "polled"), derivative("deeper", "derived"), root("other")
    )
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.csv").write_text("event_time,id,name\n2024-01-01T00:00:00Z,x,a\n")
    results = {result.name: result for result in pull(workspace)}
    assert results["polled"].outcome is PullOutcome.FAILED
    message = str(results["polled"].error)
    assert "1.csv" in message
    assert "line 2" in message
    assert "'x'" in message
    assert results["derived"].outcome is results["deeper"].outcome is PullOutcome.SKIPPED
    assert results["other"].outcome is PullOutcome.UP_TO_DATE
    assert workspace.datasets.state("polled").num_records == 0


def test_files_are_committed_one_by_one_and_each_once(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, POLLING)
    (tmp_path / "in").mkdir()
    for number in (1, 2):
        (tmp_path / "in" / f"{number}.csv").write_text(f"event_time,id,name\n2024-01-01T00:00:00Z,{number},a\n")
    (result,) = pull(workspace)
    assert (result.num_records, result.num_blocks) == (2, 3)
    assert outcomes(pull(workspace)) == {"polled": "up to date"}
    (tmp_path / "in" / "3.csv").write_text("event_time,id,name\n2024-01-01T00:00:00Z,3,a\n")
    (result,) = pull(workspace)
    assert (result.num_records, result.num_blocks) == (1, 1)


def test_watermark_moves_forward_only(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    feed(workspace, "root", "2 b")
    later = Timestamp.parse("2025-01-01")
    workspace.set_watermark("root", later)
    assert workspace.set_watermark("root", later).outcome is PullOutcome.UP_TO_DATE
    with pytest.raises(WatermarkWentBack):
        workspace.set_watermark("root", Timestamp.parse("2024-06-01"))
    with pytest.raises(UsageError, match="derivative"):
        workspace.set_watermark("derived", later)
    pull(workspace)
    assert workspace.datasets.state("derived").watermark == later


def test_misspelt_names_are_refused_before_anything_is_pulled(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    with pytest.raises(DatasetNotFound) as error:
        pull(workspace, "root", "derive")
    assert error.value.hint == "Did you mean derived?"


def test_a_copy_is_pulled_again_from_where_it_came(tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root())
    feed(there, "root", "1 a")
    list(there.push(["root"], to=str(tmp_path / "mirror") + "/"))
    here = Workspace.init(tmp_path / "here")
    pull(here, str(tmp_path / "mirror" / "root"))
    feed(there, "root", "1 b", day=2)
    list(there.push(["root"]))
    assert outcomes(pull(here)) == {"root": "updated"}
    assert rows(here, "root") == rows(there, "root")


def test_a_place_that_goes_back_is_told_and_not_followed(tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root())
    mirror = tmp_path / "mirror" / "root"
    feed(there, "root", "1 a")
    list(there.push(["root"], to=str(mirror)))
    early = (mirror / "refs" / "head").read_bytes()
    feed(there, "root", "1 b", day=2)
    list(there.push(["root"]))
    here = Workspace.init(tmp_path / "here")
    pull(here, str(mirror))
    (mirror / "refs" / "head").write_bytes(early)
    before = rows(here, "root")
    (result,) = pull(here)
    assert isinstance(result.error, HistoryRewritten)
    assert str(mirror) in result.error.message
    assert rows(here, "root") == before
    ((remark,),) = [status.remarks for status in here.updates.status()]
    assert (remark.condition, remark.command) == (Condition.FAILED, None), "the same pull would fail again"
    assert result.error.hint is not None
    assert remark.message.endswith(f". {result.error.hint}")
    (result,) = here.pull(["root"], force=True)
    assert result.outcome is PullOutcome.UPDATED
    assert rows(here, "root") == ["+A 1 a"]
    assert pull(here)[0].outcome is PullOutcome.UP_TO_DATE, "what was followed is what was seen last"


def test_what_a_dataset_is_derived_from_comes_from_beside_it(tmp_path: Path) -> None:
    first = derivative("derived").replace(", alias: source", "").replace("from source", "from root")
    second = derivative("more", "derived").replace(", alias: source", "").replace("from source", "from derived")
    there = workspace_with(tmp_path / "there", root(), first, second)
    feed(there, "root", "1 a", "2 b")
    pull(there)
    list(there.push(all=True, to=str(tmp_path / "mirror")))
    here = Workspace.init(tmp_path / "here")
    results = list(here.pull([str(tmp_path / "mirror" / "more")], recursive=True))
    assert outcomes(results) == {"more": "updated", "derived": "updated", "root": "updated"}
    assert all(report.ok for report in here.verify(all=True))
    assert outcomes(pull(here)) == dict.fromkeys(("more", "derived", "root"), "up to date")


def test_an_input_that_the_query_calls_otherwise_is_known_by_its_id(tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root(), derivative(), root("other"))
    feed(there, "root", "1 a", "2 b")
    pull(there, "derived")
    list(there.push(["derived"], to=str(tmp_path / "mirror") + "/"))
    here = Workspace.init(tmp_path / "here")
    copied, missing = here.pull([str(tmp_path / "mirror" / "derived")], recursive=True)
    assert copied.error is None
    assert missing.name == "source"
    assert isinstance(missing.error, DatasetNotFound)
    assert "which " + str(tmp_path / "mirror" / "derived") + " is derived from" in missing.error.message
    list(there.push(["root", "other"], to=str(tmp_path / "mirror") + "/"))
    results = list(here.pull([str(tmp_path / "mirror" / "derived")], recursive=True))
    assert outcomes(results) == {"derived": "up to date", "root": "updated"}
    assert all(report.ok for report in here.verify(all=True))


@pytest.mark.parametrize("place", ["", " ", "s3://"])
def test_a_push_to_no_place_goes_nowhere(place: str, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path / "here", root())
    list(workspace.push(["root"], to=str(tmp_path / "mirror") + "/"))
    (refused,) = workspace.push(["root"], to=place)
    assert isinstance(refused.error, UsageError)


def test_another_dataset_is_not_taken_for_an_input(tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root(), derivative())
    other = workspace_with(tmp_path / "other", root("source"))
    list(there.push(["derived"], to=str(tmp_path / "mirror") + "/"))
    list(other.push(["source"], to=str(tmp_path / "mirror") + "/"))
    here = Workspace.init(tmp_path / "here")
    copied, refused = here.pull([str(tmp_path / "mirror" / "derived")], recursive=True)
    assert copied.error is None
    assert isinstance(refused.error, ForeignDataset)
    assert [str(summary.handle) for summary in here.datasets.all()] == ["derived"]


def test_a_diverged_copy_is_refused_unless_forced(tmp_path: Path) -> None:
    there = workspace_with(tmp_path / "there", root())
    feed(there, "root", "1 a")
    mirror = str(tmp_path / "mirror" / "root")
    list(there.push(["root"], to=mirror))
    here = Workspace.init(tmp_path / "here")
    pull(here, mirror)
    feed(here, "root", "1 mine", day=3)
    feed(there, "root", "1 theirs", day=3)
    list(there.push(["root"]))
    (result,) = pull(here)
    assert isinstance(result.error, DatasetsDiverged)
    assert rows(here, "root")[-1] == "+C 1 mine"
    (result,) = here.pull(["root"], force=True)
    assert result.outcome is PullOutcome.UPDATED
    assert rows(here, "root")[-1] == "+C 1 theirs"


def test_datasets_of_the_reference_are_continued(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path / "w")
    pull(workspace, str(copy_of("stock", tmp_path / "stock")))
    file = tmp_path / "more.ndjson"
    file.write_text('{"op": 0, "event_time": "2024-06-01T00:00:00Z", "sku": 99, "stock": 5}\n')
    (result,) = workspace.ingest("stock", [file])
    assert result.num_records == 1
    (report,) = workspace.verify(["stock"])
    assert report.findings == ()


def hold_lock(folder: Path, locked: object, release: object) -> None:
    with Workspace.open(folder).storage.get("root").writing():
        locked.set()  # type: ignore[attr-defined]
        release.wait(30)  # type: ignore[attr-defined]


def test_a_second_writer_gets_a_clear_error_and_loses_nothing(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    feed(workspace, "root", "1 a")
    context = multiprocessing.get_context("spawn")
    locked, release = context.Event(), context.Event()
    other = context.Process(target=hold_lock, args=(tmp_path, locked, release))
    other.start()
    assert locked.wait(60)
    with pytest.raises(DatasetLocked, match=f"pid {other.pid}"):
        feed(workspace, "root", "1 b")
    release.set()
    other.join()
    assert feed(workspace, "root", "1 b", day=2).outcome is PullOutcome.UPDATED


def test_a_failure_of_a_dataset_that_was_deleted_meanwhile_brings_no_folder_back(tmp_path: Path) -> None:
    """Nobody could make the dataset again then, nor delete it."""
    workspace = workspace_with(tmp_path / "w", root())
    dataset = workspace.storage.get("root")
    workspace.datasets.delete(["root"])
    remember(dataset, OdfError("the disk is full"))
    SeenHeads(dataset.folder / "info" / "remotes.yaml").remember("file:///there", Multihash.of(b"head"))
    assert not dataset.folder.exists()
