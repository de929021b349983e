"""A small server with the Azure Blob Storage requests of a repository, on the loopback interface.

There is no Azure emulator in Python. This one was compared with Azurite, with which the same tests pass.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree as ET

ACCOUNT, KEY = "account", "a2V5"

_PAGE = 2  # blobs per page of a listing without folders


class _Blob(NamedTuple):
    data: bytes
    etag: str
    written: str


class _Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status = status
        self.code = code


class _Server(ThreadingHTTPServer):
    """Containers with their blobs, and the blocks that wait for a list."""

    request_queue_size = 128  # a client opens many connections at once

    def __init__(self, containers: tuple[str, ...]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.containers: dict[str, dict[str, _Blob]] = {name: {} for name in containers}
        self.blocks: dict[tuple[str, str, str], bytes] = {}
        self.writes = 0
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._answer("GET")

    def do_HEAD(self) -> None:
        self._answer("HEAD")

    def do_PUT(self) -> None:
        self._answer("PUT")

    def do_DELETE(self) -> None:
        self._answer("DELETE")

    def log_message(self, *args: object) -> None: ...

    def _answer(self, method: str) -> None:
        parts = urlsplit(self.path)
        self.query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        account, self.container, *names = unquote(parts.path).lstrip("/").split("/", 2)
        self.name = names[0] if names else ""
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            with self.server.lock:
                self._admit(account, method)
                status, headers, data = getattr(self, f"_{method.lower()}")()
        except _Refused as error:
            status, headers, data = error.status, {"x-ms-error-code": error.code}, b""
        self.send_response(status)
        headers = {"Content-Length": str(len(data)), **headers}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _admit(self, account: str, method: str) -> None:
        if account != ACCOUNT:
            raise _Refused(403, "AuthenticationFailed")
        if self.container not in self.server.containers:
            raise _Refused(404, "ContainerNotFound")
        if self.container == "readonly" and method in ("PUT", "DELETE"):
            raise _Refused(403, "AuthorizationPermissionMismatch")
        self.blobs = self.server.containers[self.container]

    def _blob(self) -> _Blob:
        if self.name not in self.blobs:
            raise _Refused(404, "BlobNotFound")
        return self.blobs[self.name]

    def _get(self) -> tuple[int, dict[str, str], bytes]:
        if self.query.get("comp") == "list":
            return 200, {"Content-Type": "application/xml"}, self._listing()
        blob = self._blob()
        data, headers = blob.data, _headers_of(blob)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("x-ms-range") or self.headers.get("Range") or "")
        if asked is None:
            return 200, headers, data
        start, end = int(asked[1]), int(asked[2])
        if start >= len(data):
            raise _Refused(416, "InvalidRange")
        part = data[start : end + 1]
        return 206, {**headers, "Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(data)}"}, part

    def _head(self) -> tuple[int, dict[str, str], bytes]:
        blob = self._blob()
        return 200, {**_headers_of(blob), "Content-Length": str(len(blob.data)), "x-ms-blob-type": "BlockBlob"}, b""

    def _put(self) -> tuple[int, dict[str, str], bytes]:
        if self.query.get("comp") == "block":
            self.server.blocks[self.container, self.name, self.query["blockid"]] = self.body
            return 201, {}, b""
        self._check_conditions()
        data = self.body
        if self.query.get("comp") == "blocklist":
            names = [item.text or "" for item in ET.fromstring(data)]
            data = b"".join(self.server.blocks.pop((self.container, self.name, name)) for name in names)
        self.server.writes += 1
        blob = self.blobs[self.name] = _Blob(data, f'"{self.server.writes:#x}"', formatdate(usegmt=True))
        return 201, _headers_of(blob), b""

    def _delete(self) -> tuple[int, dict[str, str], bytes]:
        self._blob()
        self._check_conditions()
        del self.blobs[self.name]
        return 202, {}, b""

    def _check_conditions(self) -> None:
        if self.headers.get("If-None-Match") == "*" and self.name in self.blobs:
            raise _Refused(409, "BlobAlreadyExists")
        wanted = self.headers.get("If-Match")
        if wanted and (self.name not in self.blobs or self.blobs[self.name].etag != wanted):
            raise _Refused(412, "ConditionNotMet")

    def _listing(self) -> bytes:
        prefix = self.query.get("prefix", "")
        root = ET.Element("EnumerationResults", ContainerName=self.container)
        blobs = ET.SubElement(root, "Blobs")
        folders = set()
        marker = ""
        for name, found in sorted(self.blobs.items()):
            if not name.startswith(prefix) or name < self.query.get("marker", ""):
                continue
            folder, slash, _ = name[len(prefix) :].partition("/")
            if "delimiter" not in self.query and len(blobs) == _PAGE:
                marker = name
                break
            if slash and "delimiter" in self.query:
                folders.add(f"{prefix}{folder}/")
                continue
            blob = ET.SubElement(blobs, "Blob")
            ET.SubElement(blob, "Name").text = name
            properties = ET.SubElement(blob, "Properties")
            ET.SubElement(properties, "Last-Modified").text = found.written
            ET.SubElement(properties, "Etag").text = found.etag
            ET.SubElement(properties, "Content-Length").text = str(len(found.data))
            ET.SubElement(properties, "BlobType").text = "BlockBlob"
        for folder in sorted(folders):
            ET.SubElement(ET.SubElement(blobs, "BlobPrefix"), "Name").text = folder
        ET.SubElement(root, "NextMarker").text = marker
        return b'<?xml version="1.0" encoding="utf-8"?>' + ET.tostring(root)


def _headers_of(blob: _Blob) -> dict[str, str]:
    return {"ETag": blob.etag, "Last-Modified": blob.written}


@contextmanager
def azure_containers(*names: str) -> Iterator[str]:
    """Run a server with containers; yield its connection string."""
    server = _Server(names)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield connection_string(f"http://127.0.0.1:{server.server_port}")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def connection_string(url: str, account: str = ACCOUNT, key: str = KEY) -> str:
    """Return the value of AZURE_STORAGE_CONNECTION_STRING."""
    return f"DefaultEndpointsProtocol=http;AccountName={account};AccountKey={key};BlobEndpoint={url}/{account};"
