"""`odf archive push`, and what is done to files that are there: words for people, and names of any bytes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odfpy.archive.local import init_archive
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

WORDS = ("--what", "nginx", "--where", "web1")
LONG_AGO = ("--start", "2020-03-01")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with an archive, which is the current folder, and some files."""
    init_archive(Workspace.init(tmp_path / "w"), "logs")
    monkeypatch.chdir(tmp_path / "w")
    for name in ("a.log", "b.log"):
        Path(name).write_text(name)
    return tmp_path / "w"


def test_a_name_that_is_not_utf_8_wants_another_path(place: Path) -> None:
    """In a process of its own: the lock has the command line in it, which is not text."""
    name = b"bad\xff.log"
    (place / "a.log").rename(place / name.decode("utf-8", "surrogateescape"))
    command = [sys.executable, "-m", "odfpy", "archive", "push", name, *WORDS, *LONG_AGO]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"is not UTF-8; give another one with --path (E840)" in done.stderr
    done = subprocess.run([*command, "--path", "/var/log/bad.log"], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_file_that_is_not_there_keeps_no_other_from_its_place(odf: Odf) -> None:
    done = odf("archive", "push", "nothing.log", "a.log", *WORDS, "--start", "mtime", "--end", "mtime")
    assert done.code == 1
    assert "error: No such file: nothing.log (E110)" in done.err
    assert "1 of 2 files is in the archive, 1 refused" in done.err
    assert done.out.startswith("Pushed a.log to odf://logs/")


def test_a_year_is_not_taken_for_seconds(odf: Odf) -> None:
    done = odf("archive", "push", "a.log", *WORDS, "--start", "2024")
    assert done.code == 2
    assert done.says.startswith("error: Not a time: '2024' (E101)")


def test_one_file_is_one_file(odf: Odf) -> None:
    for name in ("a.log", "b.log"):
        odf("archive", "push", name, *WORDS, *LONG_AGO)
    first, second = odf("archive", "list", "nginx", *LONG_AGO).out.split()
    assert "Corrected 1 of 1 file\n" in odf("archive", "correct", first, "--where", "web2", "--why", "wrong").err
    assert "Withdrew 2 of 2 files\n" in odf("archive", "withdraw", first, second, "--why", "wrong").err
    odf("archive", "push", "a.log", *WORDS, *LONG_AGO, "--work-id", "again")
    odf("archive", "retention", "set", "1d", "--why", "policy")
    assert "1 file would expire\n" in odf("archive", "expire", "--dry-run").err
    assert "1 file has expired\n" in odf("archive", "expire").err
    assert "0 files have expired\n" in odf("archive", "expire").err
