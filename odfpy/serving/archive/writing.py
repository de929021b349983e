"""Uploads into an archive over HTTP: first the bytes, perhaps in parts, then the records that refer to them.

    /v0/archive/missing             POST: which of some hashes the archive lacks
    /v0/archive/objects/{hash}      HEAD: received bytes of a file; PATCH: the bytes from an offset; PUT: all bytes
    /v0/archive/objects             POST: many small files in one body (`object_batch`)
    /v0/archive/records             POST: records, all valid ones in one commit

All requests are idempotent: bytes are identified by their hash, and a record that already exists changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Any, Final, TypeVar

import anyio.to_thread
from fastapi import APIRouter, Body, Header, Path, Request, Response
from starlette.requests import ClientDisconnect

from odfpy.archive.errors import CannotCopy, WrongContent
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetLocked, OdfError
from odfpy.files import is_full
from odfpy.serving.archive.models import (
    OBJECT,
    MissingModel,
    NewRecordModel,
    ObjectsModel,
    ResultsModel,
    refusals,
)
from odfpy.serving.archive.object_batch import MAX_FILES, MEDIA_TYPE, MalformedBatch, unpack
from odfpy.serving.archive.pushing import Pushing
from odfpy.serving.archive.refusals import bad_request, refusal
from odfpy.serving.archive.served import ServedArchive, WritableArchive, archives_of
from odfpy.serving.archive.uploads import Progressed, UploadBusy, UploadTooLarge, WrongOffset, object_name
from odfpy.serving.http.bodies import BodyReader
from odfpy.serving.http.json_responses import reply
from odfpy.serving.http.limits import BUSY, Streamed

router = APIRouter(tags=["archives"])

T = TypeVar("T")

OFFSET: Final = "Upload-Offset"
"""Header: number of bytes of a file that are stored, or offset of the first byte of a request."""

COMPLETE: Final = "Upload-Complete"
"""Header: `?1` if these are all bytes of a file, or the last of them; else `?0`."""

LIMIT: Final = "Upload-Limit"
"""Header: `max-size=<bytes that a file may have>`."""

_NO_CONTENT: Final = 204
_OK: Final = 200
_Hash = Annotated[str, Path(max_length=200, description="Multihash of the file.", examples=[OBJECT])]
_ANY_BYTES: Final = "application/octet-stream"
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_BYTES: dict[str, Any] = {"requestBody": {"required": True, "content": {_ANY_BYTES: _BINARY}}}
_BATCH: dict[str, Any] = {"requestBody": {"required": True, "content": {MEDIA_TYPE: _BINARY, _ANY_BYTES: _BINARY}}}
_RECORDS: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "application/json": {
                "schema": {"type": "array", "maxItems": MAX_FILES, "items": NewRecordModel.model_json_schema()},
                "example": NewRecordModel.model_config["json_schema_extra"]["examples"],  # type: ignore[index]
            }
        },
    }
}
_HEADERS: Final = {
    OFFSET: {"description": "Number of received bytes.", "schema": {"type": "integer"}, "example": 1048576},
    COMPLETE: {"description": "Whether the file is complete.", "schema": {"type": "string"}, "example": "?0"},
}
_UPLOADED: dict[int | str, dict[str, Any]] = {
    204: {"description": "The bytes were received.", "headers": _HEADERS},
    **refusals(400, 401, 403, 404, 408, 409, 413, 422, 507),
}


@router.post("/v0/archive/missing", response_model=MissingModel, responses=refusals(400, 401, 403, 404, 422))
def missing(request: Request, served: WritableArchive, wanted: ObjectsModel) -> Response:
    """Return which of some files the archive lacks; needs the scope write."""
    names = {text: _name(text) for text in wanted.objects}
    lacking = [text for text, name in names.items() if not _progress(served, name).is_complete]
    return reply(request, {"missing": lacking})


@router.head(
    "/v0/archive/objects/{hash}",
    status_code=_OK,
    response_class=Response,
    responses={
        200: {"description": "The number of received bytes.", "headers": _HEADERS},
        **refusals(400, 401, 403, 404),
    },
)
def progress(served: WritableArchive, hash: _Hash) -> Response:  # noqa: A002 - the specification's term
    """Return how much of a file was received; needs the scope write."""
    limit = {LIMIT: f"max-size={served.uploads.most}", "Cache-Control": "no-store"}
    return Response(status_code=_OK, headers={**_upload_headers(_progress(served, _name(hash))), **limit})


@router.patch(
    "/v0/archive/objects/{hash}",
    status_code=_NO_CONTENT,
    responses=_UPLOADED,
    openapi_extra=_BYTES,
    dependencies=[Streamed],
)
async def append(
    request: Request,
    served: WritableArchive,
    hash: _Hash,  # noqa: A002
    upload_offset: Annotated[int, Header(ge=0, le=2**60, description="Offset of the first byte.")],
    upload_complete: Annotated[
        str, Header(max_length=10, description="?0 if more bytes follow later, ?1 with the last bytes.")
    ] = "?1",
) -> Response:
    """Send a file, from some byte on; needs the scope write.

    What has come stays when the connection breaks: `HEAD` tells where to go on. The last bytes are answered when all of
    the file has been checked against its hash.
    """
    if upload_complete not in ("?0", "?1"):
        raise bad_request("InvalidUpload", f"{COMPLETE} is ?0 or ?1")
    return await _append(request, served, _name(hash), upload_offset, is_last=upload_complete == "?1")


@router.put(
    "/v0/archive/objects/{hash}",
    status_code=_NO_CONTENT,
    responses=_UPLOADED,
    openapi_extra=_BYTES,
    dependencies=[Streamed],
)
async def put(request: Request, served: WritableArchive, hash: _Hash) -> Response:  # noqa: A002
    """Upload a whole file; needs the scope write."""
    name = _name(hash)
    await _in_thread(request, lambda: served.uploads.drop_part(name))
    return await _append(request, served, name, 0, is_last=True)


@router.post(
    "/v0/archive/objects",
    status_code=_NO_CONTENT,
    responses={
        204: {"description": "All files were received."},
        **refusals(400, 401, 403, 404, 408, 413, 415, 422, 507),
    },
    openapi_extra=_BATCH,
    dependencies=[Streamed],
)
async def put_all(request: Request, served: WritableArchive) -> Response:
    """Upload many small files, each after a line with its hash and size; all or none. Needs the scope write."""
    kind = request.headers.get("Content-Type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if kind not in (MEDIA_TYPE, _ANY_BYTES):
        raise refusal(415, "InvalidUpload", f"Files come as {MEDIA_TYPE}")
    body = BodyReader(request, request.app.state.settings.patience)

    def work() -> None:
        with served.scratch() as scratch:
            served.uploads.insert_all(unpack(body, scratch, served.uploads.most))

    await _in_thread(request, work)
    return Response(status_code=_NO_CONTENT)


@router.post(
    "/v0/archive/records",
    response_model=ResultsModel,
    responses=refusals(400, 401, 403, 404, 409, 413, 422, 507),
    openapi_extra=_RECORDS,
)
async def push(
    request: Request,
    served: WritableArchive,
    records: Annotated[list[Any], Body(max_length=MAX_FILES)],
) -> Response:
    """Archive uploaded files, all valid ones in one commit; needs the scope write.

    Each record has its own result. Sizes and hashes are computed from the bytes; values in records are only checked.
    """
    archives = archives_of(request)

    def work() -> Response:
        with _as_refusals(), archives.lock_of(served.archive.dataset):
            return reply(request, {"results": Pushing(served).push(records)})

    return await anyio.to_thread.run_sync(work, limiter=archives.committing)


# --- Pieces ---


async def _append(request: Request, served: ServedArchive, name: Multihash, offset: int, *, is_last: bool) -> Response:
    announced = request.headers.get("Content-Length", "")
    if announced.isdecimal() and offset + int(announced[:20]) > served.uploads.most:
        raise refusal(413, "TooLarge", f"A file may have {served.uploads.most} bytes")
    body = BodyReader(request, request.app.state.settings.patience)

    def work() -> Progressed:
        if served.has(name):
            return _progress(served, name)
        if announced.isdecimal():
            served.uploads.require_room(int(announced[:20]))
        return served.uploads.append(name, offset, body, is_last=is_last)

    return Response(status_code=_NO_CONTENT, headers=_upload_headers(await _in_thread(request, work)))


async def _in_thread(request: Request, work: Callable[[], T]) -> T:
    with _as_refusals():
        return await anyio.to_thread.run_sync(work, limiter=archives_of(request).uploading)


@contextmanager
def _as_refusals() -> Iterator[None]:
    try:
        yield
    except WrongOffset as error:
        raise refusal(409, "WrongOffset", f"{error}\nAsk with HEAD where to go on.") from error
    except UploadBusy as error:
        raise refusal(409, "Busy", f"{error}\nTry again in a moment.", BUSY) from error
    except DatasetLocked as error:
        raise refusal(409, "Busy", "Another process is writing to the archive; try again later", BUSY) from error
    except UploadTooLarge as error:
        raise refusal(413, "TooLarge", str(error)) from error
    except WrongContent as error:
        raise refusal(422, "WrongContent", error.message) from error
    except MalformedBatch as error:
        raise refusal(422, "InvalidUpload", str(error)) from error
    except CannotCopy as error:
        raise refusal(507, "NoRoom", error.message) from error
    except ClientDisconnect as error:
        raise bad_request("InvalidUpload", "The request body ended early") from error
    except (OdfError, OSError) as error:
        if is_full(error):
            raise refusal(
                507, "NoRoom", "The server has no disk space for the files; none of them was archived"
            ) from error
        raise


def _name(text: str) -> Multihash:
    name = object_name(text)
    if name is None:
        raise bad_request("InvalidHash", "That is not the multihash of a file: BLAKE3 or SHA3-256, in multibase")
    return name


def _progress(served: ServedArchive, name: Multihash) -> Progressed:
    """Return the state of a file, whether it is in a record already or still an upload."""
    size = served.size_of(name)
    return served.uploads.progress(name) if size is None else Progressed(size, is_complete=True)


def _upload_headers(progressed: Progressed) -> dict[str, str]:
    return {OFFSET: str(progressed.offset), COMPLETE: "?1" if progressed.is_complete else "?0"}
