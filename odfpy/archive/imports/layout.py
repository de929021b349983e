"""Import of a bucket in datalake's layout, or of the objects in it that are listed in an export of its index.

    ID/data                       the current layout of datalake
    prefix/what/day/ID-name       its former layout

1. objects come from the listing of the bucket, or from the records of the export, each once
2. objects whose ids the archive already has are skipped, so that an interrupted import can be continued
3. the metadata of the others is read, from the record or from the object itself
4. their bytes are fetched, several objects at the same time, and compared with the hash in the metadata
5. many are pushed in one commit, with their ids and the times of their arrival in the bucket
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import Final

from odfpy.archive.archive import Archive
from odfpy.archive.errors import IdTaken, RecordRefused, WrongContent
from odfpy.archive.imports.exported_records import ExportedRecord, exported_records
from odfpy.archive.imports.objects import FoundObject, ObjectSource
from odfpy.archive.imports.outcome import Batches, Imported, ImportLimits, ImportOutcome, PushedBatch
from odfpy.archive.metadata import Metadata, parse_metadata
from odfpy.archive.pushing import NewFile
from odfpy.archive.record import FileRecord
from odfpy.errors import ObjectNotFound, OdfError
from odfpy.repository.bucket.errors import StoreRefuses

_NEW: Final = re.compile(r"(?:.*/)?([^/]+)/data")
_OLD: Final = re.compile(r".*/([0-9a-f]{32})-[^/]+")
_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An object that may be imported.

    Attributes:
        key: key of the object.
        id: id of the file, as far as the key or the record contain it.
        size: bytes, as far as known.
        record: record of the export, None if there is none.
    """

    key: str
    id: str | None
    size: int | None
    record: ExportedRecord | None = None


@dataclass(frozen=True, slots=True)
class _Fetched:
    """A fetched file that is ready to be pushed."""

    new: NewFile
    size: int


def import_layout(
    archive: Archive,
    source: ObjectSource,
    scratch: Path,
    *,
    records: Path | None = None,
    limits: ImportLimits | None = None,
    on_push: Callable[[PushedBatch], None] = lambda _: None,
) -> Iterator[Imported]:
    """Import objects with their metadata; yields the outcome of each.

    Args:
        archive: the target archive.
        source: the source of objects.
        scratch: a folder for temporary copies.
        records: an export of datalake's index; by default all objects are imported, with their own metadata.
        limits: settings of the import.
        on_push: called with each commit.

    Raises:
        OdfError: the source cannot be read, or the archive cannot be written; what was pushed before is kept.
    """
    work = _Work(archive, source, scratch, limits or ImportLimits())
    batches = Batches(archive, work.limits, on_push, remove=True)
    candidates = _listed(source) if records is None else _recorded(records)
    pool = ThreadPoolExecutor(work.limits.parallel, "odf-import")
    try:
        for name, result in work.fetched(candidates, pool):
            if isinstance(result, Imported):
                yield result
            else:
                yield from batches.add(name, result.new, result.size)
    except OdfError:
        yield from batches.push()  # otherwise the files would be fetched again next time, up to the same error
        raise
    else:
        yield from batches.push()
    finally:
        pool.shutdown(cancel_futures=True)


# --- What there is ---------------------------------------------------------------------------------------------------


def _listed(source: ObjectSource) -> Iterator[_Candidate]:
    for key, size in source.stored():
        if not key.endswith("/"):  # some tools create objects for folders
            yield _Candidate(key, _id_in(key), size)


def _id_in(key: str) -> str | None:
    match = _NEW.fullmatch(key) or _OLD.fullmatch(key)
    return None if match is None else match[1]


def _recorded(records: Path) -> Iterator[_Candidate | Imported]:
    seen: set[int] = set()  # numbers, since ids of millions of files would take several times the memory
    for record in exported_records(records):
        if isinstance(record, tuple):
            yield Imported(record[0], ImportOutcome.REFUSED, error=record[1])
            continue
        number = int.from_bytes(hashlib.blake2b(str(record.metadata.id).encode(), digest_size=8).digest(), "big")
        if number not in seen:
            seen.add(number)
            yield _Candidate(record.key, record.metadata.id, record.size, record)


# --- What is fetched -------------------------------------------------------------------------------------------------


