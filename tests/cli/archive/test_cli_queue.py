"""`odf archive enqueue`, `uploader`, `queue`, `translate` and `report`."""

from __future__ import annotations

import gzip
import json
import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from odfpy.archive.local import LocalArchive, init_archive
from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

WORDS = ("--what", "nginx", "--where", "web1", "--start", "2024-03-01")
SOON = ("--timeout", "0.1", "--batch-seconds", "0.1")


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A workspace with an archive, which is the current folder, and some files."""
    init_archive(Workspace.init(tmp_path / "w"), "logs")
    monkeypatch.chdir(tmp_path / "w")
    monkeypatch.setenv("ODF_ARCHIVE_QUEUE_FREE", "0")
    for name in ("a.log", "b.log"):
        Path(name).write_text(name)
    return tmp_path / "w"


def archived() -> list[tuple[str, bytes]]:
    workspace = Workspace.open(".")
    archive = LocalArchive(workspace, workspace.storage.get("logs"))
    found = []
    for record in archive.list("nginx", start=0, end="now"):
        with archive.open(record) as stream:
            found.append((record.path, stream.read()))
    return found


def test_what_is_enqueued_is_brought_into_the_archive(odf: Odf, place: Path) -> None:
    done = odf("archive", "enqueue", "a.log", "b.log", *WORDS, "--work-id", "job-1")
    assert done.code == 0
    assert done.out.startswith("Enqueued a.log as ")
    assert "2 files wait" in odf("archive", "queue").out
    done = odf("archive", "uploader", *SOON)
    assert done.code == 0
    assert {line.split(" to ")[0] for line in done.out.splitlines()} == {
        f"Pushed {place / name}" for name in ("a.log", "b.log")
    }
    assert "2 files pushed, 0 already archived, 0 refused" in done.err
    assert sorted(archived()) == [(str(place / name), name.encode()) for name in ("a.log", "b.log")]
    assert odf("archive", "queue", "-o", "json").json["files"] == 0


def test_content_is_packed_if_wanted(odf: Odf) -> None:
    odf("archive", "enqueue", "a.log", *WORDS, "--compress")
    odf("archive", "uploader", *SOON)
    ((_, data),) = archived()
    assert gzip.decompress(data) == b"a.log"


def test_times_are_those_of_the_file_or_now(odf: Odf) -> None:
    os.utime("a.log", (1_700_000_000, 1_700_000_000))
    assert odf("archive", "enqueue", "a.log", *WORDS[:4], "--start", "mtime", "--end", "now").code == 0
    done = odf("archive", "uploader", *SOON, "-o", "json")
    record = json.loads(done.out)["record"]
    assert record["start"] == 1_700_000_000_000
    assert record["end"] > record["start"]


def test_all_reasons_are_told_and_other_files_are_enqueued(odf: Odf) -> None:
    done = odf("archive", "enqueue", "a.log", "nowhere", *WORDS)
    assert (done.code, done.out.count("Enqueued")) == (1, 1)
    done = odf("archive", "enqueue", "a.log", "--what", "A", "--where", "b c", "--start", "now", "--work-id", "null")
    assert done.code == 2
    assert all(name in done.says for name in ("what 'A'", "where 'b c'", "work_id 'null'"))


@pytest.mark.parametrize("missing", ["--what", "--where", "--start"])
def test_what_is_needed_is_asked_for(odf: Odf, missing: str) -> None:
    at = WORDS.index(missing)
    done = odf("archive", "enqueue", "a.log", *WORDS[:at], *WORDS[at + 2 :])
    assert done.code == 2
    assert missing in done.says


def test_the_place_may_be_a_setting(odf: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_ARCHIVE_WHERE", "web9")
    odf("archive", "enqueue", "a.log", *WORDS[:2], *WORDS[4:])
    done = odf("archive", "uploader", *SOON, "-o", "ndjson")
    assert json.loads(done.out)["record"]["where"] == "web9"


def test_a_queue_needs_no_workspace(odf: Odf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.log").write_text("c")
    assert odf("archive", "enqueue", "c.log", *WORDS, "--queue", "queue").code == 0
    monkeypatch.setenv("ODF_ARCHIVE_QUEUE", str(tmp_path / "queue"))
    assert odf("archive", "enqueue", "c.log", *WORDS[:4], "--start", "now").code == 0
    assert "2 files wait" in odf("archive", "queue").out
    monkeypatch.delenv("ODF_ARCHIVE_QUEUE")
    assert "no workspace" in odf("archive", "enqueue", "c.log", *WORDS).says.lower()
    monkeypatch.chdir(tmp_path / "w")
    assert odf("archive", "uploader", *SOON, "--queue", str(tmp_path / "queue")).out.count("Pushed") == 2


def test_a_full_queue_is_told(odf: Odf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODF_ARCHIVE_QUEUE_FILES", "1")
    done = odf("archive", "enqueue", "a.log", "b.log", *WORDS)
    assert (done.code, done.out.count("Enqueued")) == (1, 1)
    assert "archive.queueFiles" in done.says


def test_what_is_refused_is_told_and_kept(odf: Odf, place: Path) -> None:
    odf("archive", "enqueue", "a.log", *WORDS)
    (bundle,) = (place / ".odf" / "archive" / "queue").glob("*.tar")
    bundle.write_bytes(bundle.read_bytes().replace(b"a.log", b"A.LOG", 1))
    done = odf("archive", "uploader", *SOON)
    assert (done.code, done.out) == (0, "")
    assert "was refused" in done.err
    shown = odf("archive", "queue").out
    assert "0 files wait" in shown
    assert "1 refused" in shown
    assert f"refused: {bundle.name}: " in shown
    (one,) = odf("archive", "queue", "-o", "json").json["refused"]
    assert one["code"] == "E845"


def test_pushes_are_reported(odf: Odf) -> None:
    odf("archive", "push", "a.log", *WORDS)
    odf("archive", "push", "b.log", "--what", "A", *WORDS[2:])
    odf("archive", "enqueue", "a.log", "b.log", *WORDS)
    odf("archive", "uploader", *SOON)
    rows = odf("archive", "report", "-o", "json").json
    assert [(row["by"], row["status"], row["files"], row["known"]) for row in rows] == [
        ("uploader", "success", 2, 1),
        ("command", "error", 0, 0),
        ("command", "success", 1, 0),
    ]
    assert len(odf("archive", "report", "--status", "error", "-o", "json").json) == 1
    assert len(odf("archive", "report", "--since", "1h", "-n", "2", "-o", "json").json) == 2
    assert odf("archive", "report", "--since", "2999-01-01", "-o", "json").json == []
    assert "No reports" in odf("archive", "report", "--since", "2999-01-01").err
    assert "uploader" in odf("archive", "report").out
    assert odf("archive", "report", "--status", "fine").code == 2


def test_a_push_that_cannot_be_recorded_is_one_all_the_same(odf: Odf, place: Path) -> None:
    (place / ".odf" / "archive").write_bytes(b"")
    done = odf("archive", "push", "a.log", *WORDS)
    assert (done.code, done.out.count("Pushed")) == (0, 1)
    assert "warning: the report of the push was not recorded" in done.err


@pytest.mark.parametrize(
    "options",
    [
        ("--workers", "0"),
        ("--workers", "many"),
        ("--timeout", "-1"),
        ("--timeout", "soon"),
        ("--timeout", "nan"),
        ("--batch-files", "0"),
        ("--batch-bytes", "x"),
        ("--batch-seconds", "x"),
    ],
)
def test_nonsense_is_refused(odf: Odf, options: tuple[str, ...]) -> None:
    done = odf("archive", "uploader", *options)
    assert done.code == 2
    assert options[0] in done.says


def test_an_archive_that_is_away_is_told_and_files_stay(odf: Odf) -> None:
    odf("archive", "enqueue", "a.log", *WORDS)
    done = odf("archive", "uploader", *SOON, "--archive", "http://127.0.0.1:1/logs")
    assert done.code == 1
    assert "warning: " in done.err
    assert "1 file waits" in odf("archive", "queue").out


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_a_signal_ends_it(odf: Odf, number: int, code: int) -> None:
    odf("archive", "enqueue", "a.log", *WORDS)
    before = signal.getsignal(number)
    done: list[Any] = []

    def end() -> None:
        if signal.getsignal(number) is before:  # it does not listen yet
            again()
        else:
            os.kill(os.getpid(), number)

    def again() -> None:
        timer = threading.Timer(0.05, end)
        done.append(timer)
        timer.start()

    again()
    ended = odf("archive", "uploader", "--batch-seconds", "0")
    for timer in done:
        timer.join()
    assert ended.code == code
    assert "refused" in ended.err
    assert signal.getsignal(number) is before


def test_a_pattern_can_be_tried(odf: Odf) -> None:
    done = odf("archive", "translate", r".*job-(?P<id>[0-9]+)\.log$~job{id}", "/var/log/job-12.log")
    assert (done.code, done.out) == (0, "job12\n")
    assert odf("archive", "translate", r".*job-(?P<id>[0-9]+)~{id}", "job-12").code == 2
    assert "does not match" in odf("archive", "translate", r"/x(?P<id>[0-9]+)~{id}", "/y").says
