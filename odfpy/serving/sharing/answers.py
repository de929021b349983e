"""Answers to questions about tables: the files of a version, or the changes of some, line by line."""

from __future__ import annotations

import hashlib
import json
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
_GATHERED: Final = 0.02  # seconds in which lines become one piece


@dataclass(frozen=True, slots=True)
class TableAnswer:
    """An answer whose lines are made as they are taken.

    Attributes:
        question: the question.
        version: that the answer is of; of a feed, the first one.
        form: its format.
        lines: begins the lines; each call makes them anew.
    """

    question: TableQuestion
    version: TableVersion
    form: ResponseFormat
    lines: Callable[[], Iterator[dict[str, Any]]]

    def response(self) -> Response:
        """Return the lines as they are made.

        What goes wrong up to the first file is an answer of its own; later, the last line says it.
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
                found = in_protocol(error)
                if self.question.can.wants_end:
                    yield line(end_of_stream(problem=found.message))
                    return
                raise  # the connection breaks: a shorter answer would be taken for a whole one
            finally:
                note(self.question.request.scope, files=count)

        headers = self.question.headers(self.version, self.form)
        return StreamingResponse(_gathered(pieces()), media_type=NDJSON, headers=headers)


def _gathered(lines: Iterator[bytes]) -> Iterator[bytes]:
    """The same bytes, with lines that come fast in one piece: each piece is a hop between threads."""
    held: list[bytes] = []
    since = 0.0  # the first line goes out at once
    for one in lines:
        held.append(one)
        now = time.monotonic()
        if now - since >= _GATHERED:
            yield b"".join(held)
            held, since = [], now
    yield b"".join(held)


def answer_of(question: TableQuestion, body: QueryBody, pinned: int | None = None) -> TableAnswer:
    """The answer to a query.

    Args:
        question: the question.
        body: what it asks for.
        pinned: number of the version that it was about when it was asked first, None if it is asked now.

    Raises:
        SharingError: 400, the body does not fit the table.
        NoSuchVersion: there is no such version.
    """
    if body.startingVersion is not None:
        return feed(question, body.startingVersion, pinned if pinned is not None else body.endingVersion, by_row=False)
    return _snapshot(question, body, pinned)


def pin(answer: TableAnswer, body: QueryBody) -> int:
    """Return the number of the version that an answer ends with, to ask for the same later."""
    if body.startingVersion is None:
        return answer.version.number
    latest = answer.question.table.latest.number
    return latest if body.endingVersion is None else min(body.endingVersion, latest)


def version_asked(table: ReadableTable, number: int | None, timestamp: str | None) -> TableVersion:
    """The version that a question names; the newest one if it names none.

    Args:
        table: the table.
        number: of the version.
        timestamp: a time at which it was the newest, as the protocol writes it.
    """
    if number is not None:
        return table.version(number)
    return table.latest if timestamp is None else table.as_of(instant("timestamp", timestamp))


def use_of(question: TableQuestion, what: str, body: QueryBody | None) -> str:
    """The use that a token is good for: this table, this caller, and the same question.

    Args:
        question: the question.
        what: kind of the token.
        body: the question that it is for; None if it is for all.
    """
    asked = json.dumps(body.without_page(), sort_keys=True) if body is not None else ""
    parts = (what, question.shared.id, str(question.caller.principal_id), question.view.identity.decode(), asked)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


# --- Files of a version ----------------------------------------------------------------------------------------------


def _snapshot(question: TableQuestion, body: QueryBody, pinned: int | None) -> TableAnswer:
    page = _opened(question, body.pageToken, "page", body)
    token = page or _opened(question, body.refreshToken, "refresh", None)
    if token is not None:
        pinned = token["version"]
    found = (
        version_asked(question.table, body.version, body.timestamp)
        if pinned is None
        else question.table.version(pinned)
    )
    columns = question.schema(found)
    info = question.info(columns, is_snapshot=True)
    form = question.can.form(info.schema)
    has_vectors = form is ResponseFormat.DELTA and info.has_vectors
    with_version = body.version is not None or body.timestamp is not None
    hints = hints_of(body.predicateHints, body.jsonPredicateHints, columns)

    def lines() -> Iterator[dict[str, Any]]:
        yield protocol(form, info)
        yield metadata(form, info, found if with_version else None)
        sent, rows, following = 0, 0, None
        most = None if hints else body.limitHint  # how many rows the hints leave is not known
        start = 0 if page is None else page["place"]
        files = islice(question.table.files(found), start, None if most != 0 else start)
        actions = question.actions(
            files, columns, hints, has_vectors=has_vectors, is_limited=most is not None or body.maxFiles is not None
        )
        for place, action in enumerate(actions, start):
            if body.maxFiles is not None and sent == body.maxFiles:
                following = place
                break
            if action is not None:
                sent += 1
                rows += action.num_rows
                yield action.of_table(form, with_version=with_version)
            if most is not None and rows >= most:
                break
        wants_refresh = body.includeRefreshToken and page is None
        refresh = _sealed(question, {"version": found.number}, "refresh", None) if wants_refresh else None
        next_page = None
        if following is not None:
            next_page = _sealed(question, {"version": found.number, "place": following}, "page", body)
        if question.can.wants_end or refresh is not None or next_page is not None:
            yield end_of_stream(refresh=refresh, page=next_page, expires=question.urls.expires)

    return TableAnswer(question, found, form, lines)


def _sealed(question: TableQuestion, tree: dict[str, Any], what: str, body: QueryBody | None) -> str:
    return question.state.seal.close(tree, use_of(question, what, body))


def _opened(question: TableQuestion, token: str | None, what: str, body: QueryBody | None) -> dict[str, Any] | None:
    if not token:
        return None
    found = question.state.seal.open(token, use_of(question, what, body))
    if not isinstance(found, dict):
        raise SharingError(400, f"{what}Token is none that this server gave for this question")
    return found


# --- Changes ---------------------------------------------------------------------------------------------------------


def feed(
    question: TableQuestion, first: int, last: int | None, *, by_row: bool, with_metadata: bool = False
) -> TableAnswer:
    """The changes from a version to another one, both inclusive.

    Args:
        question: the question.
        first: number of the first version.
        last: of the last one; the newest by default, and if it is later than that.
        by_row: whether rows say what has become of them; else files are added or removed as wholes.
        with_metadata: whether to say when columns have changed.

    Raises:
        SharingError: 400, the table keeps no changes, or the end is before the start.
        NoSuchVersion: there is no such version.
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
            changed = question.schema(change.file.version) if with_metadata else known
            if changed != known:
                known = changed
                yield metadata(form, question.info(changed), change.file.version)
            action = question.action(change.file, columns, [], change if by_row else None)
            if action is not None:
                yield action.of_feed(form, change.kind)
        if question.can.wants_end:
            yield end_of_stream(expires=question.urls.expires)

    return TableAnswer(question, start, form, lines)
