"""The interface of archives: the same verbs for one in a workspace and for one of a server."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfpy.archive.errors import NoSuchFile
from odfpy.archive.pushing import NewFile, Pushed
from odfpy.archive.question import LOOKBACK_DAYS, PAGE, Page, Question

if TYPE_CHECKING:
    from odfpy.archive.record import FileRecord
    from odfpy.archive.times import Time


class Archive(ABC):
    """An archive of files; `odfpy.archive.open_archive` opens one.

    >>> from odfpy.archive import open_archive
    >>> archive = open_archive("logs")
    >>> archive.push(["/var/log/syslog.1"], what="syslog", where="web1", start="2024-03-01")
    >>> for record in archive.list("syslog", start="2024-03-01", end="2024-03-02"):
    ...     print(record.path, archive.open(record).read()[:80])
    """

    # --- What an implementation has ---

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its dataset, or its URL."""

    @abstractmethod
    def is_at(self, base: str) -> bool:
        """Return whether addresses of its files begin with that; see `odfpy.archive.addresses`."""

    @abstractmethod
    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        """Archive files, all that are good in one commit; a file that is refused keeps no other from its place.

        Returns:
            A result for each file, in their order.

        Raises:
            OdfError: the archive cannot be written; no file of these was archived.
        """

    @abstractmethod
    def page(self, question: Question, cursor: str | None = None, *, size: int = PAGE) -> Page:
        """Some of the files that fit, in the order of their starts, then ids; without those that were withdrawn.

        Args:
            question: which.
            cursor: `Page.next` of the page before.
            size: records at most.

        Raises:
            InvalidCursor: the cursor is not one of this question.
        """

    @abstractmethod
    def latest(self, what: str, where: str, *, lookback: int = LOOKBACK_DAYS) -> FileRecord:
        """The file of that what and where that started last, up to the end of today (UTC).

        Args:
            what: what it is.
            where: where it comes from.
            lookback: days before today in which it must have been going on.

        Raises:
            NoSuchFile: there is none.
        """

    @abstractmethod
    def get(self, id: str) -> FileRecord:  # noqa: A002 - the field's name
        """The record of a file as it is now, also of one that was withdrawn or has expired.

        Raises:
            NoSuchFile: there is none.
        """

    @abstractmethod
    def open(self, record: FileRecord, *, offset: int = 0) -> BinaryIO:
        """The content as a stream from a byte on; read from 0 to its end, it is checked, and the last read fails.

        Raises:
            FileRemoved, FileElsewhere: its bytes are not here.
            WrongContent: (from `read`) the bytes are not those that were archived.
        """

    @abstractmethod
    def url(self, record: FileRecord) -> str:
        """The address of a file, as `fetch` takes it: `odf://ARCHIVE/ID`, or on a server one that ends in `/data`."""

    # --- What all of them can do ---

    def known(self, ids: Sequence[str]) -> dict[str, FileRecord]:
        """The records of those ids that are there, by id; also of files that were withdrawn or have expired."""
        found = {}
        for id_ in ids:
            with suppress(NoSuchFile):
                found[id_] = self.get(id_)
        return found

    def push(
        self,
        files: Iterable[str | Path],
        *,
        what: str,
        where: str,
        start: Time | None = None,
        end: Time | None = None,
        work_id: str | None = None,
    ) -> list[Pushed]:
        """Archive files that have the same words and times, in one commit; see `push_all`.

        Args:
            files: paths.
            what: what they are; may be a translator pattern.
            where: where they come from; may be a translator pattern.
            start: see `parse_time`; `mtime` and None mean the time of modification.
            end: the same; None for a file of one moment.
            work_id: the job that they belong to; may be a translator pattern.
        """
        from odfpy.archive.files import new_files

        return self.push_all(new_files(files, what=what, where=where, start=start, end=end, work_id=work_id))

    def fetch(self, address: str, *, folder: str | Path = ".", template: str | None = None) -> Path:
        """Write a file that is archived into a folder; it is there as a whole or not at all.

        Args:
            address: its URL, or its id.
            folder: where to.
            template: of its name, such as `{what}/{where}-{start_iso}-{name}`; by default the id.

        Returns:
            The path of the file.

        Raises:
            NoSuchFile, FileRemoved, FileElsewhere: there is nothing to fetch.
            CannotName: the template gives no name, or one that leads out of the folder.
            NameTaken: another file has that name already.
            WrongContent: the bytes are not those that were archived; nothing was written.
        """
        from odfpy.archive.addresses import id_in
        from odfpy.archive.naming.filename_template import DEFAULT, FilenameTemplate
        from odfpy.archive.target_folder import TargetFolder

        name = FilenameTemplate(template or DEFAULT)
        record = self.get(id_in(address, self.name, self.is_at))
        return TargetFolder(folder).write(name.name_of(record), lambda at: self.open(record, offset=at), record)

    def list(
        self,
        what: str | Iterable[str],
        *,
        where: str | Iterable[str] = (),
        start: Time | None = None,
        end: Time | None = None,
        work_id: str | None = None,
    ) -> Iterator[FileRecord]:
        """Yield the files of a time range or of a job; see `Question.of`."""
        return self.answers(Question.of(what, where=where, start=start, end=end, work_id=work_id))

    def answers(self, question: Question) -> Iterator[FileRecord]:
        """Yield all files that fit, page by page."""
        cursor: str | None = None
        while True:
            page = self.page(question, cursor)
            yield from page.records
            if page.next is None:
                return
            cursor = page.next
