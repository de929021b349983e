"""Bit rot in any file of a dataset is found, and mended from a copy."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.maintenance.report import Severity, VerifyReport
from odfpy.coordinator.storage.completion_names import dataset_names
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import AlreadyExists, DatasetNotFound, IntegrityError, OdfError
from odfpy.serving.callers.visibility import visibility_of

OBJECTS = ("blocks", "data", "checkpoints")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root and a derivative, pushed, with a tag on a block that the head does not reach any more."""
    folder = tmp_path_factory.mktemp("prepared")
    made = workspace_with(folder / "workspace", root(), derivative())
    feed(made, "root", "1 a", "2 b")
    feed(made, "root", "1 a", "2 c", day=2)
    assert [result.error for result in made.pull(all=True)] == [None] * 2
    dataset = made.storage.get("root")
    assert [result.error for result in made.push(all=True, to=f"{folder / 'mirror'}/")] == [None] * 2
    dataset.layout.refs.compare_and_swap("tag.v1", None, dataset.chain.head())
    made.maintenance.reset("root", "3")
    feed(made, "root", "1 a", "2 b", "4 d", day=3)
    list(made.push(["root"], to=f"{folder / 'mirror'}/", force=True))
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(prepared / "mirror", tmp_path / "mirror")
    made = Workspace.open(shutil.copytree(prepared / "workspace", tmp_path / "workspace"))
    for name in ("root", "derived"):
        file = made.storage.get(name).folder / "info" / "aliases.yaml"
        file.write_text(file.read_text().replace(str(prepared), str(tmp_path)))
    return made


def verified(workspace: Workspace, name: str, *, repair: bool = False) -> VerifyReport:
    (report,) = workspace.verify([name], integrity_only=True, repair=repair)
    return report


