"""Recorded conversations between the reference's client and server, and their comparison with ours."""

from __future__ import annotations

import contextlib
import io
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.fixtures import FIXTURES, KAMU
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response
from websockets.sync.server import ServerConnection, serve

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.repository.divergence import EncodedBlock
from odfpy.repository.smart_transfer.archive import ArchiveLimits, unpack
from odfpy.repository.smart_transfer.incoming import read_blocks
from odfpy.repository.smart_transfer.json_form import from_json
from odfpy.repository.smart_transfer.messages import BlocksBatch

NAMES = ("pull", "push-new", "push-append")
HOST = "http://node.example.org"


@dataclass(frozen=True)
class Recording:
    """A conversation, as it is written down."""

    name: str
    lines: list[dict[str, Any]]

    @classmethod
    def load(cls, name: str) -> Recording:
        text = (FIXTURES / "smart-protocol" / f"{name}.jsonl").read_text()
        return cls(name, [json.loads(line) for line in text.splitlines()])

    @property
    def messages(self) -> list[tuple[str, Any]]:
        """The sender and content of each message."""
        return [(who, line[who]) for line in self.lines for who in ("client", "server") if who in line]

    @property
    def head(self) -> Multihash | None:
        """The server's head before."""
        http = next(line for line in self.lines if "http" in line)
        return Multihash.parse(http["body"]) if http["status"] == 200 else None

    @property
    def path(self) -> str:
        """Of the dataset on the server."""
        return next(line["open"] for line in self.lines if "open" in line).rpartition("/")[0]

    def blocks(self) -> list[EncodedBlock]:
        """Return the blocks that are transferred."""
        for _, message in self.messages:
            for key in ("blocks", "new_blocks"):
                if key in message:
                    return read_blocks(from_json(BlocksBatch, message[key]), ArchiveLimits())
        raise AssertionError(self.name)

    def objects(self) -> list[dict[str, Any]]:
        """Return the objects that are transferred."""
        return next(message["object_files"] for _, message in self.messages if "object_files" in message)


def pushed(recording: Recording) -> DatasetLayout:
    """Return the pushed dataset. The recordings lack its object: another one of the same size replaces it."""
    layout = DatasetLayout.in_memory()
    blocks = Recording.load("push-new").blocks() + (recording.blocks() if recording.name == "push-append" else [])
    for block in blocks:
        layout.blocks.insert_stream(io.BytesIO(block.data), block.hashed.hash)
    layout.refs.compare_and_swap(HEAD, None, blocks[-1].hashed.hash)
    plant(layout, Recording.load("push-new"), recording)
    return layout


def plant(layout: DatasetLayout, *recordings: Recording) -> None:
    """Put objects at their locations."""
    for recording in recordings:
        for item in recording.objects():
            layout.data._objects[Multihash.parse(item["physical_hash"])] = bytes(item["size"])  # type: ignore[attr-defined]


def trades() -> DatasetLayout:
    return DatasetLayout.local(KAMU / "trades")


def plain(message: Any) -> Any:
    """Return a message without parts that may differ: the packing of the archive, and the locations of objects."""
    if isinstance(message, dict):
        if "payload" in message:
            batch = from_json(BlocksBatch, message)
            return {**message, "payload": [(str(name), data) for name, data in unpack(batch, ArchiveLimits())]}
        if message.keys() == {"url", "headers", "expires_at"}:
            return {}
        return {key: plain(value) for key, value in message.items()}
    return [plain(item) for item in message] if isinstance(message, list) else message


# --- A server that says what the reference's has said ---


@dataclass
class ScriptedNode:
    """A node that has one conversation, by heart.

    Attributes:
        url: where the dataset is.
        asked: method, path and token of the plain requests.
        opened: headers of the handshake.
        heard: messages of the client.
        close_code: how it has hung up.
    """

    recording: Recording
    url: str = ""
    head: Multihash | None = None
    asked: list[tuple[str, str, str | None]] = field(default_factory=list)
    opened: dict[str, str] = field(default_factory=dict)
    heard: list[Any] = field(default_factory=list)
    close_code: int | None = None
    done: threading.Event = field(default_factory=threading.Event)

    def answer(self, connection: ServerConnection, request: Request) -> Response | None:
        if "Upgrade" in request.headers:
            self.opened = {"path": request.path, **{key.lower(): value for key, value in request.headers.raw_items()}}
            return None
        self.asked.append(("GET", request.path, request.headers.get("Authorization")))
        is_head = request.path == f"{self.recording.path}/refs/head" and self.head is not None
        status, body = (200, str(self.head).encode()) if is_head else (404, b"")
        return Response(status, "-", Headers({"Content-Length": str(len(body)), "Connection": "close"}), body)

    def talk(self, connection: ServerConnection, objects: str) -> None:
        try:
            for who, message in self.recording.messages:
                if who == "server":
                    connection.send(json.dumps(message).replace(HOST, objects))
                else:
                    self.heard.append(json.loads(connection.recv(timeout=60)))
            connection.recv(timeout=60)
        except ConnectionClosed as closed:
            self.close_code = closed.rcvd.code if closed.rcvd else None
        finally:
            self.done.set()


@contextlib.contextmanager
def scripted(recording: Recording) -> Iterator[ScriptedNode]:
    """Run a node that replays one conversation, and stores and serves objects."""
    node = ScriptedNode(recording, head=recording.head)

    class Objects(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            node.asked.append(("GET", self.path, self.headers.get("Authorization")))
            body = (KAMU / "trades" / "data" / self.path.rpartition("/")[2]).read_bytes()
            self._send(body)

        def do_PUT(self) -> None:
            node.asked.append(("PUT", self.path, self.headers.get("Authorization")))
            self.rfile.read(int(self.headers["Content-Length"]))
            self._send(b"")

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Objects) as objects:
        where = f"http://127.0.0.1:{objects.server_port}"
        handler = lambda connection: node.talk(connection, where)  # noqa: E731
        with serve(handler, "127.0.0.1", 0, process_request=node.answer) as server:
            node.url = f"odf+http://127.0.0.1:{server.socket.getsockname()[1]}{recording.path}"
            threads = [threading.Thread(target=one.serve_forever) for one in (objects, server)]
            for thread in threads:
                thread.start()
            try:
                yield node
            finally:
                objects.shutdown()
                server.shutdown()
                for thread in threads:
                    thread.join()
