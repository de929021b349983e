"""Response models of the browsing endpoints, for the OpenAPI: names, days, files with their history, previews."""

from __future__ import annotations

from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from odfpy.archive.record import FileRecord
from odfpy.archive.times import iso
from odfpy.serving.archive.models import FILE, OBJECT
from odfpy.serving.rest.models import HASH

_FILE: Final[dict[str, Any]] = {
    "id": FILE,
    "what": "syslog",
    "where": "webserver02",
    "start": "2015-03-20T00:05:20.345Z",
    "end": "2015-03-20T23:59:59.114Z",
    "workId": None,
    "path": "/var/log/syslog.1",
    "hash": "a3e75ee4f45f676422e038f2c116d000",
    "object": OBJECT,
    "size": 7892341,
    "createTime": "2015-03-21T00:13:11.333Z",
    "status": "kept",
    "released": None,
    "who": None,
    "why": None,
}


def _like(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class NameModel(BaseModel):
    """A type or an origin of files."""

    model_config = _like(name="syslog", numFiles=31, first="2015-03-01T00:00:02.100Z", last="2015-03-31T23:59:59.114Z")

    name: str
    numFiles: Annotated[int, Field(description="Number of files, without withdrawn ones.")]  # noqa: N815
    first: Annotated[str, Field(description="Start time of the first file.")]
    last: Annotated[str, Field(description="End time of the last file.")]


class DayModel(BaseModel):
    """A day (UTC), and the number of files that start on it."""

    model_config = _like(day="2015-03-20", numFiles=24)

    day: str
    numFiles: int  # noqa: N815


class FileModel(BaseModel):
    """The record of a file."""

    model_config = _like(**_FILE)

    id: str
    what: str
    where: str
    start: Annotated[str, Field(description="Time of the first event in it.")]
    end: Annotated[str | None, Field(description="Time of the last event in it; null for a file of one moment.")]
    workId: Annotated[str | None, Field(description="The job that it belongs to.")]  # noqa: N815
    path: Annotated[str, Field(description="Original path.")]
    hash: Annotated[str, Field(description="BLAKE2b of 16 bytes over the content.")]
    object: Annotated[str, Field(description="Multihash of the content.")]
    size: Annotated[int, Field(description="Bytes.")]
    createTime: Annotated[str, Field(description="When it was archived.")]  # noqa: N815
    status: Annotated[str, Field(description="kept, withdrawn or expired.")]
    released: Annotated[str | None, Field(description="Time from which on its bytes may be removed.")]
    who: Annotated[str | None, Field(description="Who corrected, withdrew or expired it.")]
    why: Annotated[str | None, Field(description="Their reason.")]


class FilesModel(BaseModel):
    """A page of matching files."""

    model_config = _like(files=[_FILE], next=None)

    files: list[FileModel]
    next: Annotated[str | None, Field(description="The cursor of the next page; null on the last one.")]


class SummaryModel(BaseModel):
    """A summary of the files of an archive."""

    model_config = _like(
        numFiles=31, size=244662571, numNames=1, first="2015-03-01T00:00:02.100Z", last="2015-03-31T23:59:59.114Z"
    )

    numFiles: Annotated[int, Field(description="Number of files that are neither withdrawn nor expired.")]  # noqa: N815
    size: Annotated[int, Field(description="Total size in bytes; equal contents count each time.")]
    numNames: Annotated[int, Field(description="Number of types of files.")]  # noqa: N815
    first: Annotated[str | None, Field(description="Start time of the first file.")]
    last: Annotated[str | None, Field(description="End time of the last file.")]


class FieldChangeModel(BaseModel):
    """A field that a correction changed, with both values as text."""

    field: Annotated[str, Field(examples=["where"])]
    old: str | None
    new: str | None


class VersionModel(BaseModel):
    """A version of the record of a file: the first one archived it, later ones changed it."""

    offset: Annotated[int, Field(description="Of the row.")]
    block: Annotated[str, Field(description="The block that contains the row.", examples=[HASH])]
    sequenceNumber: int  # noqa: N815
    systemTime: Annotated[str, Field(description="Time of the block.")]  # noqa: N815
    signedBy: Annotated[list[str], Field(description="Names of the signers of the block.")]  # noqa: N815
    signatureProblem: Annotated[str | None, Field(description="Why the signers are unknown.")] = None  # noqa: N815
    status: str
    who: str | None
    why: str | None
    changes: Annotated[list[FieldChangeModel], Field(description="Changes since the previous version.")]


class HeadModel(BaseModel):
    """The last block of the chain: its signature covers all earlier blocks."""

    block: Annotated[str, Field(examples=[HASH])]
    sequenceNumber: int  # noqa: N815
    signedBy: list[str]  # noqa: N815


class DetailsModel(BaseModel):
    """A file, the location of its bytes, and its history."""

    file: FileModel
    place: Annotated[
        str, Field(description="here; elsewhere: this copy lacks its bytes; removed: the removal is recorded.")
    ]
    history: Annotated[list[VersionModel], Field(description="Oldest first.")]
    head: HeadModel


class PreviewModel(BaseModel):
    """A preview of a file; active content is disabled."""

    model_config = _like(kind="text", text="Mar 20 00:05:20 webserver02 ...", isWhole=True, packing="gzip")

    kind: Annotated[
        str,
        Field(description="text, table, picture, drawing (SVG, with its text), bytes (in hexadecimal), empty, none."),
    ]
    text: str | None = None
    columns: list[str] | None = None
    rows: Annotated[list[list[Any]] | None, Field(description="Values of a table; long ones are truncated.")] = None
    numColumns: Annotated[  # noqa: N815
        int | None, Field(description="Number of columns of the table, including omitted ones.")
    ] = None
    isWhole: Annotated[bool, Field(description="Whether the preview is complete.")] = False  # noqa: N815
    packing: Annotated[str | None, Field(description="Its compression; null if it is not compressed.")] = None
    problem: Annotated[str | None, Field(description="Why it, or the rest of it, cannot be shown.")] = None


class CheckModel(BaseModel):
    """The hashes of the stored bytes, computed for this request."""

    model_config = _like(ok=True, size=7892341, object=OBJECT, hash="a3e75ee4f45f676422e038f2c116d000")

    ok: Annotated[bool, Field(description="Whether they match the record.")]
    size: int
    object: str
    hash: str


def file_tree(record: FileRecord) -> dict[str, Any]:
    """Convert a file to the form of `FileModel`."""
    return {
        "id": record.id,
        "what": record.what,
        "where": record.where,
        "start": iso(record.start),
        "end": iso(record.end),
        "workId": record.work_id,
        "path": record.path,
        "hash": record.hash,
        "object": str(record.object),
        "size": record.size,
        "createTime": iso(record.create_time),
        "status": record.status.value,
        "released": iso(record.released),
        "who": record.who,
        "why": record.why,
    }
