"""Tags: names for blocks, and datasets as they were there."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.workspaces import copied, feed, root, rows, workspace_with

from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.stores.ref_store import HEAD
from odfpy.coordinator.storage.references import BlockNotFound, NoSuchReference
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import AlreadyExists, InvalidValue, UsageError
from odfpy.repository.reference_transfer import ReferenceNotThere

TAG = ReferenceKind.TAG


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A dataset with two commits of data, the first of which has a tag."""
    workspace = workspace_with(tmp_path_factory.mktemp("prepared") / "workspace", root())
    feed(workspace, "root", "1 a")
    workspace.branches.create("root", TAG, "v1")
    feed(workspace, "root", "1 b")
    return workspace


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    return copied(prepared, tmp_path / "workspace")


def names(workspace: Workspace) -> list[tuple[str, int | None]]:
    found = workspace.branches.all("root", TAG)
    return [(item.name.name, item.block.block.sequence_number if item.block else None) for item in found]


def test_a_tag_stays_while_the_head_moves_on(workspace: Workspace):
    assert names(workspace) == [("v1", 3)]
    assert workspace.datasets.summary("root").num_blocks == 5
    assert list(workspace.storage.get("root").layout.refs.names()) == [HEAD, "tag.v1"]


def test_a_name_means_either_a_tag_or_a_branch(workspace: Workspace, tmp_path: Path):
    more = tmp_path / "more.csv"
    more.write_text("id,name\n3,c\n")
    before = list(workspace.storage.get("root").layout.refs.names())
    with pytest.raises(AlreadyExists, match="already has a tag v1"):
        workspace.branches.create("root", ReferenceKind.BRANCH, "v1")
    with pytest.raises(AlreadyExists, match="root@v1 would mean either"):
        list(workspace.ingest("root", [more], branch="v1"))
    (pulled,) = workspace.pull(["root"], branch="v1")
    assert isinstance(pulled.error, AlreadyExists)
    assert list(workspace.storage.get("root").layout.refs.names()) == before
    workspace.branches.create("root", ReferenceKind.BRANCH, "staging")
    with pytest.raises(AlreadyExists, match="already has a branch staging"):
        workspace.branches.create("root", TAG, "staging")


@pytest.mark.parametrize(
    ("text", "says"),
    [("nope", "no block, tag or branch 'nope'"), ("99", "no block '99'"), ("f1620abcd99", "no block 'f1620abcd99'")],
)
def test_what_means_no_block(workspace: Workspace, text: str, says: str):
    with pytest.raises(BlockNotFound, match=says):
        workspace.branches.create("root", TAG, "v2", text)


def test_too_little_of_a_hash(workspace: Workspace):
    with pytest.raises(BlockNotFound) as caught:
        workspace.branches.create("root", TAG, "v2", "f1620a")
    assert caught.value.hint == "Write at least 9 characters of a hash."


def test_a_tag_is_made_at_any_block_and_deleted(workspace: Workspace):
    blocks = list(workspace.datasets.log("root"))
    for name, where, number in (
        ("a", "1", 1),
        ("b", str(blocks[0].hash), 4),
        ("c", "v1", 3),
        ("d", str(blocks[2].hash)[:14], 2),
    ):
        assert workspace.branches.create("root", TAG, name, where).target == blocks[4 - number].hash
    assert names(workspace) == [("a", 1), ("b", 4), ("c", 3), ("d", 2), ("v1", 3)]
    assert workspace.branches.delete("root", TAG, "v1") == blocks[1].hash
    assert [name for name, _ in names(workspace)] == ["a", "b", "c", "d"]


def test_a_tag_is_not_moved(workspace: Workspace):
    with pytest.raises(AlreadyExists, match="already has a tag v1"):
        workspace.branches.create("root", TAG, "v1")
    workspace.branches.create("root", TAG, "v1", "3")
    assert names(workspace) == [("v1", 3)]


@pytest.mark.parametrize(
    "name", ["", "head", "12", "f1620abc", "a b", "../x", ".x", "x.sig", "x" * 81, "é", "a@b", "a/b"]
)
def test_names_that_mean_something_else_are_refused(name: str):
    with pytest.raises(InvalidValue, match="Not a name for a tag"):
        ReferenceName.of(TAG, name)


def legacy(workspace: Workspace, *names: str, block: str = "1") -> str:
    """Make references as an earlier release let them be, all at a block; gives that."""
    target = workspace.storage.get_at(f"root@{block}").chain.head()
    for name in names:
        workspace.storage.get("root").layout.refs.compare_and_swap(name, None, target)
    return str(target)


def test_a_block_wins_over_a_reference_that_is_called_like_it(workspace: Workspace):
    hashes = {block.block.sequence_number: str(block.hash) for block in workspace.datasets.log("root")}
    legacy(workspace, "tag.head", "branch.head", "tag.3", f"tag.{hashes[4]}", f"branch.{hashes[4][:20]}")
    storage = workspace.storage
    found = {
        text: str(storage.get_at(f"root@{text}").chain.head()) for text in ("head", "3", hashes[4], hashes[4][:20])
    }
    assert found == {"head": hashes[4], "3": hashes[3], hashes[4]: hashes[4], hashes[4][:20]: hashes[4]}
    assert str(workspace.branches.create("root", TAG, "v2", "3").target) == hashes[3]


