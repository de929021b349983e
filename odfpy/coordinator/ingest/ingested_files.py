"""Skipped files of a folder: files that a pull ignores because of their order, later changes, or dangling links.

The source state of `FilesGlob` is the name of the last file. So a file whose name sorts before it is skipped, and a
changed file is not read again. Neither is an error, but both are reported. The names of ingested files are read from
the chain, and are stored when its blocks are merged. Their contents are identified by size, modification time and hash
in the dataset's cache, `taken-in.json`. If that file is lost, the contents at the next scan are assumed to be ingested.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from odfpy.chain.events import AddData, DisablePollingSource, SetPollingSource
from odfpy.chain.source_places import is_same_place
from odfpy.chain.sources import FetchFilesGlob
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.amounts import count_of
from odfpy.data.data_warning import MAX_EXAMPLES, DataWarning, WarningKind
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.errors import OdfError
from odfpy.files import replace_file
from odfpy.values import dataclass

if TYPE_CHECKING:
    from odfpy.ingest.fetch import FetchContext
    from odfpy.ingest.fetch.files_glob import FolderFile

_FILE: Final = "taken-in.json"
_AGAIN: Final = "`odf pull --force` ingests all files again"


@dataclass(frozen=True, slots=True)
class FileContent:
    """The content of a file when it was ingested.

    Attributes:
        size: size in bytes.
        modified: last modification, in nanoseconds since 1970.
        digest: hash of the bytes; None if the file was not read at the time.
    """

    size: int
    modified: int
    digest: str | None = None


@dataclass
class IngestedFiles:
    """Record of the files that a source has ingested.

    Attributes:
        dataset: the dataset; its lock must be held when saving.
        step: the fetch step, which defines the set of files.
        head: hash of the last block whose source state is in `names`.
        names: names of the ingested files, according to the chain.
        contents: known contents by file name.
    """

    dataset: StoredDataset
    step: FetchFilesGlob
    head: str | None = None
    names: set[str] = field(default_factory=set)
    contents: dict[str, FileContent] = field(default_factory=dict)

    @classmethod
    def of(cls, dataset: StoredDataset, step: FetchFilesGlob) -> IngestedFiles:
        """Return the stored record; an empty one if it is damaged, or belongs to another folder."""
        memory = cls(dataset, step)
        try:
            tree = json.loads((dataset.cache / _FILE).read_bytes())
            if tree["path"] == step.path:
                memory.contents = {name: FileContent(**values) for name, values in tree["contents"].items()}
                memory.names = set(map(str, tree["names"]))
                memory.head = tree["head"]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return cls(dataset, step)
        return memory

    @classmethod
    def of_source(cls, dataset: StoredDataset, source: SetPollingSource | None) -> IngestedFiles | None:
        """Return the record of a `FilesGlob` source; None for other sources, or without a source."""
        if source is None or not isinstance(source.fetch, FetchFilesGlob):
            return None
        return cls.of(dataset, source.fetch)

    def record(self, name: str, path: Path, before: FileContent | None) -> None:
        """Record the content of an ingested file.

        Args:
            name: name of the file.
            path: path of the file.
            before: `content_of` before the file was read: later changes were not ingested.
        """
        try:
            digest = _digest(path)
            now = content_of(path)
        except OSError:
            now = None
        if before is None or now is None:  # the file is gone; a later file of this name is new
            self.contents.pop(name, None)
        else:
            self.contents[name] = replace(before, digest=digest if now == before else None)

    def warnings(self, context: FetchContext) -> tuple[DataWarning, ...]:
        """Return warnings about skipped files.

        Args:
            context: the context of a fetch, with the source state.

        Raises:
            FetchError, InvalidValue: as for a fetch.
        """
        from odfpy.ingest.fetch.files_glob import dangling_links, files_taken_in
        from odfpy.ingest.source_state import known_etag

        self.catch_up()
        # A dangling link to a file that was already ingested loses nothing.
        dangling = tuple(_dangling([name for name in dangling_links(self.step, context) if name not in self.names]))
        last = known_etag(context.state)
        if last is None:
            return dangling
        passed = files_taken_in(self.step, context, last)
        left_out = [file.name for file in passed if file.name not in self.names]
        changed = [file.name for file in passed if file.name in self.names and self._has_changed(file)]
        return (*dangling, *_left_out(left_out, last), *_changed(changed))

    def save(self) -> None:
        """Save the record. If that fails, the contents at the next scan are assumed to be ingested."""
        with suppress(OSError, OdfError):
            self.catch_up()
            self.dataset.cache.mkdir(parents=True, exist_ok=True)
            replace_file(self.dataset.cache / _FILE, json.dumps(self._tree()).encode())

    def _tree(self) -> dict[str, Any]:
        return {
            "path": self.step.path,
            "head": self.head,
            "names": sorted(self.names),
            "contents": {name: asdict(content) for name, content in sorted(self.contents.items())},
        }

    def catch_up(self) -> None:
        """Add the names of files ingested since `head`, from the chain."""
        head = self.dataset.reloaded().state.head
        if head is None or str(head) == self.head:
            return
        names: set[str] = set()
        newer: set[str] = set()  # names of a source whose event has not been reached yet
        for hashed in self.dataset.chain.iter_blocks(head):
            event = hashed.block.event
            if str(hashed.hash) == self.head:
                names |= newer | self.names
                break
            if isinstance(event, AddData) and event.new_source_state is not None:
                newer.add(event.new_source_state.value)
            elif isinstance(event, SetPollingSource):
                if not is_same_place(event.fetch, self.step):
                    break
                names |= newer
                newer = set()
            elif isinstance(event, DisablePollingSource):
                break
        self.names, self.head = names, str(head)

    def _has_changed(self, file: FolderFile) -> bool:
        """Return whether a file has changed since its ingest; unknown content is recorded as it is now."""
        known = self.contents.get(file.name)
        try:
            now = content_of(file.path)
            if now is None:
                return False
            if known is None or (known.size, known.modified) == (now.size, now.modified):
                self.contents.setdefault(file.name, now)
                return False
            if known.digest is None or known.size != now.size or _digest(file.path) != known.digest:
                return True
        except OSError:  # the file is gone
            return False
        self.contents[file.name] = FileContent(now.size, now.modified, known.digest)  # new time, same content
        return False


@contextmanager
def keeping_names(dataset: StoredDataset) -> Iterator[None]:
    """Preserve the names of ingested files while the block rewrites the history, which may merge blocks."""
    memory = IngestedFiles.of_source(dataset, dataset.state.polling_source)
    if memory is not None:
        memory.catch_up()
    yield
    if memory is not None:
        memory.head = str(dataset.reloaded().state.head)
        memory.save()


@contextmanager
def saving(memory: IngestedFiles | None) -> Iterator[None]:
    """Save the record of ingested files after the block, even if it fails."""
    try:
        yield
    finally:
        if memory is not None:
            memory.save()


def content_of(path: Path) -> FileContent | None:
    """Return size and modification time of a file without reading it, None if it does not exist."""
    try:
        status = path.stat()
    except OSError:
        return None
    return FileContent(status.st_size, status.st_mtime_ns)


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return str(Multihash.of_stream(file, BLAKE3))


def _left_out(names: list[str], last: str) -> Iterable[DataWarning]:
    if names:
        is_one = len(names) == 1
        what = (
            f"{count_of(len(names), 'file')} {'sorts' if is_one else 'sort'} before {last}, the last ingested file, and"
        )
        message = f"{what} {'is' if is_one else 'are'} skipped; {_AGAIN}"
        yield DataWarning(WarningKind.LEFT_OUT, message, len(names), tuple(names[:MAX_EXAMPLES]))


def _dangling(names: list[str]) -> Iterable[DataWarning]:
    if names:
        what = "1 link is broken, and is" if len(names) == 1 else f"{len(names)} links are broken, and are"
        yield DataWarning(WarningKind.LEFT_OUT, f"{what} skipped", len(names), tuple(names[:MAX_EXAMPLES]))


def _changed(names: list[str]) -> Iterable[DataWarning]:
    if names:
        has, is_ = ("has", "is") if len(names) == 1 else ("have", "are")
        what = f"{count_of(len(names), 'file')} {has} changed since the ingest"
        message = f"{what}, and {is_} not ingested again; {_AGAIN}"
        yield DataWarning(WarningKind.CHANGED, message, len(names), tuple(names[:MAX_EXAMPLES]))
