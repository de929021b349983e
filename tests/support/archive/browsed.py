"""An archive for the pages: files of each kind, some of them hostile, one corrected and one withdrawn."""

from __future__ import annotations

import gzip
import io
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pyarrow as pa
import pyarrow.parquet as pq
from support.servers.serving import Answer, ask, serving

from odfpy.archive.archive import NewFile
from odfpy.archive.local import LocalArchive, init_archive
from odfpy.archive.record import FileRecord
from odfpy.archive.times import parse_time
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens

HTML = "<img src=x onerror=alert(1)>"
LONG = "n" * 200 + ".txt"
MANY_LINES = 20_000
PICTURE_SIZE = (320, 200)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="40" height="20">'
    "<script>document.title='hacked'</script><image xlink:href='https://example.com/x.png'/><rect width='40' height='20'/></svg>"
)

_Said = dict[str, str | None]


def png(width: int, height: int, *, data: bytes | None = None) -> bytes:
    """Return a picture; with `data` instead of pixels, an invalid one."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    pixels = zlib.compress((b"\0" + b"\x20\x80\xa0" * width) * height) if data is None else data
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def parquet(table: pa.Table) -> bytes:
    """Return a file of Parquet."""
    stream = io.BytesIO()
    pq.write_table(table, stream)
    return stream.getvalue()


def bomb(byte: bytes, count: int = 300 << 20) -> bytes:
    """Return many bytes packed as one stream of gzip: the same piece again and again, since to pack them takes seconds."""
    size = 1 << 20
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS)
    piece = packer.compress(byte * size) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(count // size):
        check = zlib.crc32(byte * size, check)
    head = gzip.compress(b"")[:10]
    return head + piece * (count // size) + packer.flush() + struct.pack("<II", check, count)


def _contents() -> Mapping[str, tuple[bytes, _Said]]:
    """Return contents by name, and their metadata besides the usual one."""
    table = pa.table(
        {
            "id": range(5000),
            "when": pa.array([1_700_000_000_000 + n for n in range(5000)], pa.timestamp("ms", "UTC")),
            'na"me': [f"<b>{n}</b>" for n in range(5000)],
            "tags": [["a", "b"]] * 5000,
        }
    )
    wide = pa.table({f"c{number}": [number] for number in range(1000)})
    damaged = bytearray(parquet(table))
    damaged[-300:-20] = b"\xff" * 280
    return {
        "plain.log": (b"one\ntwo\n", {"where": "web1", "start": "2024-02-29T10:00:00Z", "end": "2024-03-01T02:00:00Z"}),
        "long.log": (b"".join(b"line %d\n" % number for number in range(MANY_LINES)), {"work_id": "job-1"}),
        "packed.log.gz": (gzip.compress(b"unpacked\n" * 3), {"work_id": "job-1"}),
        "bomb.log.gz": (bomb(b"\0"), {}),
        "text-bomb.txt.gz": (bomb(b"x"), {}),
        "page.html": (
            f"<script>document.title='hacked'</script><h1>{HTML}</h1>".encode(),
            {"path": f"/srv/{HTML}.html"},
        ),
        "odd.txt": ("שלום עולם\n\x1b[31mred\x07\n".encode(), {"path": f"/srv/שלום/{LONG}"}),
        "drawing.svg": (SVG.encode(), {}),
        "picture.png": (png(*PICTURE_SIZE), {"what": "image", "where": "camera-1"}),
        "huge.png": (png(50_000, 50_000, data=zlib.compress(bytes(1000))), {"what": "image"}),
        "broken.png": (png(10, 10)[:40], {"what": "image"}),
        "table.csv": (f'day,"{HTML}",=cmd()\n'.encode() + b'2024-03-01,"a, b",1\n' * 300, {"what": "measurement"}),
        "no-table.csv": (b'a,"' + b"x" * 200_000, {"what": "measurement"}),
        "table.parquet": (parquet(table), {"what": "measurement"}),
        "wide.parquet": (parquet(wide), {"what": "measurement"}),
        "empty.parquet": (parquet(pa.table({})), {"what": "measurement"}),
        "no.parquet": (b"PAR1 this is none PAR1", {"what": "measurement"}),
        "damaged.parquet": (bytes(damaged), {"what": "measurement"}),
        "bytes.bin": (bytes(range(256)) * 10, {}),
        "empty.txt": (b"", {}),
        "lost.txt": (b"these bytes are lost\n", {}),
        "changed.txt": (b"these bytes are changed\n", {}),
        "secret.txt": (b"password\n", {}),
        "removed.txt": (b"these bytes are removed\n", {}),
    }


def browsed_archive(archive: LocalArchive, folder: Path) -> dict[str, FileRecord]:
    """Fill an archive; return the records by the names of the files.

    Args:
        archive: a new one.
        folder: an empty one, for the files.
    """
    new = []
    for name, (content, said) in _contents().items():
        file = folder / name
        file.write_bytes(content)
        end = said.get("end")
        new.append(
            NewFile(
                file=file,
                what=said.get("what") or "log",
                where=said.get("where") or "web2",
                work_id=said.get("work_id"),
                start=parse_time(said.get("start") or "2024-03-05T12:00:00Z"),
                end=None if end is None else parse_time(end),
                path=said.get("path") or f"/var/log/{name}",
            )
        )
    results = archive.push_all(new)
    records = {result.file.name: result.record for result in results if result.record}
    assert len(records) == len(new), [result.error for result in results]
    archive.change([records["plain.log"].id], who="ann", why=f"wrong host {HTML}", where="web9")
    archive.withdraw([records["secret.txt"].id, records["removed.txt"].id], who="bob", why="has passwords in it")
    archive.change([records["secret.txt"].id], who="ann", why="wrong host, found later", where="web8")
    data = archive.dataset.folder / "data"
    for name in ("lost.txt", "removed.txt"):
        (data / str(records[name].object)).unlink()
    changed = data / str(records["changed.txt"].object)
    changed.chmod(0o600)
    changed.write_bytes(b"these bytes are other ones\n"[: records["changed.txt"].size])
    return records


@dataclass(frozen=True)
class Looked:
    """That archive on a server, which has an empty one, too.

    Attributes:
        archive: the archive, of the name `logs`.
        records: records by the names of the files.
        base: the server.
        token: token of a reader.
    """

    archive: LocalArchive
    records: Mapping[str, FileRecord]
    base: str
    token: str

    def ask(self, path: str, *, token: str | None = "", **parameters: Any) -> Answer:
        query = f"?{urlencode(parameters, doseq=True)}" if parameters else ""
        return ask(f"{self.base}/logs/{path}{query}", token=self.token if token == "" else token)

    def get(self, path: str, **parameters: Any) -> Any:
        """Return a response, which must be successful."""
        answer = self.ask(path, **parameters)
        assert answer.status == 200, answer.body
        return answer.json

    def of(self, name: str, call: str = "") -> str:
        """Return the path of a call about a file."""
        return f"file/{self.records[name].id}{call and '/' + call}"


def looked_at(folder: Path) -> Iterator[Looked]:
    """Serve it from a new workspace."""
    files = folder / "files"
    files.mkdir()
    workspace = Workspace.init(folder / "workspace")
    archive = init_archive(workspace, "logs")
    records = browsed_archive(archive, files)
    init_archive(workspace, "empty")
    token = Tokens(workspace.odf).new("reader", Scope.READ)
    with serving(workspace) as server:
        yield Looked(archive, records, server.url, token)
