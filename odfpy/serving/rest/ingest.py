"""`POST /{dataset}/ingest`: ingest data from callers with a token of scope write, as `odf ingest` does."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from email.message import Message
from pathlib import Path
from typing import Annotated, Any, BinaryIO, Final

import anyio
from fastapi import APIRouter, Header, HTTPException, Query, Request, Response
from pydantic import BaseModel, ConfigDict
from starlette.requests import ClientDisconnect

from odfpy.coordinator.ingest.idempotency import Ingest, Ingested, KeyUsedAlready, ingest_once
from odfpy.coordinator.ingest.ingest_request import IngestRequest
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import DatasetLocked, IngestError, InvalidValue, OdfError
from odfpy.serving.callers.access import Writable
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import reply
from odfpy.serving.http.limits import Streamed
from odfpy.serving.http.query_limiter import refusal
from odfpy.serving.rest.models import HASH, answers, with_headers

router = APIRouter(tags=["queries"])

FORMATS: Final = {
    "text/csv": "csv",
    "application/csv": "csv",
    "application/json": "json",
    "application/x-ndjson": "ndjson",
    "application/ndjson": "ndjson",
    "application/jsonl": "ndjson",
    "application/x-jsonlines": "ndjson",
    "application/geo+json": "geojson",
    "application/x-ndgeojson": "ndgeojson",
    "application/geo+json-seq": "ndgeojson",
    "application/vnd.apache.parquet": "parquet",
    "application/x-parquet": "parquet",
    "application/parquet": "parquet",
    "application/vnd.shp": "esrishapefile",
    "application/zip": "esrishapefile",
}
"""Media types, and the readers of their content."""

_ANY: Final = ("", "application/octet-stream")
_PACKINGS: Final = {"gzip": "gzip", "x-gzip": "gzip", "zstd": "zstd"}
_PIECE: Final = 1024 * 1024
_MIN_ROOM: Final = 64 * 1024 * 1024
_MAX_PACKED: Final = 200
_PARALLEL: Final = 4


class IngestModel(BaseModel):
    """The outcome of an ingest."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "outcome": "updated",
                    "oldHead": None,
                    "newHead": HASH,
                    "numRecords": 1,
                    "watermark": "2024-01-02T00:00:00Z",
                }
            ]
        }
    )

    outcome: str
    oldHead: str | None  # noqa: N815 - as everywhere in the specification
    newHead: str | None  # noqa: N815
    numRecords: int  # noqa: N815
    watermark: str | None


@dataclass(slots=True)
class Ingests:
    """Ingests of one server; those into one dataset go one after the other.

    Attributes:
        engines: those of each workspace, by its folder.
    """

    engines: Mapping[Path, EngineRegistry]
    limiter: anyio.CapacityLimiter = field(default_factory=lambda: anyio.CapacityLimiter(_PARALLEL))
    _locks: dict[Path, threading.Lock] = field(default_factory=dict)

    def take(self, dataset: StoredDataset, given: Ingest, key: str | None) -> tuple[Ingested, bool]:
        """Ingest a file; call it from a thread. Exceptions as of `ingest_once`.

        Args:
            dataset: the dataset.
            given: the data and its options.
            key: idempotency key, None for none.
        """
        with self._locks.setdefault(dataset.folder, threading.Lock()):
            return ingest_once(dataset, given, key, self.engines[dataset.workspace_folder.root])


_ROW: Final = {"event_time": "2024-01-01T00:00:00Z", "id": 1, "name": "a"}
_POINT: Final = {"type": "Point", "coordinates": [14.4, 50.1]}
_FEATURE: Final = {"type": "Feature", "properties": _ROW, "geometry": _POINT}
_FEATURES: Final = {"type": "FeatureCollection"}
_BINARY: Final = {"schema": {"type": "string", "format": "binary"}}
_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {
            "text/csv": {"schema": {"type": "string"}, "example": "event_time,id,name\n2024-01-01T00:00:00Z,1,a\n"},
            "application/json": {"schema": {"type": "array", "items": {}}, "example": [_ROW]},
            "application/x-ndjson": {"schema": {"type": "string"}, "example": f"{json.dumps(_ROW)}\n"},
            "application/geo+json": {"schema": {"type": "object"}, "example": {**_FEATURES, "features": [_FEATURE]}},
            "application/x-ndgeojson": {"schema": {"type": "string"}, "example": f"{json.dumps(_FEATURE)}\n"},
            "application/vnd.apache.parquet": _BINARY,
            "application/zip": _BINARY,
            "application/octet-stream": _BINARY,
        },
    }
}


