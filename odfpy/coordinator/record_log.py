"""Durable records in an ODF dataset of the workspace: synced to the disk at once, committed in batches.

    .odf/<folder>/<id>.ndjson     records that are not yet in the dataset, each on the disk within a second

1. `record` accepts a record; a thread writes it to the current file, and syncs the file within a second
2. after an interval, the file is closed, ingested into the dataset in one commit, and removed
3. a file left by a killed process is ingested by the next process, or by a reader of the dataset

Each record has an id, and the dataset is a ledger keyed by id: a record that is ingested twice is stored once.
"""

from __future__ import annotations

import fcntl
import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from odfpy.chain.encoding import load_snapshots
from odfpy.data.timestamp import Timestamp
from odfpy.errors import AlreadyExists, DatasetNotFound, OdfError
from odfpy.files import is_same_file, make_folder, sync_folder, try_lock
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.coordinator.storage.stored_dataset import StoredDataset
    from odfpy.coordinator.workspace import Workspace

_SYNC: Final = 1.0
_LAST: Final = 50_000
_PORTION: Final = 1 << 26
"""Maximum bytes to ingest in one commit, unless a single file is larger."""

_MAX_WAITING: Final = 1 << 26
"""Maximum bytes of records waiting in memory for disk space; further records are dropped, which is logged."""
_MANIFEST: Final = """\
kind: DatasetSnapshot
version: 1
content:
  name: {name}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        ddlSchema: [{columns}]
      merge: {{kind: Ledger, primaryKey: [id]}}
    - {{kind: SetVocab, eventTimeColumn: at}}
    - {{kind: SetInfo, description: {description}}}
"""


