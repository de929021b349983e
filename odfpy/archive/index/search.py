"""The search index of an archive: its records by what, where and time, by job, by id, and by object."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import numpy as np
import pyarrow as pa

from odfpy.archive.index.adding import DEFAULT_SIZES, Sizes
from odfpy.archive.index.browse import NameSummary, days, names
from odfpy.archive.index.checked_file import IndexDamaged
from odfpy.archive.index.cursor import Cursor
from odfpy.archive.index.fingerprints import Fingerprints, combined, fingerprint, fingerprints
from odfpy.archive.index.segment import Segment
from odfpy.archive.index.updating import OpenIndex, dataset_at_head, forget, updated_index
from odfpy.archive.index.versions import FOREVER, Numbers
from odfpy.archive.index.walk import Key, Stretch, greatest_of, stretches
from odfpy.archive.question import Page, Question
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.rows import arrow_schema, records_of
from odfpy.coordinator.storage.results import ProgressSink, silent
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.errors import InternalError

T = TypeVar("T")


class SearchIndex:
    """An index snapshot of an archive; thread-safe.

    If damage is only detected during a query, the index is rebuilt, and the query repeated.
    """

    def __init__(self, dataset: StoredDataset, progress: ProgressSink, sizes: Sizes, index: OpenIndex) -> None:
        self._dataset = dataset
        self._progress = progress
        self._sizes = sizes
        self._index = index
        self._horizon = FOREVER if dataset.block is None else _last_offset(dataset)
        self._id = str(dataset.handle.id)

    @classmethod
    def of(
        cls,
        dataset: StoredDataset,
        progress: ProgressSink = silent,
        *,
        before: SearchIndex | None = None,
        sizes: Sizes = DEFAULT_SIZES,
    ) -> SearchIndex:
        """Return the index of an archive at its head: unchanged, extended, or rebuilt.

        Args:
            dataset: the archive; may be the view from a branch, or as at a block.
            progress: called with the progress, if it takes long.
            before: an earlier index of the same archive, whose caches are reused.
            sizes: sizes of segments, if it has to be written.

        Raises:
            OdfError: a slice is missing or damaged, or the index cannot be written anywhere.
        """
        known = {} if before is None else {segment.name: segment for segment in before.segments}
        place = _seen_from(dataset)
        return cls(dataset, progress, sizes, updated_index(place, progress, sizes, known))

    @property
    def head(self) -> str | None:
        """The block of the index, as text."""
        return self._index.catalog.head

    @property
    def num_records(self) -> int:
        """The number of records in the archive, including withdrawn and expired ones."""
        return self._answer(self._count)

    def page(self, question: Question, cursor: str | None, size: int) -> Page:
        """Return a page of matching files, sorted by start and id.

        All pages of a result refer to the archive as of the first page, except that files withdrawn since are omitted.

        Args:
            question: the query.
            cursor: `Page.next` of the previous page.
            size: maximum number of records, at least 1.

        Raises:
            InvalidCursor: the cursor belongs to another query.
        """
        after = None if cursor is None else Cursor.parse(cursor, self._id, question)
        return self._answer(lambda: self._page(question, after, size))

    def latest(self, what: str, where: str, *, since: int, until: int) -> FileRecord | None:
        """Return the record with the latest start. Ties are broken by creation time, then by id.

        Args:
            what: kind of the file.
            where: origin of the file.
            since: time before which it must not have ended.
            until: time by which it must have started.
        """
        return self._answer(lambda: self._latest(what, where, since, until))

    def get(self, id: str) -> FileRecord | None:  # noqa: A002 - the field's name
        """Return the record of an id, whatever its status."""
        return self.known([id]).get(id)

    def known(self, ids: Sequence[str]) -> dict[str, FileRecord]:
        """Return the records of existing ids, whatever their status."""
        wanted = set(ids)
        records = self._answer(lambda: self._found("id", sorted(wanted), self._horizon))
        return {record.id: record for record in records if record.id in wanted}

    def histories(self, ids: Sequence[str]) -> dict[str, list[FileRecord]]:
        """Return all versions of records, by id, oldest first."""
        wanted = set(ids)
        versions = self._answer(lambda: self._found("id", sorted(wanted), self._horizon, ended=True))
        return _by_id(version for version in versions if version.id in wanted)

    def histories_of_object(self, object: Multihash) -> dict[str, list[FileRecord]]:  # noqa: A002 - the field's name
        """Return all versions of the records with some content, including withdrawn ones, by id."""
        versions = self._answer(lambda: self._found("object", [str(object)], self._horizon, ended=True))
        return _by_id(version for version in versions if version.object == object)

    def offsets_of(self, id: str) -> list[int]:  # noqa: A002 - the field's name
        """Return the offsets of all rows of a record, oldest first: its arrival and corrections."""
        return self._answer(lambda: self._offsets_of(id))

    def names(self, what: str | None = None) -> list[NameSummary]:
        """Return all what, or all where of one what, sorted by name.

        Args:
            what: the what whose where are returned; None for all what.
        """
        return self._answer(lambda: names(self.segments, what, self._horizon, self._index.catalog.seed))

    def days(self, what: str, where: str | None = None, *, since: int, until: int) -> dict[int, int]:
        """Count files by the day of their start (UTC) in a time range, without withdrawn ones.

        Args:
            what: kind of the files.
            where: origin of the files, None for any.
            since: start of the range, inclusive, in milliseconds.
            until: end of the range, inclusive, in milliseconds.

        Returns:
            Counts by the first millisecond of the day, in order; days without files are omitted.
        """
        seed = self._index.catalog.seed
        return self._answer(lambda: days(self.segments, what, where, since, until, self._horizon, seed))

    # --- Answers ---

    def _answer(self, ask: Callable[[], T]) -> T:
        for _ in range(3):
            try:
                return ask()
            except IndexDamaged:
                forget(self._index.folder)
                self._index = updated_index(_seen_from(self._dataset), self._progress, self._sizes, {})
        raise InternalError(
            f"The search index in {self._index.folder} is damaged directly after it was written", hint="Check the disk."
        )

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The current segments, oldest first."""
        return self._index.segments

    def _count(self) -> int:
        count = 0
        for segment in self.segments:
            if self._horizon >= segment.info.last:
                count += segment.info.rows - int(np.count_nonzero(segment.until <= min(self._horizon, FOREVER - 1)))
            elif self._horizon >= segment.info.first:
                count += int(np.count_nonzero(segment.holds(np.arange(segment.info.rows), self._horizon)))
        return count

    def _page(self, question: Question, cursor: Cursor | None, size: int) -> Page:
        now = min(self._horizon, max((segment.info.last for segment in self.segments), default=-1))
        horizon = now if cursor is None else min(cursor.horizon, now)
        after = None if cursor is None else (cursor.start, cursor.id)
        ways = self._stretches(question, horizon)
        records: list[FileRecord] = []
        while len(records) <= size:
            first_records = _first(ways, after, size + 1)
            records += self._not_gone([record for record in first_records if _fits(record, question)], horizon)
            if len(first_records) <= size:
                break
            after = (first_records[-1].start, first_records[-1].id)
        if len(records) <= size:
            return Page(tuple(records))
        last = records[size - 1]
        return Page(tuple(records[:size]), Cursor(horizon, last.start, last.id).text(self._id, question))

    def _stretches(self, question: Question, horizon: int) -> list[Stretch]:
        whats, seed = {name: self._fingerprint(name) for name in question.what}, self._index.catalog.seed
        way, keys = "what", list(whats.values())
        if question.work_id is not None:
            way, keys = "job", [combined(what, self._fingerprint(question.work_id)) for what in whats.values()]
        elif question.where:
            wheres = [fingerprint(name, seed) for name in dict.fromkeys(question.where)]
            way, keys = "place", [combined(what, where) for what in whats.values() for where in wheres]
        return stretches(self.segments, way, keys, question.start, question.end, horizon)

    def _not_gone(self, records: list[FileRecord], horizon: int) -> list[FileRecord]:
        """Return the records valid at an offset, without those withdrawn since."""
        if not records or all(horizon >= segment.info.last for segment in self.segments):
            return records
        now = self._found("id", sorted({record.id for record in records}), self._horizon)
        kept_ids = {record.id for record in now if record.status is not Status.WITHDRAWN}
        return [record for record in records if record.id in kept_ids]

    def _latest(self, what: str, where: str, since: int, until: int) -> FileRecord | None:
        key = combined(self._fingerprint(what), self._fingerprint(where))
        while True:
            ways = stretches(self.segments, "place", [key], since, until, self._horizon)
            greatest = greatest_of(ways)
            if greatest is None:
                return None
            until, starting = greatest
            tables = [way.segment.table(rows) for way, rows in starting]
            everything = records_of(pa.concat_tables(tables))
            records = [record for record in everything if record.what == what and record.where == where]
            if records:
                return max(records, key=lambda record: (record.create_time, record.id))
            until -= 1  # these names share the fingerprint of others

    def _found(self, way: str, texts: Sequence[str], horizon: int, *, ended: bool = False) -> list[FileRecord]:
        """Return records by id or object, possibly with others.

        Args:
            way: `id` or `object`.
            texts: the ids or objects.
            horizon: the offset at which the records must be valid.
            ended: whether to include all earlier versions, oldest first.
        """
        keys = np.sort(fingerprints(pa.array(texts, pa.string()), self._index.catalog.seed))
        keys = keys[np.append(True, keys[1:] != keys[:-1])] if len(keys) else keys
        tables = [arrow_schema().empty_table()]
        for segment in self.segments:
            rows = segment.found(way, keys)[1]
            if ended:
                offsets = segment.file.at("offset", rows)
                rows = rows[np.argsort(offsets)][: np.count_nonzero(offsets <= horizon)]
            else:
                rows = rows[segment.holds(rows, horizon)]
            if len(rows):
                tables.append(segment.table(rows))
        return list(records_of(pa.concat_tables(tables)))

    def _offsets_of(self, id: str) -> list[int]:  # noqa: A002
        key = self._fingerprint(id)
        offsets: set[int] = set()
        for segment in self.segments:
            rows = segment.found("id", key)[1]
            if len(rows):
                ids = segment.ids(rows).to_pylist()
                candidates = segment.file.at("offset", rows).tolist()
                offsets |= {
                    at for at, row_id in zip(candidates, ids, strict=True) if row_id == id and at <= self._horizon
                }
        return sorted(offsets)

    def _fingerprint(self, text: str) -> Fingerprints:
        return fingerprint(text, self._index.catalog.seed)


