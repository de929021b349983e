"""From manifests to datasets."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from support.chains.workspaces import FOLDER, derivative, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.events import SetPollingSource, SetTransform
from odfpy.chain.state import ChainState
from odfpy.coordinator.add import add as add_snapshots
from odfpy.coordinator.lineage.graph import DependencyCycle
from odfpy.coordinator.storage.results import AddOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import (
    AlreadyExists,
    ConcurrentUpdate,
    DatasetLocked,
    DatasetNotFound,
    InvalidQuery,
    MalformedManifest,
    NondeterministicQuery,
    OdfError,
    UnsupportedQuery,
    UsageError,
)


def names(workspace: Workspace) -> list[str]:
    return [str(summary.handle) for summary in workspace.datasets.all()]


def add(workspace: Workspace, *manifests: str, replace: bool = False) -> list[AddOutcome]:
    snapshots = [snapshot for text in manifests for snapshot in load_snapshots(text, "m.yaml")]
    return [result.outcome for result in workspace.add(snapshots, replace=replace)]


def test_manifests_are_added_in_dependency_order_whatever_their_own(tmp_path: Path) -> None:
    second = derivative("c", "b", "select event_time, id, name from source")
    workspace = workspace_with(tmp_path, second, derivative("b", "a"), root("a"))
    assert names(workspace) == ["a", "b", "c"]


def test_inputs_are_recorded_by_id_with_an_alias(tmp_path: Path) -> None:
    manifest = derivative("b", "a").replace(", alias: source", "").replace("from source", "from a")
    workspace = workspace_with(tmp_path, root("a"), manifest)
    transform = workspace.datasets.state("b").set_transform
    assert isinstance(transform, SetTransform)
    assert transform.inputs[0].dataset_ref == workspace.datasets.handle("a").id
    assert transform.inputs[0].alias == "a"


def test_private_key_is_for_the_owner_only(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"))
    (key,) = (workspace.odf / "keys").iterdir()
    assert key.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("manifests", "error", "words"),
    [
        ([root("a"), root("A")], AlreadyExists, "same dataset"),
        ([derivative("b", "nowhere")], DatasetNotFound, "nowhere"),
        ([derivative("b", "c"), derivative("c", "b")], DependencyCycle, "b -> c -> b"),
        ([derivative("b", "b")], DependencyCycle, "b -> b"),
        ([root("a"), derivative("b", "a", "select * from")], InvalidQuery, "b: "),
        ([root("a"), derivative("b", "a", "select event_time, nope from source")], InvalidQuery, "nope"),
        ([root("a"), derivative("b", "a", "select id from source")], InvalidQuery, "event_time"),
        ([root("a"), derivative("b", "a", "select event_time, random() as r from source")], NondeterministicQuery, "b"),
        ([root("a"), derivative("b", "a", "select max(event_time) as event_time from source")], UnsupportedQuery, "b"),
        ([root("a"), derivative("b", "a", engine="nosuch")], OdfError, "nosuch"),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_added(
    tmp_path: Path, manifests: list[str], error: type[OdfError], words: str
) -> None:
    workspace = Workspace.init(tmp_path)
    with pytest.raises(error, match=words):
        add(workspace, *manifests)
    assert names(workspace) == []
    assert not any((workspace.odf / "keys").glob("*"))


def test_missing_input_comes_with_a_suggestion(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.rates"))
    with pytest.raises(DatasetNotFound) as error:
        add(workspace, derivative("b", "com.example.rats"))
    assert error.value.hint == "Did you mean com.example.rates?"


def test_existing_name_is_refused_without_replace(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"))
    with pytest.raises(AlreadyExists, match="already exists"):
        add(workspace, root("A"))


def test_replace_appends_what_changed_and_keeps_history(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"))
    feed(workspace, "a", "1 x")
    before = workspace.datasets.handle("a").id
    assert add(workspace, root("a"), replace=True) == [AddOutcome.UNCHANGED]
    assert add(workspace, root("a", "{kind: Append}"), replace=True) == [AddOutcome.UPDATED]
    feed(workspace, "a", "1 x")
    assert workspace.datasets.handle("a").id == before
    assert rows(workspace, "a") == ["+A 1 x", "+A 1 x"]


def test_replace_cannot_change_the_kind(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), root("b"))
    with pytest.raises(AlreadyExists, match="Root"):
        add(workspace, derivative("a", "b"), replace=True)


def test_nothing_is_added_where_somebody_writes_to_one_of_them(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), FOLDER, root("z"))
    before = {name: workspace.datasets.state(name).head for name in names(workspace)}
    polled = FOLDER.replace("in/*.csv", "other/*.csv")
    ((source, *_),) = (snapshot.metadata for snapshot in load_snapshots(polled, "m.yaml"))
    assert isinstance(source, SetPollingSource)
    ledger = "{kind: Ledger, primaryKey: [id]}"
    changed = [root("new"), root("a", ledger), polled, root("z", ledger)]
    with workspace.storage.get("z").writing(), pytest.raises(DatasetLocked, match="Dataset z"):
        add(workspace, *changed, replace=True)
    assert {name: workspace.datasets.state(name).head for name in names(workspace)} == before
    polled_id = workspace.datasets.handle("com.example.folder").id
    assert not workspace.storage.approvals.has(polled_id, source)
    assert add(workspace, *changed, replace=True) == [AddOutcome.CREATED] + [AddOutcome.UPDATED] * 3
    assert workspace.storage.approvals.has(polled_id, source)


def test_nothing_is_added_where_one_was_written_to_since_it_was_looked_at(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("a"), root("z"))
    ledger = "{kind: Ledger, primaryKey: [id]}"

    def written_meanwhile(state: ChainState, _: object) -> tuple[str, ...]:
        if state.dataset_id == workspace.datasets.handle("z").id:
            feed(workspace, "z", "1 a")
        return ()

    before = workspace.datasets.state("a").head
    snapshots = [snapshot for name in "az" for snapshot in load_snapshots(root(name, ledger), name)]
    with pytest.raises(ConcurrentUpdate, match="z was written to in the meantime"):
        add_snapshots(workspace.storage, snapshots, check=written_meanwhile, replace_existing=True)
    assert workspace.datasets.state("a").head == before


def test_dry_run_adds_nothing(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path)
    (result,) = workspace.add(load_snapshots(root("a"), "m.yaml"), dry_run=True)
    assert result.outcome is AddOutcome.CREATED
    assert names(workspace) == []


def test_a_snapshot_cannot_carry_data(tmp_path: Path) -> None:
    workspace = Workspace.init(tmp_path)
    manifest = root("a") + "    - {kind: AddData}\n"
    with pytest.raises(UsageError, match="AddData"):
        add(workspace, manifest)


def test_manifests_come_from_files_folders_and_standard_input(tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    (folder / "deep").mkdir(parents=True)
    (folder / "a.yaml").write_text(root("a"))
    (folder / "deep" / "b.yml").write_text(f"{root('b')}---{root('c')}")
    workspace = Workspace.init(tmp_path / "w")
    loaded = workspace.load([folder, "-"], recursive=True, stdin=io.BytesIO(root("d").encode()))
    assert [str(snapshot.name) for snapshot in loaded] == ["a", "b", "c", "d"]
    with pytest.raises(UsageError, match="folder"):
        workspace.load([folder])


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (root("a").replace("sourceName", "sourcName"), 9, "sourcName"),
        (root("a").replace("kind: NdJson", "kind: NdJason"), 11, "NdJason"),
        (root("a/b/c"), 5, "a/b"),
        (root("../a"), 5, r"\.\."),
        ("kind: [", 1, "not YAML"),
    ],
)
def test_a_bad_manifest_is_named_with_file_line_and_path(tmp_path: Path, text: str, line: int, words: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(MalformedManifest, match=words) as error:
        Workspace.init(tmp_path / "w").load([file])
    assert "bad.yaml" in error.value.message
    if words != "not YAML":
        assert f"line {line}" in error.value.message
