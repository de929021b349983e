"""Branches: events are staged beside the head, looked at, and taken over or dropped."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import DisablePollingSource, MetadataEvent, SetInfo
from odfpy.chain.references import ReferenceKind
from odfpy.chain.signatures import read_head_signatures
from odfpy.chain.sources import MergeAppend, MergeLedger
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.branches.diff import KeyChanges, diff
from odfpy.coordinator.branches.rebase import MergeConflict, rebase
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.references import NoSuchReference
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import ConcurrentUpdate, InvalidValue, UsageError

BRANCH = ReferenceKind.BRANCH
LEDGER = "{kind: Ledger, primaryKey: [id]}"
UPSERT = "{kind: UpsertStream, primaryKey: [id]}"
APPEND = "{kind: Append}"


@pytest.fixture(autouse=True)
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def made(tmp_path: Path, merge: str) -> Workspace:
    workspace = workspace_with(tmp_path / "workspace", root(merge=merge))
    feed(workspace, "root", "1 a", "2 b")
    return workspace


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the workspace that most tests begin with, and of its user."""
    folder = tmp_path_factory.mktemp("prepared")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        made(folder, UPSERT)
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    return Workspace.open(tmp_path / "workspace")


def stage(workspace: Workspace, *lines: str, branch: str = "staging") -> PullResult:
    """Ingest rows given as `id name` on a branch."""
    file = workspace.root / "staged.ndjson"
    records = [
        {"event_time": "2024-01-01T00:00:00Z", "id": int(line.split()[0]), "name": line.split()[1]} for line in lines
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    (result,) = workspace.ingest("root", [file], branch=branch)
    return result


def branches(workspace: Workspace) -> list[str]:
    return [item.name.name for item in workspace.branches.all("root", BRANCH)]


def is_valid(workspace: Workspace) -> bool:
    return all(report.ok for report in workspace.verify(["root"]))


# --- Staging ---------------------------------------------------------------------------------------------------------


def test_what_is_staged_is_on_the_branch_only(workspace: Workspace):
    before = workspace.datasets.summary("root")
    stage(workspace, "2 c", "3 d")
    stage(workspace, "3 e")
    assert branches(workspace) == ["staging"]
    assert Workspace.open(workspace.root).datasets.summary("root") == before
    assert rows(workspace, "root@staging")[2:] == ["-C 2 b", "+C 2 c", "+A 3 d", "-C 3 d", "+C 3 e"]
    assert is_valid(workspace)
    (report,) = workspace.verify(["root@staging"])
    assert (report.ok, report.blocks) == (True, 6)


def test_head_and_branches_know_their_own_keys(workspace: Workspace):
    stage(workspace, "2 c")
    stage(workspace, "2 x", branch="other")
    feed(workspace, "root", "2 d")
    stage(workspace, "2 e")
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "-C 2 b", "+C 2 d"]
    assert rows(workspace, "root@staging")[2:] == ["-C 2 b", "+C 2 c", "-C 2 c", "+C 2 e"]
    assert rows(workspace, "root@other")[2:] == ["-C 2 b", "+C 2 x"]


def test_nothing_new_makes_no_branch(workspace: Workspace):
    assert stage(workspace, "2 b").outcome is PullOutcome.UP_TO_DATE
    assert branches(workspace) == []


def test_an_event_that_says_nothing_new_drops_none_of_the_others(workspace: Workspace):
    known = SetInfo(description="known")
    with workspace.storage.get("root").writing() as dataset:
        commit_events(dataset, dataset.state, [known], commit_time(dataset.state))
    with workspace.storage.get("root").writing() as dataset:
        events = [known, SetInfo(description="new"), SetInfo(description="new")]
        result = commit_events(dataset, dataset.state, events, commit_time(dataset.state))
    assert result.num_blocks == 1
    assert workspace.datasets.state("root").info.description == "new"


def test_long_chains_of_branches_are_summed_up_apart(workspace: Workspace):
    with workspace.storage.get("root").on("staging").writing() as dataset:
        events = [SetInfo(description=str(number)) for number in range(35)]
        commit_events(dataset, dataset.state, events, commit_time(dataset.state))
    stage(workspace, "99 x")
    assert Workspace.open(workspace.root).datasets.state("root").num_records == 2
    assert stage(workspace, "100 x").num_records == 1
    assert Workspace.open(workspace.root).datasets.state("root@staging").num_records == 4
    assert (workspace.storage.get("root").on("staging").cache / "chain-state").is_file()
    workspace.branches.merge("root", "staging")
    assert not workspace.storage.get("root").on("staging").cache.exists()
    assert Workspace.open(workspace.root).datasets.state("root").num_records == 4


