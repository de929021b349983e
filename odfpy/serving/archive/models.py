"""Request and response models of archives, for the OpenAPI; the names of fields are datalake's."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from odfpy import __version__
from odfpy.archive.record import FileRecord
from odfpy.archive.times import iso
from odfpy.serving.rest.models import RefusalModel

FILE: Final = "6309e115c2914d0f8622973422626954"
OBJECT: Final = "f1e20d7c1e8e5a2d7e4d4b1f1b5c7b1b7b9f1a3d4c5e6f708192a3b4c5d6e7f8091a2"
_METADATA: Final = {
    "version": 0,
    "start": 1426809920345,
    "end": 1426895999114,
    "path": "/var/log/syslog.1",
    "work_id": None,
    "where": "webserver02",
    "what": "syslog",
    "id": FILE,
    "hash": "a3e75ee4f45f676422e038f2c116d000",
    "start_iso": "2015-03-20T00:05:20.345Z",
    "end_iso": "2015-03-20T23:59:59.114Z",
}
_URL: Final = f"https://node.example.com/logs/v0/archive/files/{FILE}/data"
_RECORD: Final = {
    "url": _URL,
    "http_url": _URL,
    "create_time": 1426896791333,
    "size": 7892341,
    "object": OBJECT,
    "status": "kept",
    "metadata": _METADATA,
}
_NEW: Final[dict[str, Any]] = {
    "what": "syslog",
    "where": "webserver02",
    "start": 1426809920345,
    "end": 1426895999114,
    "path": "/var/log/syslog.1",
    "object": OBJECT,
}


def _like(example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class StatusModel(BaseModel):
    """The archive, for clients of datalake."""

    model_config = _like({"storage_url": "https://node.example.com/logs"})

    storage_url: Annotated[str, Field(description="URL of the archive, under which files are pushed and fetched.")]


class BuildModel(BaseModel):
    """The release of the server."""

    version: Annotated[str, Field(examples=[__version__])]


class EnvironmentModel(BaseModel):
    """The release of the server, in the form of datalake's API."""

    model_config = _like({"data": {"build": {"version": __version__}}})

    data: dict[str, BuildModel]


class MetadataModel(BaseModel):
    """The metadata of a file."""

    model_config = _like(_METADATA)

    version: int
    start: Annotated[int, Field(description="Time of the first event in it; milliseconds since 1970.")]
    end: Annotated[int | None, Field(description="Time of the last event in it; null for a file of one moment.")]
    path: Annotated[str, Field(description="Original path.")]
    work_id: Annotated[str | None, Field(description="The job that it belongs to.")]
    where: Annotated[str, Field(description="The machine or location that it comes from.")]
    what: Annotated[str, Field(description="The process or program that created it.")]
    id: str
    hash: Annotated[str, Field(description="BLAKE2b of 16 bytes over the content.")]
    start_iso: str
    end_iso: str | None


class RecordModel(BaseModel):
    """A file in the archive."""

    model_config = _like(_RECORD)

    url: Annotated[str, Field(description="URL of its bytes.")]
    http_url: Annotated[str, Field(description="The same.")]
    create_time: Annotated[int, Field(description="When it was archived; milliseconds since 1970.")]
    size: Annotated[int, Field(description="Bytes.")]
    object: Annotated[str, Field(description="Multihash of the content.")]
    status: Annotated[str, Field(description="kept, withdrawn or expired.")]
    metadata: MetadataModel
    released: Annotated[
        int | None, Field(description="Time from which on its bytes may be removed; milliseconds since 1970.")
    ] = None
    who: Annotated[str | None, Field(description="Who corrected, withdrew or expired it.")] = None
    why: Annotated[str | None, Field(description="Their reason.")] = None


class PageModel(BaseModel):
    """A page of matching files."""

    model_config = _like({"records": [_RECORD], "next": None})

    records: list[RecordModel]
    next: Annotated[str | None, Field(description="URL of the next page; null on the last one.")]


class NewRecordModel(BaseModel):
    """A record of an uploaded file."""

    model_config = ConfigDict(extra="forbid", strict=True, json_schema_extra={"examples": [_NEW]})

    what: str
    where: str
    start: int
    end: int | None = None
    work_id: str | None = None
    path: str
    object: str
    id: str | None = None
    hash: str | None = None
    size: int | None = None
    create_time: int | None = None


class FaultModel(BaseModel):
    """Why a record is refused."""

    code: Annotated[str, Field(examples=["E840"])]
    message: str
    hint: str | None = None
    reasons: Annotated[list[str], Field(description="All rules that it violates.")] = []


class PushedModel(BaseModel):
    """The result of one record."""

    model_config = _like({"outcome": "pushed", "record": _RECORD})

    outcome: Annotated[str, Field(description="pushed; known: it already existed; refused.")]
    record: RecordModel | None = None
    error: FaultModel | None = None


class ResultsModel(BaseModel):
    """The results of records, in their order."""

    results: list[PushedModel]


class ObjectsModel(BaseModel):
    """Hashes of files."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"objects": [OBJECT]}]})

    objects: Annotated[list[Annotated[str, Field(max_length=200)]], Field(max_length=10_000)]


class MissingModel(BaseModel):
    """Hashes of files whose bytes the archive lacks."""

    model_config = _like({"missing": [OBJECT]})

    missing: list[str]


def metadata_of(record: FileRecord) -> dict[str, Any]:
    """Return the metadata of a file, with its times also as text."""
    return {**record.metadata(), "start_iso": iso(record.start), "end_iso": iso(record.end)}


def tree_of(record: FileRecord, url: str) -> dict[str, Any]:
    """Convert a file to the form of `RecordModel`.

    Args:
        record: record of the file.
        url: url of its bytes.
    """
    changed = {"released": record.released, "who": record.who, "why": record.why}
    return {
        "url": url,
        "http_url": url,
        "create_time": record.create_time,
        "size": record.size,
        "object": str(record.object),
        "status": record.status.value,
        "metadata": metadata_of(record),
        **{name: value for name, value in changed.items() if value is not None},
    }


def refusals(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the error responses for the OpenAPI."""
    why = {
        400: "The request is invalid: NoArgs, NoWhat, NoWorkInterval, InvalidWorkInterval, InvalidTime,"
        " InvalidCursor or InvalidLookback.",
        401: "An access token is needed.",
        403: "Not allowed for this token.",
        404: "NoSuchFile: the file does not exist, or its bytes were removed; or this token may not read the archive.",
        408: "Timed out waiting for the request body.",
        409: "Another client sends the file or writes to the archive, or the offset is wrong.",
        413: "The request is too large.",
        415: "The content type is not supported.",
        416: "The range exceeds the file.",
        422: "The bytes do not match their hash or size, or the request is not valid.",
        507: "The server has no disk space left.",
    }
    return {status: {"description": why[status], "model": RefusalModel} for status in statuses}
