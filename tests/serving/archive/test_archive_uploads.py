"""Files into an archive over HTTP: bytes in parts and in batches, then records; whatever is sent, and by how many."""

from __future__ import annotations

import hashlib
import io
import os
import socket
import threading
import time
from contextlib import suppress
from io import FileIO
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support.archive.served import YEAR_2010, ArchiveClient, Served, batch_of, hash_of, push, record_of
from support.servers.serving import ask, wait_until

from odfpy.archive.errors import WrongContent
from odfpy.data.multihash import BLAKE3, SHA3_256, Multihash
from odfpy.serving.archive.object_batch import unpack
from odfpy.serving.archive.uploads import LIFETIME, Uploads

DATA = bytes(range(256)) * 4000


@pytest.fixture
def writer(served: Served) -> ArchiveClient:
    return served.writer


# --- Bytes ---


def test_a_file_comes_in_parts_and_the_server_says_where_to_go_on(writer: ArchiveClient) -> None:
    name = hash_of(DATA)
    assert writer.head(name) == (0, "?0")
    assert writer.patch(name, DATA[:1000], 0, "?0").headers["upload-offset"] == "1000"
    assert writer.head(name) == (1000, "?0")
    again = writer.patch(name, DATA[:1000], 0, "?0")
    assert (again.status, again.json["code"]) == (409, "WrongOffset")
    assert writer.patch(name, DATA[2000:], 2000).status == 409
    done = writer.patch(name, DATA[1000:], 1000)
    assert (done.status, done.headers["upload-complete"]) == (204, "?1")
    assert writer.head(name) == (len(DATA), "?1")
    (result,) = writer.push(record_of(DATA))
    assert result["outcome"] == "pushed"
    assert writer.get(f"files/{result['record']['metadata']['id']}/data").body == DATA
    assert writer.head(name) == (len(DATA), "?1")
    numbers = ask(writer.base.replace("/logs", "/metrics")).body
    assert b'method="PATCH",route="/v0/archive/objects/{hash}",status="204"' in numbers


def test_all_hashes_of_the_store_are_taken(writer: ArchiveClient) -> None:
    name = Multihash.of(DATA, SHA3_256)
    assert writer.put(name, DATA).status == 204
    (result,) = writer.push(record_of(DATA, object=str(name)))
    assert result["record"]["object"] == str(name)


def test_an_empty_file(writer: ArchiveClient) -> None:
    assert writer.put(hash_of(b""), b"").status == 204
    (result,) = writer.push(record_of(b""))
    assert (result["outcome"], result["record"]["size"]) == ("pushed", 0)


@pytest.mark.parametrize("parts", [1, 2])
def test_bytes_with_another_hash_are_not_kept(writer: ArchiveClient, parts: int) -> None:
    name = hash_of(b"something else")
    if parts == 2:
        assert writer.patch(name, DATA[:500], 0, "?0").status == 204
    answer = writer.patch(name, DATA[500 * (parts - 1) :], 500 * (parts - 1))
    assert (answer.status, answer.json["code"]) == (422, "WrongContent")
    assert writer.head(name) == (0, "?0")
    assert writer.push(record_of(b"something else"))[0]["error"]["code"] == "E115"


def test_a_file_that_is_put_again_begins_again(writer: ArchiveClient) -> None:
    name = hash_of(DATA)
    assert writer.patch(name, b"wrong" * 100, 0, "?0").status == 204
    assert writer.put(name, DATA).status == 204


@pytest.mark.parametrize("name", ["nothing", "..%2F..%2Fx", "f" * 190, "f300016200000", "%00"])
def test_what_is_no_hash(shared: Served, name: str) -> None:
    url = f"{shared.url}/v0/archive/objects/{name}"
    for method in ("HEAD", "PUT", "PATCH"):
        answer = ask(url, method=method, body=b"x", token=shared.writer.token, Upload_Offset="0")
        assert answer.status in (400, 404), method
    assert not list((shared.archive.dataset.cache / "uploads").glob("*"))


