"""Back to a block, by hash, number or name; and forth again, as long as nothing was removed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.chain.signatures import read_head_signatures
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.storage.references import BlockNotFound
from odfpy.coordinator.transform.intervals import InputDiverged
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError, UsageError


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prepared")
    made = workspace_with(folder, root(), derivative(), derivative("further", "derived"))
    feed(made, "root", "1 a", "2 b")
    assert [result.error for result in made.pull(all=True)] == [None] * 3
    feed(made, "root", "1 a", "2 c", "3 d", day=2)
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    return Workspace.open(shutil.copytree(prepared, tmp_path / "workspace"))


FIRST = ["+A 1 a", "+A 2 b"]


@pytest.mark.parametrize("by", ["number", "hash", "beginning", "tag"])
def test_back_to_a_block(by: str, workspace: Workspace) -> None:
    chain = workspace.storage.get("root").chain
    wanted = chain.in_order()[3]
    chain.refs.compare_and_swap("tag.v1", None, wanted.hash)
    text = {"number": "3", "hash": str(wanted.hash), "beginning": str(wanted.hash)[:16], "tag": "v1"}[by]
    plan = workspace.maintenance.plan_reset("root", text)
    assert (plan.num_blocks, plan.num_records, plan.sequence_number) == (1, 3, 3)
    assert workspace.maintenance.reset("root", text) == plan
    assert chain.refs.get(HEAD) == wanted.hash
    assert rows(workspace, "root") == FIRST
    assert all(report.ok for report in workspace.verify(all=True))
    assert feed(workspace, "root", "1 a", "2 c", day=2).num_records == 2, "keys are those of the new history"
    assert rows(workspace, "root") == [*FIRST, "-C 2 b", "+C 2 c"]


def test_verify_remarks_on_inputs_that_no_longer_have_what_a_dataset_is_made_of(workspace: Workspace) -> None:
    last = workspace.storage.get("root").chain.in_order()[3].hash
    workspace.maintenance.reset("root", "2")
    (report,) = workspace.verify(["derived"])
    (finding,) = report.findings
    assert (report.ok, report.transforms_replayed > 0) == (True, True), "what is there still is what it was"
    assert (finding.check, finding.severity, finding.code) == ("lineage", Severity.WARNING, InputDiverged.code)
    assert finding.message == f"Computed from blocks that the history of root no longer has (up to {last})"
    assert finding.hint is not None
    assert "odf pull derived --reset-derivatives-on-diverged-input" in finding.hint
    (report,) = workspace.verify(["derived"], integrity_only=True)
    assert report.findings == (), "that looks at no inputs"
    list(workspace.maintenance.gc())
    (report,) = workspace.verify(["derived"])
    assert [(one.check, one.severity) for one in report.findings] == [("replay", Severity.ERROR)]


def test_the_head_is_signed_where_it_went(workspace: Workspace) -> None:
    dataset = workspace.storage.get("root")
    done = workspace.maintenance.reset("root", "3")
    block = dataset.chain.block(done.new_head)
    signed = read_head_signatures(dataset.layout.side, dataset.handle.id, block)
    assert signed is not None
    assert signed.block_hash == done.new_head


def test_a_lost_head_comes_again_where_a_reset_moved_it(workspace: Workspace) -> None:
    block = workspace.maintenance.reset("root", "3").new_head
    head = workspace.storage.get("root").folder / "refs" / "head"
    head.unlink()
    (report,) = workspace.verify(["root"], repair=True)
    assert (report.ok, head.read_text()) == (True, str(block))


def test_a_lost_head_does_not_go_back_to_what_was_signed_last(workspace: Workspace) -> None:
    """A commit without a signature leaves that of the head before it, and repair must not drop the commit."""
    workspace.config.set("signatures.sign", "false")
    feed(workspace, "root", "5 e", day=4)
    head = workspace.storage.get("root").folder / "refs" / "head"
    block = head.read_text()
    head.unlink()
    (report,) = workspace.verify(["root"], repair=True)
    assert (report.ok, report.repaired, head.exists()) == (False, (), False)
    assert any("its signature has it at" in one.message and block in one.message for one in report.findings)


def test_a_reset_is_taken_back_by_the_hash_of_the_old_head(workspace: Workspace) -> None:
    before = rows(workspace, "root")
    done = workspace.maintenance.reset("root", "2")
    assert rows(workspace, "root") == []
    back = workspace.maintenance.reset("root", str(done.old_head))
    assert (back.num_blocks, back.new_head) == (0, done.old_head)
    assert rows(workspace, "root") == before
    assert not workspace.maintenance.reset("root", str(done.old_head)).changes

    workspace.maintenance.reset("root", "2")
    list(workspace.maintenance.gc())
    with pytest.raises(BlockNotFound):
        workspace.maintenance.reset("root", str(done.old_head))


def test_who_has_taken_in_what_goes_is_told_and_made_again(workspace: Workspace) -> None:
    assert workspace.maintenance.plan_reset("root", "3").downstream.all == (), "they have not seen the last block"
    plan = workspace.maintenance.plan_reset("root", "2")
    assert list(map(str, plan.downstream.all)) == ["derived", "further"]
    workspace.maintenance.reset("root", "2")
    assert [result.error.code for result in workspace.pull(["derived"]) if result.error] == ["E640"]
    feed(workspace, "root", "5 e", day=5)
    assert [result.error for result in workspace.pull(all=True, reset_derivatives=True)] == [None] * 3
    assert rows(workspace, "derived") == ["+A 5 E"]
    assert all(report.ok for report in workspace.verify(all=True))


def test_an_input_without_rows_any_more(workspace: Workspace) -> None:
    workspace.maintenance.reset("root", "1")
    assert [result.error for result in workspace.pull(["derived"], reset_derivatives=True)] == [None]
    assert rows(workspace, "derived") == []
    assert {result.outcome.value for result in workspace.pull(["derived"])} == {"up to date"}


@pytest.mark.parametrize(
    "text", ["99", "", "-1", "f", "f1620", "f1620" + 64 * "0", "nothing", "../head", "HEAD", "1.0"]
)
def test_no_such_block(text: str, workspace: Workspace) -> None:
    before = workspace.datasets.state("root").head
    with pytest.raises(OdfError) as refused:
        workspace.maintenance.reset("root", text)
    assert isinstance(refused.value, BlockNotFound | UsageError)
    assert refused.value.hint
    assert workspace.datasets.state("root").head == before


def test_a_block_of_another_dataset(workspace: Workspace) -> None:
    dataset, other = workspace.storage.get("root"), workspace.storage.get("derived")
    shutil.copytree(other.folder / "blocks", dataset.folder / "blocks", dirs_exist_ok=True)
    with pytest.raises(OdfError, match="another dataset"):
        workspace.maintenance.reset("root", str(other.chain.head()))


def test_deleting_goes_downstream_where_asked(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="root is an input of derived"):
        workspace.datasets.delete(["root"])
    assert list(map(str, workspace.datasets.plan_delete(["root"], recursive=True))) == ["further", "derived", "root"]
    workspace.datasets.delete(["derived"], recursive=True)
    assert [str(one.handle) for one in workspace.datasets.all()] == ["root"]
    workspace.datasets.delete(all=True)
    assert workspace.datasets.all() == []
