"""The bytes of an archived file as a response: the complete file, or a range of it, streamed at the client's speed.

A partial copy whose files are in a bucket redirects the client there, with a URL that is valid for an hour.

A complete file is hashed while it is sent. If the hash turns out to be wrong at the end, the connection is aborted
before the last bytes, so that the client never takes the file for complete.
"""

from __future__ import annotations

from contextlib import ExitStack
from io import BufferedReader
from typing import BinaryIO, Final, cast

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from odfpy.archive.errors import FileRemoved
from odfpy.archive.local import LocalArchive
from odfpy.archive.record import FileRecord, Status
from odfpy.serving.archive.content_type import GZIP_MAGIC, content_headers
from odfpy.serving.archive.refusals import refusal
from odfpy.serving.http.ranges import Unsatisfiable, is_known, span_of, spanned

_PRESIGNED: Final = 3600
"""Lifetime of presigned URLs of a bucket in seconds."""

_NOT_MODIFIED: Final = 304
_UNSATISFIABLE: Final = 416


def require_given(archive: LocalArchive, record: FileRecord) -> None:
    """Check that a file may be served: withdrawn files are not.

    Raises:
        FileRemoved: it was withdrawn.
    """
    if record.status is Status.WITHDRAWN:
        release = archive.release(record)
        raise FileRemoved(
            f"{record.path} ({record.id}) was withdrawn by {release.who}: {release.why}",
            hint="The record still proves what was there: its hash and its size.",
        )


def content_response(request: Request, archive: LocalArchive, record: FileRecord) -> Response:
    """Respond with the bytes of a file; call it from a thread. The only function that decides where they come from.

    Args:
        request: the request; may have a `Range` header or an entity tag.
        archive: the archive that the file is in.
        record: record of the file.

    Raises:
        FileRemoved: it was withdrawn, or its bytes were removed.
        FileElsewhere: its bytes are not stored here, and no bucket has them.
        Refused: 416, the range is outside of the file.
    """
    require_given(archive, record)
    if (url := archive.presigned(record, _PRESIGNED)) is not None:
        return RedirectResponse(url, headers={"Cache-Control": "private, no-store"})
    tag = f'"{record.object}"'
    caching = {
        "ETag": tag,
        "Cache-Control": "private, no-cache",
        "Vary": "Authorization",
        "Accept-Ranges": "bytes",
    }
    with ExitStack() as stack:
        stream = stack.enter_context(archive.open(record))  # even if the client has it: it may have been removed
        if is_known(request, tag):
            return Response(status_code=_NOT_MODIFIED, headers=caching)
        headers = {**caching, **content_headers(record.path, cast("BufferedReader", stream).peek(len(GZIP_MAGIC)))}
        try:
            span = span_of(request, tag, record.size)
        except Unsatisfiable:
            problem = f"The file has {record.size} bytes, and none of those that were asked for"
            headers = {"Content-Range": f"bytes */{record.size}"}
            raise refusal(_UNSATISFIABLE, "InvalidRange", problem, headers) from None
        if span is None and request.method != "HEAD":
            stack.pop_all()  # kept open for the response

    def open_at(offset: int) -> BinaryIO:
        return stream if span is None else archive.open(record, offset=offset)

    return spanned(request, open_at, record.size, span, headers)
