"""A verification reads every file that rows link to, and knows which of them may be elsewhere or gone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import BinaryIO

import pytest
from support.chains.linked import add, files_workspace, name_of, objects_in

from odfpy.chain.stores.object_store import LocalObjectStore
from odfpy.cli.app import run
from odfpy.coordinator.maintenance.last_verification import last_verification
from odfpy.coordinator.maintenance.report import LinkedFiles, Severity, VerifyReport
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.repository.partial_objects import LARGE

BIG = bytes(range(256)) * (LARGE // 256) + b"and more"
DATA = {1: b"first", 2: b"second", 3: BIG}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("linked")
    made = files_workspace(folder / "origin")
    add(made, (1, DATA[1]), (2, DATA[2]))
    add(made, (3, DATA[3]), day=2, what="trace")
    list(made.push(["files"], to=str(folder / "place" / "files")))
    return folder


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    copy = Workspace.init(tmp_path / "copy")
    assert [result.error for result in copy.pull([str(prepared / "place" / "files")])] == [None]
    return copy


def report_on(workspace: Workspace, **options: bool) -> VerifyReport:
    (report,) = workspace.verify(["files"], **options)
    return report


def file_of(workspace: Workspace, key: int) -> Path:
    path = workspace.storage.get("files").layout.data.local_path(name_of(DATA[key]))
    assert path is not None
    return path


def test_all_is_well(workspace: Workspace) -> None:
    report = report_on(workspace)
    assert (report.ok, report.findings) == (True, ())
    assert report.linked == LinkedFiles(3, sum(map(len, DATA.values())))
    kept = last_verification(workspace.storage.get("files"))
    assert kept is not None
    assert kept.linked is not None
    assert (kept.linked.here, kept.linked.elsewhere) == (3, 0)


@pytest.mark.parametrize("how", ["other bytes", "shorter", "gone"])
@pytest.mark.parametrize("key", [1, 3])
def test_damage_is_found_and_mended(workspace: Workspace, how: str, key: int) -> None:
    file = file_of(workspace, key)
    match how:
        case "other bytes":
            file.write_bytes(b"!" + DATA[key][1:])
        case "shorter":
            file.write_bytes(DATA[key][:-1])
        case _:
            file.unlink()
    report = report_on(workspace)
    (finding,) = report.findings
    assert (finding.severity, finding.check, finding.file) == (Severity.ERROR, "file", str(file))
    assert report.linked is not None
    assert report.linked.here == 2
    mended = report_on(workspace, repair=True)
    assert (mended.ok, mended.repaired) == (True, (str(file),))
    assert file.read_bytes() == DATA[key]


def test_a_disk_that_cannot_read_a_file_is_told_and_hides_no_other_damage(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, rotten = file_of(workspace, 1), file_of(workspace, 2)
    rotten.write_bytes(b"!" + DATA[2][1:])
    open_it = LocalObjectStore.open

    def failing(store: LocalObjectStore, name: Multihash) -> BinaryIO:
        if name == name_of(DATA[1]):
            raise OdfError(f"Cannot read {bad}: Input/output error")
        return open_it(store, name)

    monkeypatch.setattr(LocalObjectStore, "open", failing)
    report = report_on(workspace)
    assert not report.ok
    assert {finding.file for finding in report.findings} == {str(bad), str(rotten)}
    assert any("Input/output error" in finding.message for finding in report.findings)
    assert report.linked is not None
    assert report.linked.here == 1


def test_a_missing_file_of_a_partial_copy_is_elsewhere(workspace: Workspace) -> None:
    assert [one.error for one in workspace.pull(["files"], files="what=trace")] == [None]
    file_of(workspace, 1).unlink()
    report = report_on(workspace)
    assert report.ok
    assert report.linked == LinkedFiles(2, len(DATA[2]) + len(DATA[3]), elsewhere=1)
    file_of(workspace, 3).unlink()
    report = report_on(workspace)
    assert not report.ok, "the copy should have traces"
    assert report.linked == LinkedFiles(1, len(DATA[2]), elsewhere=1)
    assert report_on(workspace, repair=True).linked == LinkedFiles(2, len(DATA[2]) + len(DATA[3]), elsewhere=1)


def test_what_was_let_go_is_counted_and_no_error(tmp_path: Path) -> None:
    made = files_workspace(tmp_path / "own")
    add(made, (1, b"kept"), (2, b"let go"))
    add(made, (2, b"let go"), day=3, removed="2024-03-01T00:00:00Z")
    made.storage.get("files").layout.data.delete(name_of(b"let go"))
    report = report_on(made)
    assert (report.findings, report.linked) == ((), LinkedFiles(1, 4, removed=1))


def test_a_few_of_many_missing_files_are_named(tmp_path: Path) -> None:
    made = files_workspace(tmp_path / "own")
    add(made, *((number, b"%d" % number) for number in range(30)))
    for name in objects_in(made):
        made.storage.get("files").layout.data.delete(name)
    report = report_on(made)
    assert len(report.findings) == 21
    assert report.findings[-1].message == "Missing files: 10 more"
    assert "copy.files" in (report.findings[0].hint or "")


def test_a_dataset_without_links_has_no_count(tmp_path: Path) -> None:
    made = files_workspace(tmp_path / "own", extra="{a: 1}")
    add(made, (1, b"no link"))
    assert report_on(made).linked is None


def test_people_and_programs_are_told(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-w", str(workspace.root), "verify", "files"]) == 0
    assert "3 linked files" in capsys.readouterr().out
    assert run(["-w", str(workspace.root), "verify", "files", "-o", "json"]) == 0
    (tree,) = json.loads(capsys.readouterr().out)
    assert tree["linkedFiles"] == {
        "here": 3,
        "hereBytes": sum(map(len, DATA.values())),
        "elsewhere": 0,
        "removed": 0,
    }
    assert run(["-w", str(workspace.root), "list", "--wide"]) == 0
    assert "Linked files" in capsys.readouterr().out
    assert run(["-w", str(workspace.root), "list", "-o", "json"]) == 0
    (tree,) = json.loads(capsys.readouterr().out)
    assert (tree["linkedFiles"], tree["linkedBytes"]) == (3, sum(map(len, DATA.values())))
