"""A large object goes on where it was when the connection, or the whole process, has ended; small ones begin anew."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NoReturn

import pytest
from support.chains.linked import add, files_workspace, name_of, objects_in
from support.servers.buckets import s3_buckets
from support.servers.serving import serving
from support.servers.static_server import send, static_server

from odfpy.chain.stores.object_store import LocalObjectStore, ObjectTooLarge
from odfpy.coordinator.maintenance.reachable import Garbage
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetLocked, HashMismatch, OdfError
from odfpy.repository.bucket import s3
from odfpy.repository.bucket.client import PART as PART_SIZE
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.partial_objects import KEPT, LARGE, PART, PartElsewhere, PartialObject, upload_object
from odfpy.serving.callers.tokens import Scope, Tokens

DATA = os.urandom(2 * LARGE + 17)
NAME = name_of(DATA)


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path / "objects")


class Source:
    """Bytes that are asked for from some byte on, and break off."""

    def __init__(self, data: bytes, *, breaks_at: int | None = None) -> None:
        self.data, self.breaks_at = data, breaks_at
        self.asked: list[int] = []

    @contextmanager
    def open_at(self, start: int) -> Iterator[BinaryIO]:
        self.asked.append(start)
        yield Breaking(self.data[start:], None if self.breaks_at is None else self.breaks_at - start)


class Breaking(io.BytesIO):
    def __init__(self, data: bytes, most: int | None) -> None:
        super().__init__(data if most is None else data[: max(0, most)])
        self.breaks = most is not None and most < len(data)

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if not data and self.breaks:
            raise OdfError("the line has gone dead")
        return data


def parts(store: LocalObjectStore) -> list[str]:
    return [path.name for path in store.folder.iterdir() if path.name.startswith(PART)]


def test_it_goes_on_where_it_was(store: LocalObjectStore) -> None:
    coming = PartialObject(store, NAME)
    with pytest.raises(OdfError, match="gone dead"):
        coming.receive(Source(DATA, breaks_at=LARGE).open_at, len(DATA))
    assert (coming.arrived, NAME in store) == (LARGE, False)
    rest = Source(DATA)
    assert PartialObject(store, NAME).receive(rest.open_at, len(DATA)) == len(DATA)
    assert rest.asked == [LARGE]
    assert store.read(NAME) == DATA
    assert parts(store) == []


def test_what_has_come_whole_is_not_asked_for_again(store: LocalObjectStore) -> None:
    """Servers answer a question for what comes after the last byte with an error."""
    coming = PartialObject(store, NAME)
    coming.path.parent.mkdir(parents=True, exist_ok=True)
    coming.path.write_bytes(DATA)

    def refuses(begin: int) -> NoReturn:
        raise AssertionError(begin)

    assert coming.receive(refuses, len(DATA)) == len(DATA)
    assert store.read(NAME) == DATA


def test_what_is_wrong_in_what_has_come_is_got_again(store: LocalObjectStore) -> None:
    store.folder.mkdir()
    (store.folder / f"{PART}{NAME}").write_bytes(b"rot" * 1000)
    source = Source(DATA)
    PartialObject(store, NAME).receive(source.open_at, len(DATA))
    assert source.asked == [3000, 0]
    assert store.read(NAME) == DATA


@pytest.mark.parametrize("forged", [DATA[:-1] + b"!", DATA + b"!", DATA[:-1]], ids=["other", "longer", "shorter"])
@pytest.mark.parametrize("begun", [False, True])
def test_another_object_leaves_nothing(store: LocalObjectStore, forged: bytes, begun: bool) -> None:
    if begun:
        with pytest.raises(OdfError):
            PartialObject(store, NAME).receive(Source(forged, breaks_at=LARGE).open_at, len(DATA))
    with pytest.raises((HashMismatch, ObjectTooLarge)):
        PartialObject(store, NAME).receive(Source(forged).open_at, len(DATA))
    assert NAME not in store
    assert parts(store) == []


def test_two_do_not_write_the_same(store: LocalObjectStore) -> None:
    outer = PartialObject(store, NAME)

    @contextmanager
    def open_at(_: int) -> Iterator[BinaryIO]:
        with pytest.raises(DatasetLocked):
            PartialObject(store, NAME).receive(Source(DATA).open_at, len(DATA))
        yield io.BytesIO(DATA)

    outer.receive(open_at, len(DATA))
    assert store.read(NAME) == DATA


def test_uploads_follow_what_has_come(store: LocalObjectStore) -> None:
    with pytest.raises(OdfError, match="gone dead"):
        upload_object(store, NAME, len(DATA), Breaking(DATA, LARGE), 0)
    with pytest.raises(PartElsewhere):
        upload_object(store, NAME, len(DATA), io.BytesIO(DATA[5:]), 5)
    assert PartialObject(store, NAME).arrived == LARGE
    upload_object(store, NAME, len(DATA), io.BytesIO(DATA[LARGE:]), LARGE)
    assert store.read(NAME) == DATA


def test_parts_are_no_objects_and_go_when_they_are_forgotten(tmp_path: Path) -> None:
    workspace = files_workspace(tmp_path / "workspace")
    add(workspace, (1, b"one"))
    folder = workspace.storage.get("files").folder
    part = folder / "data" / f"{PART}{NAME}"
    part.write_bytes(DATA[:100])
    assert objects_in(workspace) == {name_of(b"one")}
    assert [report.findings for report in workspace.verify(["files"])] == [()]
    (report,) = workspace.maintenance.gc(["files"])
    assert report.found == ()
    old = time.time() - KEPT - 1
    os.utime(part, (old, old))
    (report,) = workspace.maintenance.gc(["files"])
    assert report.counts == {Garbage.TEMPORARY: 1}


# --- Over a network --------------------------------------------------------------------------------------------------

PULL = """
import sys
from odfpy.coordinator.workspace import Workspace
results = list(Workspace.open(sys.argv[1]).pull([sys.argv[2]]))
sys.exit(any(result.error for result in results))
"""


def test_a_pull_that_is_killed_goes_on_within_an_object(tmp_path: Path) -> None:
    origin = files_workspace(tmp_path / "origin")
    add(origin, (1, DATA), (2, b"small"))
    list(origin.push(["files"], to=str(tmp_path / "place" / "files")))
    copy = Workspace.init(tmp_path / "copy")
    half_sent, over = threading.Event(), threading.Event()

    def stall(handler: object) -> None:
        send(handler, DATA[:LARGE], Content_Length=len(DATA))  # type: ignore[arg-type]
        half_sent.set()
        over.wait(300)
        handler.close_connection = True  # type: ignore[attr-defined]

    with static_server(tmp_path / "place") as server:
        server.special[f"/data/{NAME}"] = stall
        url = f"{server.url}/files"
        with subprocess.Popen([sys.executable, "-c", PULL, str(copy.root), url]) as process:
            assert half_sent.wait(300)
            part = next(path for path in wait_for_part(copy.root))
            process.kill()
        over.set()
        server.special.clear()
        arrived = part.stat().st_size
        assert 0 < arrived <= LARGE
        server.forget()
        ranges: list[str] = []

        def rest(handler: object) -> None:
            ranges.append(handler.headers["Range"])  # type: ignore[attr-defined]
            begin = int(ranges[-1].removeprefix("bytes=").rstrip("-"))
            body = DATA[begin:]
            handler.send_response(206)  # type: ignore[attr-defined]
            handler.send_header("Content-Range", f"bytes {begin}-{len(DATA) - 1}/{len(DATA)}")  # type: ignore[attr-defined]
            handler.send_header("Content-Length", str(len(body)))  # type: ignore[attr-defined]
            handler.end_headers()  # type: ignore[attr-defined]
            handler.wfile.write(body)  # type: ignore[attr-defined]

        server.special[f"/data/{NAME}"] = rest
        assert [result.error for result in copy.pull([url])] == [None]
    assert ranges == [f"bytes={arrived}-"]
    assert objects_in(copy) == {NAME, name_of(b"small")}
    assert all(report.ok for report in copy.verify(["files"]))


def wait_for_part(root: Path) -> Iterator[Path]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        for path in (root / ".odf" / "cache" / "incoming").rglob(f"{PART}*"):
            if path.stat().st_size:
                yield path
        time.sleep(0.02)
    raise AssertionError("no part of the object has come")


def test_a_push_to_a_node_goes_on_within_an_object(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    origin = files_workspace(tmp_path / "origin")
    add(origin, (1, b"before"))
    served = Workspace.init(tmp_path / "served")
    monkeypatch.setenv("ODF_TOKEN", Tokens(served.odf).new("admin", Scope.ADMIN))
    extended: list[int] = []
    extend = PartialObject.extend

    def noted(self: PartialObject, stream: BinaryIO, begin: int, size: int) -> bool:
        extended.append(begin)
        return extend(self, stream, begin, size)

    monkeypatch.setattr(PartialObject, "extend", noted)
    with serving(served) as server:
        url = f"odf+{server.url}/files"
        assert [result.error for result in origin.push(["files"], to=url)] == [None]
        add(origin, (2, DATA), day=2)
        # What an upload that was cut has left.
        data = served.storage.get("files").folder / "data"
        (data / f"{PART}{NAME}").write_bytes(DATA[:LARGE])
        assert [result.error for result in origin.push(["files"])] == [None]
    assert objects_in(served) == {NAME, name_of(b"before")}
    assert extended == [LARGE]
    assert list(data.glob(f"{PART}*")) == []
    assert served.storage.get("files").layout.data.read(NAME) == DATA


def test_a_push_to_a_bucket_sends_no_part_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setattr(s3, "QUIET", 0.0)
    sent: list[int] = []
    call = s3.S3Client.call

    async def noted(self: s3.S3Client, method: str, **arguments: object) -> object:
        if method == "upload_part":
            sent.append(int(str(arguments["PartNumber"])))
        return await call(self, method, **arguments)

    monkeypatch.setattr(s3.S3Client, "call", noted)
    with s3_buckets() as host:
        store = open_dataset(f"s3+http://{host}/data/files").data
        with pytest.raises(OdfError, match="gone dead"):
            store.insert_stream(Breaking(DATA, 3 * PART_SIZE - 5), NAME, size=len(DATA))
        assert sent == [1, 2]
        store.insert_stream(io.BytesIO(DATA), NAME, size=len(DATA))
        assert sent == [1, 2, 3, 4]
        assert store.read(NAME) == DATA
        with pytest.raises(HashMismatch):
            store.insert_stream(io.BytesIO(DATA + b"!"), name_of(b"another"))
        assert name_of(b"another") not in store
