"""JSON responses: compressed as the client accepts, and not sent again if the client has them."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import Response, StreamingResponse

from odfpy.files import make_folder
from odfpy.query.wire.commitments import hash_of
from odfpy.query.wire.response import ResponseLimits
from odfpy.serving.callers.access import registry_of

_MIN_SIZE: Final = 1000
_MAX_HELD_SIZE: Final = 256 * 1024
_PIECE: Final = 128 * 1024
_NOT_MODIFIED: Final = 304
_PART: Final = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*)?")
"""Spaces belong to one place each: were there two, a long run of them could be divided in a billion ways."""
_CODECS: Final = ("zstd", "gzip")


def tag_of(*parts: Any) -> str:
    """Return an ETag for whatever a response depends on: JSON trees. Weak, since compression may differ."""
    return f'W/"{hash_of(list(parts))}"'


def not_modified(request: Request, tag: str | None) -> Response | None:
    """Return a 304 response if the client already has it (RFC 9110, If-None-Match)."""
    known = [tag_known.strip().removeprefix("W/") for tag_known in request.headers.get("If-None-Match", "").split(",")]
    if tag is None or not ("*" in known or tag.removeprefix("W/") in known):
        return None
    return Response(status_code=_NOT_MODIFIED, headers=_headers(tag))


def reply(request: Request, tree: Any, tag: str | None = None, more: Mapping[str, str] | None = None) -> Response:
    """Create a response; call it from a thread, since compression takes time.

    Args:
        request: the question.
        tree: content of the response, as a JSON tree.
        tag: its ETag.
        more: additional headers.
    """
    body = json.dumps(tree, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode("utf-8", "replace")
    headers = {**_headers(tag), **(more or {})}
    codec = _codec(request.headers.get("Accept-Encoding", ""))
    if codec is not None and len(body) >= _MIN_SIZE:
        import pyarrow as pa

        body = pa.compress(body, codec=codec, asbytes=True)
        headers["Content-Encoding"] = codec
    if len(body) <= _MAX_HELD_SIZE:
        return Response(body, media_type="application/json", headers=headers)
    headers["Content-Length"] = str(len(body))
    return StreamingResponse(_from_disk(request, body), media_type="application/json", headers=headers)


def _from_disk(request: Request, body: bytes) -> Iterator[bytes]:
    """Stream a large response from disk: a hundred slow clients must not hold it all in memory."""
    folder = registry_of(request).storages[0].run
    make_folder(folder)
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(body)
        del body
        file.seek(0)
        yield from iter(partial(file.read, _PIECE), b"")


def _headers(tag: str | None) -> dict[str, str]:
    headers = {"Vary": "Accept-Encoding, Authorization", "Cache-Control": "private, no-cache"}
    return headers if tag is None else {**headers, "ETag": tag}


def _codec(accepted: str) -> str | None:
    """Return the encoding that the client prefers among the supported ones, None for none."""
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        match = _PART.fullmatch(part)
        if match:
            weights[match.group(1)] = float(match.group(2) or 1)
    liked = {codec: weights.get(codec, weights.get("*", 0.0)) for codec in _CODECS}
    best = max(_CODECS, key=lambda codec: liked[codec])
    return best if liked[best] > 0 else None


def limits_of(connection: HTTPConnection) -> ResponseLimits:
    """Return the maximum size of a response of this server."""
    settings = connection.app.state.settings
    return ResponseLimits(settings.max_rows, settings.max_answer)
