"""`odf ingest --watch`: ingest the files of a folder as they arrive, each once.

The chain records ingested files in the source state of each commit. So if the watch is killed, no file is lost or
ingested twice. Files are neither moved nor changed.

    1. scan the folder for new and complete files
    2. ingest each in a separate commit, sorted by name
    3. report files that cannot be ingested, and skip them until they change
    4. if no file arrives for a long time, the watermark may follow system time, depending on the dataset's settings
    5. wait, and start again
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from odfpy.chain.events import AddData, AddPushSource
from odfpy.chain.sources import MergeAppend, MergeChangelogStream
from odfpy.coordinator.ingest.ingest import ingest_file, push_source, reporting_rows
from odfpy.coordinator.ingest.ingest_request import IngestRequest, SourceFile
from odfpy.coordinator.ingest.push_ingest import with_format
from odfpy.coordinator.ingest.watched_folder import FileStamp, WatchedFolder, files_in, is_being_written
from odfpy.coordinator.ingest.watermarks import advance_idle_watermark, idle_watermark
from odfpy.coordinator.storage.results import Progress, PullOutcome, PullResult
from odfpy.coordinator.storage.storage import Storage, StoredDataset
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import (
    ConcurrentUpdate,
    DatasetLocked,
    EngineError,
    EngineUnavailable,
    IngestError,
    MalformedData,
    OdfError,
    SchemaError,
    UsageError,
)

INTERVAL = 1.0
"""Seconds between two scans of the folder."""

SETTLE = 1.0
"""Seconds for which a file must be unchanged before it is ingested."""

RETRY = 10.0
"""Seconds until a retry after an error that is unrelated to the file."""

_TRANSIENT_ERRORS = (DatasetLocked, ConcurrentUpdate, EngineUnavailable)
_FILE_ERRORS = (IngestError, SchemaError, MalformedData, EngineError)


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderWatcher:
    """A watched folder, and the dataset that its files are ingested into.

    Attributes:
        request: the request, with the dataset and the options.
        folder: the watched folder.
        pattern: pattern for the names of files.
        settle: seconds for which a file must not change before it is ingested.
        pause: waits between two scans of the folder; interrupting it ends the watch.
    """

    storage: Storage
    engines: EngineRegistry
    request: IngestRequest
    folder: Path
    pattern: str = "*"
    settle: float = SETTLE
    pause: Callable[[], None]
    progress: Callable[[Progress], None]

    def run(self) -> Iterator[PullResult]:
        """Watch until interrupted between two files; yield one result for each file.

        Raises:
            UsageError: the folder or the source does not exist.
            OdfError: the folder or the dataset can no longer be read.
        """
        if not self.folder.is_dir():
            raise UsageError(f"{self.folder} is not a folder", hint="Name the folder in which files will arrive.")
        dataset = self.storage.get(self.request.ref)
        source = self._source(dataset)
        seen = WatchedFolder(self.settle, _ingested_files(dataset, source.source_name))
        while True:
            try:
                self.progress(Progress(str(dataset.handle), f"watching {self.folder}"))
                files = list(files_in(self.folder, self.pattern))
                ready = seen.ready(files, time.monotonic())
                ready = [stamp for stamp in ready if not is_being_written(self.folder / stamp.name)]
                moved = None if seen.lacks(files) else self._advance_idle_watermark()
                if not ready and moved is None:
                    self.pause()
            except KeyboardInterrupt:
                return
            for stamp in ready:
                yield self._attempt(stamp, seen)
            if moved is not None:
                yield moved

    def _attempt(self, stamp: FileStamp, seen: WatchedFolder) -> PullResult:
        started = time.monotonic()
        try:
            result = self._ingest(stamp, seen)
            seen.mark_ingested(stamp)
        except _TRANSIENT_ERRORS as error:
            seen.postpone(stamp, time.monotonic() + RETRY)
            result = self._failed(error)
        except _FILE_ERRORS as error:
            seen.refuse(stamp)
            result = self._failed(error)
        return replace(result, input=stamp.shown, seconds=time.monotonic() - started)

    def _ingest(self, stamp: FileStamp, seen: WatchedFolder) -> PullResult:
        with self.storage.get(self.request.ref).writing() as dataset, self.storage.scratch() as scratch:
            source = self._source(dataset)
            if seen.was_ingested_before(stamp) and isinstance(source.merge, MergeAppend | MergeChangelogStream):
                raise IngestError(
                    f"{stamp.name} has changed since it was ingested, and its rows would be duplicated",
                    hint="Put new rows into new files, or use a merge strategy with a key. Files of several folders"
                    " need different names, or a source for each folder.",
                )
            self.progress(Progress(str(dataset.handle), f"ingesting {stamp.shown}"))
            path = self.folder / stamp.name
            state = stamp.as_state(source.source_name)
            file = SourceFile.dated(path, str(path), self.request.event_time, state)
            with reporting_rows(self.progress, str(dataset.handle), stamp.name):
                return ingest_file(dataset, source, file, self.engines, scratch, self.request.overrides)

    def _advance_idle_watermark(self) -> PullResult | None:
        dataset = self.storage.get(self.request.ref)
        if idle_watermark(dataset, rate_limited=True) is None:
            return None
        try:
            with dataset.writing() as locked:
                return advance_idle_watermark(locked, rate_limited=True)
        except _TRANSIENT_ERRORS:
            return None  # another process is writing, perhaps new rows

    def _source(self, dataset: StoredDataset) -> AddPushSource:
        return with_format(push_source(dataset, self.request.source_name), self.request.input_format)

    def _failed(self, error: OdfError) -> PullResult:
        return PullResult(name=self.request.ref, outcome=PullOutcome.FAILED, error=error)


def _ingested_files(dataset: StoredDataset, source_name: str) -> Iterator[FileStamp]:
    """Yield the files that earlier watches have ingested through a source, according to the chain."""
    for hashed in dataset.chain.iter_blocks():
        event = hashed.block.event
        if isinstance(event, AddData) and event.new_source_state is not None:
            stamp = FileStamp.of_state(event.new_source_state)
            if stamp is not None and event.new_source_state.source_name == source_name:
                yield stamp
