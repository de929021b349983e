"""Uploaders that are killed at any moment: each file is in the archive once, and none is lost."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.tally import tally

from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.pushing import NewFile
from odfpy.archive.queue.enqueue import enqueue
from odfpy.archive.queue.folder import QueueFolder
from odfpy.archive.queue.usage import QueueLimits
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens

FILES = 5

# Everything is imported once. Two uploaders at a time share the queue; the first is killed after some time.
PROGRAM = """
import os, select, signal, sys, time
import blake3, duckdb, pyarrow, pyarrow.compute, pyarrow.parquet
import odfpy.archive.index.search, odfpy.coordinator.ingest.row_ingest
from pathlib import Path
from odfpy.archive.local import LocalArchive
from odfpy.archive.queue.folder import QueueFolder
from odfpy.archive.queue.uploader import Uploader, UploadLimits
from odfpy.coordinator.workspace import Workspace

def opened(root):
    workspace = Workspace.open(root)
    workspace.storage.lock_patience = 60
    return LocalArchive(workspace, workspace.storage.get("logs"))

def upload(root, timeout):
    limits = UploadLimits(workers=2, files=3, gather=0.02, timeout=timeout, retry=0.05)
    Uploader(QueueFolder(Path(root) / "queue"), lambda: opened(root), limits).run()

for line in sys.stdin:
    root, seconds, together = line.rsplit(" ", 2)
    children = []
    for number in range(int(together)):
        child = os.fork()
        if not child:
            upload(root, 0.2 if float(seconds) > 100 else 3600)
            os._exit(0)
        children.append(child)
    if float(seconds) < 100:
        for child in children:
            select.select([], [], [], float(seconds) / len(children))
            os.kill(child, signal.SIGKILL)
    print(*[os.waitpid(child, 0)[1] for child in children], flush=True)
"""


@pytest.mark.parametrize("kills", [10, pytest.param(200, marks=pytest.mark.attack)])
def test_each_file_is_in_the_archive_exactly_once(tmp_path: Path, kills: int) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    init_archive(workspace, "logs")
    queue = QueueFolder(workspace.root / "queue", QueueLimits(free=0))
    moments = random.Random(7)
    killed = 0
    contents: dict[str, bytes] = {}
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def upload(seconds: float, together: int) -> list[int]:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{workspace.root} {seconds} {together}\n")
            process.stdin.flush()
            return [int(status) for status in process.stdout.readline().split()]

        while killed < kills:
            contents |= _enqueued(queue, tmp_path, len(contents))
            statuses = upload(moments.uniform(0.02, 1.0), 1 + killed % 2)
            assert set(statuses) == {signal.SIGKILL}
            killed += len(statuses)
            tally("uploader")
        assert upload(3600, 1) == [0]
    _require_all(workspace, queue, contents)


# A server and an uploader: each is killed after some time, and the next one goes on where it was. The port stays.
OVER_HTTP = """
import os, select, signal, sys
import blake3, duckdb, pyarrow, pyarrow.compute, pyarrow.parquet
import odfpy.archive.index.search, odfpy.coordinator.ingest.row_ingest
from pathlib import Path
from odfpy.archive.queue.folder import QueueFolder
from odfpy.archive.queue.uploader import Uploader, UploadLimits
from odfpy.archive.remote.archive import RemoteArchive
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.server import DatasetServer, listen
from odfpy.serving.settings import ServeSettings

root, token = sys.argv[1:]
listener = listen("127.0.0.1", 0)
url = f"http://127.0.0.1:{listener.getsockname()[1]}/logs"

def serve():
    DatasetServer([Workspace.open(root)], listener, settings=ServeSettings(grace=1)).run([listener])

def upload(timeout, files):
    limits = UploadLimits(workers=2, files=files, gather=0.02, timeout=timeout, retry=0.05, longest=0.2)
    Uploader(QueueFolder(Path(root) / "queue"), lambda: RemoteArchive(url, token), limits).run()

def child(work, *arguments):
    process = os.fork()
    if not process:
        work(*arguments)
        os._exit(0)
    return process

server = child(serve)
for line in sys.stdin:
    seconds, whom = line.split()
    uploader = child(upload, 2, 1000) if whom == "nobody" else child(upload, 3600, 3)
    killed = server if whom == "server" else uploader
    if whom != "nobody":
        select.select([], [], [], float(seconds))
        os.kill(killed, signal.SIGKILL)
    status = os.waitpid(killed, 0)[1]
    if whom == "server":
        server = child(serve)
        os.kill(uploader, signal.SIGKILL)
        os.waitpid(uploader, 0)
    print(status, flush=True)
os.kill(server, signal.SIGKILL)
"""


@pytest.mark.parametrize("kills", [2, pytest.param(200, marks=pytest.mark.attack)])
def test_each_file_is_on_the_server_exactly_once(tmp_path: Path, kills: int) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    init_archive(workspace, "logs")
    queue = QueueFolder(workspace.root / "queue", QueueLimits(free=0))
    token = Tokens(workspace.odf).new("writer", Scope.WRITE)
    moments = random.Random(11)
    contents: dict[str, bytes] = {}
    with subprocess.Popen(
        [sys.executable, "-c", OVER_HTTP, str(workspace.root), token],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def upload(seconds: float, whom: str) -> int:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(f"{seconds} {whom}\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        for killed in range(kills):
            contents |= _enqueued(queue, tmp_path, len(contents))
            whom = "server" if killed % 2 else "uploader"
            assert upload(moments.uniform(0.05, 1.5), whom) == signal.SIGKILL
            tally(f"{whom} of an archive")
        assert upload(0, "nobody") == 0
        process.stdin.close()
    _require_all(workspace, queue, contents)


def _enqueued(queue: QueueFolder, folder: Path, first: int) -> dict[str, bytes]:
    """Enqueue some more files; gives their contents by id."""
    found = {}
    for number in range(first, first + FILES):
        data = b"%d" % number
        (folder / "file").write_bytes(data)
        enqueued = enqueue(queue, NewFile(file=folder / "file", what="log", where="web1", start=number))
        found[str(enqueued.metadata.id)] = data
    return found


def _require_all(workspace: Workspace, queue: QueueFolder, contents: dict[str, bytes]) -> None:
    """Check that each file is in the archive once, with its bytes, and that nothing else is left anywhere."""
    opened = Workspace.open(workspace.root)
    archive = LocalArchive(opened, opened.storage.get("logs"))
    records = list(archive.list("log", start=0, end=10**12))
    assert len(records) == len(contents)
    assert {record.id: _content(archive, record) for record in records} == contents
    assert all(report.ok for report in opened.verify(all=True))
    assert {path.name for path in queue.path.iterdir()} == {".work"}
    assert list((queue.path / ".work").iterdir()) == []


def _content(archive: LocalArchive, record: object) -> bytes:
    with archive.open(record) as stream:  # type: ignore[arg-type]
        return stream.read()