def test_a_name_that_is_none_stages_nothing(workspace: Workspace):
    with pytest.raises(InvalidValue, match="Not a name for a branch"):
        stage(workspace, "3 c", branch="../x")


def test_a_source_is_pulled_to_a_branch(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", FOLDER)
    (workspace.root / "in").mkdir()
    (workspace.root / "in" / "1.csv").write_text("id\n1\n")
    (staged,) = workspace.pull(["com.example.folder"], branch="staging")
    assert (staged.num_records, workspace.datasets.summary("com.example.folder").num_records) == (1, 0)
    assert workspace.branches.merge("com.example.folder", "staging").num_records == 1
    (pulled,) = workspace.pull(["com.example.folder"])
    assert pulled.outcome is PullOutcome.UP_TO_DATE


def test_a_derivative_is_pulled_to_a_branch(workspace: Workspace):
    workspace.add(load_snapshots(derivative(), "manifest"))
    list(workspace.pull(["derived"], branch="try"))
    assert workspace.datasets.summary("derived").num_records == 0
    assert workspace.branches.diff("derived", "try").num_records == 1
    assert workspace.branches.merge("derived", "try").num_records == 1
    assert all(report.ok for report in workspace.verify(["derived"]))


def test_a_copy_is_pulled_to_a_branch_for_review(workspace: Workspace, tmp_path: Path):
    shared = str(tmp_path / "shared" / "root")
    list(workspace.push(["root"], to=shared))
    other = Workspace.init(tmp_path / "elsewhere")
    list(other.pull([shared]))
    feed(workspace, "root", "3 c")
    list(workspace.push(["root"]))
    (staged,) = other.pull(["root"], branch="review")
    assert (staged.error, staged.num_records, other.datasets.summary("root").num_records) == (None, 1, 2)
    other.branches.merge("root", "review")
    assert other.datasets.summary("root") == workspace.datasets.summary("root")
    (pulled,) = other.pull(["root"])
    assert pulled.outcome is PullOutcome.UP_TO_DATE


@pytest.mark.parametrize("how", [{"recursive": True}, {"refs": ["./there"]}])
def test_only_what_is_here_is_pulled_to_a_branch(how: dict, workspace: Workspace):
    with pytest.raises(UsageError, match="--branch cannot be combined with"):
        list(workspace.pull(**{"refs": ["root"], "branch": "x", **how}))


# --- Looking ---------------------------------------------------------------------------------------------------------


def test_a_difference_counts_blocks_rows_and_keys(workspace: Workspace):
    stage(workspace, "2 c", "3 d")
    stage(workspace, "3 e", "4 f")
    found = workspace.branches.diff("root", "staging")
    assert (len(found.blocks), found.head_blocks, found.base_number, found.num_records) == (2, (), 3, 6)
    assert found.keys == KeyChanges(new=2, changed=1, gone=0)
    assert workspace.branches.staged_rows(found, 4).column("name").to_pylist() == ["b", "c", "d", "d"]
    assert workspace.branches.staged_rows(found, 100).num_rows == 6
    feed(workspace, "root", "9 z")
    assert [
        len(workspace.branches.diff("root", "staging").head_blocks),
        workspace.branches.diff("root", "staging").base_number,
    ] == [1, 3]


def test_a_difference_knows_what_is_gone(tmp_path: Path):
    workspace = made(tmp_path, "{kind: Snapshot, primaryKey: [id], compareColumns: [name]}")
    stage(workspace, "2 b", "3 c")
    assert workspace.branches.diff("root", "staging").keys == KeyChanges(new=1, changed=0, gone=1)


@pytest.mark.parametrize("merge", [APPEND, UPSERT])
def test_a_branch_of_a_head_that_was_compacted_adds_its_own_rows_only(merge: str, tmp_path: Path):
    workspace = made(tmp_path, merge)
    feed(workspace, "root", "3 c")
    stage(workspace, "9 z")
    stage(workspace, "8 y", branch="other")
    workspace.branches.create("root", BRANCH, "nothing")
    feed(workspace, "root", "4 d")
    assert workspace.maintenance.compact("root").changes
    found = workspace.branches.diff("root", "staging")
    assert (found.num_records, len(found.blocks), workspace.branches.diff("root", "nothing").blocks) == (1, 1, ())
    assert workspace.branches.merge("root", "staging").num_records == 1
    assert workspace.branches.merge("root", "nothing").num_blocks == 0
    assert all(report.ok for report in workspace.verify(["root"]))
    assert [row.split()[-1] for row in rows(workspace, "root")] == ["a", "b", "c", "d", "z"]
    assert workspace.branches.merge("root", "other").num_records == 1


def test_zeros_of_both_signs_are_one_key(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", root(merge=UPSERT).replace("Int64", "Float64"))
    feed(workspace, "root", "1 a")
    stage(workspace, "0 b")
    feed(workspace, "root", "-0.0 c")
    with pytest.raises(MergeConflict, match="rows with the same keys"):
        workspace.branches.merge("root", "staging")


def test_rows_without_keys_are_only_counted(tmp_path: Path):
    workspace = made(tmp_path, APPEND)
    stage(workspace, "1 a")
    found = workspace.branches.diff("root", "staging")
    assert (found.num_records, found.keys) == (1, None)


def test_a_branch_that_is_not_there_is_told(workspace: Workspace):
    stage(workspace, "3 c")
    for attempt in (workspace.branches.diff, workspace.branches.merge):
        with pytest.raises(NoSuchReference) as caught:
            attempt("root", "stagin")
        assert caught.value.hint == "Did you mean staging?"


# --- Taking over -----------------------------------------------------------------------------------------------------


def test_a_head_that_has_not_moved_is_moved_on(workspace: Workspace):
    stage(workspace, "2 c", "3 d")
    tip = workspace.branches.diff("root", "staging").tip
    result = workspace.branches.merge("root", "staging", fast_forward_only=True)
    assert (result.new_head, result.num_blocks, result.num_records, result.applied_again) == (tip, 1, 3, False)
    assert branches(workspace) == []
    assert rows(workspace, "root")[2:] == ["-C 2 b", "+C 2 c", "+A 3 d"]
    dataset = workspace.storage.get("root")
    head = dataset.chain.block(dataset.chain.head())
    assert read_head_signatures(dataset.layout.side, dataset.handle.id, head)
    assert is_valid(workspace)
    feed(workspace, "root", "3 e")
    assert rows(workspace, "root")[5:] == ["-C 3 d", "+C 3 e"]


@pytest.mark.parametrize("merge", [UPSERT, LEDGER, APPEND])
def test_events_are_applied_again_on_a_head_that_has_moved(merge: str, tmp_path: Path):
    workspace = made(tmp_path, merge)
    stage(workspace, "3 c", "4 d")
    stage(workspace, "5 e")
    feed(workspace, "root", "6 f", day=5)
    result = workspace.branches.merge("root", "staging")
    assert (result.num_blocks, result.num_records, result.applied_again) == (2, 3, True)
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "+A 6 f", "+A 3 c", "+A 4 d", "+A 5 e"]
    assert workspace.tail("root", 10).column("offset").to_pylist() == list(range(6))
    assert str(workspace.datasets.state("root").watermark) == "2024-01-05T00:00:00Z"
    assert branches(workspace) == []
    assert is_valid(workspace)
    signers = workspace.datasets.signers("root")
    assert {tuple(one.name for one in signers.get(block).signers) for block in workspace.datasets.log("root")} == {
        ("me", "owner")
    }
    if merge != APPEND:
        assert feed(workspace, "root", "5 e").outcome is PullOutcome.UP_TO_DATE


def test_rows_of_the_same_key_on_both_sides_are_a_conflict(workspace: Workspace):
    stage(workspace, "2 c", "3 d")
    feed(workspace, "root", "2 x")
    before = (workspace.datasets.summary("root"), workspace.branches.diff("root", "staging"))
    with pytest.raises(MergeConflict, match=r"rows with the same keys \(id\): 2"):
        workspace.branches.merge("root", "staging")
    with pytest.raises(MergeConflict, match="the head has moved since staging began"):
        workspace.branches.merge("root", "staging", fast_forward_only=True)
    assert (workspace.datasets.summary("root"), workspace.branches.diff("root", "staging")) == before


def change(workspace: Workspace, *lines: str, branch: str | None = None) -> PullResult:
    """Ingest changes given as `op id name`."""
    file = workspace.root / "changes.ndjson"
    records = [
        {"op": int(op), "event_time": "2024-01-01T00:00:00Z", "id": int(key), "name": name}
        for op, key, name in map(str.split, lines)
    ]
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    (result,) = workspace.ingest("root", [file], branch=branch)
    return result


def test_keys_of_several_columns_are_told_apart_by_each(tmp_path: Path):
    manifest = """
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [a STRING, b STRING]}
      merge: {kind: Ledger, primaryKey: [a, b]}
"""
    workspace = workspace_with(tmp_path / "workspace", manifest)
    for key, branch in (
        ({"a": "x", "b": "y"}, None),
        ({"a": "a, b", "b": "c"}, "staging"),
        ({"a": "a", "b": "b, c"}, None),
    ):
        (tmp_path / "in").write_text(json.dumps(key))
        list(workspace.ingest("root", [tmp_path / "in"], branch=branch))
    workspace.branches.merge("root", "staging")
    assert workspace.tail("root", 9).select(["a", "b"]).to_pylist() == [
        {"a": "x", "b": "y"},
        {"a": "a", "b": "b, c"},
        {"a": "a, b", "b": "c"},
    ]


def test_changes_of_the_same_key_on_both_sides_are_a_conflict(tmp_path: Path):
    manifest = root(merge="{kind: ChangelogStream, primaryKey: [id]}")
    fields = "fields:\n            - {name: op, type: Int32}"
    workspace = workspace_with(tmp_path / "workspace", manifest.replace("fields:", fields))
    change(workspace, "0 1 a", "0 2 b")
    change(workspace, "1 2 b", branch="staging")
    change(workspace, "0 3 c", branch="other")
    change(workspace, "1 2 b")
    before = workspace.datasets.summary("root")
    with pytest.raises(MergeConflict, match=r"rows with the same keys \(id\): 2"):
        workspace.branches.merge("root", "staging")
    assert workspace.datasets.summary("root") == before
    workspace.branches.merge("root", "other")
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "-R 2 b", "+A 3 c"]


