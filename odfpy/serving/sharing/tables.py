"""Requests for tables: version, metadata, files, changes (Delta Sharing protocol, from "Query Table Version" on)."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from fastapi import Path as ApiPath

from odfpy.serving.sharing.actions import end_of_stream, line, metadata, protocol
from odfpy.serving.sharing.answers import NDJSON, Page, answer_of, feed, pin, use_of, version_asked
from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.bodies import MostFiles, Number, QueryBody, Sealed, instant, query_body
from odfpy.serving.sharing.callers import AnyCaller
from odfpy.serving.sharing.capabilities import HEADER
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.queries import GivenQuery
from odfpy.serving.sharing.question import question_of
from odfpy.sharing.names import SharePath

_TABLE: Final = "/shares/{share}/schemas/{schema}/tables/{table}"

_FEED: Final = ("startingVersion", "startingTimestamp", "endingVersion", "endingTimestamp", "includeHistoricalMetadata")

router = APIRouter()

_Time = Annotated[str | None, Query(max_length=100)]
_Number = Annotated[Number | None, Query()]
_Capabilities = Annotated[str | None, Header(alias=HEADER, max_length=10_000)]
_IdHash = Annotated[str | None, Header(alias="fileidhash", max_length=100)]


# --- Version and metadata --------------------------------------------------------------------------------------------


@router.get(f"{_TABLE}/version")
@router.head(_TABLE)
def version(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    startingTimestamp: _Time = None,  # noqa: N803
) -> Response:
    """Return the version of a table, or the first one at a time or after it."""
    question = question_of(request, caller, SharePath(share, schema, table), None)
    table_version = question.table.latest
    if startingTimestamp is not None:
        table_version = question.table.first_from(instant("startingTimestamp", startingTimestamp))
    question.schema(table_version)
    headers = {"Delta-Table-Version": str(table_version.number), "Cache-Control": "private, no-store"}
    return Response(status_code=200, headers=headers)


@router.get(f"{_TABLE}/metadata")
def table_metadata(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    version: _Number = None,
    timestamp: _Time = None,
    capabilities: _Capabilities = None,
) -> Response:
    """Return the protocol, columns and other metadata of a table."""
    if version is not None and timestamp is not None:
        raise SharingError(400, "version and timestamp exclude each other")
    question = question_of(request, caller, SharePath(share, schema, table), capabilities)
    table_version = version_asked(question.table, version, timestamp)
    columns = question.schema(table_version)
    info = question.info(columns, is_snapshot=True)
    form = question.can.form(info.schema)
    named = None if version is None and timestamp is None else table_version
    lines = [protocol(form, info), metadata(form, info, named)]
    if question.can.wants_end:
        lines.append(end_of_stream())
    return Response(b"".join(map(line, lines)), media_type=NDJSON, headers=question.headers(table_version, form))


# --- Files -----------------------------------------------------------------------------------------------------------


@router.post(f"{_TABLE}/query")
def query(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    body: Annotated[QueryBody, Depends(query_body)],
    capabilities: _Capabilities = None,
    fileidhash: _IdHash = None,
) -> Response:
    """Return the files of a version, or those that were added and removed since a version.

    With `asyncquery=true`, the client gets an id to poll with.
    """
    question = question_of(request, caller, SharePath(share, schema, table), capabilities, fileidhash)
    answer = answer_of(question, body)
    if not question.can.wants_async:
        return answer.response()
    whose, asked = use_of(question, "query"), use_of(question, "query", body.question())
    given = GivenQuery(whose, asked, body, question.can, pin(answer, body))
    status = question.state.queries.submit(given, answer.lines).pending()
    note(request.scope, version=answer.version.number, block=answer.version.block)
    return _query_status(status)


@router.post(f"{_TABLE}/queries/{{query_id}}")
def query_info(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    query_id: Annotated[str, ApiPath(max_length=100)],
    body: Annotated[QueryBody, Depends(query_body)],
    capabilities: _Capabilities = None,
    fileidhash: _IdHash = None,
) -> Response:
    """Return the status of an asynchronous query, and its answer when it is ready."""
    question = question_of(request, caller, SharePath(share, schema, table), capabilities, fileidhash)
    known = question.state.queries.find(query_id, use_of(question, "query"))
    if capabilities is None:
        question = replace(question, can=known.given.can)
    status = known.status()
    if status is not None:
        return _query_status(status)
    given = known.given.body
    pages = {"maxFiles": body.maxFiles or given.maxFiles, "pageToken": body.pageToken or given.pageToken}
    return answer_of(question, given.model_copy(update=pages), known.given.version).response()


@router.get(f"{_TABLE}/changes")
def changes(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    startingVersion: _Number = None,  # noqa: N803
    startingTimestamp: _Time = None,  # noqa: N803
    endingVersion: _Number = None,  # noqa: N803
    endingTimestamp: _Time = None,  # noqa: N803
    includeHistoricalMetadata: bool = False,  # noqa: N803
    maxFiles: Annotated[MostFiles | None, Query()] = None,  # noqa: N803
    pageToken: Annotated[Sealed | None, Query()] = None,  # noqa: N803
    capabilities: _Capabilities = None,
    fileidhash: _IdHash = None,
) -> Response:
    """Return the change data feed: files of rows that were inserted, deleted and updated, by version."""
    if (startingVersion is None) == (startingTimestamp is None):
        raise SharingError(400, "Give either startingVersion or startingTimestamp")
    if endingVersion is not None and endingTimestamp is not None:
        raise SharingError(400, "endingVersion and endingTimestamp exclude each other")
    question = question_of(request, caller, SharePath(share, schema, table), capabilities, fileidhash)
    if startingTimestamp is not None:
        startingVersion = question.table.first_from(instant("startingTimestamp", startingTimestamp)).number  # noqa: N806
    if endingTimestamp is not None:
        endingVersion = question.table.as_of(instant("endingTimestamp", endingTimestamp)).number  # noqa: N806
    assert startingVersion is not None  # noqa: S101  one of both was given
    given = [request.query_params.get(name) for name in _FEED]
    page = Page.asked(question, maxFiles, pageToken, json.dumps(given))
    return feed(
        question, startingVersion, endingVersion, page, by_row=True, with_metadata=includeHistoricalMetadata
    ).response()


def _query_status(status: dict[str, Any]) -> Response:
    headers = {HEADER: "asyncquery=true", "Cache-Control": "private, no-store"}
    return Response(line(status), media_type=NDJSON, headers=headers)
