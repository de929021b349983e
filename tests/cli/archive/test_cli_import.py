"""`odf archive import`: of a folder, and of a copy of a bucket."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odfpy.archive.local import init_archive
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

RULES = ("--what", r".*/(?P<n>[a-z]+)[^/]*\.log$~{n}", "--where", "web1", "--start", "mtime")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with an archive, which is the current folder, and a folder of files."""
    init_archive(Workspace.init(tmp_path / "w"), "logs")
    monkeypatch.chdir(tmp_path / "w")
    for name in ("nginx.log", "deeper/syslog-1.log", "notes.txt"):
        (tmp_path / "files" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "files" / name).write_text(name)
    return tmp_path / "files"


def test_a_folder_is_imported_and_what_does_not_match_is_told(odf: Odf, place: Path) -> None:
    done = odf("archive", "import", str(place), *RULES)
    assert done.code == 0
    assert f"skipped: {place / 'notes.txt'} does not match" in done.out
    assert "2 imported, 0 known, 1 skipped, 0 refused (28 B new)" in done.out
    assert odf("archive", "list", "nginx,syslog", "--start", "2000-01-01").out.count("odf://logs/") == 2
    assert "0 imported, 2 known" in odf("archive", "import", str(place), *RULES).out


def test_a_dry_run_says_what_would_be(odf: Odf, place: Path) -> None:
    assert "Would be: 2 imported" in odf("archive", "import", str(place), *RULES, "--dry-run").out
    assert odf("archive", "list", "nginx,syslog", "--start", "2000-01-01").out == ""


def test_programs_get_numbers_and_reasons(odf: Odf, place: Path) -> None:
    tree = odf("archive", "import", str(place), *RULES, "-o", "json").json
    assert (tree["imported"], tree["skipped"], tree["refused"], tree["dryRun"]) == (2, 1, 0, False)
    (one,) = tree["files"]
    assert (Path(one["name"]).name, one["outcome"], one["code"]) == ("notes.txt", "skipped", "E861")


def test_a_refused_file_is_an_exit_code(odf: Odf, place: Path) -> None:
    (place / "x\ny.log").write_text("x")
    done = odf("archive", "import", str(place), "--what", r"(?s).*/(?P<n>x.*)\.log$~{n}", *RULES[2:])
    assert done.code == 1
    assert "1 refused" in done.out


def test_imports_are_reported(odf: Odf, place: Path) -> None:
    odf("archive", "import", str(place), *RULES, "--batch-files", "1")
    rows = odf("archive", "report", "-o", "json").json
    assert [(row["by"], row["files"]) for row in rows] == [("import", 1), ("import", 1)]


def test_a_copy_of_a_bucket_is_imported_by_its_records(odf: Odf, place: Path, tmp_path: Path) -> None:
    about = {
        "version": 0,
        "start": 1437375600000,
        "end": None,
        "path": "/var/log/nginx.log",
        "work_id": None,
        "where": "nebraska",
        "what": "nginx",
        "id": "91dd2525a5924c6c972e3d67fee8cda9",
        "hash": hashlib.blake2b(b"nginx.log", digest_size=16).hexdigest(),
    }
    records = [{"url": f"s3://lake/{name}", "metadata": about | {"id": name[:5]}} for name in ("nginx.log", "gone.log")]
    (tmp_path / "export").write_text("".join(json.dumps(one) + "\n" for one in records))
    done = odf("archive", "import", str(place), "--records", str(tmp_path / "export"))
    assert done.code == 1
    assert "refused: Missing object" in done.out
    assert "1 imported, 0 known, 0 skipped, 1 refused" in done.out
    assert odf("archive", "show", "nginx", "-o", "json").json[0]["path"] == "/var/log/nginx.log"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("{}",), "whose files have no metadata"),
        (("{}", "--what", "x", "--where", "y"), "--start is missing"),
        (("{}", "--what", "x", "--start", "now"), "--where is missing"),
        (("{}", "--what", "(~x", "--where", "y", "--start", "now"), "not a regular expression"),
        (("s3://lake", "--what", "x"), "are for folders"),
        (("{}", "--records", "x", "--what", "x"), "are for folders"),
        (("{}/nowhere", "--what", "x", "--where", "y", "--start", "now"), "No such folder"),
        (("{}/nowhere", "--records", "x"), "No such folder"),
        (("{}", "--records", "{}/nowhere"), "No such file"),
        (("s3+http://127.0.0.1:1/lake",), "cannot be reached"),
        (("s3://",), "Not a URL"),
        (("ftp://host/x",), "Not the address of a bucket"),
    ],
)
def test_nonsense_is_refused(
    odf: Odf, place: Path, arguments: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    done = odf("archive", "import", *(word.format(place) if "{}" in word else word for word in arguments))
    assert done.code in {1, 2}
    assert told in done.says