def test_sources_of_several_strategies_are_each_asked_for_their_keys(workspace: Workspace):
    source = workspace.datasets.state("root").push_sources[0]
    dataset = workspace.storage.get("root")
    commit(dataset, replace(source, source_name="events", merge=MergeAppend()))
    commit(dataset, replace(source, source_name="places", merge=MergeLedger(("place",))))
    workspace = Workspace.open(workspace.root)
    assert workspace.datasets.state("root").primary_key is None
    stage(workspace, "2 c")
    stage(workspace, "3 d", branch="other")
    feed(workspace, "root", "2 x")
    with pytest.raises(MergeConflict, match=r"rows with the same keys \(id\): 2"):
        workspace.branches.merge("root", "staging")
    workspace.branches.merge("root", "other")
    assert rows(workspace, "root")[2:] == ["-C 2 b", "+C 2 x", "+A 3 d"]


def test_files_that_both_sides_have_taken_in_are_a_conflict(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", FOLDER)
    (workspace.root / "in").mkdir()
    (workspace.root / "in" / "1.csv").write_text("id\n1\n")
    list(workspace.pull(["com.example.folder"], branch="staging"))
    (workspace.root / "in" / "2.csv").write_text("id\n2\n")
    list(workspace.pull(["com.example.folder"]))
    with pytest.raises(MergeConflict, match="the state of the source default") as caught:
        workspace.branches.merge("com.example.folder", "staging")
    drop = "`odf merge com.example.folder staging --drop`"
    assert caught.value.hint == f"Drop the branch with {drop}, and pull again: the head continues from its own state."


def test_a_source_that_one_side_has_set_and_the_other_disabled_is_a_conflict(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", FOLDER)
    dataset = workspace.storage.get("com.example.folder")
    assert dataset.state.polling_source is not None
    other = replace(dataset.state.polling_source, merge=MergeLedger(("id",)))
    commit(dataset.on("with-disabled"), DisablePollingSource())
    commit(dataset.on("with-other"), other)
    commit(dataset, SetInfo(description="moved on"), other)
    with pytest.raises(MergeConflict, match="both sides have changed the polling source"):
        workspace.branches.merge("com.example.folder", "with-disabled")
    workspace.branches.merge("com.example.folder", "with-other")
    assert workspace.datasets.state("com.example.folder").polling_source == other


def test_a_source_that_both_sides_have_disabled_stays_so(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", FOLDER)
    dataset = workspace.storage.get("com.example.folder")
    commit(dataset.on("staging"), DisablePollingSource(), SetInfo(description="pushed to"))
    commit(dataset, DisablePollingSource())
    workspace.branches.merge("com.example.folder", "staging")
    assert workspace.datasets.state("com.example.folder").polling_source is None
    last, before, *_ = workspace.datasets.log("com.example.folder")
    assert (last.block.event, before.block.event) == (SetInfo(description="pushed to"), DisablePollingSource())


def commit(dataset: StoredDataset, *events: MetadataEvent) -> None:
    with dataset.writing() as locked:
        commit_events(locked, locked.state, events, commit_time(locked.state))


def test_rows_of_a_query_are_not_applied_again(workspace: Workspace):
    workspace.add(load_snapshots(derivative(), "manifest"))
    list(workspace.pull(["derived"], branch="try"))
    feed(workspace, "root", "3 c")
    list(workspace.pull(["derived"]))
    with pytest.raises(MergeConflict, match="rows are the result of a query"):
        workspace.branches.merge("derived", "try")


def test_a_branch_without_anything_new_is_only_deleted(workspace: Workspace):
    workspace.branches.create("root", BRANCH, "empty")
    feed(workspace, "root", "3 c")
    head = workspace.datasets.summary("root").head
    result = workspace.branches.merge("root", "empty")
    assert (result.num_blocks, result.new_head, branches(workspace)) == (0, head, [])


def test_a_branch_is_dropped(workspace: Workspace):
    stage(workspace, "3 c")
    before = workspace.datasets.summary("root")
    workspace.branches.delete("root", BRANCH, "staging")
    assert (workspace.datasets.summary("root"), branches(workspace)) == (before, [])
    list(workspace.maintenance.gc())
    assert is_valid(workspace)
    stage(workspace, "3 d")
    assert rows(workspace, "root@staging")[2:] == ["+A 3 d"]


def test_a_merge_that_was_cut_after_the_branch_was_moved_is_finished(workspace: Workspace):
    stage(workspace, "3 c")
    feed(workspace, "root", "4 d")
    with workspace.storage.get("root").writing() as dataset:
        rebase(dataset, diff(dataset, "staging"))
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "+A 4 d"]
    result = workspace.branches.merge("root", "staging")
    assert (result.num_records, result.applied_again) == (1, False)
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", "+A 4 d", "+A 3 c"]


def test_of_two_who_move_a_branch_one_wins(workspace: Workspace):
    stage(workspace, "3 c")
    dataset = workspace.storage.get("root")
    view = dataset.on("staging").layout.refs
    tip, head = view.get(HEAD), dataset.chain.head()
    with pytest.raises(ConcurrentUpdate):
        view.compare_and_swap(HEAD, head, head)
    assert view.get(HEAD) == tip
    assert dataset.layout.refs.get(HEAD) == head


# --- In other places -------------------------------------------------------------------------------------------------


def test_branches_and_tags_travel_where_they_are_asked_for(workspace: Workspace, tmp_path: Path):
    stage(workspace, "3 c")
    workspace.branches.create("root", ReferenceKind.TAG, "v1", "3")
    shared = str(tmp_path / "shared" / "root")
    pushed = list(workspace.push(["root"], to=shared, branches=["staging"], tags=["v1"]))
    assert [(one.name, one.error) for one in pushed] == [
        ("root", None),
        ("root branch staging", None),
        ("root tag v1", None),
    ]
    other = Workspace.init(tmp_path / "elsewhere")
    pulled = list(other.pull([shared], tags=["v1"]))
    assert [(one.name, one.error) for one in pulled] == [("root", None), ("root tag v1", None)]
    assert branches(other) == []
    (staged,) = other.pull(["root"], branch="staging")
    assert (staged.error, staged.num_records) == (None, 1)
    assert rows(other, "root@v1") == ["+A 1 a", "+A 2 b"]
    assert rows(other, "root@staging") == rows(workspace, "root@staging")
    assert other.branches.merge("root", "staging").num_records == 1
    missing, *_ = (one for one in other.pull(["root"], tags=["v2"]) if one.error)
    assert (missing.name, missing.error.code if missing.error else None) == ("root tag v2", "E657")


def test_only_copies_have_a_place_to_pull_tags_from(workspace: Workspace):
    *_, refused = workspace.pull(["root"], tags=["v1"])
    assert refused.error is not None
    assert "only for copies" in refused.error.message