@router.post(
    "/ingest",
    response_model=IngestModel,
    dependencies=[Streamed],
    responses={**with_headers(Idempotent_Replayed="true"), **answers(400, 401, 403, 404, 408, 409, 413, 415, 422)},
    openapi_extra=_BODY,
)
async def ingest(
    request: Request,
    target: Writable,
    sourceName: Annotated[  # noqa: N803
        str | None, Query(max_length=200, description="The push source, if there are several.")
    ] = None,
    content_type: Annotated[
        str, Header(max_length=200, description="Format of the data, which selects the reader.")
    ] = "",
    content_encoding: Annotated[str, Header(max_length=100, description="gzip or zstd.")] = "",
    odf_event_time: Annotated[str | None, Header(max_length=100, description="Event time of rows without one.")] = None,
    idempotency_key: Annotated[
        str | None,
        Header(
            min_length=1, max_length=1000, description="A repeated request with the same key is not ingested again."
        ),
    ] = None,
) -> Response:
    """Add rows to a dataset, in one commit; needs the scope write."""
    dataset = target.dataset
    if dataset is None:
        raise Refused(404, "There is no dataset of that name")
    input_format, packing = _format(content_type), _packing(content_encoding)
    event_time = _time(odf_event_time)
    ingests: Ingests = request.app.state.ingests
    with ExitStack() as stack:
        folder = await anyio.to_thread.run_sync(stack.enter_context, dataset.workspace_folder.scratch())
        path, digest = await _spooled(request, folder / "body")

        def work() -> Response:
            most = request.app.state.settings.max_object
            file, its_digest = (path, digest) if packing is None else _unpacked(path, packing, most)
            asked = IngestRequest(
                str(dataset.handle.id),
                files=(file,),
                source_name=sourceName,
                event_time=event_time,
                input_format=input_format,
            )
            given = Ingest(asked, its_digest, "the body")
            return _respond(request, *_ingest(ingests, dataset, given, idempotency_key))

        return await anyio.to_thread.run_sync(work, limiter=ingests.limiter)


def _ingest(ingests: Ingests, dataset: StoredDataset, given: Ingest, key: str | None) -> tuple[Ingested, bool]:
    try:
        return ingests.take(dataset, given, key)
    except KeyUsedAlready as error:
        raise Refused.of(422, error) from error
    except DatasetLocked as error:
        raise Refused(
            409, "Another process is writing to the dataset; try again later", {"Retry-After": "1"}
        ) from error
    except IngestError as error:
        raise Refused.of(400, error) from error
    except OdfError as error:
        refused = refusal(error)
        if refused is None:
            raise
        raise refused from error


def _respond(request: Request, ingested: Ingested, was_before: bool) -> Response:
    tree = {
        "outcome": "updated" if ingested.new_head != ingested.old_head else "up-to-date",
        "oldHead": None if ingested.old_head is None else str(ingested.old_head),
        "newHead": None if ingested.new_head is None else str(ingested.new_head),
        "numRecords": ingested.num_records,
        "watermark": None if ingested.watermark is None else str(ingested.watermark),
    }
    return reply(request, tree, more={"Idempotent-Replayed": "true"} if was_before else None)


def _format(content_type: str) -> str | None:
    """Return the format of the body; None for that of the source."""
    message = Message()
    message["Content-Type"] = content_type
    kind = content_type.partition(";")[0].strip().lower()
    if kind in _ANY:
        return None
    charset = str(message.get_param("charset", "utf-8")).lower()
    if kind not in FORMATS or charset not in ("utf-8", "utf8", "us-ascii"):
        what = f"the encoding {charset}" if kind in FORMATS else f"the type {kind!r}"
        known = ", ".join(FORMATS)
        raise Refused(415, f"Unsupported format: {what}\nSet the header Content-Type to one of: {known}, in UTF-8.")
    return FORMATS[kind]


def _packing(content_encoding: str) -> str | None:
    name = content_encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in _PACKINGS:
        raise Refused(
            415, f"Unsupported encoding: {name!r}\nSet the header Content-Encoding to gzip or zstd, or leave it out."
        )
    return _PACKINGS[name]


def _time(text: str | None) -> Timestamp | None:
    try:
        return None if text is None else Timestamp.parse(text)
    except InvalidValue as error:
        raise Refused(400, f"odf-event-time: {error.message}\nWrite it as 2024-03-01T12:00:00Z.") from error


async def _spooled(request: Request, path: Path) -> tuple[Path, str]:
    """Receive the body into a file, and hash it. An incomplete body leaves nothing behind."""
    settings = request.app.state.settings
    digest, size = hashlib.sha256(), 0
    pieces = request.stream()
    with await anyio.to_thread.run_sync(path.open, "wb") as file:
        while True:
            try:
                with anyio.fail_after(settings.patience):
                    piece = await _piece(pieces)
            except TimeoutError as error:
                raise HTTPException(408, "Timed out waiting for the request body") from error
            except ClientDisconnect as error:
                raise HTTPException(400, "The request body ended early") from error
            if not piece:
                return path, digest.hexdigest()
            size += len(piece)
            if size > settings.max_object:
                raise Refused(413, f"The data has more than {settings.max_object} bytes\nSend it in parts.")
            await anyio.to_thread.run_sync(_write, file, digest, piece)


async def _piece(pieces: Any) -> bytes:
    """Return about a megabyte of the body; empty at the end."""
    piece = bytearray()
    while len(piece) < _PIECE and (more := await anext(pieces, None)) is not None:
        piece += more
    return bytes(piece)


def _write(file: BinaryIO, digest: Any, piece: bytes) -> None:
    digest.update(piece)
    file.write(piece)


def _unpacked(path: Path, packing: str, most: int) -> tuple[Path, str]:
    """Decompress a file and return its hash, since compression may vary. Decompression bombs are rejected."""
    import pyarrow as pa

    most = min(most, max(_MIN_ROOM, _MAX_PACKED * path.stat().st_size))
    target, digest, size = path.with_suffix(".unpacked"), hashlib.sha256(), 0
    try:
        with pa.input_stream(str(path), compression=packing) as source, target.open("wb") as file:
            while piece := source.read(_PIECE):
                size += len(piece)
                if size > most:
                    raise Refused(413, f"More than {most} bytes come out of the data\nSend it in parts.")
                _write(file, digest, piece)
    except OSError as error:
        raise Refused(400, f"The body is not valid {packing}, or ends too early") from error
    return target, digest.hexdigest()
