"""The interface of archives, implemented for archives in a workspace and on a server."""

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

    # --- Implemented by subclasses ---

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of its dataset, or its URL."""

    @abstractmethod
    def is_at(self, base: str) -> bool:
        """Return whether addresses of its files begin with a text; see `odfpy.archive.addresses`."""

    @abstractmethod
    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        """Archive files, all valid ones in one commit; a rejected file does not prevent the others.

        Returns:
            A result for each file, in order.

        Raises:
            OdfError: the archive cannot be written; none of these files was archived.
        """

    @abstractmethod
    def page(self, question: Question, cursor: str | None = None, *, size: int = PAGE) -> Page:
        """Return a page of matching files, sorted by start and id, without withdrawn files.

        Args:
            question: the query.
            cursor: `Page.next` of the previous page.
            size: maximum number of records.

        Raises:
            InvalidCursor: the cursor belongs to another query.
        """

    @abstractmethod
    def latest(self, what: str, where: str, *, lookback: int = LOOKBACK_DAYS) -> FileRecord:
        """Return the file of a what and where with the latest start, up to the end of today (UTC).

        Args:
            what: kind of the file.
            where: origin of the file.
            lookback: number of days before today; files that ended earlier are not considered.

        Raises:
            NoSuchFile: there is no such file.
        """

    @abstractmethod
    def get(self, id: str) -> FileRecord:  # noqa: A002 - the field's name
        """Return the current record of a file, including withdrawn and expired ones.

        Raises:
            NoSuchFile: there is no such file.
        """

    @abstractmethod
    def open(self, record: FileRecord, *, offset: int = 0) -> BinaryIO:
        """Open the content as a stream from an offset. If read from 0 to its end, it is verified: the last read fails
        on a mismatch.

        Raises:
            FileRemoved, FileElsewhere: its bytes are not stored here.
            WrongContent: (from `read`) the bytes differ from those that were archived.
        """

    @abstractmethod
    def url(self, record: FileRecord) -> str:
        """Return the address of a file for `fetch`: `odf://ARCHIVE/ID`, or for a server a URL that ends in `/data`."""

    # --- Common methods ---

    def known(self, ids: Sequence[str]) -> dict[str, FileRecord]:
        """Return the records of existing ids, by id; including withdrawn and expired files."""
        by_id = {}
        for id_ in ids:
            with suppress(NoSuchFile):
                by_id[id_] = self.get(id_)
        return by_id

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
        """Archive files with common metadata, in one commit; see `push_all`.

        Args:
            files: paths of the files.
            what: kind of the files; may be a translator pattern.
            where: origin of the files; may be a translator pattern.
            start: see `parse_time`; `mtime` and None mean the modification time.
            end: likewise; None for a file of a single moment.
            work_id: job of the files; may be a translator pattern.
        """
        from odfpy.archive.files import new_files

        return self.push_all(new_files(files, what=what, where=where, start=start, end=end, work_id=work_id))

    def fetch(self, address: str, *, folder: str | Path = ".", template: str | None = None) -> Path:
        """Write an archived file into a folder, atomically.

        Args:
            address: its URL, or its id.
            folder: target folder.
            template: template of its name, such as `{what}/{where}-{start_iso}-{name}`; by default the id.

        Returns:
            The path of the file.

        Raises:
            NoSuchFile, FileRemoved, FileElsewhere: there are no bytes to fetch.
            CannotName: the template gives no valid name, or one outside of the folder.
            NameTaken: another file has that name.
            WrongContent: the bytes differ from those that were archived; nothing was written.
        """
        from odfpy.archive.addresses import file_id_of
        from odfpy.archive.naming.filename_template import DEFAULT, FilenameTemplate
        from odfpy.archive.target_folder import TargetFolder

        name = FilenameTemplate(template or DEFAULT)
        record = self.get(file_id_of(address, self.name, self.is_at))
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
        """Yield all matching files, page by page."""
        cursor: str | None = None
        while True:
            page = self.page(question, cursor)
            yield from page.records
            if page.next is None:
                return
            cursor = page.next
