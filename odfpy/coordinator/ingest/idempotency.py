"""Idempotent ingest: a request that is repeated with the same idempotency key is not executed again.

    .odf/datasets/<id>/info/ingests/<sha256 of the key>.yaml      digest of the request, and the resulting block

The record is written when the block is built, before the head moves: after a crash, the history shows whether the block
was committed. Concurrent requests are serialized by the dataset's lock.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.new_blocks import NewBlocks
from odfpy.coordinator.ingest.ingest import ingest_file, push_source
from odfpy.coordinator.ingest.ingest_request import IngestRequest, SourceFile
from odfpy.coordinator.ingest.push_ingest import with_format
from odfpy.coordinator.ingest.watermarks import with_idle_watermark
from odfpy.coordinator.storage.results import PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import I64
from odfpy.data.timestamp import Timestamp
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import UsageError
from odfpy.repository.documents import load_document, save_document

_KEPT = 10_000


class KeyUsedAlready(UsageError, code="E725"):
    """An idempotency key was used before with other data."""


@dataclass(frozen=True, slots=True)
class Ingested:
    """The outcome of an ingest.

    Attributes:
        what: digest of the ingested data and of the options.
        old_head: the head before.
        new_head: the head after.
        num_records: number of new rows.
        watermark: the watermark after.
        is_done: whether the head is known to have moved.
    """

    what: str
    old_head: Multihash | None
    new_head: Multihash | None
    num_records: I64
    watermark: Timestamp | None
    is_done: bool


@dataclass(frozen=True, slots=True)
class Ingest:
    """A request to ingest one file, whose content is known.

    Attributes:
        request: the request.
        digest: hash of the file's bytes.
        name: the name of the file in messages.
    """

    request: IngestRequest
    digest: str
    name: str

    @property
    def what(self) -> str:
        """Return a digest that is the same for the same data, ingested in the same way."""
        how = self.request
        parts = (self.digest, how.source_name or "", str(how.event_time or ""), how.input_format or "")
        return hashlib.sha256("\n".join(parts).encode("utf-8", "backslashreplace")).hexdigest()


def ingest_once(
    dataset: StoredDataset, given: Ingest, key: str | None, engines: EngineRegistry
) -> tuple[Ingested, bool]:
    """Ingest a file unless it was ingested with this key; return the outcome, and whether it is an earlier one.

    Args:
        dataset: the dataset.
        given: the file.
        key: the idempotency key; None for no key.
        engines: the engines, for preprocessing.

    Raises:
        KeyUsedAlready: the key was used with other data.
        DatasetLocked: another process is writing.
        OdfError: nothing was committed.
    """
    with dataset.writing() as locked, dataset.workspace_folder.scratch() as scratch:
        record = None if key is None else _record(dataset, key)
        known = None if record is None else load_document(record, "Ingest", Ingested)
        # After a crash between this record and the move of the head, only the history shows whether it was committed.
        if known is not None and not (known.is_done or _has(locked, known.new_head)):
            known = None
        if known is not None and known.what != given.what:
            raise KeyUsedAlready(
                "This idempotency key was used before, with other data",
                hint="Repeat the request exactly, or use another key.",
            )
        if known is not None:
            return known, True
        noted = _Noted(
            locked.handle,
            locked.folder,
            locked.workspace_folder,
            note=lambda new: _keep(record, _of_blocks(given, new)),
        )
        result = _ingest(noted, given, engines, scratch)
        done = Ingested(
            given.what, result.old_head, result.new_head, result.num_records, result.watermark, is_done=True
        )
        _keep(record, done)
        return done, False


def _ingest(dataset: StoredDataset, given: Ingest, engines: EngineRegistry, scratch: Path) -> PullResult:
    request = given.request
    (path,) = request.files
    source = with_format(push_source(dataset, request.source_name), request.input_format)
    file = SourceFile.dated(path, given.name, request.event_time)
    result = ingest_file(dataset.reloaded(), source, file, engines, scratch, request.overrides)
    return result if result.num_records else with_idle_watermark(dataset, result)


@dataclass(frozen=True)
class _Noted(StoredDataset):
    """A dataset that calls a function with each commit, before its head moves."""

    note: Callable[[NewBlocks], None] = lambda _: None

    @property
    def chain(self) -> MetadataChain:
        chain = super().chain
        sign = chain.witness

        def both(new: NewBlocks) -> None:
            sign(new)
            self.note(new)

        return self.layout.witnessed(both)


def _of_blocks(given: Ingest, new: NewBlocks) -> Ingested:
    before, after = new.base, new.state
    rows = after.num_records - before.num_records
    return Ingested(given.what, before.head, after.head, rows, after.watermark, is_done=False)


def _has(dataset: StoredDataset, block: Multihash | None) -> bool:
    return any(hashed.hash == block for hashed in dataset.chain.iter_blocks())


def _record(dataset: StoredDataset, key: str) -> Path:
    name = hashlib.sha256(key.encode("utf-8", "backslashreplace")).hexdigest()
    return dataset.folder / "info" / "ingests" / f"{name}.yaml"


def _keep(record: Path | None, ingested: Ingested) -> None:
    """Write a record, and remove the oldest ones if there are too many."""
    if record is None:
        return
    save_document(record, "Ingest", ingested)
    if not ingested.is_done:
        return
    known = list(record.parent.glob("[!.]*.yaml"))
    if len(known) > _KEPT:
        for path in sorted(known, key=lambda path: path.stat().st_mtime_ns)[: len(known) - _KEPT]:
            path.unlink(missing_ok=True)