def test_names_of_an_earlier_release_mean_what_they_did_where_there_is_no_such_block(workspace: Workspace):
    target = legacy(workspace, "tag.2024", "tag.f16beta")
    for text in ("2024", "f16beta"):
        assert str(workspace.storage.get_at(f"root@{text}").chain.head()) == target


@pytest.mark.parametrize("kind", ReferenceKind)
@pytest.mark.parametrize("name", ["head", "3", "f1620abc"])
def test_references_of_an_earlier_release_can_be_deleted(workspace: Workspace, kind: ReferenceKind, name: str):
    target = legacy(workspace, f"{kind.value}.{name}")
    assert str(workspace.branches.delete("root", kind, name)) == target
    assert list(workspace.storage.get("root").layout.refs.names()) == [HEAD, "tag.v1"]
    with pytest.raises(NoSuchReference):
        workspace.branches.delete("root", kind, name)


@pytest.mark.parametrize("name", ["head", "12"])
def test_no_branch_of_such_a_name_comes_to_be(workspace: Workspace, tmp_path: Path, name: str):
    more = tmp_path / "more.csv"
    more.write_text("id,name\n3,c\n")
    with pytest.raises(InvalidValue, match="Not a name for a branch"):
        list(workspace.ingest("root", [more], branch=name))


def test_a_push_says_where_to_and_of_a_tag_only_what_it_knows(workspace: Workspace, tmp_path: Path):
    name = "root"
    place = tmp_path / "shared"
    list(workspace.push([name], to=f"{place}/"))
    (again, tag) = workspace.push([name], tags=["v1"])
    assert again.notes == (f"to {(place / name).as_uri()}",)
    assert (tag.outcome.value, tag.notes, tag.signatures) == ("updated", (), None)
    (_, missing) = workspace.push([name], tags=["v2"])
    assert isinstance(missing.error, ReferenceNotThere)
    assert str(missing.error.hint) == f"`odf tag {name}` lists the existing ones."


def test_what_is_not_there_is_told_with_a_suggestion(workspace: Workspace):
    workspace.branches.create("root", TAG, "release-1")
    with pytest.raises(NoSuchReference) as caught:
        workspace.branches.delete("root", TAG, "release-2")
    assert caught.value.hint == "Did you mean release-1?"
    for block in ("v2", "99", "", "f1620ffffffff"):
        with pytest.raises(BlockNotFound, match="has no block"):
            workspace.branches.create("root", TAG, "new", block)


def test_a_dataset_is_looked_at_as_it_was(workspace: Workspace):
    assert rows(workspace, "root@v1") == rows(workspace, "root@3") == ["+A 1 a"]
    assert rows(workspace, "root") == rows(workspace, "root@head") == ["+A 1 a", "-C 1 a", "+C 1 b"]
    assert [block.block.sequence_number for block in workspace.datasets.log("root@v1")] == [3, 2, 1, 0]
    assert workspace.datasets.state("root@v1").num_records == 1
    found = workspace.sql('select count(*) as n from "root@v1"', engine="datafusion")
    assert found.column("n").to_pylist() == [1]
    (report,) = workspace.verify(["root@v1"])
    assert (report.ok, report.blocks) == (True, 4)


def test_what_was_cannot_be_changed(workspace: Workspace):
    for attempt in (
        lambda: feed(workspace, "root@v1", "2 c"),
        lambda: workspace.datasets.delete(["root@v1"]),
        lambda: workspace.datasets.rename("root@v1", "other"),
        lambda: list(workspace.pull(["root@v1"])),
        lambda: workspace.branches.create("root@v1", TAG, "v2"),
    ):
        with pytest.raises(UsageError, match="root@v1"):
            attempt()
    past = workspace.storage.get_at("root@v1")
    with pytest.raises(UsageError, match="cannot be changed"), past.writing():
        pass
    with pytest.raises(UsageError, match="cannot be changed"):
        past.layout.refs.compare_and_swap(HEAD, None, past.chain.head())
    with pytest.raises(UsageError, match="cannot be changed"):
        past.layout.refs.delete(HEAD, past.chain.head())


def test_the_past_has_its_own_place_in_no_cache(workspace: Workspace):
    before = workspace.datasets.state("root")
    assert workspace.datasets.state("root@0").num_records == 0
    assert Workspace.open(workspace.root).datasets.state("root") == before


def test_what_tags_lead_to_is_kept(workspace: Workspace):
    workspace.maintenance.reset("root", "v1")
    feed(workspace, "root", "2 c")
    workspace.branches.create("root", TAG, "v2")
    workspace.maintenance.reset("root", "v1")
    list(workspace.maintenance.gc())
    assert rows(workspace, "root@v2") == ["+A 1 a", "-R 1 a", "+A 2 c"]
    assert all(report.ok for report in workspace.verify(["root@v2", "root"]))


def test_references_of_others_are_no_tags(workspace: Workspace):
    refs = workspace.storage.get("root").layout.refs
    refs.compare_and_swap("theirs", None, workspace.storage.get("root").chain.head())
    assert ReferenceName.parse("theirs") is None
    assert names(workspace) == [("v1", 3)]
    assert rows(workspace, "root@theirs") == rows(workspace, "root")


def test_only_tags_that_hold_what_is_lost_are_told_of(workspace: Workspace) -> None:
    assert workspace.maintenance.plan_reset("root", "3").notes == ()
    workspace.branches.create("root", TAG, "v2")
    assert workspace.maintenance.plan_reset("root", "3").notes == (
        "the old history stays for tag v2, until that is deleted",
    )
