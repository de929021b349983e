"""Bit rot in any file of a dataset is found, and mended from a copy."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.workspaces import derivative, feed, root, rows, workspace_with

from odfpy.coordinator.results import Severity, VerifyReport
from odfpy.coordinator.workspace import Workspace

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
    made.reset("root", "3")
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
    flip(next((dataset.folder / "data").iterdir()))
    report = verified(workspace, "derived", repair=True)
    assert not report.ok
    assert any("neither pulled from anywhere nor pushed" in finding.message for finding in report.findings)


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


def test_objects_that_nothing_refers_to_are_counted(workspace: Workspace) -> None:
    assert verified(workspace, "root").unreferenced == 0
    workspace.compact("root")
    report = verified(workspace, "root")
    assert report.ok
    assert report.unreferenced > 0
    assert report.unreferenced_bytes > 0
    list(workspace.gc())
    assert verified(workspace, "root").unreferenced == 0
