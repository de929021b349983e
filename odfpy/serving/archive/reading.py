"""Read access to archives over HTTP in the form of datalake's API: search, metadata and content.

/v0/archive/                        information about the archive
/v0/archive/files/                  files of a time range or job, page by page
/v0/archive/files/{id}              everything about one file
/v0/archive/files/{id}/metadata     its metadata
/v0/archive/files/{id}/data         its bytes
/v0/archive/latest/{what}/{where}   the file with the latest start; with /data its bytes
/v0/environment/, /health/          the version; the health check
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Path, Query, Request, Response

from odfpy import __version__
from odfpy.archive.question import LOOKBACK_DAYS, PAGE, Question, words
from odfpy.archive.record import FileRecord
from odfpy.archive.times import parse_time
from odfpy.errors import InvalidValue
from odfpy.serving.archive.content import content_response
from odfpy.serving.archive.models import (
    EnvironmentModel,
    MetadataModel,
    PageModel,
    RecordModel,
    StatusModel,
    metadata_of,
    refusals,
    tree_of,
)
from odfpy.serving.archive.refusals import as_refusals, bad_request
from odfpy.serving.archive.served import ReadableArchive, ServedArchive
from odfpy.serving.http.json_responses import reply
from odfpy.serving.rest.datasets import Health

router = APIRouter(tags=["archives"])

_MAX_DAYS: Final = 3_700_000
_Id = Annotated[str, Path(max_length=200, description="Id of the file.")]
_What = Annotated[str, Path(max_length=255, description="The process or program that created it.")]
_Where = Annotated[str, Path(max_length=255, description="The machine or location that it comes from.")]
_Lookback = Annotated[
    str | None,
    Query(max_length=100, description="Number of days before today to search; by default 14.", examples=["14"]),
]
_BYTES: dict[int | str, dict[str, Any]] = {
    200: {"description": "The file.", "content": {"application/octet-stream": {}}},
    206: {"description": "A range of the file.", "content": {"application/octet-stream": {}}},
    304: {"description": "Not modified: the client has the file."},
    **refusals(400, 401, 404, 416),
}


@router.get("/v0/archive/", response_model=StatusModel, responses=refusals(401, 404))
def status(request: Request, served: ReadableArchive) -> Response:
    """Return the archive: the base URL of its files."""
    return reply(request, {"storage_url": served.base})


@router.get("/v0/environment/", response_model=EnvironmentModel, responses=refusals(401, 404))
def environment(request: Request, served: ReadableArchive) -> Response:
    """Return the release of the server."""
    del served
    return reply(request, {"data": {"build": {"version": __version__}}})


@router.get("/health/", response_model=Health, responses=refusals(401, 404))
def health(request: Request, served: ReadableArchive) -> Response:
    """Return that the archive is available."""
    del served
    return reply(request, Health().model_dump())


# --- Finding ---


@router.get("/v0/archive/files/", response_model=PageModel, responses=refusals(400, 401, 404))
def files(
    request: Request,
    served: ReadableArchive,
    what: Annotated[
        list[str] | None,
        Query(
            max_length=1000, description="Types of the files; repeatable, or comma-separated.", examples=[["syslog"]]
        ),
    ] = None,
    where: Annotated[
        list[str] | None, Query(max_length=1000, description="Origins of the files; repeatable, or comma-separated.")
    ] = None,
    start: Annotated[
        str | None,
        Query(max_length=100, description="From this time on: milliseconds since 1970, or a date.", examples=["0"]),
    ] = None,
    end: Annotated[str | None, Query(max_length=100, description="Up to this time; requires start.")] = None,
    work_id: Annotated[
        str | None, Query(max_length=300, description="Files of this job, instead of a time range.")
    ] = None,
    cursor: Annotated[str | None, Query(max_length=8000, description="`next` of the previous page.")] = None,
    limit: Annotated[int, Query(ge=1, le=PAGE, description="Maximum number of files per page.")] = PAGE,
) -> Response:
    """List files that overlap a time range, or belong to a job, ordered by start time.

    `next` is the URL of the next page. No file is listed twice, even if others push.
    """
    if not request.query_params:
        raise bad_request("NoArgs", "Please provide minimal query arguments: what, and work_id or start and end")
    question = _question(what, where, start, end, work_id)
    with as_refusals():
        page = served.archive.page(question, cursor, size=limit)
    records = [tree_of(record, served.url(record.id)) for record in page.records]
    return reply(request, {"records": records, "next": page.next and _next(request, served, page.next)})


def _question(
    what: list[str] | None, where: list[str] | None, start: str | None, end: str | None, work_id: str | None
) -> Question:
    """Build the search from the parameters.

    Raises:
        Refused: the parameters contradict each other.
    """
    names = words(what or ())
    if not names:
        raise bad_request("NoWhat", "You must provide the parameter what")
    if work_id is None and start is None and end is None:
        raise bad_request("NoWorkInterval", "You must provide either work_id or start and end")
    if work_id is not None and (start is not None or end is not None):
        raise bad_request("InvalidWorkInterval", "You must provide only work_id or start and end, not both")
    if (start is None) != (end is None):
        raise bad_request("InvalidWorkInterval", "start and end must always be provided together")
    first, last = _time("start", start), _time("end", end)
    if first is not None and last is not None and first > last:
        raise bad_request("InvalidWorkInterval", "start must be before end")
    return Question(what=names, where=words(where or ()), start=first, end=last, work_id=work_id)


def _time(name: str, text: str | None) -> int | None:
    try:
        return None if text is None else parse_time(text)
    except InvalidValue as error:
        raise bad_request("InvalidTime", f"{name} must be milliseconds since the epoch, or a date") from error


def _next(request: Request, served: ServedArchive, cursor: str) -> str:
    """Return the URL of the next page: the same search, with another cursor."""
    asked = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
    return f"{served.base}/v0/archive/files/?{urlencode([*asked, ('cursor', cursor)])}"


@router.get("/v0/archive/latest/{what}/{where}", response_model=RecordModel, responses=refusals(400, 401, 404))
def latest(
    request: Request, served: ReadableArchive, what: _What, where: _Where, lookback: _Lookback = None
) -> Response:
    """Return the file with the latest start time for a what and where."""
    record = _latest(served, what, where, lookback)
    return reply(request, tree_of(record, served.url(record.id)))


def _latest(served: ServedArchive, what: str, where: str, lookback: str | None) -> FileRecord:
    try:
        days = LOOKBACK_DAYS if lookback is None else int(lookback)
    except ValueError as error:
        raise bad_request("InvalidLookback", "lookback must be a whole number of days") from error
    if days < 0:
        raise bad_request("InvalidLookback", "lookback must not be negative")
    with as_refusals():
        return served.archive.latest(what, where, lookback=min(days, _MAX_DAYS))


# --- One file ---


@router.get("/v0/archive/files/{id}", response_model=RecordModel, responses=refusals(401, 404))
def record(request: Request, served: ReadableArchive, id: _Id) -> Response:  # noqa: A002 - the field's name
    """Return the record of a file, even if it was withdrawn or has expired."""
    with as_refusals():
        return reply(request, tree_of(served.archive.get(id), served.url(id)))


@router.get("/v0/archive/files/{id}/metadata", response_model=MetadataModel, responses=refusals(401, 404))
def metadata(request: Request, served: ReadableArchive, id: _Id) -> Response:  # noqa: A002
    """Return the metadata of a file."""
    with as_refusals():
        return reply(request, metadata_of(served.archive.get(id)))


@router.head("/v0/archive/files/{id}/data", include_in_schema=False)
@router.get("/v0/archive/files/{id}/data", response_class=Response, responses=_BYTES)
def data(request: Request, served: ReadableArchive, id: _Id) -> Response:  # noqa: A002
    """Return the bytes of a file, or a range of them; files compressed with gzip have a Content-Encoding."""
    with as_refusals():
        return content_response(request, served.archive, served.archive.get(id))


@router.head("/v0/archive/latest/{what}/{where}/data", include_in_schema=False)
@router.get("/v0/archive/latest/{what}/{where}/data", response_class=Response, responses=_BYTES)
def latest_data(
    request: Request, served: ReadableArchive, what: _What, where: _Where, lookback: _Lookback = None
) -> Response:
    """Return the bytes of the file with the latest start time for a what and where."""
    record = _latest(served, what, where, lookback)
    with as_refusals():
        return content_response(request, served.archive, record)
