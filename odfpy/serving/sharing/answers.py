"""Responses to requests for tables: the files of a version, or changes, line by line."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Final

from starlette.responses import Response, StreamingResponse

from odfpy.errors import OdfError
from odfpy.serving.sharing.actions import ResponseFormat, end_of_stream, line, metadata, protocol
from odfpy.serving.sharing.audited import note
from odfpy.serving.sharing.bodies import QueryBody, instant
from odfpy.serving.sharing.errors import SharingError, in_protocol
from odfpy.serving.sharing.question import TableQuestion
from odfpy.sharing.hints import hints_of
from odfpy.sharing.tables.contract import ReadableTable, TableVersion
from odfpy.sharing.tables.difference import whole_file_changes

NDJSON: Final = "application/x-ndjson; charset=utf-8"

_NO_FILES: Final = {"protocol", "metaData", "endStreamAction"}
_FIRST_LINES: Final = 3  # protocol, metadata, and a file
_GATHERED: Final = 0.02  # seconds within which lines are combined


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """A response whose lines are produced while it is sent.

    Attributes:
        question: the request.
        version: version of the response; of a feed, the first one.
        form: its format.
        lines: starts the lines; each call produces them anew.
    """

    question: TableQuestion
    version: TableVersion
    form: ResponseFormat
    lines: Callable[[], Iterator[dict[str, Any]]]

    def response(self) -> Response:
        """Return the HTTP response.

        Errors before the first file become an error response; later ones are reported by the last line.
        """
        lines = self.lines()
        first = list(islice(lines, _FIRST_LINES))
        count = 0

        def pieces() -> Iterator[bytes]:
            nonlocal count
            try:
                for tree in chain(first, lines):
                    count += not tree.keys() & _NO_FILES
                    yield line(tree)
            except OdfError as error:
                protocol_error = in_protocol(error)
                if self.question.can.wants_end:
                    yield line(end_of_stream(problem=protocol_error.message))
                    return
                raise  # abort the connection: a shorter response would be taken for complete
            finally:
                note(self.question.request.scope, files=count)

        headers = self.question.headers(self.version, self.form)
        return StreamingResponse(_gathered(pieces()), media_type=NDJSON, headers=headers)


def _gathered(lines: Iterator[bytes]) -> Iterator[bytes]:
    """Combine lines that are produced quickly into one piece: each piece costs a switch between threads.

    A line waits at most for the next one.
    """
    held: list[bytes] = []
    since = 0.0  # the first line is sent immediately
    for item in lines:
        held.append(item)
        now = time.monotonic()
        if now - since >= _GATHERED:
            yield b"".join(held)
            held, since = [], now
    yield b"".join(held)


def answer_of(question: TableQuestion, body: QueryBody, pinned: int | None = None) -> TableAnswer:
    """Return the response to a query.

    Args:
        question: the request.
        body: body of the request.
        pinned: number of the version that the first request referred to, None for the first request.

    Raises:
        SharingError: 400, the body does not fit the table.
        NoSuchVersion: the version does not exist.
    """
    if body.startingVersion is not None:
        last = pinned if pinned is not None else body.endingVersion
        page = Page.asked(question, body.maxFiles, body.pageToken, body.question())
        return feed(question, body.startingVersion, last, page, by_row=False)
    return _snapshot(question, body, pinned)


def pin(answer: TableAnswer, body: QueryBody) -> int:
    """Return the number of the last version in a response, to repeat the request for it later."""
    if body.startingVersion is None:
        return answer.version.number
    latest = answer.question.table.latest.number
    return latest if body.endingVersion is None else min(body.endingVersion, latest)


def version_asked(table: ReadableTable, number: int | None, timestamp: str | None) -> TableVersion:
    """Return the version that a request names; the newest by default.

    Args:
        table: the table.
        number: number of the version.
        timestamp: a time at which it was the newest, in the protocol's format.
    """
    if number is not None:
        return table.version(number)
    return table.latest if timestamp is None else table.as_of(instant("timestamp", timestamp))


def use_of(question: TableQuestion, what: str, asked: str = "") -> str:
    """Return the purpose that a token is bound to: this table, this caller, and the same request.

    Args:
        question: the request.
        what: kind of the token.
        asked: all parameters of the request; empty if the token is valid for any.
    """
    parts = (what, question.shared.identity, str(question.caller.principal_id), question.view.identity.decode(), asked)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a paginated response.

    Attributes:
        most: maximum number of files, None for all.
        start: index of its first file.
        version: number of the last version in the first page, None on the first page.
        use: purpose that its token is bound to.
    """

    most: int | None
    start: int
    version: int | None
    use: str

    @classmethod
    def asked(cls, question: TableQuestion, most: int | None, token: str | None, asked: str) -> Page:
        """Parse the requested page.

        Args:
            question: the request.
            most: `maxFiles`.
            token: `pageToken`.
            asked: all parameters of the request, as a text that is the same for all pages.

        Raises:
            SharingError: 400, the token belongs to another request.
        """
        use = use_of(question, "page", asked)
        content = _opened(question, token, "page", use) or {"place": 0, "version": None}
        return cls(most, content["place"], content["version"], use)

    def following(self, question: TableQuestion, place: int, version: TableVersion) -> str:
        """Return the token of the next page.

        Args:
            question: the request.
            place: index of its first file.
            version: last version in the response.
        """
        return question.state.seal.close({"version": version.number, "place": place}, self.use)


