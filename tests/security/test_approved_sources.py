"""A source that somebody else has set does nothing on this machine until it is approved."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.workspaces import FOLDER, feed, root, workspace_with
from support.servers.serving import serving

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.approvals import SourceNotApproved
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetLocked
from odfpy.serving.callers.tokens import Scope, Tokens

NAME = "com.example.folder"
HARM = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.folder
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "in/*.csv", order: ByName}
      prepare: [{kind: Pipe, command: [sh, -c, "touch {canary}; cat"]}]
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""


def harmful(canary: Path) -> str:
    return HARM.replace("{canary}", str(canary))


def with_a_file(folder: Path) -> None:
    (folder / "in").mkdir(exist_ok=True)
    (folder / "in" / "1.csv").write_text("id\n1\n")


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Workspace, str]]:
    """The workspace of a server, and its address; the caller has a token that may write."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    workspace = Workspace.init(tmp_path / "operator")
    with_a_file(workspace.root)
    monkeypatch.setenv("ODF_TOKEN", Tokens(workspace.odf).new("writer", Scope.WRITE))
    with serving(workspace) as server:
        yield workspace, f"odf+{server.url}"


@pytest.fixture
def pushed(operator: tuple[Workspace, str], tmp_path: Path) -> tuple[Workspace, Path]:
    """The workspace of the server with a dataset that somebody has pushed, and what its command would touch."""
    workspace, url = operator
    canary = tmp_path / "operator" / "in" / "harm"
    attacker = workspace_with(tmp_path / "attacker", harmful(canary))
    (result,) = attacker.push([NAME], to=f"{url}/{NAME}")
    assert result.outcome is PullOutcome.UPDATED
    return workspace, canary


def test_the_command_of_a_pushed_source_does_not_run(pushed: tuple[Workspace, Path]) -> None:
    workspace, canary = pushed
    (passed_over,) = workspace.pull(all=True)
    assert passed_over.outcome is PullOutcome.SKIPPED
    assert "odf source trust com.example.folder" in passed_over.notes[0]
    (named,) = workspace.pull([NAME])
    assert isinstance(named.error, SourceNotApproved)
    (plan,) = workspace.plan_pull(all=True)
    assert "would be skipped" in plan.notes[0]
    assert not canary.exists()
    assert workspace.storage.get(NAME).state.num_records == 0


def test_it_runs_once_the_operator_has_seen_and_approved_it(pushed: tuple[Workspace, Path]) -> None:
    workspace, _ = pushed
    (source,) = workspace.sources.all([NAME])
    assert not source.is_approved
    assert any("runs the command sh -c" in action.text and action.reaches_out for action in source.actions)
    assert [known.is_approved for known in workspace.sources.trust(NAME)] == [True]
    (result,) = workspace.pull([NAME])
    assert not isinstance(result.error, SourceNotApproved)
    assert workspace.sources.untrust(NAME)
    (again,) = workspace.pull([NAME])
    assert isinstance(again.error, SourceNotApproved)


def test_a_push_that_changes_the_source_of_a_dataset_at_home_is_not_approved_with_it(
    operator: tuple[Workspace, str], tmp_path: Path
) -> None:
    """The operator's own dataset, continued by who may write: only what the operator has added runs."""
    workspace, url = operator
    workspace.add(load_snapshots(FOLDER, "folder.yaml"))
    canary = tmp_path / "harm"
    attacker = Workspace.init(tmp_path / "attacker")
    (copied,) = attacker.pull([f"{url}/{NAME}"])
    assert copied.error is None
    attacker.add(load_snapshots(harmful(canary), "harm.yaml"), replace=True)
    (result,) = attacker.push([NAME], to=f"{url}/{NAME}")
    assert result.outcome is PullOutcome.UPDATED
    (named,) = workspace.pull([NAME])
    assert isinstance(named.error, SourceNotApproved)
    assert not canary.exists()


def test_the_query_of_a_pushed_source_does_not_run(operator: tuple[Workspace, str], tmp_path: Path) -> None:
    workspace, url = operator
    query = "preprocess: {kind: Sql, engine: datafusion, query: 'select * from input'}\n      merge:"
    attacker = workspace_with(tmp_path / "attacker", root("asked").replace("merge:", query))
    (result,) = attacker.push(["asked"], to=f"{url}/asked")
    assert result.outcome is PullOutcome.UPDATED
    rows = tmp_path / "rows.ndjson"
    rows.write_text('{"event_time": "2024-01-01", "id": 1, "name": "a"}\n')
    with pytest.raises(SourceNotApproved):
        list(workspace.ingest("asked", [rows]))


def test_sources_that_only_read_what_they_are_handed_need_no_approval(
    operator: tuple[Workspace, str], tmp_path: Path
) -> None:
    workspace, url = operator
    attacker = workspace_with(tmp_path / "attacker", root("plain"))
    (result,) = attacker.push(["plain"], to=f"{url}/plain")
    assert result.outcome is PullOutcome.UPDATED
    assert feed(workspace, "plain", "1 a").num_records == 1


def test_a_workspace_of_an_earlier_release_goes_on_as_it_was(tmp_path: Path) -> None:
    """What it has added itself runs; what was pushed to it before does not."""
    workspace = workspace_with(tmp_path / "here", FOLDER)
    with_a_file(workspace.root)
    for path in (workspace.odf / "approved").iterdir():
        path.unlink()
    (workspace.odf / "approved").rmdir()
    (result,) = Workspace.open(workspace.root).pull(all=True)
    assert result.outcome is PullOutcome.UPDATED
    (workspace.odf / "approved").joinpath(workspace.storage.get(NAME).handle.id.multibase).unlink()
    (again,) = Workspace.open(workspace.root).pull([NAME])
    assert isinstance(again.error, SourceNotApproved), "the past is looked at once"


def test_what_a_source_of_an_earlier_release_is_signed_by_decides(tmp_path: Path) -> None:
    """A block that somebody else has put on top does not bear the signature of the dataset's own key."""
    workspace = workspace_with(tmp_path / "here", FOLDER)
    with_a_file(workspace.root)
    dataset = workspace.storage.get(NAME)
    signatures = dataset.folder / "info" / "signatures"
    for hashed in dataset.chain.iter_blocks(dataset.state.head):
        if type(hashed.block.event).__name__ == "SetPollingSource":
            (signatures / str(hashed.hash)).unlink()
    for path in (workspace.odf / "approved").iterdir():
        path.unlink()
    (workspace.odf / "approved").rmdir()
    (result,) = Workspace.open(workspace.root).pull([NAME])
    assert isinstance(result.error, SourceNotApproved)


def test_approvals_are_changed_by_one_at_a_time(tmp_path: Path) -> None:
    """Each reads what is approved and writes all of it: of two at once, one approval would be lost, or come back."""
    workspace = workspace_with(tmp_path / "here", FOLDER)
    for change in (workspace.sources.trust, workspace.sources.untrust):
        with workspace.storage.editing(), pytest.raises(DatasetLocked):
            change(NAME)
