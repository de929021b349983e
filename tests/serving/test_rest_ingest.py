"""`POST /{dataset}/ingest`: formats, times, packing, keys against repetition, limits and refusals."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import root, rows, workspace_with
from support.ingest.shapefiles import archive
from support.servers.serving import PATIENCE, Answer, ask, serving

from odfpy.chain.stores.ref_store import LocalRefStore
from odfpy.coordinator.ingest.idempotency import Ingest, ingest_once
from odfpy.coordinator.ingest.ingest_request import IngestRequest
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"
MORE = 4_000_000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """Several datasets that take everything as it comes."""
    manifests = [root(name, "{kind: Append}") for name in (NAME, "keyed", "formats", "both", "crashed", "times")]
    manifests[-1] = manifests[-1].replace("type: Timestamp", "type: {kind: Option, inner: Timestamp}")
    return workspace_with(tmp_path_factory.mktemp("workspace"), *manifests)


@pytest.fixture(scope="module")
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, max_object=MORE) as server:
        yield server


@pytest.fixture(scope="module")
def writer(workspace: Workspace) -> str:
    return Tokens(workspace.odf).new("writer", Scope.WRITE)


def count(workspace: Workspace, name: str) -> int:
    return workspace.storage.get(name).state.num_records


def line(number: int, name: str = "a") -> bytes:
    return json.dumps({"event_time": "2024-01-01T00:00:00Z", "id": number, "name": name}).encode() + b"\n"


def send(server: DatasetServer, name: str, token: str, body: bytes, query: str = "", **headers: str) -> Answer:
    headers = {"content_type": "application/x-ndjson", **headers}
    return ask(f"{server.url}/{name}/ingest{query}", method="POST", token=token, body=body, **headers)


def parquet() -> bytes:
    target = io.BytesIO()
    time = pa.array([1_704_067_200_000], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"event_time": time, "id": [5], "name": ["p"]}), target)
    return target.getvalue()


def geo(number: int) -> str:
    properties = {"event_time": "2024-01-01T00:00:00Z", "id": number, "name": "g"}
    return json.dumps({"type": "Feature", "geometry": None, "properties": properties})


FORMATS = {
    "text/csv; charset=utf-8": b"event_time,id,name\n2024-01-01T00:00:00Z,1,c\n",
    "application/json": b'[{"event_time": "2024-01-01T00:00:00Z", "id": 2, "name": "j"}]',
    "application/x-ndjson": line(3, "n"),
    "application/geo+json": f'{{"type": "FeatureCollection", "features": [{geo(4)}]}}'.encode(),
    "application/x-ndgeojson": geo(4).encode(),
    "application/vnd.apache.parquet": parquet(),
    "application/zip": archive(
        "point",
        [((1, 2), {"event_time": "2024-01-01T00:00:00Z", "id": 8, "name": "s"})],
        fields=[("event_time", "C", 30, 0), ("id", "N", 9, 0), ("name", "C", 9, 0)],
    ),
    "application/octet-stream": line(6, "as the source says"),
}


@pytest.mark.parametrize("kind", FORMATS)
def test_the_content_type_picks_the_reader(server: DatasetServer, workspace: Workspace, writer: str, kind: str) -> None:
    before = count(workspace, "formats")
    answer = send(server, "formats", writer, FORMATS[kind], content_type=kind)
    assert answer.status == 200, answer.body
    assert answer.json["outcome"] == "updated"
    assert answer.json["numRecords"] == 1
    assert count(workspace, "formats") == before + 1
    assert answer.json["newHead"] == str(workspace.storage.get("formats").state.head)


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_packed_data(server: DatasetServer, workspace: Workspace, writer: str, packing: str) -> None:
    packed = pa.compress(line(7, packing), codec=packing, asbytes=True)
    assert send(server, NAME, writer, packed, content_encoding=packing).status == 200
    assert rows(workspace, NAME)[-1] == f"+A 7 {packing}"
    cut = send(server, NAME, writer, packed[:-6], content_encoding=packing)
    assert cut.status == 400
    assert packing in cut.json["message"]


def test_bombs_and_large_bodies_are_refused(server: DatasetServer, writer: str) -> None:
    bomb = gzip.compress(line(1) * (MORE // 40))
    assert len(bomb) < MORE
    assert send(server, NAME, writer, bomb, content_encoding="gzip").status == 413
    assert send(server, NAME, writer, line(1) * (MORE // 40)).status == 413


def test_the_event_time_of_rows_without_one(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    answer = send(server, "times", writer, b'{"id": 1}', odf_event_time="2023-05-06T00:00:00Z")
    assert answer.status == 200, answer.body
    assert str(workspace.tail("times").to_pylist()[-1]["event_time"]).startswith("2023-05-06")
    assert send(server, "times", writer, b'{"id": 1}', odf_event_time="soon").status == 400


def test_a_repeated_request_ingests_once(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    first = send(server, "keyed", writer, line(1), idempotency_key="k1")
    again = send(server, "keyed", writer, line(1), idempotency_key="k1")
    assert first.status == again.status == 200
    assert first.json == again.json
    assert "idempotent-replayed" not in first.headers
    assert again.headers["idempotent-replayed"] == "true"
    assert rows(workspace, "keyed") == ["+A 1 a"]
    with serving(workspace) as restarted:
        assert send(restarted, "keyed", writer, line(1), idempotency_key="k1").json == first.json
    other = send(server, "keyed", writer, line(2), idempotency_key="k1")
    assert other.status == 422
    assert "with other data" in other.json["message"]
    assert send(server, "keyed", writer, line(1), idempotency_key="k2").json["numRecords"] == 1
    assert len(rows(workspace, "keyed")) == 2
    assert send(server, "keyed", writer, line(1), idempotency_key="").status == 422


def test_the_same_data_may_be_packed_otherwise_when_it_comes_again(
    server: DatasetServer, workspace: Workspace, writer: str
) -> None:
    """The head of a gzip file has the time at which it was packed."""
    first, later = (gzip.compress(line(3), mtime=time) for time in (1, 2))
    assert first != later
    asked = {"idempotency_key": "packed", "content_encoding": "gzip"}
    answer = send(server, "keyed", writer, first, **asked)
    assert answer.json["numRecords"] == 1
    assert send(server, "keyed", writer, later, **asked).json == answer.json
    assert send(server, "keyed", writer, line(3), idempotency_key="packed").json == answer.json
    assert rows(workspace, "keyed").count("+A 3 a") == 1


def test_two_at_once_ingest_once(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    found: list[Answer] = []

    def one() -> None:
        found.append(send(server, "both", writer, line(1), idempotency_key="same"))

    threads = [threading.Thread(target=one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert [answer.status for answer in found] == [200] * 6
    assert rows(workspace, "both") == ["+A 1 a"]
    assert len({answer.body for answer in found}) == 1


class Killed(BaseException):
    """As if the process had ended here."""


@pytest.mark.parametrize("moment", ["before the head", "after the head"])
def test_a_crash_at_the_worst_moment(
    server: DatasetServer, workspace: Workspace, writer: str, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, move = count(workspace, "crashed"), LocalRefStore.compare_and_swap

    def dies(*arguments: Any) -> None:
        if moment == "after the head":
            move(*arguments)
        raise Killed

    file = workspace.root / "line.ndjson"
    file.write_bytes(line(1))
    given = Ingest(
        IngestRequest("crashed", files=(file,), input_format="ndjson"), hashlib.sha256(line(1)).hexdigest(), "the body"
    )
    with monkeypatch.context() as patch:
        patch.setattr(LocalRefStore, "compare_and_swap", dies)
        with pytest.raises(Killed):
            ingest_once(workspace.storage.get("crashed"), given, moment, workspace.engines.registry)
    # What never came to be may come in another form, what did may not.
    corrected = send(server, "crashed", writer, line(2), idempotency_key=moment)
    assert corrected.status == (422 if moment == "after the head" else 200)
    if moment == "before the head":
        assert "idempotent-replayed" not in corrected.headers
        assert count(workspace, "crashed") == before + 1
        return
    answer = send(server, "crashed", writer, line(1), idempotency_key=moment)
    assert answer.status == 200
    assert answer.json["numRecords"] == 1
    assert "idempotent-replayed" in answer.headers
    assert count(workspace, "crashed") == before + 1


def test_wrong_input_changes_nothing(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    head = workspace.storage.get(NAME).state.head
    for body, kind, status, says in [
        (b'{"id": "x"}', "application/x-ndjson", 400, "line 1"),
        (b"{", "application/x-ndjson", 400, "line 1"),
        (b"PAR0", "application/vnd.apache.parquet", 400, "Parquet"),
        (line(1), "application/x-www-form-urlencoded", 415, "text/csv"),
        (line(1), "text/csv; charset=utf-16", 415, "utf-16"),
    ]:
        answer = send(server, NAME, writer, body, content_type=kind)
        assert answer.status == status, (body, answer.body)
        assert says.lower() in answer.json["message"].lower()
        assert str(workspace.root) not in answer.json["message"]
    assert send(server, NAME, writer, line(1), content_encoding="br").status == 415
    assert send(server, NAME, writer, line(1), "?sourceName=other").status == 400
    assert workspace.storage.get(NAME).state.head == head


def test_who_may_ingest(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    reader = Tokens(workspace.odf).new("reader", Scope.READ)
    assert send(server, NAME, reader, line(1)).status == 403
    without = ask(f"{server.url}/{NAME}/ingest", method="POST", body=line(1))
    assert without.status == 401
    assert without.json["message"] == "This needs an access token with the scope write"
    assert send(server, "missing", writer, line(1)).status == 404


def test_a_client_that_goes_away_leaves_nothing(server: DatasetServer, workspace: Workspace, writer: str) -> None:
    head = workspace.storage.get(NAME).state.head
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as raw:
        raw.sendall(
            f"POST /{NAME}/ingest HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {writer}\r\n"
            f"Content-Type: application/x-ndjson\r\nContent-Length: 1000\r\n\r\n".encode()
            + line(1)
        )
    assert send(server, "times", writer, line(2)).status == 200  # the server goes on
    assert workspace.storage.get(NAME).state.head == head