# --- Files of a version ----------------------------------------------------------------------------------------------


def _snapshot(question: TableQuestion, body: QueryBody, pinned: int | None) -> TableAnswer:
    page = Page.asked(question, body.maxFiles, body.pageToken, body.question())
    refreshing = use_of(question, "refresh")
    refresh_content = _opened(question, body.refreshToken, "refresh", refreshing)
    if page.version is not None:
        pinned = page.version
    elif refresh_content is not None:
        pinned = refresh_content["version"]
    version = (
        version_asked(question.table, body.version, body.timestamp)
        if pinned is None
        else question.table.version(pinned)
    )
    columns = question.schema(version)
    info = question.info(columns, is_snapshot=True)
    form = question.can.form(info.schema)
    has_vectors = form is ResponseFormat.DELTA and info.has_vectors
    with_version = body.version is not None or body.timestamp is not None
    hints = hints_of(body.predicateHints, body.jsonPredicateHints, columns)

    def lines() -> Iterator[dict[str, Any]]:
        yield protocol(form, info)
        yield metadata(form, info, version if with_version else None)
        sent, rows, following = 0, 0, None
        # How many rows the client's conditions leave is unknown, also of those that are not understood here.
        most = None if body.has_hints else body.limitHint
        files = islice(question.table.files(version), page.start, None if most != 0 else page.start)
        is_limited = most is not None or page.most is not None
        actions = question.actions(files, columns, hints, has_vectors=has_vectors, is_limited=is_limited)
        for place, action in enumerate(actions, page.start):
            if sent == page.most:
                following = page.following(question, place, version)
                break
            if action is not None:
                sent += 1
                rows += action.num_rows
                yield action.of_table(form, with_version=with_version)
            if most is not None and rows >= most:
                break
        wants_refresh = body.includeRefreshToken and page.version is None
        refresh = question.state.seal.close({"version": version.number}, refreshing) if wants_refresh else None
        if question.can.wants_end or refresh is not None or following is not None:
            yield end_of_stream(refresh=refresh, page=following, expires=question.urls.expires)

    return TableAnswer(question, version, form, lines)


def _opened(question: TableQuestion, token: str | None, kind: str, use: str) -> dict[str, Any] | None:
    if not token:
        return None
    content = question.state.seal.open(token, use)
    if not isinstance(content, dict):
        raise SharingError(400, f"{kind}Token was not issued by this server for this request")
    return content


# --- Changes ---------------------------------------------------------------------------------------------------------


def feed(
    question: TableQuestion, first: int, last: int | None, page: Page, *, by_row: bool, with_metadata: bool = False
) -> TableAnswer:
    """Return the changes between two versions, both inclusive.

    Args:
        question: the request.
        first: number of the first version.
        last: number of the last version; the newest by default, and if it is later than that.
        page: the requested page.
        by_row: whether rows have a change type; otherwise complete files are added or removed.
        with_metadata: whether to report changes of columns.

    Raises:
        SharingError: 400, the table has no change data feed, or the end is before the start.
        NoSuchVersion: a version does not exist.
    """
    if not question.table.has_changes:
        raise SharingError(400, "This table has no change data; read its newest version")
    latest = question.table.latest
    last = last if page.version is None else page.version
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
        reported_schema, sent, following = question.schema(start), 0, None
        all_changes = question.table.changes(start, end) if by_row else whole_file_changes(question.table, start, end)
        for place, change in enumerate(all_changes):
            schema = question.schema(change.file.version) if with_metadata else reported_schema
            if sent == page.most:
                following = page.following(question, place, end)
                break
            if schema != reported_schema and place >= page.start:
                yield metadata(form, question.info(schema), change.file.version)
            reported_schema = schema
            action = (
                question.action(change.file, columns, [], change if by_row else None) if place >= page.start else None
            )
            if action is not None:
                sent += 1
                yield action.of_feed(form, change.kind)
        if question.can.wants_end or following is not None:
            yield end_of_stream(page=following, expires=question.urls.expires)

    return TableAnswer(question, start, form, lines)
