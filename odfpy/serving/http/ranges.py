"""Bytes of files as responses: streamed completely or as a range (RFC 9110, "Range Requests")."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import BinaryIO, Final

import anyio.to_thread
from fastapi import HTTPException
from fastapi.responses import FileResponse, Response, StreamingResponse
from starlette.requests import Request

PIECE: Final = 128 * 1024
"""Bytes of a piece: a hundred clients with eight connections each must find room in memory."""

_RANGE: Final = re.compile(r"bytes=\s*(?:([0-9]{1,18})\s*)?-\s*(?:([0-9]{1,18})\s*)?", re.ASCII)
"""Spaces belong to one place each: were there two, a long run of them could be divided in a billion ways."""


class Unsatisfiable(Exception):
    """The requested range is outside of the file."""


class FileInPieces(FileResponse):
    """A response that streams a local file."""

    chunk_size = PIECE


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client already has the content with an entity tag (RFC 9110, If-None-Match)."""
    known = request.headers.get("If-None-Match", "")
    return any(known_tag.strip().removeprefix("W/") in ("*", tag) for known_tag in known.split(","))


def span_of(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """Return start and end of the requested range; None for the complete content.

    Anything but a single byte range is ignored, as RFC 9110 allows: a client that requests many small ranges gets the
    content once, not a part of it for each.

    Args:
        request: the request; may have a `Range` header.
        tag: entity tag of the content.
        size: size in bytes.

    Raises:
        Unsatisfiable: the range is outside of the content.
    """
    match = _RANGE.fullmatch(request.headers.get("Range", ""))
    if match is None or not (match[1] or match[2]) or request.headers.get("If-Range", tag) != tag:
        return None
    if not match[1]:
        start, end = max(0, size - int(match[2])), size
    else:
        start, end = int(match[1]), min(size, int(match[2] or size) + 1)
        if match[2] and int(match[2]) < start:
            return None
    if start >= size:
        raise Unsatisfiable
    return start, end


async def pieces(stream: BinaryIO, count: int) -> AsyncIterator[bytes]:
    """Yield a number of bytes of a stream, then close it.

    Args:
        stream: stream that is read in a thread.
        count: maximum number of bytes.
    """
    try:
        while count and (piece := await anyio.to_thread.run_sync(stream.read, min(count, PIECE))):
            count -= len(piece)
            yield piece
    finally:
        stream.close()


def streamed(
    request: Request, open_at: Callable[[int], BinaryIO], size: int, tag: str, headers: Mapping[str, str]
) -> Response:
    """Respond with content that is not simply a local file.

    Args:
        request: the request; may have a `Range` header.
        open_at: opens the content at an offset.
        size: size of the content.
        tag: entity tag of the content.
        headers: headers of the response, complete or partial.

    Raises:
        HTTPException: 416, the range is outside of the content.
    """
    try:
        span = span_of(request, tag, size)
    except Unsatisfiable:
        raise HTTPException(416, "It has none of these bytes", {"Content-Range": f"bytes */{size}"}) from None
    return spanned(request, open_at, size, span, headers)


def spanned(
    request: Request,
    open_at: Callable[[int], BinaryIO],
    size: int,
    span: tuple[int, int] | None,
    headers: Mapping[str, str],
) -> Response:
    """Respond with a range or with the complete content; to `HEAD` only with the headers.

    Args:
        request: the request.
        open_at: opens the content at an offset; not called for a `HEAD`.
        size: size of the content.
        span: the range; see `span_of`.
        headers: headers of the response.
    """
    start, end = span or (0, size)
    more = {**headers, "Accept-Ranges": "bytes", "Content-Length": str(end - start)}
    if span:
        more["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 206 if span else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=more)
    return StreamingResponse(pieces(open_at(start), end - start), status, more)
