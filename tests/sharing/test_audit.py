"""The audit log: each access is in the dataset once, also after a server was killed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.sharing.audit import AUDIT, DATASET, LEFT_OUT, AuditLog, accesses, ingest_records

_KILLED = """
import os, signal, sys, time
from odfpy.coordinator.workspace import Workspace
from odfpy.sharing.audit import AuditLog
log = AuditLog(Workspace.open(sys.argv[1]), 3600)
for number in range(5):
    log.record({"who": f"r{number}", "status": 200, "granted": True})
time.sleep(2)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace.init(tmp_path / "workspace")


def who(workspace: Workspace) -> list[str]:
    return sorted(one["who"] for one in accesses(workspace, num=1000))


def test_accesses_of_several_threads_are_there_once(workspace: Workspace) -> None:
    log = AuditLog(workspace, 3600)
    threads = [
        threading.Thread(target=lambda n=number: [log.record({"who": f"{n}-{k}"}) for k in range(20)])
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.stop()
    assert who(workspace) == sorted(f"{n}-{k}" for n in range(4) for k in range(20))
    assert not list((workspace.storage.odf / "audit").iterdir())


def test_who_looks_waits_for_what_another_thread_takes_in_just_now(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = AuditLog(workspace, 3600)
    log.record({"who": "first"})
    log.bring_in()
    ingest, is_under_way, go_on = Workspace.ingest, threading.Event(), threading.Event()

    def slow(*arguments: object, **more: object) -> Iterator[PullResult]:
        is_under_way.set()
        go_on.wait(60)
        return ingest(*arguments, **more)

    monkeypatch.setattr(Workspace, "ingest", slow)
    log.record({"who": "second"})
    other = threading.Thread(target=log.bring_in)
    other.start()
    assert is_under_way.wait(60)
    threading.Timer(0.3, go_on.set).start()
    log.bring_in()
    assert who(workspace) == ["first", "second"]
    other.join()
    log.stop()


def test_what_a_killed_server_has_left_is_taken_in_once(workspace: Workspace) -> None:
    killed = subprocess.run([sys.executable, "-c", _KILLED, workspace.root], check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = (workspace.storage.odf / "audit").iterdir()
    again = shutil.copy(left, left.with_name("again.ndjson"))
    kept = shutil.copy(left, workspace.root / "kept")
    with left.open("ab") as file:
        file.write(b'{"id": "cut of')
    assert ingest_records(workspace) == 2
    assert who(workspace) == [f"r{number}" for number in range(5)]
    assert ingest_records(workspace) == 0
    shutil.copy(kept, again)  # as if it was killed behind the commit
    assert ingest_records(workspace) == 1
    assert who(workspace) == [f"r{number}" for number in range(5)]


def test_the_next_server_takes_in_what_is_left(workspace: Workspace) -> None:
    subprocess.run([sys.executable, "-c", _KILLED, workspace.root], check=False)
    log = AuditLog(workspace, 3600)
    log.record({"who": "next"})
    log.stop()
    assert who(workspace) == ["next", *(f"r{number}" for number in range(5))]


def test_a_file_that_is_being_written_is_left_alone(workspace: Workspace) -> None:
    log = AuditLog(workspace, 3600)
    log.record({"who": "first"})
    for _ in range(100):
        if any((workspace.storage.odf / "audit").glob("*.ndjson")):
            break
        threading.Event().wait(0.1)
    assert ingest_records(workspace) == 0
    log.stop()
    assert who(workspace) == ["first"]


def test_two_calls_that_hold_other_files_do_not_disturb_each_other(workspace: Workspace) -> None:
    class TakenInMeanwhile:
        """The workspace for one who is between merging the files and the commit when another call begins."""

        storage, add = workspace.storage, workspace.add

        def ingest(self, name: str, files: list[Path]) -> Iterator[PullResult]:
            _left_behind(workspace, "second")
            assert ingest_records(workspace) == 1
            return workspace.ingest(name, files)

    _left_behind(workspace, "first")
    assert ingest_records(TakenInMeanwhile()) == 1  # type: ignore[arg-type]
    assert who(workspace) == ["first", "second"]
    assert not list((workspace.storage.odf / "audit").iterdir())


def _left_behind(workspace: Workspace, name: str) -> None:
    folder = workspace.storage.odf / "audit"
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.ndjson").write_bytes(AUDIT.line_of({"who": name}))


def test_long_and_odd_values(workspace: Workspace) -> None:
    log = AuditLog(workspace, 3600)
    log.record({"who": "x" * 100_000, "client": "\n\x00\ud800", "version": 2**62})
    log.stop()
    (one,) = accesses(workspace, num=10)
    assert (len(one["who"]), one["version"]) == (500, 2**62)
    assert workspace.storage.get(DATASET).state.num_records == 1


def test_strangers_cannot_fill_the_disk(workspace: Workspace) -> None:
    log = AuditLog(workspace, 3600)
    for _ in range(1000):
        log.record({"who": None, "status": 401, "granted": False})
    log.record({"who": "acme"})
    log.stop()
    found = list(accesses(workspace, num=10_000))
    assert [one["files"] for one in found if one["action"] == LEFT_OUT] == [900]
    assert (len(found), sum(one["who"] == "acme" for one in found)) == (102, 1)