def flip(file: Path, at: int | None = None) -> None:
    data = bytearray(file.read_bytes())
    data[len(data) // 2 if at is None else at] ^= 4
    file.write_bytes(bytes(data))


def damaged(file: Path, how: str) -> None:
    file.unlink(missing_ok=True)
    if how == "pipe":
        os.mkfifo(file)
    elif how == "folder":
        file.mkdir()
    else:
        file.write_bytes(b"\xff\xfe")


def test_bit_rot_in_any_file_is_found(workspace: Workspace) -> None:
    """Also in what only a tag reaches, and in what nothing reaches."""
    folder = workspace.storage.get("root").folder
    unreferenced = folder / "data" / "f1620b10d7c8cd74bb6cb8fb3e6f0bc9d8a5ac9a8f0df3b1d6e0b4fd0be4c4a3a9a0b"
    shutil.copy(next((folder / "data").iterdir()), unreferenced)
    assert [finding.severity for finding in verified(workspace, "root").findings] == [Severity.WARNING]
    unreferenced.unlink()
    assert verified(workspace, "root").findings == ()

    looked_at = [path for path in folder.rglob("*") if path.is_file() and path.name not in ("alias", "config.yaml")]
    assert {path.parent.name for path in looked_at} >= {"blocks", "data", "refs", "signatures", "info"}
    for file in looked_at:
        original = file.read_bytes()
        flip(file, 0 if file.suffix == ".yaml" else None)
        report = verified(workspace, "root")
        assert report.findings, file
        leads_nowhere = file.parent.name == "refs" and "Missing object" in report.findings[0].message
        named = any(file.name in f"{finding.file} {finding.message}" for finding in report.findings)
        assert named or leads_nowhere, file
        file.write_bytes(original)
    assert verified(workspace, "root").findings == ()


@pytest.mark.parametrize("part", ["blocks", "data"])
@pytest.mark.parametrize("how", ["damaged", "cut", "missing"])
def test_what_is_damaged_comes_again_from_a_copy(part: str, how: str, workspace: Workspace) -> None:
    before = rows(workspace, "derived")
    files = sorted((workspace.storage.get("derived").folder / part).iterdir())
    for file in files:
        if how == "damaged":
            flip(file)
        elif how == "cut":
            file.write_bytes(file.read_bytes()[:10])
        else:
            file.unlink()
    assert not verified(workspace, "derived").ok
    report = verified(workspace, "derived", repair=True)
    assert (report.ok, report.findings) == (True, ())
    assert sorted(report.repaired) == list(map(str, files))
    assert rows(workspace, "derived") == before
    assert verified(workspace, "derived", repair=True).repaired == ()


def test_what_a_copy_does_not_have_stays_an_error(workspace: Workspace) -> None:
    """The block that only the tag reaches was pushed once, and its copy is damaged too."""
    dataset = workspace.storage.get("root")
    tagged = dataset.layout.refs.get("tag.v1")
    mirror = workspace.root.parent / "mirror" / "root"
    for folder in (dataset.folder, mirror):
        flip(folder / "blocks" / str(tagged))
    report = verified(workspace, "root", repair=True)
    assert not report.ok
    assert report.repaired == ()
    assert {finding.check for finding in report.findings} == {"reference", "repair"}
    assert any(str(mirror) in finding.message for finding in report.findings)


def test_without_a_place_there_is_nothing_to_repair_from(workspace: Workspace) -> None:
    dataset = workspace.storage.get("derived")
    (dataset.folder / "info" / "aliases.yaml").unlink()
    assert verified(workspace, "derived", repair=True).findings == ()  # nor anything to repair
    flip(next((dataset.folder / "data").iterdir()))
    report = verified(workspace, "derived", repair=True)
    assert not report.ok
    assert any("neither pulled from nor pushed to a repository" in finding.message for finding in report.findings)


@pytest.mark.parametrize("damage", ["no text", "pipe", "folder"])
def test_a_damaged_file_of_aliases_keeps_no_other_dataset_from_its_repair(damage: str, workspace: Workspace) -> None:
    aliases = workspace.storage.get("root").folder / "info" / "aliases.yaml"
    damaged(aliases, damage)
    flip(next((workspace.storage.get("derived").folder / "data").iterdir()))
    root, derived = workspace.verify(all=True, integrity_only=True, repair=True)
    assert (derived.ok, len(derived.repaired)) == (True, 1)
    assert (root.ok, root.repaired) == (False, ())
    finding, repair = root.findings
    assert (finding.file, finding.hint) == (str(aliases), "Correct the file, or remove it and set it up again.")
    assert ("not UTF-8" in finding.message) == (damage == "no text")
    assert "codec" not in finding.message
    assert (repair.check, repair.message) == ("repair", f"Not repaired: {finding.message}")


LOCAL = ["aliases.yaml", "config.yaml", "failure.yaml", "remotes.yaml", "schedule.yaml", "verification.yaml"]


@pytest.mark.parametrize("name", LOCAL)
def test_nobody_waits_for_a_pipe_among_the_files_of_a_dataset(name: str, workspace: Workspace) -> None:
    file = workspace.storage.get("root").folder / "info" / name
    damaged(file, "pipe")
    assert [finding.file for finding in verified(workspace, "root").findings] == [str(file)]
    damaged(file, "pipe")
    errors = [result.error for result in workspace.push(all=True)]
    assert errors[1] is None
    assert (errors[0] is None) == (name != "aliases.yaml")
    list(workspace.updates.status())


def test_nobody_waits_for_a_pipe_in_the_place_of_a_name(workspace: Workspace) -> None:
    folder = workspace.storage.get("root").folder
    damaged(folder / "info" / "alias", "pipe")
    assert dataset_names(workspace.root) == [("derived", str(workspace.storage.get("derived").handle.id))]
    with pytest.raises(IntegrityError, match="does not hold the name of a dataset"):
        list(workspace.verify(all=True, integrity_only=True))
    damaged(folder / "info" / "visibility", "pipe")
    with pytest.raises(OdfError, match="not a regular file"):
        visibility_of(folder)


def test_other_files_among_the_objects_and_leftovers(workspace: Workspace) -> None:
    folder = workspace.storage.get("root").folder
    for part in OBJECTS:
        (folder / part).mkdir(exist_ok=True)
        (folder / part / "notes.txt").write_text("x")
        (folder / part / ".tmp-1").write_text("x")
    report = verified(workspace, "root")
    assert report.ok
    assert [finding.file for finding in report.findings] == [str(folder / part / "notes.txt") for part in OBJECTS]
    assert {finding.severity for finding in report.findings} == {Severity.WARNING}


@pytest.mark.parametrize("folder", ["data", "refs"])
def test_a_folder_that_may_not_be_read_keeps_no_other_dataset_from_its_verification(
    folder: str, workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = str(workspace.storage.get("root").folder / folder)
    scandir, is_file = os.scandir, Path.is_file

    def refused(path: Path | str) -> None:
        if str(path).startswith(closed) and not str(path).endswith("head"):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", lambda path=".": (refused(path), scandir(path))[1])
    monkeypatch.setattr(Path, "is_file", lambda path: (refused(path), is_file(path))[1])
    reports = {str(report.handle): report for report in workspace.verify(all=True, integrity_only=True)}
    assert reports.keys() == {"root", "derived"}
    assert reports["derived"].ok
    assert not reports["root"].ok
    assert f"Cannot read {closed}" in str([finding.message for finding in reports["root"].findings])


def test_blocks_that_followed_a_head_that_went_back_are_told(workspace: Workspace) -> None:
    assert verified(workspace, "root").following == ()
    feed(workspace, "root", "1 a", "2 b", "5 e", day=4)
    before = workspace.storage.get("root").chain.head()
    blocks = [hashed.hash for hashed in workspace.storage.get("root").chain.in_order()]
    workspace.maintenance.reset("root", "3")
    feed(workspace, "root", "9 z")
    short = workspace.storage.get("root").chain.head()
    workspace.maintenance.reset("root", "3")  # two ways on: whichever was longer, the last one comes first
    found = verified(workspace, "root").following
    assert [(one.head, one.num_blocks) for one in found] == [(short, 1), (before, len(blocks) - 4)]
    assert found[0].written > found[1].written
    dataset = workspace.storage.get("root")
    workspace.branches.create("root", ReferenceKind.BRANCH, "again", str(before))
    assert [one.head for one in verified(workspace, "root").following] == [short]
    workspace.branches.merge("root", "again")
    assert dataset.reloaded().chain.head() == before


def test_of_histories_before_and_after_a_compaction_the_later_one_comes_first(tmp_path: Path) -> None:
    """Their last blocks have the same time."""
    workspace = workspace_with(tmp_path, root("root", "{kind: Append}"))
    for row in ("1 a", "2 b"):
        feed(workspace, "root", row)
    before = workspace.storage.get("root").chain.head()
    workspace.maintenance.compact("root")
    after = workspace.storage.get("root").chain.head()
    for block, time in ((before, 1), (after, 2)):
        os.utime(workspace.storage.get("root").folder / "blocks" / str(block), (time, time))
    workspace.maintenance.reset("root", 2)
    assert [one.head for one in verified(workspace, "root").following] == [after, before]


def test_objects_that_nothing_refers_to_are_counted(workspace: Workspace) -> None:
    assert verified(workspace, "root").unreferenced == 0
    workspace.maintenance.compact("root")
    report = verified(workspace, "root")
    assert report.ok
    assert report.unreferenced > 0
    assert report.unreferenced_bytes > 0
    list(workspace.maintenance.gc())
    assert verified(workspace, "root").unreferenced == 0


# --- What is not named by a hash --------------------------------------------------------------------------------------


def push_tag(workspace: Workspace) -> Path:
    """A tag of the root, also in the mirror; gives back the folder of the dataset."""
    workspace.branches.create("root", ReferenceKind.TAG, "v2", "1")
    assert [result.error for result in workspace.push(["root"], tags=["v2"])] == [None, None]
    return workspace.storage.get("root").folder


DAMAGE = {
    "nonsense": lambda file: file.write_text("x"),
    "empty": lambda file: file.write_bytes(b""),
    "leads nowhere": lambda file: file.write_text(str(Multihash.of(b"nowhere"))),
    "a folder": lambda file: (file.unlink(), file.mkdir(), (file / "x").write_text("x")),
    "gone": lambda file: file.unlink(),
}


@pytest.mark.parametrize("how", sorted(set(DAMAGE) - {"gone"}))
def test_a_damaged_tag_spoils_no_other_and_comes_again(how: str, workspace: Workspace) -> None:
    file = push_tag(workspace) / "refs" / "tag.v2"
    before = file.read_bytes()
    DAMAGE[how](file)
    listed = {item.name.name: item.problem for item in workspace.branches.all("root", ReferenceKind.TAG)}
    assert (listed["v1"], listed["v2"] is None) == (None, False)
    assert not verified(workspace, "root").ok
    report = verified(workspace, "root", repair=True)
    assert (report.ok, report.repaired) == (True, (str(file),))
    assert file.read_bytes() == before
    assert [path.name[:7] for path in file.parent.glob(".aside*")] == [".aside-"] * (how == "a folder")


def test_a_tag_that_is_gone_may_have_been_deleted_and_is_told(workspace: Workspace) -> None:
    file = push_tag(workspace) / "refs" / "tag.v2"
    block = file.read_text()
    file.unlink()
    report = verified(workspace, "root", repair=True)
    (finding,) = report.findings
    assert (report.ok, report.repaired, finding.severity) == (True, (), Severity.WARNING)
    assert "has tag v2, which does not exist here" in finding.message
    assert finding.hint == f"If it was lost: odf tag root v2 {block}"


@pytest.mark.parametrize("how", DAMAGE)
@pytest.mark.parametrize("signed", [True, False])
def test_a_lost_head_comes_again_where_it_was(how: str, signed: bool, workspace: Workspace) -> None:
    """By its signature here; without that as another place has it, unless that may be of an earlier time."""
    folder = workspace.storage.get("root").folder
    file = folder / "refs" / "head"
    before = file.read_text()
    if not signed:
        (folder / "refs" / "head.sig").unlink()
    DAMAGE[how](file)
    report = verified(workspace, "root", repair=True)
    if how == "leads nowhere" and not signed:
        assert (report.ok, report.repaired) == (False, ())
    else:
        assert (report.ok, file.read_text()) == (True, before)
        assert str(file) in report.repaired


def test_a_head_does_not_go_back_to_what_was_pushed_once(workspace: Workspace) -> None:
    feed(workspace, "root", "5 e", day=4)
    folder = workspace.storage.get("root").folder
    (folder / "refs" / "head").write_text("x")
    (folder / "refs" / "head.sig").unlink()
    report = verified(workspace, "root", repair=True)
    assert (report.ok, report.repaired) == (False, ())
    assert any("here continue from there" in finding.message for finding in report.findings)


@pytest.mark.parametrize("how", sorted(set(DAMAGE) - {"leads nowhere"}))
def test_signatures_come_again(how: str, workspace: Workspace) -> None:
    folder = workspace.storage.get("root").folder
    newest = (folder / "refs" / "head").read_text()
    files = [folder / "refs" / "head.sig", folder / "info" / "signatures" / newest]
    before = [file.read_bytes() for file in files]
    for file in files:
        DAMAGE[how](file)
    report = verified(workspace, "root", repair=True)
    assert report.findings == ()
    assert sorted(report.repaired) == sorted(map(str, files))
    assert [file.read_bytes() for file in files] == before
    assert report.signatures is not None
    assert report.signatures.unsigned == 0


@pytest.mark.parametrize("part", ["blocks", "data"])
@pytest.mark.parametrize("full", [True, False])
def test_a_folder_in_the_place_of_an_object_makes_way(part: str, full: bool, workspace: Workspace) -> None:
    file = next((workspace.storage.get("root").folder / part).iterdir())
    file.unlink()
    file.mkdir()
    if full:
        (file / "notes.txt").write_text("mine")
    report = verified(workspace, "root", repair=True)
    assert (report.ok, report.repaired) == (True, (str(file),))
    aside = list(file.parent.glob(".aside-*/notes.txt"))
    assert ([path.read_text() for path in aside], len(report.findings)) == ((["mine"], 1) if full else ([], 0))


@pytest.mark.parametrize("how", sorted(set(DAMAGE) - {"leads nowhere"}))
@pytest.mark.parametrize("by", ["name", "id", "pattern", "all"])
def test_a_lost_name_is_that_of_the_copy(how: str, by: str, workspace: Workspace) -> None:
    dataset = workspace.storage.get("root")
    file = dataset.folder / "info" / "alias"
    (file.write_text("../x") if how == "nonsense" else DAMAGE[how](file))
    with pytest.raises(IntegrityError, match="does not hold the name"):
        workspace.verify(["root"])
    refs = {"name": ["root"], "id": [str(dataset.handle.id)], "pattern": ["roo%"], "all": []}[by]
    reports = list(workspace.verify(refs, all=by == "all", integrity_only=True, repair=True))
    (report,) = (one for one in reports if str(one.handle) == "root")
    assert (report.ok, report.repaired) == (True, (str(file),))


def test_a_lost_name_that_nobody_knows_is_given_again(workspace: Workspace) -> None:
    dataset = workspace.storage.get("root")
    (dataset.folder / "info" / "aliases.yaml").unlink()
    (dataset.folder / "info" / "alias").unlink()
    with pytest.raises(DatasetNotFound, match="root"):
        workspace.verify(["root"], repair=True)
    with pytest.raises(AlreadyExists):
        workspace.datasets.rename(str(dataset.handle.id), "derived")
    assert str(workspace.datasets.rename(str(dataset.handle.id), "root")) == "root"
    assert verified(workspace, "root").ok
