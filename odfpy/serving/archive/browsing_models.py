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
    """A name of what files are, or of where they come from."""

    model_config = _like(name="syslog", numFiles=31, first="2015-03-01T00:00:02.100Z", last="2015-03-31T23:59:59.114Z")

    name: str
    numFiles: Annotated[int, Field(description="Files that are found; not those that were withdrawn.")]  # noqa: N815
    first: Annotated[str, Field(description="When the first of them begins.")]
    last: Annotated[str, Field(description="When the last of them ends.")]


class DayModel(BaseModel):
    """A day (UTC), and the files that begin on it."""

    model_config = _like(day="2015-03-20", numFiles=24)

    day: str
    numFiles: int  # noqa: N815


class FileModel(BaseModel):
    """A file: what is said of it, and what it is."""

    model_config = _like(**_FILE)

    id: str
    what: str
    where: str
    start: Annotated[str, Field(description="Time of the first event in it.")]
    end: Annotated[str | None, Field(description="Time of the last one; null for a file of one moment.")]
    workId: Annotated[str | None, Field(description="The job that it belongs to.")]  # noqa: N815
    path: Annotated[str, Field(description="Where it was.")]
    hash: Annotated[str, Field(description="BLAKE2b of 16 bytes over the content.")]
    object: Annotated[str, Field(description="Multihash of the content.")]
    size: Annotated[int, Field(description="Bytes.")]
    createTime: Annotated[str, Field(description="When the archive took it in.")]  # noqa: N815
    status: Annotated[str, Field(description="kept, withdrawn or expired.")]
    released: Annotated[str | None, Field(description="Since when its bytes may be removed.")]
    who: Annotated[str | None, Field(description="Who has corrected, withdrawn or expired it.")]
    why: Annotated[str | None, Field(description="Their reason.")]


class FilesModel(BaseModel):
    """Some of the files that fit."""

    model_config = _like(files=[_FILE], next=None)

    files: list[FileModel]
    next: Annotated[str | None, Field(description="The cursor of the next page; null on the last one.")]


class SummaryModel(BaseModel):
    """The files that an archive keeps."""

    model_config = _like(
        numFiles=31, size=244662571, numNames=1, first="2015-03-01T00:00:02.100Z", last="2015-03-31T23:59:59.114Z"
    )

    numFiles: Annotated[int, Field(description="Files that are kept: neither withdrawn nor expired.")]  # noqa: N815
    size: Annotated[int, Field(description="Their bytes; equal contents count each time.")]
    numNames: Annotated[int, Field(description="What they are: so many names.")]  # noqa: N815
    first: Annotated[str | None, Field(description="When the first file begins.")]
    last: Annotated[str | None, Field(description="When the last file ends.")]


class FieldChangeModel(BaseModel):
    """A field that a correction has changed, with both values as text."""

    field: Annotated[str, Field(examples=["where"])]
    old: str | None
    new: str | None


class VersionModel(BaseModel):
    """A row of the chain that says what a file is: with the first one it came in, others have changed that."""

    offset: Annotated[int, Field(description="Of the row.")]
    block: Annotated[str, Field(description="The block that holds the row.", examples=[HASH])]
    sequenceNumber: int  # noqa: N815
    systemTime: Annotated[str, Field(description="When the block was made.")]  # noqa: N815
    signedBy: Annotated[list[str], Field(description="Names of those who have signed the block.")]  # noqa: N815
    signatureProblem: Annotated[str | None, Field(description="Why that is not known.")] = None  # noqa: N815
    status: str
    who: str | None
    why: str | None
    changes: Annotated[list[FieldChangeModel], Field(description="Against the version before.")]


class HeadModel(BaseModel):
    """The last block of the chain: its signature vouches for all blocks before it."""

    block: Annotated[str, Field(examples=[HASH])]
    sequenceNumber: int  # noqa: N815
    signedBy: list[str]  # noqa: N815


class DetailsModel(BaseModel):
    """A file, where its bytes are, and its history."""

    file: FileModel
    place: Annotated[
        str, Field(description="here; elsewhere: this copy lacks its bytes; removed: as the archive records.")
    ]
    history: Annotated[list[VersionModel], Field(description="The oldest first.")]
    head: HeadModel


class PreviewModel(BaseModel):
    """The beginning of a file, as it can be shown; nothing in it runs."""

    model_config = _like(kind="text", text="Mar 20 00:05:20 webserver02 ...", isWhole=True, packing="gzip")

    kind: Annotated[
        str,
        Field(description="text, table, picture, drawing (SVG, with its text), bytes (in hexadecimal), empty, none."),
    ]
    text: str | None = None
    columns: list[str] | None = None
    rows: Annotated[list[list[Any]] | None, Field(description="Values of a table, cut where they are long.")] = None
    numColumns: Annotated[  # noqa: N815
        int | None, Field(description="Columns of the table, also those that are left out.")
    ] = None
    isWhole: Annotated[bool, Field(description="Whether that is all of the file.")] = False  # noqa: N815
    packing: Annotated[str | None, Field(description="How it is packed; null if it is not.")] = None
    problem: Annotated[str | None, Field(description="What keeps it from being shown, or the rest of it.")] = None


class CheckModel(BaseModel):
    """The hashes of the bytes that are stored, computed just now."""

    model_config = _like(ok=True, size=7892341, object=OBJECT, hash="a3e75ee4f45f676422e038f2c116d000")

    ok: Annotated[bool, Field(description="Whether they are those of the record.")]
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
