"""URLs of files, and their content: each URL is bound to a file, a caller and their permissions, and expires.

/delta-sharing/files/<id>.parquet?X-Amz-Signature=<sealed>

A file in a bucket of which nothing is hidden is served by a presigned URL of its store, if credentials for that exist.
The server does not see how such a URL is used, and cannot revoke it.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse

from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.callers import SharingCaller
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.state import SharingState, base_of, state_of
from odfpy.sharing.decisions import View
from odfpy.sharing.errors import CannotShare
from odfpy.sharing.files.maker import ServedFile
from odfpy.sharing.model import SharedTable
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.remote import BucketFile, known_object

router = APIRouter()

# Readers of Spark and of the Delta kernel only recognize a URL by certain names in its query; this is one of them.
SIGNATURE: Final = "X-Amz-Signature"
_RANGE: Final = re.compile(r"bytes=([0-9]{0,19})-([0-9]{0,19})")  # for several ranges, the complete file is returned
_PIECE: Final = 1 << 20
_BYTES: Final = "application/octet-stream"
_OVER: Final = "This URL is not from this server, or has expired; request the table again"


class FileUrls:
    """URLs of files for one caller and one table."""

    def __init__(
        self, state: SharingState, request: Request, caller: SharingCaller, table: SharedTable, view: View
    ) -> None:
        self._state = state
        self._base = base_of(request)
        self._bound = {
            "who": caller.principal_id,
            "token": caller.token,
            "name": caller.name,
            "table": str(table.path),
            "seen": _digest(table, view),
        }
        self.expires = int(time.time()) + state.url_lifetime

    def url_for(self, file: ServedFile, version: int) -> str:
        """Return the URL of a file, valid until `expires`.

        Args:
            file: the file.
            version: version of the table, for the audit log.
        """
        place = file.path
        if isinstance(place, BucketFile):
            presigned = place.presigned(self.expires - int(time.time())) if self._state.is_presigned else None
            if presigned is not None:
                return presigned
            known: dict[str, Any] = {"bucket": place.bucket.url, "key": place.key}
        else:
            known = {"path": str(place)}
        sealed = {**self._bound, **known, "size": file.size, "until": self.expires, "version": version}
        text = self._state.seal.close(sealed, f"file {file.id}")
        return f"{self._base}/delta-sharing/files/{file.id}.parquet?{SIGNATURE}={text}"


@router.head("/files/{name}")
@router.get("/files/{name}")
def file(request: Request, name: str, sealed: Annotated[str, Query(alias=SIGNATURE, max_length=8192)]) -> Response:
    """Return a file, or a range of it, for clients with its signed URL."""
    state = state_of(request)
    known = state.seal.open(sealed, f"file {name.removesuffix('.parquet')}")
    if known is None:
        raise SharingError(403, _OVER)
    note(request.scope, path=known["table"], version=known["version"], files=1)
    request.scope.setdefault("state", {})["token_name"] = known["name"]
    if known["until"] <= time.time() or not _may_still(state, known):
        raise SharingError(403, _OVER)
    headers = {
        "ETag": f'"{name}"',
        "Cache-Control": "private, max-age=3600",
        "X-Content-Type-Options": "nosniff",
    }
    if "bucket" in known:
        return _of_bucket(request, known, headers)
    return _of_folder(request, known, headers)


def _of_folder(request: Request, known: dict[str, Any], headers: dict[str, str]) -> Response:
    """Respond with a local file, or a range of it."""
    path = Path(known["path"])
    try:
        size = path.stat().st_size
    except OSError:
        raise SharingError(403, _OVER) from None  # it was evicted from the cache
    if size != known["size"]:
        raise SharingError(403, _OVER)

    def pieces(start: int, end: int) -> Iterator[bytes]:
        with path.open("rb") as opened:
            opened.seek(start)
            while start < end and (piece := opened.read(min(_PIECE, end - start))):
                start += len(piece)
                yield piece

    return _ranged(request, size, pieces, headers)


def _of_bucket(request: Request, known: dict[str, Any], headers: dict[str, str]) -> Response:
    """Respond with an object of a bucket, or a range of it, streamed from the store."""
    try:
        place = known_object(known["bucket"], known["key"])
    except CannotShare:
        raise SharingError(403, _OVER) from None
    if place.size != known["size"]:
        raise SharingError(403, _OVER)
    return _ranged(request, place.size, place.pieces, headers)


def _ranged(
    request: Request, size: int, pieces: Callable[[int, int], Iterator[bytes]], headers: dict[str, str]
) -> Response:
    """Respond with a file, or with the requested range.

    Args:
        request: the request.
        size: bytes of the file.
        pieces: reads from one offset to another.
        headers: headers of the response.
    """
    start, end, status = 0, size, 200
    asked = _RANGE.fullmatch(request.headers.get("range", ""))
    is_same = request.headers.get("if-range", headers["ETag"]) == headers["ETag"]
    if asked is not None and asked[0] != "bytes=-" and is_same:
        first, last = asked.groups()
        start = int(first) if first else max(0, size - int(last))
        end = min(size, int(last) + 1) if first and last else size
        if start >= end:
            return Response(status_code=416, headers={"Content-Range": f"bytes */{size}"})
        status = 206
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    headers |= {"Accept-Ranges": "bytes", "Content-Length": str(end - start)}
    if request.method == "HEAD":
        return Response(None, status, headers, media_type=_BYTES)
    if end - start <= _PIECE:  # without another switch between threads: most requests are for footers
        return Response(b"".join(pieces(start, end)), status, headers, media_type=_BYTES)
    return StreamingResponse(pieces(start, end), status, headers, media_type=_BYTES)


def _may_still(state: SharingState, known: dict[str, Any]) -> bool:
    """Return whether the caller would still get this URL: token, grant and table are still the same."""
    from odfpy.serving.sharing.callers import find

    caller = find(state, known["token"])
    if caller is None or caller.principal_id != known["who"]:
        return False
    table = state.sharing.shares.find_table(SharePath.parse(known["table"]))
    view = None if table is None else caller.reach.view(table)
    return table is not None and view is not None and _digest(table, view) == known["seen"]


def _digest(table: SharedTable, view: View) -> str:
    """Return a text that identifies what the caller sees: the table, the data behind it, and the part of it."""
    import hashlib

    return hashlib.sha256(table.identity.encode() + b"\0" + view.identity).hexdigest()[:32]
