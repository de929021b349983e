"""An archive on a server, from Python and by commands: as one in a workspace, also where connections break and it ends."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from support.archive.breaking import BreakingProxy
from support.archive.served import YEAR_2010, Served, packed, push, push_many
from support.servers.serving import PATIENCE, serving, wait_until

from odfpy.archive import Archive, NewFile, PushOutcome, open_archive
from odfpy.archive.errors import (
    FileElsewhere,
    FileRemoved,
    IdTaken,
    InvalidCursor,
    NoSuchFile,
    NotAFile,
    NotAnArchive,
    RecordRefused,
    WrongContent,
)
from odfpy.archive.files import Content
from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.question import Question
from odfpy.archive.remote.sending import Sender
from odfpy.archive.remote.server import ArchiveServer
from odfpy.chain.stores.object_store import ObjectTooLarge
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.errors import DatasetNotFound, NotFound, TransferError, UsageError
from odfpy.repository.credentials import Credentials, server_of
from odfpy.repository.peer_errors import AccessRefused
from odfpy.serving.archive.uploads import LIFETIME, Uploads
from odfpy.serving.callers.tokens import Scope, Tokens

REPOSITORY = Path(__file__).resolve().parents[3]
LARGE = 12 << 20
Make = Callable[[bytes], Path]


@pytest.fixture
def remote(served: Served) -> Archive:
    return open_archive(served.url, token=served.writer.token)


# --- The same verbs ---


def test_what_is_pushed_is_found_and_fetched(remote: Archive, content: Make, tmp_path: Path) -> None:
    small, large, empty = content(b"small"), content(os.urandom(LARGE)), content(b"")
    pushed = remote.push([small, large, empty], what="log", where="web1", start="2024-03-01", end="2024-03-02")
    assert [result.outcome for result in pushed] == [PushOutcome.PUSHED] * 3
    found = list(remote.list("log", start="2024-03-01", end="2024-03-02"))
    assert sorted(record.path for record in found) == sorted(map(str, (small, large, empty)))
    for result, file in zip(pushed, (small, large, empty), strict=True):
        assert result.record is not None
        assert result.url == remote.url(result.record)
        assert result.record.hash == hashlib.blake2b(file.read_bytes(), digest_size=16).hexdigest()
        assert remote.get(result.record.id) == result.record
        fetched = remote.fetch(result.url, folder=tmp_path / "out")
        assert fetched.read_bytes() == file.read_bytes()
        with remote.open(result.record) as stream:
            assert stream.read() == file.read_bytes()
    again = remote.push([small, large, empty], what="log", where="web1", start="2024-03-01", end="2024-03-02")
    assert [result.outcome for result in again] == [PushOutcome.KNOWN] * 3


def test_it_answers_as_the_archive_in_the_workspace_does(served: Served, remote: Archive, tmp_path: Path) -> None:
    now = Timestamp.now().millis
    push_many(
        served.archive, tmp_path / "f", [{"start": n, "work_id": "job", "where": f"w{n % 3}"} for n in range(230)]
    )
    push(served.archive, tmp_path / "f", what="new", start=now)
    local: Archive = served.archive
    for question in (
        Question(what=("foo",), start=0),
        Question(what=("foo", "new"), end=now),
        Question(what=("foo",), where=("w1", "w2"), start=5, end=150),
        Question(what=("foo",), work_id="job"),
        Question(what=("foo",), work_id="other"),
    ):
        assert list(remote.answers(question)) == list(local.answers(question))
        assert remote.page(question, size=7).records == local.page(question, size=7).records
    assert remote.latest("new", "here") == local.latest("new", "here")
    assert remote.latest("new", "here", lookback=0) == local.latest("new", "here")


def test_a_stream_begins_at_any_byte(served: Served, remote: Archive, tmp_path: Path) -> None:
    data = os.urandom(100_000)
    record = push(served.archive, tmp_path / "file", data)
    for offset in (0, 1, 99_999, 100_000, 200_000):
        with remote.open(record, offset=offset) as stream:
            assert b"".join(iter(lambda: stream.read(1 << 16), b"")) == data[offset:]


def test_packed_files_come_as_they_were_archived(served: Served, remote: Archive, tmp_path: Path) -> None:
    record = push(served.archive, tmp_path / "file", packed(b"text"), path="/x.log.gz")
    with remote.open(record) as stream:
        assert stream.read() == packed(b"text")


def test_files_are_refused_one_by_one(remote: Archive, content: Make, tmp_path: Path) -> None:
    good, other = content(b"good"), content(b"other")
    new = NewFile(file=good, what="log", where="web1", start=YEAR_2010, id="mine")
    results = remote.push_all(
        [
            new,
            replace(new, file=other),
            replace(new, what="Bad", where="no no"),
            replace(new, file=tmp_path / "missing", id=None),
            replace(new, file=tmp_path, id=None),
            replace(new, hash="0" * 32, id=None),
            replace(new, what=".*/(?P<name>[a-z]+)-[0-9]+.log$~{name}", id=None),
        ]
    )
    kinds = [None if result.error is None else type(result.error) for result in results]
    assert kinds == [None, IdTaken, RecordRefused, NotFound, NotAFile, WrongContent, None]
    refused = results[2].error
    assert isinstance(refused, RecordRefused)
    assert len(refused.reasons) == 2
    assert results[6].record is not None
    assert results[6].record.what == "file"


def test_errors_are_those_of_an_archive_in_a_workspace(
    served: Served, remote: Archive, content: Make, tmp_path: Path
) -> None:
    question = Question(what=("foo",), work_id="x")
    gone, elsewhere = (push(served.archive, tmp_path / "file", data, path=f"/{data!r}") for data in (b"gone", b"other"))
    served.archive.withdraw([gone.id], who="alice", why="wrong")
    for record in (gone, elsewhere):
        served.archive.dataset.layout.data.delete(record.object)
    for kind, act in (
        (NoSuchFile, lambda: remote.get("none")),
        (NoSuchFile, lambda: remote.get("../../x")),
        (NoSuchFile, lambda: remote.latest("a/b", "c?d")),
        (InvalidCursor, lambda: remote.page(question, "nonsense")),
        (FileRemoved, lambda: remote.open(remote.get(gone.id))),
        (FileElsewhere, lambda: remote.open(elsewhere)),
        (AccessRefused, lambda: open_archive(served.url).get("x")),
        (
            AccessRefused,
            lambda: open_archive(served.url, token=served.reader.token).push([content(b"")], what="a", where="b"),
        ),
        (DatasetNotFound, lambda: open_archive(f"{served.server.url}/none", token=served.writer.token).get("x")),
        (UsageError, lambda: open_archive("http://")),
        (TransferError, lambda: open_archive(f"{served.server.url}/docs").get("x")),
    ):
        with pytest.raises(kind):
            act()


def test_a_dataset_that_is_no_archive(served: Served) -> None:
    from support.servers.serving import put

    put(served.workspace, "com.example.rates", 1)
    with pytest.raises(NotAnArchive):
        open_archive(f"{served.server.url}/com.example.rates", token=served.writer.token).get("x")


@pytest.mark.parametrize(
    "told", [{}, [], "refused", {"outcome": "refused", "error": "no"}, {"outcome": "pushed", "record": "x"}]
)
def test_what_no_archive_says_is_an_error_of_the_server(told: object, monkeypatch: pytest.MonkeyPatch) -> None:
    file = REPOSITORY / "README.md"
    monkeypatch.setattr(Sender, "add", lambda *_: None)
    monkeypatch.setattr(ArchiveServer, "ask_with", lambda *_: {"results": [told]})
    with pytest.raises(TransferError, match="not an answer of an archive"):
        open_archive("http://127.0.0.1:1/logs").push([file], what="log", where="web1")


def test_a_page_that_leads_to_itself_is_an_error_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def ask(_: object, path: str, parameters: object) -> object:
        asked.append(parameters)
        assert len(asked) < 10, "it is asked without end"
        return {"records": [], "next": f"http://127.0.0.1:1/logs{path}?cursor=same"}

    monkeypatch.setattr(ArchiveServer, "ask", ask)
    with pytest.raises(TransferError, match="not an answer of an archive"):
        list(open_archive("http://127.0.0.1:1/logs").list("log", start="2024-03-01"))
    assert len(asked) == 2


@pytest.mark.parametrize("limit", ["_COMMIT_INTERVAL", "_LARGE_FILE"])
def test_a_push_of_several_days_loses_nothing_that_was_sent_before(
    limit: str, served: Served, remote: Archive, content: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = Sender.add
    folder = served.archive.dataset.cache / "uploads"

    def add_after_half_a_day(sender: Sender, file: Content, data: bytes | None) -> None:
        for upload in folder.glob("*"):
            os.utime(upload, (0, upload.stat().st_mtime - 0.6 * LIFETIME))
        Uploads(folder, 1 << 30).sweep()
        add(sender, file, data)

    monkeypatch.setattr(Sender, "add", add_after_half_a_day)
    monkeypatch.setattr(f"odfpy.archive.remote.archive.{limit}", 0)
    pushed = remote.push([content(os.urandom(2 << 20)) for _ in range(4)], what="log", where="web1")
    assert [result.outcome for result in pushed] == [PushOutcome.PUSHED] * 4


def test_a_file_that_is_too_large_keeps_no_other_from_its_place(tmp_path: Path, content: Make) -> None:
    workspace = Workspace.init(tmp_path / "workspace")
    init_archive(workspace, "logs")
    token = Tokens(workspace.odf).new("writer", Scope.WRITE)
    with serving(workspace, max_object=2 << 20) as server:
        archive = open_archive(f"{server.url}/logs", token=token)
        large, small = archive.push([content(bytes(3 << 20)), content(b"x")], what="log", where="web1")
    assert isinstance(large.error, ObjectTooLarge)
    assert small.outcome is PushOutcome.PUSHED


def test_the_token_of_odf_login_is_shown(served: Served, tmp_path: Path) -> None:
    Credentials().save(server_of(served.url), served.writer.token or "")
    record = push(served.archive, tmp_path / "file")
    assert open_archive(served.url).get(record.id) == record
    assert open_archive(served.server.url).get(record.id) == record


def test_other_bytes_than_were_archived_are_found_out(served: Served, remote: Archive, tmp_path: Path) -> None:
    record = push(served.archive, tmp_path / "file", b"the right bytes")
    lie = replace(record, object=push(served.archive, tmp_path / "file", b"some other stuff", path="/o").object)
    with remote.open(lie) as stream, pytest.raises(WrongContent):
        stream.read()


# --- Connections that break, servers that end ---


def test_a_download_goes_on_where_it_broke_off(served: Served, tmp_path: Path) -> None:
    data = os.urandom(LARGE)
    record = push(served.archive, tmp_path / "file", data)
    with closing(BreakingProxy(served.server.url, down=5 << 20, times=2)) as proxy:
        archive = open_archive(f"{proxy.url}/logs", token=served.reader.token)
        with archive.open(record) as stream:
            assert stream.read() == data
        assert proxy.broken == 2
        assert proxy.down < 2 * LARGE


def test_an_upload_goes_on_where_it_broke_off(served: Served, content: Make) -> None:
    data = os.urandom(LARGE)
    with closing(BreakingProxy(served.server.url, up=5 << 20, times=2)) as proxy:
        archive = open_archive(f"{proxy.url}/logs", token=served.writer.token)
        (result,) = archive.push([content(data)], what="log", where="web1")
        assert proxy.broken == 2
        assert proxy.up < 2 * LARGE
    assert result.record is not None
    with served.archive.open(result.record) as stream:
        assert stream.read() == data


@contextmanager
def odf_serve(workspace: Workspace, port: int = 0) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, "-m", "odfpy", "-w", str(workspace.root), "serve", "--port", str(port)]
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout
        try:
            yield process.stdout.readline().split()[-1], process
        finally:
            process.kill()


def test_a_server_that_is_killed_and_comes_back_has_each_file_once(tmp_path: Path, content: Make) -> None:
    """In the middle of an upload, and again while records are written; the client goes on."""
    workspace = Workspace.init(tmp_path / "workspace")
    local = init_archive(workspace, "logs")
    token = Tokens(workspace.odf).new("writer", Scope.WRITE)
    large, files = content(os.urandom(4 * LARGE)), [content(b"%d" % number * 1000) for number in range(100)]
    results: list[object] = []
    uploads = local.dataset.cache / "uploads"

    def send(url: str) -> None:
        archive = open_archive(f"{url}/logs", token=token)
        results.extend(archive.push([large, *files], what="log", where="web1", start="2024-03-01"))

    def kill_when(condition: Callable[[], object], process: subprocess.Popen[str]) -> None:
        wait_until(condition)
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)

    with odf_serve(workspace) as (url, first):
        client = threading.Thread(target=send, args=(url,))
        client.start()
        kill_when(lambda: any(part.stat().st_size > 1 << 20 for part in uploads.glob("*.part")), first)
    port = int(url.rpartition(":")[2])
    with odf_serve(workspace, port) as (_, second):
        data = local.dataset.folder
        kill_when(lambda: _objects(local) > 0, second)
        assert data.is_dir()
    with odf_serve(workspace, port):
        client.join(PATIENCE)
        assert not client.is_alive()
    assert len(results) == 101
    found = list(local.list("log", start="2024-03-01", end="2024-03-01"))
    assert sorted(record.path for record in found) == sorted(map(str, [large, *files]))
    assert local.dataset.state.num_records == 101
    for record in found:
        with local.open(record) as stream:
            stream.read()


def _objects(archive: LocalArchive) -> int:
    """Files that have been moved into the dataset: the commit is under way, or done."""
    return sum(1 for _ in archive.dataset.layout.data)
