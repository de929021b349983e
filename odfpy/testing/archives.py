"""A minimal archive for tests: records and contents are files of a folder."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

from odfpy.archive.archive import Archive
from odfpy.archive.errors import IdTaken, InvalidCursor, NoSuchFile
from odfpy.archive.preparing import prepare
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome
from odfpy.archive.question import LOOKBACK_DAYS, PAGE, Page, Question
from odfpy.archive.record import FileRecord
from odfpy.archive.times import DAY
from odfpy.data.multihash import BLAKE3
from odfpy.data.timestamp import Timestamp
from odfpy.errors import OdfError
from odfpy.files import replace_file

_RECORDS: Final = "records"
_CONTENTS: Final = "contents"


class FolderArchive(Archive):
    """An archive in a folder, to which several processes may push.

    Attributes:
        path: path of the folder.
        commits: number of files in each push by this object.
    """

    def __init__(self, path: Path) -> None:
        """
        Args:
            path: path of the folder, which is created if it is missing.
        """
        self.path = path
        self.commits: list[int] = []
        for name in (_RECORDS, _CONTENTS):
            (path / name).mkdir(parents=True, exist_ok=True)

    @property
    def name(self) -> str:
        return self.path.name

    def is_at(self, base: str) -> bool:
        return base == f"odf://{self.name}"

    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        results = [self._push(new) for new in files]
        self.commits.append(sum(result.outcome is PushOutcome.PUSHED for result in results))
        return results

    def _push(self, new: NewFile) -> Pushed:
        copy = self.path / f"copy-{Timestamp.now().nanos}-{id(new)}"
        try:
            record = prepare(new, copy, BLAKE3, Timestamp.now().millis).record
            try:
                known = self.get(record.id)
            except NoSuchFile:
                copy.replace(self.path / _CONTENTS / str(record.object))
                replace_file(self._place(record.id), json.dumps(record.to_dict()).encode())
                return Pushed(file=new.file, outcome=PushOutcome.PUSHED, record=record, url=self.url(record))
            if known.hash != record.hash:
                raise IdTaken(f"{new.file}: the id {record.id} is that of {known.path}, which has other bytes")
            return Pushed(file=new.file, outcome=PushOutcome.KNOWN, record=known, url=self.url(known))
        except OdfError as error:
            return Pushed(file=new.file, outcome=PushOutcome.REFUSED, error=error)
        finally:
            copy.unlink(missing_ok=True)

    def _place(self, id_: str) -> Path:
        return self.path / _RECORDS / f"{id_}.json"

    def records(self) -> Iterator[FileRecord]:
        """Yield all records, ordered by start, then id."""
        found = [
            FileRecord.from_dict(json.loads(file.read_bytes())) for file in (self.path / _RECORDS).glob("[!.]*.json")
        ]
        yield from sorted(found, key=lambda record: (record.start, record.id))

    def page(self, question: Question, cursor: str | None = None, *, size: int = PAGE) -> Page:
        if cursor is not None and not cursor.isdecimal():
            raise InvalidCursor(f"Not a cursor: {cursor[:80]!r}")
        found = [record for record in self.records() if _fits(record, question)]
        first = int(cursor or 0)
        following = first + size
        return Page(tuple(found[first:following]), str(following) if following < len(found) else None)

    def latest(self, what: str, where: str, *, lookback: int = LOOKBACK_DAYS) -> FileRecord:
        today = Timestamp.now().millis // DAY * DAY
        question = Question(what=(what,), where=(where,), start=today - lookback * DAY, end=today + DAY - 1)
        found = [record for record in self.records() if _fits(record, question)]
        if not found:
            raise NoSuchFile(f"{self.name} has no such file")
        return found[-1]

    def get(self, id: str) -> FileRecord:  # noqa: A002
        try:
            return FileRecord.from_dict(json.loads(self._place(id).read_bytes()))
        except FileNotFoundError:
            raise NoSuchFile(f"{self.name} has no file {id[:128]!r}") from None

    def open(self, record: FileRecord, *, offset: int = 0) -> BinaryIO:
        stream = (self.path / _CONTENTS / str(record.object)).open("rb")
        stream.seek(offset)
        return stream

    def url(self, record: FileRecord) -> str:
        return f"odf://{self.name}/{record.id}"


def _fits(record: FileRecord, question: Question) -> bool:
    if record.what not in question.what or (question.where and record.where not in question.where):
        return False
    if question.work_id is not None:
        return record.work_id == question.work_id
    last = record.start if record.end is None else record.end
    return (question.end is None or record.start <= question.end) and (question.start is None or last >= question.start)
