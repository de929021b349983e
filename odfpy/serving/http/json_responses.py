"""Answers of JSON: packed as the client can unpack them, and not sent again to who has them."""

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
_PART: Final = re.compile(r"\s*([\w*-]+)\s*(?:;\s*q\s*=\s*([01](?:\.\d{0,3})?))?\s*")
_CODECS: Final = ("zstd", "gzip")


def tag_of(*parts: Any) -> str:
    """An ETag of whatever an answer follows from: trees of JSON. Weak, since the same answer may be packed or not."""
    return f'W/"{hash_of(list(parts))}"'


def not_modified(request: Request, tag: str | None) -> Response | None:
    """That the client has the answer, if it says so (RFC 9110, If-None-Match)."""
    known = [one.strip().removeprefix("W/") for one in request.headers.get("If-None-Match", "").split(",")]
    if tag is None or not ("*" in known or tag.removeprefix("W/") in known):
        return None
    return Response(status_code=_NOT_MODIFIED, headers=_headers(tag))


def reply(request: Request, tree: Any, tag: str | None = None, more: Mapping[str, str] | None = None) -> Response:
    """An answer; for threads, since packing takes time.

    Args:
        request: the question.
        tree: the answer, as a tree of JSON.
        tag: its ETag.
        more: further headers.
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
    """A large answer, in pieces as the client takes them: a hundred slow clients must not hold it all in memory."""
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
    """The packing that a client likes best of those that there are, None for none."""
    weights: dict[str, float] = {}
    for part in accepted.lower().split(","):
        found = _PART.fullmatch(part)
        if found:
            weights[found.group(1)] = float(found.group(2) or 1)
    liked = {codec: weights.get(codec, weights.get("*", 0.0)) for codec in _CODECS}
    best = max(_CODECS, key=lambda codec: liked[codec])
    return best if liked[best] > 0 else None


def limits_of(connection: HTTPConnection) -> ResponseLimits:
    """Return how much an answer of this server may be."""
    settings = connection.app.state.settings
    return ResponseLimits(settings.max_rows, settings.max_answer)