class _Work:
    """The work of an import: objects that the archive lacks, fetched in threads."""

    def __init__(self, archive: Archive, source: ObjectSource, scratch: Path, limits: ImportLimits) -> None:
        self.limits = limits
        self._archive = archive
        self._source = source
        self._scratch = scratch
        self._numbers = count()

    def fetched(
        self, candidates: Iterable[_Candidate | Imported], pool: ThreadPoolExecutor
    ) -> Iterator[tuple[str, _Fetched | Imported]]:
        """Yield the outcomes of candidates, in their order, while the next ones are fetched."""
        waiting: deque[tuple[str, Future[_Fetched | Imported]]] = deque()
        for candidate in self._unknown(candidates):
            if isinstance(candidate, Imported):
                yield candidate.name, candidate
                continue
            waiting.append((self._source.where(candidate.key), pool.submit(self._fetch, candidate)))
            if len(waiting) > 2 * self.limits.parallel:
                name, future = waiting.popleft()
                yield name, future.result()
        for name, future in waiting:
            yield name, future.result()

    def _unknown(self, candidates: Iterable[_Candidate | Imported]) -> Iterator[_Candidate | Imported]:
        """Yield candidates that the archive does not have, and the outcomes of the others."""
        rest = iter(candidates)
        while chunk := list(islice(rest, _AT_ONCE)):
            ids = [
                candidate.id for candidate in chunk if isinstance(candidate, _Candidate) and candidate.id is not None
            ]
            known = self._archive.known(ids)
            for candidate in chunk:
                record = (
                    known.get(candidate.id) if isinstance(candidate, _Candidate) and candidate.id is not None else None
                )
                yield candidate if record is None or isinstance(candidate, Imported) else self._known(candidate, record)

    def _known(self, candidate: _Candidate, record: FileRecord) -> Imported:
        name, url = self._source.where(candidate.key), self._archive.url(record)
        hash_ = candidate.record.metadata.hash if candidate.record else None
        if hash_ is not None and hash_ != record.hash:
            error = IdTaken(
                f"{name}: the archive has another file of the id {record.id}, {record.path}: its bytes have the hash"
                f" {record.hash}, and those of the record {hash_}"
            )
            return Imported(name, ImportOutcome.REFUSED, candidate.size, error=error)
        return Imported(name, ImportOutcome.KNOWN, record.size, url)

    def _fetch(self, candidate: _Candidate) -> _Fetched | Imported:
        """Read the metadata of an object, fetch and check its bytes; runs in any thread."""
        name = self._source.where(candidate.key)
        try:
            head = self._source.head(candidate.key)
            if head.metadata is None and candidate.record is None and candidate.id is None:
                reason = RecordRefused(name, ["it is not an object of datalake: it has no metadata"])
                return Imported(name, ImportOutcome.SKIPPED, head.size, error=reason)
            metadata = _metadata_of(candidate, head, name)
            copy = self._scratch / f"object-{next(self._numbers)}"
            if not self.limits.dry_run:
                hash_ = self._source.fetch(candidate.key, head.size, copy)
                _require_hash(name, hash_, metadata, copy)
        except (RecordRefused, WrongContent, ObjectNotFound, StoreRefuses) as error:
            return Imported(name, ImportOutcome.REFUSED, candidate.size, error=error)
        return _Fetched(metadata.new_file(copy, create_time=_create_time(candidate, head)), head.size)


def _metadata_of(candidate: _Candidate, head: FoundObject, name: str) -> Metadata:
    """Return the metadata of an object, if it is consistent with the object.

    Raises:
        RecordRefused: the metadata is invalid; the message has all reasons.
    """
    record = candidate.record
    metadata = parse_metadata(head.metadata, name) if record is None else record.metadata
    reasons = []
    if metadata.id is None:
        reasons.append("id is missing")
    elif record is None and _NEW.fullmatch(candidate.key) and metadata.id != candidate.id:
        reasons.append(f"its metadata has the id {metadata.id}, and its key another one")
    if metadata.hash is None:
        reasons.append("hash is missing, so the bytes cannot be checked")
    if record is not None and record.size not in {None, head.size}:
        reasons.append(f"it has {head.size} bytes, and its record says {record.size}")
    if reasons:
        raise RecordRefused(name, reasons)
    return metadata


def _require_hash(name: str, hash_: str, metadata: Metadata, copy: Path) -> None:
    if hash_ == metadata.hash:
        return
    copy.unlink()
    raise WrongContent(
        f"{name}: its bytes have the hash {hash_}, and its metadata says {metadata.hash}",
        hint="The object is damaged, or has the metadata of another object.",
    )


def _create_time(candidate: _Candidate, head: FoundObject) -> int:
    record = candidate.record
    return head.written if record is None or record.create_time is None else record.create_time
