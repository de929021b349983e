"""An archive in a workspace: a root dataset whose rows are records, and whose files are linked objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from odfpy.archive.addresses import SCHEME
from odfpy.archive.archive import Archive
from odfpy.archive.changes import change_records, release_in
from odfpy.archive.errors import CannotCopy, FileElsewhere, FileRemoved, IdTaken, NoSuchFile, RecordRefused
from odfpy.archive.preparing import PreparedFile, prepare
from odfpy.archive.pushing import NewFile, Pushed, PushOutcome, require_same
from odfpy.archive.question import LOOKBACK_DAYS, PAGE, Page, Question
from odfpy.archive.reading import checked_stream
from odfpy.archive.record import FileRecord, Status
from odfpy.archive.retention.policy import ArchivePolicy, attachments_with, policy_in
from odfpy.archive.rows import archive_manifest, archive_source, record_schema, require_archive, table_of
from odfpy.archive.times import DAY
from odfpy.chain.events import SetDataSchema
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.results import Progress, ProgressSink, silent
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import ALGORITHMS, BLAKE3, HashAlgorithm, Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import OperationType
from odfpy.errors import ObjectNotFound, OdfError
from odfpy.settings.sections import ArchiveSection

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.archive.index.search import SearchIndex
    from odfpy.coordinator.workspace import Workspace


def init_archive(workspace: Workspace, name: str) -> LocalArchive:
    """Create an archive in a workspace.

    Args:
        workspace: the workspace.
        name: name of its dataset.

    Raises:
        AlreadyExists: there is a dataset of that name.
    """
    workspace.add([archive_manifest(name)])
    dataset = workspace.storage.get(name)
    with dataset.writing() as held:
        # Commit at once, so that readers of an empty archive see its columns, and which of them are links.
        commit_events(held, held.state, [SetDataSchema(schema=record_schema(held.state))], commit_time(held.state))
    return LocalArchive(workspace, dataset.reloaded())


@dataclass(slots=True)
class _Batch:
    """The outcome of one push, file by file.

    Attributes:
        results: results by the position of the file.
        records: new records by id.
        objects: files whose content the dataset lacks.
    """

    results: dict[int, Pushed] = field(default_factory=dict)
    records: dict[str, FileRecord] = field(default_factory=dict)
    objects: dict[Multihash, Path] = field(default_factory=dict)


class LocalArchive(Archive):
    """An archive in a workspace; used by commands and servers."""

    def __init__(
        self,
        workspace: Workspace,
        dataset: StoredDataset,
        progress: ProgressSink = silent,
        *,
        asks_elsewhere: bool = True,
    ) -> None:
        """
        Args:
            workspace: the workspace.
            dataset: its dataset.
            progress: called with the progress of a push.
            asks_elsewhere: whether missing bytes are fetched from the remotes that the dataset was pulled from or
                pushed to. Servers do not: anonymous callers could cause unlimited downloads.

        Raises:
            NotAnArchive: the dataset is not an archive.
        """
        require_archive(dataset.state, dataset.handle)
        self._workspace = workspace
        self._dataset = dataset
        self._progress = progress
        self._asks_elsewhere = asks_elsewhere
        self._last_index: SearchIndex | None = None

    @property
    def dataset(self) -> StoredDataset:
        """The current state of its dataset."""
        return self._dataset.reloaded()

    def scratch(self) -> AbstractContextManager[Path]:
        """Return a folder on the file system of the store, removed at the end."""
        return self._workspace.storage.scratch()

    @property
    def workspace(self) -> Workspace:
        """The workspace of the archive."""
        return self._workspace

    @property
    def name(self) -> str:
        """The name of its dataset."""
        return str(self._dataset.handle)

    def is_at(self, base: str) -> bool:
        names = (self.name, self._dataset.handle.id)
        return any(base == f"{SCHEME}{name}" for name in names)

    # --- Pushing ---

    def push_all(self, files: Sequence[NewFile]) -> list[Pushed]:
        algorithm = self._algorithm
        with self.scratch() as scratch:
            # Copied before the lock is taken, so that others can push while a large file is read.
            prepared = []
            for number, new in enumerate(files):
                self._progress(Progress(self.name, f"reading {new.file}", number, len(files), "files"))
                prepared.append(_prepared(new, scratch / f"content-{number}", algorithm))
            return self.push_prepared(files, prepared, scratch)

    def push_prepared(
        self, files: Sequence[NewFile], prepared: Sequence[PreparedFile | OdfError], scratch: Path
    ) -> list[Pushed]:
        """Archive prepared files, all valid ones in one commit.

        Args:
            files: the files.
            prepared: what was found of each file, or why it is rejected. Bytes that the store lacks are moved into
                it, so they must be on its file system.
            scratch: a folder for the slice, on the same file system.

        Returns:
            A result for each file, in order.

        Raises:
            OdfError: the archive cannot be written; none of these files was archived.
        """
        with self._dataset.writing() as dataset:
            batch = self._batch(dataset, files, prepared)
            self._commit(dataset, batch, scratch)
        return [batch.results[number] for number in range(len(files))]

    @property
    def _algorithm(self) -> HashAlgorithm:
        name = Config.load(self._workspace.root).section(ArchiveSection).hash
        return next((algorithm for algorithm in ALGORITHMS.values() if algorithm.name == name), BLAKE3)

    def _batch(
        self, dataset: StoredDataset, files: Sequence[NewFile], prepared: Sequence[PreparedFile | OdfError]
    ) -> _Batch:
        """Determine the outcome of each file, given the content of the archive."""
        batch, store = _Batch(), dataset.layout.data
        good = {number: item for number, item in enumerate(prepared) if isinstance(item, PreparedFile)}
        known = self._index(dataset).known([item.record.id for item in good.values()])
        for number, new in enumerate(files):
            item = prepared[number]
            if isinstance(item, OdfError):
                batch.results[number] = Pushed(file=new.file, outcome=PushOutcome.REFUSED, error=item)
                continue
            existing = batch.records.get(item.record.id) or known.get(item.record.id)
            try:
                batch.results[number] = self._decided(store, batch, item, existing)
            except (IdTaken, ObjectNotFound, RecordRefused) as error:
                batch.results[number] = Pushed(file=new.file, outcome=PushOutcome.REFUSED, error=error)
        return batch

    def _decided(self, store: ObjectStore, batch: _Batch, item: PreparedFile, existing: FileRecord | None) -> Pushed:
        record = item.record
        if existing is not None:
            require_same(record, existing, str(item.new.file), self.release)
            record = existing
        if record.object in store:
            store.touch(record.object)
        elif item.content.path.exists():
            batch.objects.setdefault(record.object, item.content.path)
        elif existing is None:  # a known record may have its bytes elsewhere
            raise ObjectNotFound(
                f"{item.new.file}: its content was removed before its record arrived",
                hint=f"Send {record.object} again, then the record.",
            )
        if existing is None:
            batch.records[record.id] = record
        outcome = PushOutcome.PUSHED if existing is None else PushOutcome.KNOWN
        return Pushed(file=item.new.file, outcome=outcome, record=record, url=self.url(record))

    def _commit(self, dataset: StoredDataset, batch: _Batch, scratch: Path) -> None:
        if batch.records:
            records = list(batch.records.values())
            rows = table_of(records, [OperationType.APPEND] * len(records))
            self._committed(dataset, rows, scratch, batch.objects)
        elif batch.objects:  # objects of known records whose bytes this copy lacks
            dataset.layout.data.insert_files(batch.objects)

    def _committed(
        self,
        dataset: StoredDataset,
        rows: pa.Table,
        scratch: Path,
        objects: dict[Multihash, Path] | None = None,
    ) -> None:
        from odfpy.coordinator.ingest.row_ingest import commit_rows

        schema = record_schema(dataset.state)
        first = [] if dataset.state.schema else [SetDataSchema(schema=schema)]
        commit_rows(dataset, archive_source(dataset.state), rows, scratch, schema=schema, first=first, objects=objects)
        with suppress(OdfError):  # committed; the next search builds the index, or reports why that fails
            self._index(dataset.reloaded())  # while there are few rows to index

    # --- Looking ---

    def page(self, question: Question, cursor: str | None = None, *, size: int = PAGE) -> Page:
        return self._index(self.dataset).page(question, cursor, size)

    def latest(self, what: str, where: str, *, lookback: int = LOOKBACK_DAYS) -> FileRecord:
        today = Timestamp.now().millis // DAY * DAY
        record = self._index(self.dataset).latest(what, where, since=today - lookback * DAY, until=today + DAY - 1)
        if record is None:
            raise NoSuchFile(
                f'No "{what}" files found in last {lookback} days from "{where}" in {self.name}',
                hint="A larger lookback finds older ones; `odf archive list` those of a time range.",
            )
        return record

    def get(self, id: str) -> FileRecord:  # noqa: A002
        record = self._index(self.dataset).get(id)
        if record is None:
            raise NoSuchFile(f"{self.name} has no file {id[:128]!r}")
        return record

    def known(self, ids: Sequence[str]) -> dict[str, FileRecord]:
        return self._index(self.dataset).known(list(ids))

    def open(self, record: FileRecord, *, offset: int = 0) -> BinaryIO:
        store = self._dataset.layout.data
        try:
            stream = store.open_at(record.object, offset) if offset else store.open(record.object)
        except ObjectNotFound:
            if record.released is not None:
                release = self.release(record)
                raise FileRemoved(
                    f"{record.path} ({record.id}) has been removed: it is {record.status.value} since"
                    f" {Timestamp.from_millis(record.released)}, by {release.who}: {release.why}",
                    hint="The record still proves what was there: its hash and its size.",
                ) from None
            stream = self._opened_elsewhere(record, offset)
        if offset:
            return stream
        return checked_stream(stream, record, store.describe(record.object))

    def _opened_elsewhere(self, record: FileRecord, offset: int) -> BinaryIO:
        from odfpy.archive.remote_copies import open_remote_copy

        reason = "this server fetches no files from other copies"
        if self._asks_elsewhere:
            try:
                return open_remote_copy(self._dataset, record.object, offset)
            except ObjectNotFound as error:
                reason = error.message
        raise FileElsewhere(
            f"{record.path} ({record.id}): this copy of {self.name} does not have its bytes, and cannot fetch them:"
            f" {reason}",
            hint=f"`odf verify {self.name}` lists missing files; `odf pull {self.name} --files all` brings"
            " those of a partial copy.",
        )

    def presigned(self, record: FileRecord, seconds: int) -> str | None:
        """Return the URL of a bucket that has the bytes, if they are not stored here; None if there is none.

        Also None for files that were withdrawn or have expired: a bucket may not have removed their bytes yet.

        Args:
            record: record of the file.
            seconds: lifetime of the URL.
        """
        from odfpy.archive.remote_copies import presign_remote_copy

        if record.released is not None or record.object in self._dataset.layout.data:
            return None
        return presign_remote_copy(self._dataset, record.object, seconds)

    def url(self, record: FileRecord) -> str:
        return f"{SCHEME}{self.name}/{record.id}"

    # --- Corrections ---

    def change(self, ids: Sequence[str], *, who: str, why: str, **values: object) -> list[FileRecord]:
        """Correct or withdraw files. Each change is a pair of rows that records its author and reason.

        Args:
            ids: ids of the files.
            who: author of the change.
            why: reason of the change.
            values: fields of the record with their new values.

        Returns:
            The new records.

        Raises:
            NoSuchFile, RecordRefused: a file does not exist, or would break a rule; nothing was changed.
        """
        with self._workspace.storage.scratch() as scratch, self._dataset.writing() as dataset:
            known = self._index(dataset).known(list(ids))
            missing = [id_ for id_ in ids if id_ not in known]
            if missing:
                raise NoSuchFile(f"{self.name} has no file {missing[0][:128]!r}")
            changed = change_records([known[id_] for id_ in ids], who=who, why=why, **values)
            if changed:
                old = [known[record.id] for record in changed]
                operations = [OperationType.CORRECT_FROM] * len(old) + [OperationType.CORRECT_TO] * len(changed)
                self._committed(dataset, table_of([*old, *changed], operations), scratch)
            return changed

    def withdraw(self, ids: Sequence[str], *, who: str, why: str) -> list[FileRecord]:
        """Withdraw files: searches omit them, and their bytes may be removed unless something else requires them.

        Args:
            ids: ids of the files.
            who: author of the change.
            why: reason of the change.
        """
        return self.change(ids, who=who, why=why, status=Status.WITHDRAWN, released=Timestamp.now().millis)

    def release(self, record: FileRecord) -> FileRecord:
        """Return the version of a record that withdrew or expired the file, with author and reason."""
        return release_in(self.index.histories([record.id]).get(record.id, ()), record)

    # --- Policy ---

    @property
    def policy(self) -> ArchivePolicy:
        """The current retention rules and holds."""
        return policy_in(self.dataset.state)

    def change_policy(self, change: Callable[[ArchivePolicy], ArchivePolicy]) -> ArchivePolicy:
        """Record changed rules and holds.

        Args:
            change: returns the new policy, given the current one.

        Returns:
            The new policy.
        """
        with self._dataset.writing() as dataset:
            policy = change(policy_in(dataset.state))
            events = [attachments_with(dataset.state, policy)]
            commit_events(dataset, dataset.state, events, commit_time(dataset.state))
            return policy

    @property
    def index(self) -> SearchIndex:
        """The current search index, for queries without a method of `Archive`."""
        return self._index(self.dataset)

    def names(self) -> Iterator[str]:
        """Yield the kinds of files in the archive."""
        yield from (name.name for name in self.index.names())

    def _index(self, dataset: StoredDataset) -> SearchIndex:
        from odfpy.archive.index.search import SearchIndex

        self._last_index = SearchIndex.of(dataset, self._progress, before=self._last_index)
        return self._last_index


def _prepared(new: NewFile, to: Path, algorithm: HashAlgorithm) -> PreparedFile | OdfError:
    """Prepare a file for archiving, or return why it is rejected."""
    try:
        return prepare(new, to, algorithm, Timestamp.now().millis)
    except CannotCopy:
        raise  # the disk is full or broken: the remaining files would fail in the same way
    except OdfError as error:
        return error
