"""Endpoints for a single file of an archive: its metadata and who vouches for it, and the check of its bytes.

/file/{id}              the file, its history, and the blocks of the chain that contain it
/file/{id}/check        hashes its bytes
/file/{id}/content      its bytes as a download, exactly as archived
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import closing, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Path, Request, Response

from odfpy.archive.errors import NoSuchFile
from odfpy.archive.local import LocalArchive
from odfpy.archive.record import FileRecord
from odfpy.coordinator.storage.signers import BlockSigners, Signers
from odfpy.data.multihash import Multihash
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.scans import ScanRequest, scan
from odfpy.serving.archive.browsing import refused_with_codes
from odfpy.serving.archive.browsing_models import CheckModel, DetailsModel, file_tree
from odfpy.serving.archive.content import content_response
from odfpy.serving.archive.history import RecordedVersion, changed_fields, scan_for, slices_with, versions_of
from odfpy.serving.archive.served import ReadableArchive
from odfpy.serving.callers.access import AnyCaller
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import reply
from odfpy.serving.rest.models import answers

if TYPE_CHECKING:
    import pyarrow as pa

router = APIRouter(tags=["archives"])

MAX_CHECKED: Final = 8 << 30
"""Maximum size of a file that the server hashes on request, in bytes."""

_PIECE: Final = 1 << 20
_NAMES: Final = {"work_id": "workId", "create_time": "createTime"}

FileId = Annotated[str, Path(max_length=200, description="Id of the file.")]


@router.get("/file/{id}", response_model=DetailsModel, responses=answers(401, 404, 422, 429, 503))
async def details(request: Request, caller: AnyCaller, served: ReadableArchive, id: FileId) -> Response:  # noqa: A002
    """Return a file, the location of its bytes, and its history: who archived, corrected or withdrew it."""

    def work(control: CancellationToken) -> Response:
        archive = served.archive
        with refused_with_codes():
            record = archive.get(id)
            history = _history(archive, id, request.app.state.engines.get(caller), control)
        signers = Signers(archive.dataset)
        head = archive.dataset.chain.block(archive.dataset.chain.head())
        return reply(
            request,
            {
                "file": file_tree(record),
                "place": location_of(archive, record),
                "history": [
                    _version_tree(version, before, signers.get(version.block))
                    for version, before in zip(history, [None, *history], strict=False)
                ],
                "head": {
                    "block": str(head.hash),
                    "sequenceNumber": head.block.sequence_number,
                    "signedBy": _names_of(signers.get(head)),
                },
            },
        )

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def location_of(archive: LocalArchive, record: FileRecord) -> str:
    """Return where a file's bytes are: `here`, `removed` as the archive records, or `elsewhere`: in other copies."""
    if record.object in archive.dataset.layout.data:
        return "here"
    return "removed" if record.released is not None else "elsewhere"


def _history(
    archive: LocalArchive,
    id: str,  # noqa: A002
    engines: EngineRegistry,
    control: CancellationToken,
) -> list[RecordedVersion]:
    dataset = archive.dataset
    offsets = archive.index.offsets_of(id)
    if not offsets:
        raise NoSuchFile(f"{archive.name} has no file {id[:128]!r}")
    slices = slices_with(dataset, offsets)
    rows = _rows(scan_for(dataset, slices, offsets), engines, control)
    return versions_of(rows, slices, offsets, id)


def _rows(wanted: ScanRequest, engines: EngineRegistry, control: CancellationToken) -> pa.Table:
    import pyarrow as pa

    rows = engines.scan(wanted, control)
    with closing(rows) if rows is not None else nullcontext(scan(wanted)) as batches:
        return pa.Table.from_batches(batches, wanted.arrow_schema())


def _version_tree(version: RecordedVersion, before: RecordedVersion | None, signed: BlockSigners) -> dict[str, Any]:
    record, block = version.record, version.block.block
    return {
        "offset": version.offset,
        "block": str(version.block.hash),
        "sequenceNumber": block.sequence_number,
        "systemTime": str(block.system_time),
        "signedBy": _names_of(signed),
        "signatureProblem": None if signed.error is None else signed.error.message,
        "status": record.status.value,
        "who": record.who,
        "why": record.why,
        "changes": [] if before is None else _changes(before.record, record),
    }


def _changes(before: FileRecord, after: FileRecord) -> list[dict[str, Any]]:
    old, new = file_tree(before), file_tree(after)
    names = [_NAMES.get(name, name) for name in changed_fields(before, after)]
    return [{"field": name, "old": _text(old.get(name)), "new": _text(new.get(name))} for name in names]


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _names_of(signed: BlockSigners) -> Sequence[str]:
    return list(dict.fromkeys(signer.name for signer in signed.signers))


@router.get("/file/{id}/check", response_model=CheckModel, responses=answers(400, 401, 404, 422, 429, 503))
async def check(request: Request, caller: AnyCaller, served: ReadableArchive, id: FileId) -> Response:  # noqa: A002
    """Hash the stored bytes, and compare them with the record."""

    def work(control: CancellationToken) -> Response:
        with refused_with_codes():
            record = served.archive.get(id)
            if record.size > MAX_CHECKED:
                raise Refused(
                    400,
                    f"The file has {record.size} bytes; the server hashes up to {MAX_CHECKED} on request\n"
                    "Fetch it: `odf archive fetch` hashes what it gets.",
                )
            return reply(request, _checked(served.archive, record, control))

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _checked(archive: LocalArchive, record: FileRecord, control: CancellationToken) -> dict[str, Any]:
    long, short, count = record.object.algorithm.hasher(), hashlib.blake2b(digest_size=16), 0
    # With an offset the stream is not verified while it is read: here, a wrong hash is a result, not an error.
    with closing(archive.open(record, offset=1)) as stream:
        stream.seek(0)
        while piece := stream.read(_PIECE):
            control.check()
            long.update(piece)
            short.update(piece)
            count += len(piece)
    actual = Multihash(record.object.code, long.digest())
    is_right = actual == record.object and short.hexdigest() == record.hash and count == record.size
    return {"ok": is_right, "size": count, "object": str(actual), "hash": short.hexdigest()}


@router.get(
    "/file/{id}/content",
    response_class=Response,
    responses={
        200: {"description": "The file.", "content": {"application/octet-stream": {}}},
        **answers(401, 404, 422),
    },
)
def content(request: Request, served: ReadableArchive, id: FileId) -> Response:  # noqa: A002
    """Return the bytes of a file as they were archived, as a download; compressed files stay compressed."""
    with refused_with_codes():
        response = content_response(request, served.archive, served.archive.get(id))
    name = response.headers.get("Content-Disposition", "").partition(";")[2]
    response.headers["Content-Type"] = "application/octet-stream"
    response.headers["Content-Disposition"] = f"attachment;{name}"
    if "Content-Encoding" in response.headers:
        del response.headers["Content-Encoding"]
    return response
