"""An archive on a server, with the same methods as one in a workspace."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Sequence
from typing import Any, BinaryIO, Final, cast
from urllib.parse import parse_qs, urlsplit

from odfpy.archive.archive import Archive
from odfpy.archive.errors import NoSuchFile, NotAnArchive
from odfpy.archive.files import Content, hash_content
from odfpy.archive.preparing import draft_of, prepared
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome
from odfpy.archive.question import LOOKBACK_DAYS, PAGE, Page, Question
from odfpy.archive.reading import checked_stream
from odfpy.archive.record import FileRecord, reasons_against_id, reasons_against_words
from odfpy.archive.remote.sending import SMALL, Sender
from odfpy.archive.remote.server import ArchiveServer, no_archive_at
from odfpy.archive.times import FIRST, LAST, iso
from odfpy.codec.errors import RaisedError, error_of
from odfpy.coordinator.storage.results import Progress, ProgressSink, silent
from odfpy.data.multihash import BLAKE3
from odfpy.data.timestamp import Timestamp
from odfpy.errors import DatasetNotFound, OdfError, TransferError
from odfpy.http.client import HttpResponse
from odfpy.http.resume import ResumableDownload
from odfpy.http.url import without_user

_FILES: Final = "/v0/archive/files/"
_MAX_RECORDS: Final = 5000
_COMMIT_INTERVAL: Final = 3600.0
"""Seconds after which sent files are archived, though more follow: servers keep uploads without a record for a day."""

_LARGE_FILE: Final = 16 << 30
"""Bytes of a file that may take long: files that were sent before it are archived first."""

_OK: Final = 200


class RemoteArchive(Archive):
    """An archive on a server, over HTTP; content is verified, and interrupted downloads are resumed."""

    def __init__(self, url: str, token: str | None = None, progress: ProgressSink = silent) -> None:
        """
        Args:
            url: `http(s)://HOST/NAME`, or `http(s)://HOST` for the default archive there.
            token: access token; by default the one stored by `odf login`.
            progress: called with the progress of a push.

        Raises:
            UsageError: the URL is invalid.
        """
        self._server = ArchiveServer(url, token)
        self._progress = progress

    @property
    def name(self) -> str:
        """The URL."""
        return self._server.base

    def is_at(self, base: str) -> bool:
        return without_user(base) in (self.name, f"{self.name}{_FILES}".rstrip("/"))

    def url(self, record: FileRecord) -> str:
        return f"{self.name}{_path(record.id)}/data"

    # --- Pushing ---

    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        """Archive files; more than some thousands of them, or what takes hours to send, in several commits."""
        results: dict[int, Pushed] = {}
        records: list[tuple[int, dict[str, Any]]] = []
        sender, begun = Sender(self._server), time.monotonic()
        for number, new in enumerate(files):
            self._progress(Progress(self.name, f"sending {new.file}", number, len(files), "files"))
            try:
                record, content, data = _looked_at(new)
            except OdfError as error:
                results[number] = Pushed(file=new.file, outcome=PushOutcome.REFUSED, error=error)
                continue
            if records and (content.size >= _LARGE_FILE or time.monotonic() - begun >= _COMMIT_INTERVAL):
                self._archive(files, records, sender, results)
                records, sender, begun = [], Sender(self._server), time.monotonic()
            try:
                sender.add(content, data)
            except (TransferError, NotAnArchive, DatasetNotFound):
                raise  # the remaining files would fail in the same way
            except OdfError as error:
                results[number] = Pushed(file=new.file, outcome=PushOutcome.REFUSED, error=error)
            else:
                records.append((number, _tree(record, new)))
        self._archive(files, records, sender, results)
        return [results[number] for number in range(len(files))]

    def _archive(
        self,
        files: Sequence[NewFile],
        records: list[tuple[int, dict[str, Any]]],
        sender: Sender,
        results: dict[int, Pushed],
    ) -> None:
        """Archive files that were given to a sender.

        Args:
            files: all files of the push.
            records: numbers and records of these.
            sender: the sender.
            results: takes their results, by number.
        """
        sender.flush()
        for start in range(0, len(records), _MAX_RECORDS):
            batch = records[start : start + _MAX_RECORDS]
            for (number, _), answer in zip(batch, self._pushed([tree for _, tree in batch]), strict=True):
                results[number] = self._result(files[number], answer)

    def _pushed(self, trees: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return the outcomes of records, as the server reports them."""
        answer = self._server.ask_with("/v0/archive/records", trees)
        results = answer.get("results") if isinstance(answer, dict) else None
        if not isinstance(results, list) or len(results) != len(trees):
            raise no_archive_at(self.name)
        return results

    def _result(self, new: NewFile, answer: dict[str, Any]) -> Pushed:
        try:
            outcome = PushOutcome(answer["outcome"])
            if outcome is PushOutcome.REFUSED:
                return Pushed(file=new.file, outcome=outcome, error=_error(answer["error"]))
            record = self._record(answer["record"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise no_archive_at(self.name) from error
        return Pushed(file=new.file, outcome=outcome, record=record, url=self.url(record))

    # --- Looking ---

    def page(self, question: Question, cursor: str | None = None, *, size: int = PAGE) -> Page:
        asked: dict[str, str] = {"what": ",".join(question.what), "limit": str(size)}
        if question.where:
            asked["where"] = ",".join(question.where)
        if question.work_id is not None:
            asked["work_id"] = question.work_id
        else:
            # As text: small numbers would be taken for seconds.
            asked["start"] = iso(FIRST if question.start is None else question.start) or ""
            asked["end"] = iso(LAST if question.end is None else question.end) or ""
        if cursor is not None:
            asked["cursor"] = cursor
        answer = self._server.ask(_FILES, asked)
        try:
            records = tuple(self._record(tree) for tree in answer["records"])
            following = None if answer["next"] is None else _cursor_in(answer["next"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise no_archive_at(self.name) from error
        if following is not None and following == cursor:  # it would be asked for the same page for ever
            raise no_archive_at(self.name)
        return Page(records, following)

    def latest(self, what: str, where: str, *, lookback: int = LOOKBACK_DAYS) -> FileRecord:
        if any(reasons_against_words(what=what, where=where, work_id=None)):
            raise NoSuchFile(f"No file can be of {what[:128]!r} from {where[:128]!r}")
        return self._record(self._server.ask(f"/v0/archive/latest/{what}/{where}", {"lookback": str(lookback)}))

    def get(self, id: str) -> FileRecord:  # noqa: A002
        record = self._record(self._server.ask(_path(id)))
        if record.id != id:
            raise no_archive_at(self.name)
        return record

    def open(self, record: FileRecord, *, offset: int = 0) -> BinaryIO:
        if 0 < record.size <= offset:
            return io.BytesIO()

        def ask(headers: dict[str, str]) -> HttpResponse:
            return self._server.content(f"{_path(record.id)}/data", headers)

        def require(answer: HttpResponse) -> None:
            if answer.status != _OK:
                self._server.accepted(answer)
                raise no_archive_at(answer.shown)

        where = self.url(record)
        stream = cast("BinaryIO", ResumableDownload(ask, require, where, offset))
        return stream if offset else checked_stream(stream, record, where)

    def _record(self, tree: Any) -> FileRecord:
        """Parse a record sent by the server.

        Raises:
            TransferError: the record is invalid.
        """
        try:
            record = FileRecord.from_dict({**tree, **tree["metadata"]}).checked()
        except (KeyError, TypeError, ValueError, AttributeError, OdfError) as error:
            raise no_archive_at(self.name) from error
        if not isinstance(record.create_time, int) or not isinstance(record.id, str):
            raise no_archive_at(self.name)
        return record


def _path(id: str) -> str:  # noqa: A002
    """Return the URL path of a file.

    Raises:
        NoSuchFile: the id is impossible.
    """
    if any(reasons_against_id(id)):
        raise NoSuchFile(f"No file has the id {id[:128]!r}")
    return f"{_FILES}{id}"


def _looked_at(new: NewFile) -> tuple[FileRecord, Content, bytes | None]:
    """Return the record of a file, its content, and its bytes if it is small.

    Raises:
        OdfError: the file cannot be archived.
    """
    algorithm = new.object.algorithm if new.object else BLAKE3
    draft = draft_of(new, algorithm, Timestamp.now().millis)
    content, data = hash_content(new.file, algorithm, keep=SMALL)
    return prepared(new, draft, content).record, content, data


def _tree(record: FileRecord, new: NewFile) -> dict[str, Any]:
    """Return a record for sending; id and creation time only if they were given explicitly."""
    tree = {**record.metadata(), "object": str(record.object), "size": record.size}
    del tree["version"], tree["id"]
    given = {"id": new.id, "create_time": new.create_time}
    return {**tree, **{name: value for name, value in given.items() if value is not None}}


def _cursor_in(url: str) -> str:
    """Return the cursor of the next page.

    Raises:
        ValueError, KeyError: the URL has none.
    """
    return parse_qs(urlsplit(url).query)["cursor"][0]


def _error(tree: dict[str, Any]) -> OdfError:
    """The error for which the server has refused a record."""
    fields, hint = json.dumps({"reasons": tree.get("reasons", [])}), tree.get("hint")
    raised = RaisedError("", str(tree["message"]), None if hint is None else str(hint), str(tree["code"]), fields)
    return error_of(raised, OdfError)
