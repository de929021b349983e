"""Bytes of files as answers: piece by piece, whole or a range of them (RFC 9110, "Range Requests")."""

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

_RANGE: Final = re.compile(r"bytes=\s*([0-9]{0,18})\s*-\s*([0-9]{0,18})\s*", re.ASCII)


class Unsatisfiable(Exception):
    """A file has none of the bytes that are asked for."""


class FileInPieces(FileResponse):
    """A file of this machine."""

    chunk_size = PIECE


def is_known(request: Request, tag: str) -> bool:
    """Return whether the client says that it has what has that entity tag (RFC 9110, If-None-Match)."""
    known = request.headers.get("If-None-Match", "")
    return any(one.strip().removeprefix("W/") in ("*", tag) for one in known.split(","))


def span_of(request: Request, tag: str, size: int) -> tuple[int, int] | None:
    """The bytes that are asked for, from and up to; None for all of them.

    Anything but a single range of bytes is ignored, as RFC 9110 allows: a client that asks for many small ranges gets
    the file once, not a part of it for each.

    Args:
        request: may ask for a range.
        tag: the entity tag of the file.
        size: its bytes.

    Raises:
        Unsatisfiable: the file has none of them.
    """
    found = _RANGE.fullmatch(request.headers.get("Range", ""))
    if found is None or found[1] + found[2] == "" or request.headers.get("If-Range", tag) != tag:
        return None
    if not found[1]:
        start, end = max(0, size - int(found[2])), size
    else:
        start, end = int(found[1]), min(size, int(found[2] or size) + 1)
        if found[2] and int(found[2]) < start:
            return None
    if start >= size:
        raise Unsatisfiable
    return start, end


async def pieces(stream: BinaryIO, count: int) -> AsyncIterator[bytes]:
    """Yield so many bytes of a stream, which is closed in the end.

    Args:
        stream: read in a thread.
        count: bytes at most.
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
    """Answer with bytes that are not a file of this machine as they are.

    Args:
        request: may ask for a range.
        open_at: gives them from a byte on.
        size: how many there are.
        tag: their entity tag.
        headers: of the answer, also of one with a range.

    Raises:
        HTTPException: 416, there are none of the bytes that are asked for.
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
    """Answer with a range of bytes, or with all of them; a `HEAD` only with the headers.

    Args:
        request: the question.
        open_at: gives the bytes from one on; not called for a `HEAD`.
        size: how many there are.
        span: which of them; see `span_of`.
        headers: of the answer.
    """
    start, end = span or (0, size)
    more = {**headers, "Accept-Ranges": "bytes", "Content-Length": str(end - start)}
    if span:
        more["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    status = 206 if span else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=more)
    return StreamingResponse(pieces(open_at(start), end - start), status, more)
