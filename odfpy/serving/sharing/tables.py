"""Questions about tables: version, metadata, files, changes (Delta Sharing protocol, from "Query Table Version" on)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Query, Request, Response
from starlette.responses import StreamingResponse

from odfpy.errors import OdfError
from odfpy.serving.sharing.actions import (
    end_of_stream,
    line,
    metadata,
    protocol,
)
from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.bodies import Number, QueryBody, instant, query_body
from odfpy.serving.sharing.callers import AnyCaller
from odfpy.serving.sharing.capabilities import HEADER
from odfpy.serving.sharing.errors import SharingError, in_protocol
from odfpy.serving.sharing.question import TableQuestion, question_of
from odfpy.sharing.hints import hints_of
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.contract import ReadableTable, TableVersion
from odfpy.sharing.tables.difference import whole_file_changes

_TABLE: Final = "/shares/{share}/schemas/{schema}/tables/{table}"
_NO_FILES: Final = {"protocol", "metaData", "endStreamAction"}
_FIRST_LINES: Final = 3  # protocol, metadata, and a file
_NDJSON: Final = "application/x-ndjson; charset=utf-8"

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
    found = question.table.latest
    if startingTimestamp is not None:
        found = question.table.first_from(instant("startingTimestamp", startingTimestamp))
    question.schema(found)
    headers = {"Delta-Table-Version": str(found.number), "Cache-Control": "private, no-store"}
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
    """The columns of a table, and what else there is to know before reading it."""
    if version is not None and timestamp is not None:
        raise SharingError(400, "version and timestamp exclude each other")
    question = question_of(request, caller, SharePath(share, schema, table), capabilities)
    found = _version(question.table, version, timestamp)
    columns = question.schema(found)
    info = question.info(columns)
    form = question.can.form(info.schema)
    named = None if version is None and timestamp is None else found
    lines = [protocol(form, info), metadata(form, info, named)]
    if question.can.wants_end:
        lines.append(end_of_stream())
    return Response(b"".join(map(line, lines)), media_type=_NDJSON, headers=question.headers(found, form))


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
    """The files of a version, or those that versions since one have added and removed."""
    question = question_of(request, caller, SharePath(share, schema, table), capabilities, fileidhash)
    if body.startingVersion is not None:
        return _feed(question, body.startingVersion, body.endingVersion, by_row=False)
    return _snapshot(question, body)


def _snapshot(question: TableQuestion, body: QueryBody) -> Response:
    page = _opened(question, body.pageToken, "page", body)
    refresh = _opened(question, body.refreshToken, "refresh", None)
    pinned = page or refresh
    if pinned is not None:
        found = question.table.version(pinned["version"])
    else:
        found = _version(question.table, body.version, body.timestamp)
    columns = question.schema(found)
    info = question.info(columns)
    form = question.can.form(info.schema)
    with_version = body.version is not None or body.timestamp is not None
    hints = hints_of(body.predicateHints, body.jsonPredicateHints, columns)

    def lines() -> Iterator[dict[str, Any]]:
        yield protocol(form, info)
        yield metadata(form, info, found if with_version else None)
        sent, rows, place, following = 0, 0, 0, None
        most = None if hints else body.limitHint  # how many rows the hints leave is not known
        for place, file in enumerate(question.table.files(found)):
            if page is not None and place < page["place"]:
                continue
            if most is not None and rows >= most:
                break
            if body.maxFiles is not None and sent == body.maxFiles:
                following = place
                break
            action = question.action(file, columns, hints)
            if action is not None:
                sent += 1
                rows += int((action.stats or {}).get("numRecords", 0))
                yield action.of_table(form, with_version=with_version)
        wants_refresh = body.includeRefreshToken and form is not None and page is None
        token = _sealed(question, {"version": found.number}, "refresh", None) if wants_refresh else None
        next_page = None
        if following is not None:
            next_page = _sealed(question, {"version": found.number, "place": following}, "page", body)
        if question.can.wants_end or token is not None or next_page is not None:
            yield end_of_stream(refresh=token, page=next_page, expires=question.urls.expires)

    return _stream(question, lines(), question.headers(found, form))


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
    capabilities: _Capabilities = None,
    fileidhash: _IdHash = None,
) -> Response:
    """The change feed: files of rows that were inserted, deleted and updated, by version."""
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
    return _feed(question, startingVersion, endingVersion, by_row=True, with_metadata=includeHistoricalMetadata)


def _feed(
    question: TableQuestion, first: int, last: int | None, *, by_row: bool, with_metadata: bool = False
) -> Response:
    """Changes from a version to another one, both inclusive.

    Args:
        question: the question.
        first: number of the first version.
        last: of the last one; the newest by default, and if it is later than that.
        by_row: whether rows say what has become of them; else files are added or removed as wholes.
        with_metadata: whether to say when columns have changed.
    """
    if not question.table.has_changes:
        raise SharingError(400, "This table keeps no changes; read its newest version")
    latest = question.table.latest
    start = question.table.version(first)
    if last is not None and last < first:
        raise SharingError(400, "The end is before the start")
    end = latest if last is None or last > latest.number else question.table.version(last)
    columns = question.schema(latest if by_row else end)
    info = question.info(columns)
    form = question.can.form(info.schema)

    def lines() -> Iterator[dict[str, Any]]:
        yield protocol(form, info)
        yield metadata(form, info, start if with_metadata or not by_row else None)
        known = question.schema(start)
        for change in question.table.changes(start, end) if by_row else whole_file_changes(question.table, start, end):
            changed = question.schema(change.file.version)
            if with_metadata and changed != known:
                known = changed
                yield metadata(form, question.info(changed), change.file.version)
            action = question.action(change.file, columns, [], change if by_row else None)
            if action is not None:
                yield action.of_feed(form, change.kind)
        if question.can.wants_end:
            yield end_of_stream(expires=question.urls.expires)

    return _stream(question, lines(), question.headers(start, form))


# --- Parts -----------------------------------------------------------------------------------------------------------


def _version(table: ReadableTable, number: int | None, timestamp: str | None) -> TableVersion:
    if number is not None:
        return table.version(number)
    return table.latest if timestamp is None else table.as_of(instant("timestamp", timestamp))


def _stream(question: TableQuestion, lines: Iterator[dict[str, Any]], headers: dict[str, str]) -> Response:
    """Lines as they are made.

    What goes wrong up to the first file is an answer of its own; later, the last line says it.
    """
    first = list(islice(lines, _FIRST_LINES))
    count = 0

    def pieces() -> Iterator[bytes]:
        nonlocal count
        yield from map(line, first)
        try:
            for tree in lines:
                count += not tree.keys() & _NO_FILES
                yield line(tree)
        except OdfError as error:
            found = in_protocol(error)
            if question.can.wants_end:
                yield line(end_of_stream(problem=found.message))
                return
            raise  # the connection breaks: a shorter answer would be taken for a whole one
        finally:
            note(question.request.scope, files=count)

    return StreamingResponse(pieces(), media_type=_NDJSON, headers=headers)


def _sealed(question: TableQuestion, tree: dict[str, Any], what: str, body: QueryBody | None) -> str:
    return question.state.seal.close(tree, _use(question, what, body))


def _opened(question: TableQuestion, token: str | None, what: str, body: QueryBody | None) -> dict[str, Any] | None:
    if not token:
        return None
    found = question.state.seal.open(token, _use(question, what, body))
    if not isinstance(found, dict):
        raise SharingError(400, f"{what}Token is none that this server gave for this question")
    return found


def _use(question: TableQuestion, what: str, body: QueryBody | None) -> str:
    """Return what a token is good for: this table, this caller, and for pages the same question."""
    asked = json.dumps(body.without_page(), sort_keys=True) if body is not None else ""
    parts = (what, question.shared.id, str(question.caller.principal_id), question.view.identity.decode(), asked)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