@dataclass(frozen=True, slots=True)
class RecordedDataset:
    """A dataset of the workspace for records, which is created on demand.

    Attributes:
        name: name of the dataset.
        folder: name of the folder in `.odf` for records that are not yet committed.
        description: description of the dataset.
        columns: columns with their SQL types; among them `id` and `at`, the event time.
        longest: the maximum number of characters of a text; longer texts are truncated.
    """

    name: str
    folder: str
    description: str
    columns: Mapping[str, str]
    longest: int = 500

    def line_of(self, record: Mapping[str, Any]) -> bytes:
        """Serialize a record; id and time are added if missing.

        Args:
            record: values of the columns, by name.
        """
        tree = {"id": str(uuid.uuid4()), "at": str(Timestamp.now()), **record}
        cut = {name: self._clean(value) if isinstance(value, str) else value for name, value in tree.items()}
        return json.dumps(cut).encode() + b"\n"

    def _clean(self, text: str) -> str:
        """Truncate a text and replace invalid characters: texts may be untrusted."""
        return text[: self.longest].encode("utf-8", "replace").decode()

    def ingest(self, workspace: Workspace) -> int:
        """Ingest the recorded files that no process writes to; return their number.

        Args:
            workspace: the workspace of the dataset.

        Raises:
            OdfError: the dataset cannot be written; the records are retained.
        """
        with _complete(workspace.storage.odf / self.folder) as files:
            if not files:
                return 0
            self._make(workspace)
            for portion in _portions(files):
                lines = (line for file in portion for line in _whole_lines(file).splitlines(keepends=True))
                # Use a separate scratch folder: another call may process other files at the same time.
                with workspace.storage.scratch() as scratch:
                    together = scratch / "together"
                    together.write_bytes(b"".join(dict.fromkeys(lines)))
                    list(workspace.ingest(self.name, [together]))
                for file in portion:
                    file.unlink(missing_ok=True)
            return len(files)

    def _find(self, workspace: Workspace) -> StoredDataset:
        """Return the dataset.

        Raises:
            DatasetNotFound: it does not exist yet.
            AlreadyExists: another dataset has its name; a dataset of an older version may have fewer columns.
        """
        dataset = workspace.storage.get(self.name)
        schema = dataset.state.schema
        if schema is None and (source := dataset.state.push_source("default")):  # it has no rows yet
            from odfpy.ingest.read import schema_of

            schema = schema_of(source.read)
        if schema is None or not {"id", "at"} <= {*schema.names}:
            raise AlreadyExists(
                f"{self.name} is another dataset, where odf keeps this: {self.description}",
                hint=f"Give it another name: `odf rename {self.name} NAME`. Records wait in .odf/{self.folder}.",
            )
        return dataset

    def _make(self, workspace: Workspace) -> None:
        try:
            self._find(workspace)
        except DatasetNotFound:
            columns = ", ".join(f"{name} {kind}" for name, kind in self.columns.items())
            manifest = _MANIFEST.format(name=self.name, columns=columns, description=self.description)
            with suppress(AlreadyExists):  # another process was faster
                workspace.add(load_snapshots(manifest, self.name))

    def records(
        self, workspace: Workspace, *, num: int, condition: str | None = None, columns: Iterable[str] | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the last records, newest first.

        Args:
            workspace: the workspace of the dataset.
            num: the maximum number of records.
            condition: a condition in SQL, over the columns and `offset`, the order of arrival.
            columns: names of the columns to return; all by default.

        Raises:
            AlreadyExists: another dataset has the name.
        """
        names = tuple(self.columns if columns is None else columns)
        try:
            count = self._find(workspace).state.num_records
        except DatasetNotFound:
            return
        if not count:  # another process is creating it
            return
        # Usually the latest records suffice; the other ones are only read if not.
        selected = self._select(workspace, names, num, condition, max(0, count - _LAST))
        if len(selected) < num and count > _LAST:
            selected = self._select(workspace, names, num, condition, 0)
        yield from selected

    def _select(
        self, workspace: Workspace, names: Iterable[str], num: int, condition: str | None, first: int
    ) -> list[dict[str, Any]]:
        from odfpy.query.query import Query

        where = " AND ".join([f'"offset" >= {first}', *([f"({condition})"] if condition else [])])
        wanted = ", ".join(f'"{name}"' for name in names)
        text = f'SELECT {wanted} FROM "{self.name}" WHERE {where} ORDER BY "offset" DESC'  # noqa: S608  the caller's
        records: list[dict[str, Any]] = workspace.queries.sql(Query(text, "datafusion", limit=num)).to_pylist()
        return records


class RecordLog:
    """A log that accepts records from any thread, and ingests them into its dataset."""

    def __init__(self, workspace: Workspace, dataset: RecordedDataset, interval: float) -> None:
        """
        Args:
            workspace: the workspace of the dataset.
            dataset: the dataset.
            interval: the maximum number of seconds until records are ingested.
        """
        self._workspace = workspace
        self._dataset = dataset
        self._folder = workspace.storage.odf / dataset.folder
        self._interval = interval
        self._waiting: list[bytes] = []
        self._waiting_bytes = self._num_lost = 0
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._writing = threading.Lock()
        self._taking = threading.Lock()
        self._file: BinaryIO | None = None
        self._began = 0.0

    def record(self, record: Mapping[str, Any]) -> None:
        """Accept a record; it is on the disk a second later.

        Args:
            record: values of the columns, by name.
        """
        line = self._dataset.line_of(record)
        with self._lock:
            if self._waiting_bytes + len(line) > _MAX_WAITING:
                self._num_lost += 1
                return
            self._waiting_bytes += len(line)
            self._waiting.append(line)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._dataset.folder, daemon=True)
                self._thread.start()

    def sync(self) -> None:
        """Write accepted records to the disk now.

        Raises:
            OSError: the records cannot be written; they stay in memory, and the next call retries.
        """
        with self._writing:
            with self._lock:
                lines, self._waiting, self._waiting_bytes = self._waiting, [], 0
                num_lost, self._num_lost = self._num_lost, 0
            if num_lost:
                logging.getLogger("odfpy").error(
                    "%s log: %d records are lost, since the disk was full", self._dataset.folder, num_lost
                )
            if not lines:
                return
            try:
                if self._file is None:
                    self._file, self._began = self._begun(), time.monotonic()
                self._file.write(b"".join(lines))
                self._file.flush()
                os.fsync(self._file.fileno())
            except OSError:
                with self._lock:
                    self._waiting = lines + self._waiting
                    self._waiting_bytes += sum(map(len, lines))
                self._close()  # the file may end with half a line, so nothing can be appended to it
                raise

    def bring_in(self) -> None:
        """Ingest all records so far into the dataset now, for a reader."""
        try:
            self.sync()
        except OSError as error:
            self._warn("written", error.strerror or str(error))
        with self._writing:
            self._close()
        self._try_to_ingest()

    def stop(self) -> None:
        """Stop, and ingest all records into the dataset."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    # --- The thread ---

    def _run(self) -> None:
        self._try_to_ingest()  # files left by a killed process
        while True:
            is_last = self._stopped.wait(_SYNC)
            try:
                self.sync()
            except OSError as error:
                self._warn("written", error.strerror or str(error))
            if self._file is not None and (is_last or time.monotonic() - self._began >= self._interval):
                with self._writing:
                    self._close()
                self._try_to_ingest()
            if is_last:
                return

    def _begun(self) -> BinaryIO:
        make_folder(self._folder)
        self._folder.chmod(0o700)
        while True:
            path = self._folder / f"{uuid.uuid4()}.ndjson"
            file = path.open("xb")
            fcntl.flock(file, fcntl.LOCK_EX)
            if is_same_file(file, path):  # otherwise another process has ingested and removed the empty file
                sync_folder(self._folder)
                return file
            file.close()

    def _close(self) -> None:
        if self._file is not None:
            with suppress(OSError):  # the disk is full, and a part was not written
                self._file.close()
            self._file = None

    def _try_to_ingest(self) -> None:
        try:
            with self._taking:  # an ingest may be running in another thread
                self._dataset.ingest(self._workspace)
        except OdfError as error:  # the file is retained and retried
            self._warn("ingested", error.message)
        except OSError as error:
            self._warn("ingested", error.strerror or str(error))
        except Exception:  # the thread must continue, or later records would be lost
            logging.getLogger("odfpy").exception("%s log not ingested", self._dataset.folder)

    def _warn(self, what: str, why: str) -> None:
        logging.getLogger("odfpy").warning("%s log not %s: %s", self._dataset.folder, what, why)


@contextmanager
def _complete(folder: Path) -> Iterator[list[Path]]:
    """Yield the files that no process writes to; locked in the block, so that only this process ingests them."""
    with ExitStack() as held:
        paths = []
        for path in sorted(folder.glob("*.ndjson")):
            with suppress(FileNotFoundError):
                file = path.open("rb")
                if not try_lock(file):
                    file.close()
                    continue
                held.enter_context(file)
                if is_same_file(file, path):  # else another process has just ingested it
                    paths.append(path)
        yield paths


def _portions(files: Iterable[Path]) -> Iterator[list[Path]]:
    """Group files to be ingested together, up to a total size: a backlog may exceed the memory."""
    portion: list[Path] = []
    size = 0
    for file in files:
        more = file.stat().st_size
        if portion and size + more > _PORTION:
            yield portion
            portion, size = [], 0
        portion.append(file)
        size += more
    yield portion


def _whole_lines(file: Path) -> bytes:
    """Return the complete lines of a file; a partial last line, cut off by a power failure, was never confirmed."""
    data = file.read_bytes()
    return data[: data.rfind(b"\n") + 1]
