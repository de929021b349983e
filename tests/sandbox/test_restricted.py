"""What remains where the system forbids namespaces: Landlock, and clear words."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.processes.sandbox_probe import SandboxProbe

from odfpy.sandbox.check import describe_confinement
from odfpy.sandbox.landlock import landlock_version
from odfpy.sandbox.view import View, is_in, topmost, view_of_python


def test_landlock_alone_confines_files(tmp_path: Path):
    own, other = tmp_path / "own", tmp_path / "other"
    for folder in (own, other):
        folder.mkdir()
        (folder / "file").write_text("text")
    probe = SandboxProbe(own, way="restricted")
    try:
        if not landlock_version():
            assert probe.trouble == "this kernel has no Landlock"
            return
        assert probe.tells(f"open({str(own / 'file')!r}).read()") == "text"
        assert probe.tells(f"open({str(own / 'new')!r}, 'w').write('x')") == 1
        for path in (other / "file", Path("/etc/passwd")):
            assert probe.tells(f"open({str(path)!r}).read()").startswith("PermissionError")
        assert probe.tells(f"open({str(other / 'new')!r}, 'w')").startswith("PermissionError")
        assert probe.tells(f"os.unlink({str(other / 'file')!r})").startswith("PermissionError")
    finally:
        probe.close()


def test_a_sandbox_that_cannot_be_built_says_why_and_runs_nothing(tmp_path: Path):
    missing = tmp_path / "missing"
    probe = SandboxProbe(missing)
    assert probe.trouble
    probe.owner.communicate()
    assert probe.owner.returncode == 0


@pytest.mark.parametrize(
    ("path", "folder", "expected"), [("/a", "/a", True), ("/a/b", "/a", True), ("/ab", "/a", False), ("/a", "/", True)]
)
def test_being_in_a_folder(path: str, folder: str, expected: bool):
    assert is_in(path, folder) is expected


def test_of_nested_paths_the_topmost_remain():
    assert topmost(["/b/c", "/a/b", "/a", "/ab", "/a"]) == ("/a", "/ab", "/b/c")


def test_what_is_hidden_is_not_shown_but_for_the_folder_of_ones_own():
    view = View(("/usr",), "/usr/ws/.odf/run/own", hidden="/usr/ws/.odf")
    shown = {path: view.shows(path) for path in ("/usr/bin", "/usr/ws/.odf/keys", "/usr/ws/.odf/run/own/x", "/home")}
    assert list(shown.values()) == [True, False, True, False]


def test_python_can_be_seen_but_not_the_folder_that_somebody_works_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    view = view_of_python(folder=tmp_path / "own")
    assert view.shows(pytest.__file__)
    assert not view.shows(str(tmp_path / "module.py"))
    assert not view.shows("/etc/passwd")


def test_what_this_system_allows_is_said_in_words(monkeypatch: pytest.MonkeyPatch):
    assert describe_confinement().startswith(("whole (namespaces", "files only (Landlock), since ", "none, since "))
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    assert "since [Errno 2] No such file or directory: '/nowhere/python'" in describe_confinement()
