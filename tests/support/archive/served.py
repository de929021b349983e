"""Archives on servers, for tests."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from support.servers.serving import Answer, ask, serving

from odfpy.archive.archive import NewFile
from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.record import FileRecord
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.http.tls import Tls
from odfpy.serving.server import DatasetServer

YEAR_2010 = 1_262_304_000_000
DAY = 24 * 3600 * 1000


def push(archive: LocalArchive, file: Path, content: bytes = b"once upon a time", **said: Any) -> FileRecord:
    """Archive some bytes, and return their record."""
    (record,) = push_many(archive, file, [{"content": content, **said}])
    return record


def push_many(archive: LocalArchive, file: Path, files: Sequence[dict[str, Any]]) -> list[FileRecord]:
    """Archive several files in one commit; each has its content, and otherwise the fields of `NewFile`."""
    new = []
    for number, said in enumerate(files):
        place = file.with_name(f"{file.name}-{number}")
        place.write_bytes(said.pop("content", b"%d" % number))
        new.append(NewFile(file=place, **{"what": "foo", "where": "here", "start": YEAR_2010, **said}))
    results = archive.push_all(new)
    assert [result.error for result in results] == [None] * len(new)
    return [result.record for result in results if result.record]


@dataclass(frozen=True)
class ArchiveClient:
    """Sends requests to an archive, with or without a token.

    Attributes:
        base: URL of the archive, or of the server.
        token: the token.
    """

    base: str
    token: str | None = None

    def get(self, path: str, parameters: Mapping[str, Any] | None = None, **headers: str) -> Answer:
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        return ask(f"{self.base}/v0/archive/{path}{query}", token=self.token, **headers)

    def files(self, **parameters: Any) -> Any:
        answer = self.get("files/", parameters)
        assert answer.status == 200, answer.body
        return answer.json

    def all_files(self, **parameters: Any) -> list[list[Any]]:
        """Return the records of all pages, page by page."""
        page = self.files(**parameters)
        pages = [page["records"]]
        while page["next"] is not None:
            answer = ask(page["next"], token=self.token)
            assert answer.status == 200
            page = answer.json
            pages.append(page["records"])
        return pages

    def refusal(self, path: str, parameters: Mapping[str, Any] | None = None) -> tuple[int, str]:
        """Status and code of a refusal, which has a message, too."""
        answer = self.get(path, parameters)
        assert answer.json["message"]
        return answer.status, answer.json["code"]

    def head(self, name: Multihash) -> tuple[int, str]:
        """Return the number of stored bytes of a file, and whether it is complete."""
        answer = ask(self._object(name), method="HEAD", token=self.token)
        assert answer.status == 200
        return int(answer.headers["upload-offset"]), answer.headers["upload-complete"]

    def patch(self, name: Multihash, data: bytes, offset: int, complete: str = "?1") -> Answer:
        headers = {"Upload-Offset": str(offset), "Upload-Complete": complete}
        return ask(self._object(name), method="PATCH", body=data, token=self.token, **headers)

    def put(self, name: Multihash, data: bytes) -> Answer:
        return ask(self._object(name), method="PUT", body=data, token=self.token)

    def put_all(self, body: bytes, kind: str = "application/vnd.odf.objects") -> Answer:
        return ask(
            f"{self.base}/v0/archive/objects", method="POST", body=body, token=self.token, **{"Content-Type": kind}
        )

    def push(self, *records: Any) -> list[Any]:
        answer = self.post_records(list(records))
        assert answer.status == 200, answer.body
        results: list[Any] = answer.json["results"]
        return results

    def post_records(self, records: Any) -> Answer:
        return self.post("records", records)

    def post(self, path: str, tree: Any) -> Answer:
        body = json.dumps(tree).encode()
        headers = {"Content-Type": "application/json"}
        return ask(f"{self.base}/v0/archive/{path}", method="POST", body=body, token=self.token, **headers)

    def _object(self, name: Multihash) -> str:
        return f"{self.base}/v0/archive/objects/{name}"


def hash_of(data: bytes) -> Multihash:
    return Multihash.of(data, BLAKE3)


def record_of(data: bytes, **said: Any) -> dict[str, Any]:
    """Return a record as it is pushed."""
    known = {"what": "foo", "where": "here", "start": YEAR_2010, "path": "/var/log/foo.log"}
    return {**known, "object": str(hash_of(data)), **said}


def batch_of(*contents: bytes) -> bytes:
    """Many files in one body."""
    return b"".join(f"{hash_of(data)} {len(data)}\n".encode() + data for data in contents)


def packed(data: bytes) -> bytes:
    return gzip.compress(data, mtime=0)


@dataclass(frozen=True)
class Served:
    """An archive, its server, and its readers and writers."""

    workspace: Workspace
    archive: LocalArchive
    server: DatasetServer
    reader: ArchiveClient
    writer: ArchiveClient

    @property
    def url(self) -> str:
        return f"{self.server.url}/logs"


def serve_in(folder: Path, tls: Tls | None = None) -> Iterator[Served]:
    workspace = Workspace.init(folder / "workspace")
    archive = init_archive(workspace, "logs")
    tokens = Tokens(workspace.odf)
    reader, writer = tokens.new("reader", Scope.READ), tokens.new("writer", Scope.WRITE)
    with serving(workspace, tls=tls, max_object=64 << 20, patience=10) as server:
        url = f"{server.url}/logs"
        yield Served(workspace, archive, server, ArchiveClient(url, reader), ArchiveClient(url, writer))