def _first(ways: Sequence[Stretch], after: Key | None, want: int) -> list[FileRecord]:
    """Return the first records of all stretches after a key, sorted.

    Each stretch contributes its first `want` records. Any further record comes after these, so the first of all are
    among them.
    """
    taken = [(way, *way.take(after, want)) for way in ways]
    starts = np.sort(np.concatenate([np.zeros(0, np.int64), *(starts for _, starts, _ in taken)]))
    bound = FOREVER if len(starts) <= want else int(starts[want - 1])
    tables = [arrow_schema().empty_table()]
    for way, begun, rows in taken:
        matching: Numbers = rows[begun <= bound]
        if len(matching):
            tables.append(way.segment.table(matching))
    records = sorted(records_of(pa.concat_tables(tables)), key=lambda record: (record.start, record.id))
    return records[:want]


def _by_id(versions: Iterable[FileRecord]) -> dict[str, list[FileRecord]]:
    by_id: dict[str, list[FileRecord]] = {}
    for version in versions:
        by_id.setdefault(version.id, []).append(version)
    return by_id


def _fits(record: FileRecord, question: Question) -> bool:
    """Return whether the names match the query, rather than only sharing its fingerprint."""
    is_there = not question.where or record.where in question.where
    is_of_job = question.work_id is None or record.work_id == question.work_id
    return record.what in question.what and is_there and is_of_job


def _last_offset(dataset: StoredDataset) -> int:
    last = dataset.state.last_offset
    return -1 if last is None else last


def _seen_from(dataset: StoredDataset) -> StoredDataset:
    """Return the dataset whose index is used: the current one, if the block is in its history."""
    if dataset.block is None:
        return dataset
    at_head = dataset_at_head(dataset)
    return dataset if at_head.number_in_history(dataset.block) is None else at_head