def test_more_than_a_file_may_have_is_refused(served: Served) -> None:
    name = hash_of(b"large")
    most = 64 << 20
    assert served.writer.patch(name, b"x", most).status == 413
    assert _head_of(served, f"PUT /logs/v0/archive/objects/{name} HTTP/1.1", f"Content-Length: {most + 1}") == 413
    chunk = b"100000\r\n" + bytes(1 << 20) + b"\r\n"
    status = _head_of(
        served, f"PUT /logs/v0/archive/objects/{name} HTTP/1.1", "Transfer-Encoding: chunked", body=chunk * 65
    )
    assert status == 413
    assert served.writer.head(name) == (0, "?0")


def _head_of(served: Served, line: str, header: str, body: bytes = b"") -> int:
    """The status of the answer to a request that is written by hand."""
    parts = urlsplit(served.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as connection:
        token = f"Authorization: Bearer {served.writer.token}"
        with suppress(ConnectionError):  # it has answered before all has come
            connection.sendall(f"{line}\r\nHost: x\r\n{token}\r\n{header}\r\n\r\n".encode() + body)
        return int(connection.recv(100).split()[1])


def test_two_who_send_the_same_file_at_once_send_it_once(served: Served) -> None:
    name, parts = hash_of(DATA), urlsplit(served.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as slow:
        head = f"PATCH /logs/v0/archive/objects/{name} HTTP/1.1\r\nHost: x\r\nUpload-Offset: 0\r\n"
        token = f"Authorization: Bearer {served.writer.token}\r\n"
        slow.sendall(f"{head}{token}Content-Length: {len(DATA)}\r\n\r\n".encode() + DATA[: 512 << 10])
        wait_until(lambda: served.writer.head(name)[0] > 0)
        answer = served.writer.patch(name, DATA, 0)
        assert (answer.status, answer.json["code"], answer.headers["retry-after"]) == (409, "Busy", "1")
        slow.sendall(DATA[512 << 10 :])
        assert slow.recv(100).startswith(b"HTTP/1.1 204 ")
    assert served.writer.patch(name, DATA, 0).status == 204


def test_what_came_before_a_connection_broke_stays(served: Served) -> None:
    name, parts = hash_of(DATA), urlsplit(served.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), 30) as broken:
        head = f"PATCH /logs/v0/archive/objects/{name} HTTP/1.1\r\nHost: x\r\nUpload-Offset: 0\r\n"
        token = f"Authorization: Bearer {served.writer.token}\r\n"
        broken.sendall(f"{head}{token}Content-Length: {len(DATA)}\r\n\r\n".encode() + DATA[: 512 << 10])
        wait_until(lambda: served.writer.head(name)[0] > 0)
    wait_until(lambda: served.writer.patch(name, b"", 60 << 20).json["code"] == "WrongOffset")  # nobody sends it now
    offset, complete = served.writer.head(name)
    assert (0 < offset <= 512 << 10, complete) == (True, "?0")
    assert served.writer.patch(name, DATA[offset:], offset).status == 204


def test_uploads_that_nobody_goes_on_with_are_swept_away(served: Served) -> None:
    kept, old = hash_of(DATA), hash_of(DATA[1:])
    for name in (kept, old):
        assert served.writer.patch(name, DATA[:100], 0, "?0").status == 204
    uploads = Uploads(served.archive.dataset.cache / "uploads", 1 << 30)
    os.utime(served.archive.dataset.cache / "uploads" / f"{old}.part", (0, time.time() - LIFETIME - 1))
    uploads.sweep()
    assert (served.writer.head(kept), served.writer.head(old)) == ((100, "?0"), (0, "?0"))
    uploads.sweep(time.time() + LIFETIME + 60)
    assert served.writer.head(kept) == (0, "?0")


# --- Many at once ---


def test_many_small_files_in_one_body(writer: ArchiveClient) -> None:
    contents = [b"%d" % number * number for number in range(300)]
    names = [str(hash_of(data)) for data in contents]
    assert writer.post("missing", {"objects": names}).json == {"missing": names}
    assert writer.put_all(batch_of(*contents)).status == 204
    assert writer.post("missing", {"objects": names}).json == {"missing": []}
    results = writer.push(*(record_of(data, path=f"/{number}") for number, data in enumerate(contents)))
    assert {result["outcome"] for result in results} == {"pushed"}


@pytest.mark.parametrize(
    "body",
    [
        b"nonsense",
        b"nonsense 3\nabc",
        batch_of(b"good") + b"\n",
        batch_of(b"good")[:-1],
        batch_of(b"good") + f"{hash_of(b'abc')} 3\nabd".encode(),
        batch_of(b"good") + f"{hash_of(b'abc')} -3\nabc".encode(),
        batch_of(b"good") + f"{hash_of(b'abc')} ".encode() + b"9" * 20 + b"\nabc",
        batch_of(b"good") + b"f" * 100_000,
        batch_of(b"good") + b"\xff\x00" * 10,
    ],
)
def test_a_body_that_is_not_right_leaves_nothing(shared: Served, body: bytes) -> None:
    answer = shared.writer.put_all(body)
    assert answer.status == 422
    assert answer.json["code"] in ("InvalidUpload", "WrongContent")
    assert not list((shared.archive.dataset.cache / "uploads").glob("*"))
    assert shared.writer.put_all(batch_of(b"good"), "application/x-tar").status == 415


def test_a_short_write_is_written_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that is nearly full takes a part of what it is given, and says so by a number only."""
    whole = FileIO.write

    class Reluctant(FileIO):
        def write(self, data: Any) -> int:
            return whole(self, memoryview(data)[:1000])

    def opened(path: Path, mode: str, buffering: int) -> Reluctant:
        assert buffering == 0
        return Reluctant(path, mode.replace("b", ""))

    monkeypatch.setattr(Path, "open", opened)
    files = unpack(io.BytesIO(batch_of(DATA)), tmp_path, 1 << 30)
    monkeypatch.undo()
    assert files[hash_of(DATA)].read_bytes() == DATA


# --- Records ---


def test_another_process_may_go_on_with_a_file_or_begin_it_anew(tmp_path: Path) -> None:
    name = hash_of(DATA)
    one, other = Uploads(tmp_path, 1 << 30), Uploads(tmp_path, 1 << 30)
    assert one.append(name, 0, io.BytesIO(DATA[:1000]), is_last=False).offset == 1000
    other.drop_part(name)
    assert other.append(name, 0, io.BytesIO(bytes(1000)), is_last=False).offset == 1000
    with pytest.raises(WrongContent):
        one.append(name, 1000, io.BytesIO(DATA[1000:]), is_last=True)
    assert one.append(name, 0, io.BytesIO(DATA[:1000]), is_last=False).offset == 1000
    assert other.append(name, 1000, io.BytesIO(DATA[1000:]), is_last=True).is_complete


def test_records_are_taken_one_by_one_and_refused_with_all_reasons(served: Served) -> None:
    data = b"the content"
    assert served.writer.put(hash_of(data), data).status == 204
    head = served.archive.dataset.layout.refs.get("head")
    good, words, nothing, lacking, wrong_hash, wrong_size, again = served.writer.push(
        record_of(data, work_id="job-1", end=YEAR_2010 + 5),
        record_of(data, what="A B", where="", start=YEAR_2010, end=YEAR_2010 - 1, path="relative"),
        {"what": 1, "start": "2024-01-01", "more": None},
        record_of(b"never sent"),
        record_of(data, hash="0" * 32, path="/hash"),
        record_of(data, size=5, path="/size"),
        record_of(data, work_id="job-1", end=YEAR_2010 + 5),
    )
    assert good["outcome"] == "pushed"
    metadata = good["record"]["metadata"]
    assert metadata["hash"] == hashlib.blake2b(data, digest_size=16).hexdigest()
    assert (good["record"]["size"], metadata["end"]) == (len(data), YEAR_2010 + 5)
    assert len(words["error"]["reasons"]) == 4
    assert words["error"]["code"] == nothing["error"]["code"] == "E840"
    assert len(nothing["error"]["reasons"]) >= 6
    assert lacking["error"]["code"] == "E115"
    assert wrong_hash["error"]["code"] == wrong_size["error"]["code"] == "E845"
    assert again["outcome"] == "known"
    assert served.archive.dataset.state.num_records == 1
    blocks = [one.hash for one in served.archive.dataset.layout.chain.iter_blocks()]
    assert blocks[1] == head


def test_a_push_that_is_repeated_changes_nothing(served: Served) -> None:
    assert served.writer.put_all(batch_of(b"a", b"b")).status == 204
    records = [record_of(b"a"), record_of(b"b", path="/b")]
    assert [one["outcome"] for one in served.writer.push(*records)] == ["pushed", "pushed"]
    head = served.archive.dataset.layout.refs.get("head")
    assert [one["outcome"] for one in served.writer.push(*records)] == ["known", "known"]
    assert served.archive.dataset.layout.refs.get("head") == head


def test_an_id_of_another_file_is_refused(served: Served) -> None:
    assert served.writer.put_all(batch_of(b"a", b"b")).status == 204
    assert served.writer.push(record_of(b"a", id="mine"))[0]["record"]["metadata"]["id"] == "mine"
    assert served.writer.push(record_of(b"b", id="mine"))[0]["error"]["code"] == "E846"
    assert served.writer.push(record_of(b"b", id="../x"))[0]["error"]["code"] == "E840"


def test_a_translator_pattern_is_not_run_on_the_server(served: Served) -> None:
    assert served.writer.put(hash_of(b"a"), b"a").status == 204
    (result,) = served.writer.push(record_of(b"a", what="(a+)+$~{0}", path="/" + "a" * 60))
    assert result["error"]["code"] == "E840"


def test_the_content_of_another_file_is_not_sent_again(served: Served, tmp_path: Path) -> None:
    push(served.archive, tmp_path / "file", b"shared content")
    assert served.writer.head(hash_of(b"shared content")) == (14, "?1")
    (result,) = served.writer.push(record_of(b"shared content", path="/second"))
    assert result["outcome"] == "pushed"
    assert served.writer.get(f"files/{result['record']['metadata']['id']}/data").body == b"shared content"


def test_a_stored_file_that_is_removed_before_its_record_comes_is_sent_again(served: Served) -> None:
    served.archive.dataset.layout.data.insert(DATA, BLAKE3)  # as a commit leaves it that was killed
    assert served.writer.post("missing", {"objects": [str(hash_of(DATA))]}).json == {"missing": []}
    (report,) = served.workspace.maintenance.gc(["logs"])
    assert [item.size for item in report.found] == [len(DATA)]
    assert served.writer.push(record_of(DATA))[0]["error"]["code"] == "E115"
    assert served.writer.put(hash_of(DATA), DATA).status == 204
    (result,) = served.writer.push(record_of(DATA))
    assert served.writer.get(f"files/{result['record']['metadata']['id']}/data").body == DATA


@pytest.mark.parametrize("tree", [{}, "text", None, 5, [[]], [None], [[1]], [{"what": {}}]])
def test_what_are_no_records(shared: Served, tree: Any) -> None:
    answer = shared.writer.post_records(tree)
    if isinstance(tree, list):
        assert [one["outcome"] for one in answer.json["results"]] == ["refused"]
    else:
        assert answer.status == 422


def test_pushes_at_once_are_all_there(served: Served) -> None:
    contents = [b"file %d" % number for number in range(8)]
    outcomes: list[str] = []

    def send(data: bytes) -> None:
        served.writer.put(hash_of(data), data)
        outcomes.append(served.writer.push(record_of(data, work_id="many", path="/x"))[0]["outcome"])

    threads = [threading.Thread(target=send, args=(data,)) for data in contents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes == ["pushed"] * 8
    assert len(served.reader.files(what="foo", work_id="many")["records"]) == 8
