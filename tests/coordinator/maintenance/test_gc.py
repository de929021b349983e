"""What nobody needs goes; what any reference reaches stays, whoever is writing beside."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.chain.events import AddData, Checkpoint
from odfpy.coordinator.maintenance.gc import GcReport
from odfpy.coordinator.maintenance.reachable import Garbage, reachable_blocks
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.storage.commit import commit_time
from odfpy.coordinator.storage.locks import writer_lock
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetLocked


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    made = workspace_with(folder, root(merge="{kind: Append}"), derivative())
    for day in range(1, 4):
        feed(made, "root", f"{day} a", f"{day + 1} b", day=day)
    assert [result.error for result in made.pull(all=True)] == [None] * 2
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    return Workspace.open(shutil.copytree(prepared, tmp_path / "workspace"))


def files(workspace: Workspace) -> set[Path]:
    return {path for path in (workspace.odf / "datasets").rglob("*") if path.is_file()}


def collected(workspace: Workspace, *names: str, **how: bool) -> dict[str | None, GcReport]:
    return {report.name: report for report in workspace.maintenance.gc(names, **how)}


def put_garbage(dataset: StoredDataset) -> set[Path]:
    """Objects that nothing refers to, and what killed writers leave."""
    made = []
    for part in ("blocks", "data", "checkpoints", "info/signatures"):
        folder = dataset.folder / part
        folder.mkdir(parents=True, exist_ok=True)
        made += [folder / str(Multihash.of(part.encode())), folder / ".tmp-1234"]
    made.append(dataset.folder / "refs" / ".tmp-1234")
    for path in made:
        path.write_bytes(path.parent.name.encode())
    return set(made)


def test_what_is_of_no_use_goes_and_nothing_else(workspace: Workspace) -> None:
    before = files(workspace)
    made = put_garbage(workspace.storage.get("root"))

    reports = collected(workspace, dry_run=True)
    assert {item.path for item in reports["root"].found} == made
    assert files(workspace) == before | made, "a dry run changes nothing"

    done = collected(workspace)
    assert done["root"].counts == {Garbage.OBJECT: 4, Garbage.TEMPORARY: 5}
    assert done["root"].found == reports["root"].found
    assert done["derived"].found == ()
    assert files(workspace) == before
    assert all(report.ok for report in workspace.verify(all=True))


def test_only_the_datasets_that_are_named(workspace: Workspace) -> None:
    made = put_garbage(workspace.storage.get("root"))
    assert list(collected(workspace, "derived")) == ["derived"]
    assert made <= files(workspace)


def test_what_a_tag_or_branch_reaches_stays(workspace: Workspace) -> None:
    dataset = workspace.storage.get("root")
    old = dataset.chain.head()
    dataset.layout.refs.compare_and_swap("tag.v1", None, old)
    before = files(workspace)
    workspace.maintenance.compact("root")
    workspace.maintenance.reset("root", "2")
    new = files(workspace) - before

    gone = {item.path for item in collected(workspace)["root"].found}
    assert gone, "the compacted history"
    assert gone <= new
    assert before - {dataset.folder / "refs" / "head"} <= files(workspace)
    assert workspace.maintenance.reset("root", "v1").new_head == old
    assert len(rows(workspace, "root")) == 6
    dataset.layout.refs.delete("tag.v1", old)
    workspace.maintenance.reset("root", "2")
    assert collected(workspace)["root"].found
    assert reachable_blocks(dataset.layout).data == set()


@pytest.mark.parametrize("damage", ["head", "block", "tag"])
def test_a_damaged_dataset_is_left_alone(damage: str, workspace: Workspace) -> None:
    dataset = workspace.storage.get("root")
    made = put_garbage(dataset)
    if damage == "head":
        (dataset.folder / "refs" / "head").unlink()
    elif damage == "tag":
        (dataset.folder / "refs" / "tag.v1").write_text("nonsense")
    else:
        next(path for path in (dataset.folder / "blocks").iterdir() if path not in made).unlink()
    before = files(workspace)
    reports = collected(workspace)
    error = reports["root"].error
    assert error is not None
    assert "unneeded files cannot be identified" in error.message
    assert "odf verify root" in str(error.hint)
    assert files(workspace) == before
    assert reports["derived"].error is None


def test_a_dataset_that_somebody_writes_to_is_left_alone(workspace: Workspace) -> None:
    made = put_garbage(workspace.storage.get("root"))
    with workspace.storage.get("root").writing():
        report = collected(workspace, "root")["root"]
    assert isinstance(report.error, DatasetLocked)
    assert made <= files(workspace)


def test_beside_a_writer_nothing_of_a_commit_is_lost(workspace: Workspace) -> None:
    """A writer commits again and again, while garbage is collected as often as the lock allows."""
    done = threading.Event()
    swept = []

    def sweep() -> None:
        while not done.is_set():
            swept.extend(
                report for report in Workspace.open(workspace.root).maintenance.gc(["root"]) if report.error is None
            )

    sweeper = threading.Thread(target=sweep)
    sweeper.start()
    written = 0
    try:
        while written < 5 or not swept:
            try:
                feed(workspace, "root", f"{written} x", day=5)
            except DatasetLocked:
                continue
            written += 1
    finally:
        done.set()
        sweeper.join()
    assert len(rows(workspace, "root")) == 6 + written
    assert all(report.ok for report in workspace.verify(["root"]))


def test_what_belongs_to_no_dataset(workspace: Workspace, tmp_path: Path) -> None:
    list(workspace.push(["root"], to=str(tmp_path / "pushed")))
    orphan = workspace.storage.cache / ("f" + workspace.storage.get("root").folder.name[1:-4] + "0000")
    begun, busy = (workspace.storage.incoming / name for name in ("begun", "busy"))
    scratch = workspace.storage.run / "scratch" / "deleted-1234"
    kept = [workspace.storage.cache_of(workspace.storage.get("root").handle.id), workspace.storage.cache / "schemas"]
    for folder in (orphan, begun, busy, scratch, *kept):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "file").write_bytes(b"x" * 10)
    with writer_lock(workspace.storage.run / "locks" / "busy", "a copy"):
        report = collected(workspace)[None]
    assert {item.path for item in report.found} == {orphan, begun, scratch}
    assert [folder.exists() for folder in (orphan, begun, scratch, busy, *kept)] == [False] * 3 + [True] * 3

    report = collected(workspace, caches=True)["root"]
    assert [item.path for item in report.found] == kept[:1]
    assert feed(workspace, "root", "9 z", day=9).num_records == 1


def test_superseded_checkpoints_go_where_asked(workspace: Workspace, tmp_path: Path) -> None:
    """The last one stays, and the one that a tag stands at; who has the others need not get them again."""
    dataset = workspace.storage.get("root")
    layout, names = dataset.layout, []

    def commit_checkpoint(text: bytes) -> None:
        names.append(layout.checkpoints.insert(text))
        state = layout.chain.state()
        before = state.checkpoint.physical_hash if state.checkpoint else None
        event = AddData(before, state.last_offset, None, Checkpoint(names[-1], len(text)), state.watermark)
        layout.chain.commit(layout.chain.prepare(state, [event], commit_time(state)))

    for text in (b"first", b"second", b"third"):
        commit_checkpoint(text)
        if text == b"second":
            layout.refs.compare_and_swap("tag.v1", None, layout.chain.head())
    place = str(tmp_path / "pushed")
    assert [result.error for result in workspace.push(["root"], to=place)] == [None]

    assert collected(workspace, "root")["root"].found == ()
    report = collected(workspace, "root", checkpoints=True)["root"]
    assert [item.name for item in report.found] == names[:1]
    assert set(layout.checkpoints) == set(names[1:])
    (verified,) = workspace.verify(["root"])
    assert verified.ok
    assert [finding.severity for finding in verified.findings] == [Severity.WARNING]

    commit_checkpoint(b"fourth")
    assert [result.error for result in workspace.push(["root"], to=place)] == [None]
    (refused,) = workspace.push(["root"], to=str(tmp_path / "other"))
    assert str(names[0]) in str(refused.error)
    (repaired,) = workspace.verify(["root"], repair=True)
    assert (repaired.findings, len(repaired.repaired)) == ((), 1)
