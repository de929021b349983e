"""Counts and total sizes of the files in archives: computed once, then updated with new rows only."""

from __future__ import annotations

from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Final

from odfpy.archive.record import Status
from odfpy.archive.rows import arrow_schema
from odfpy.chain.block import HashedBlock
from odfpy.chain.slices import SliceOfBlock, slices_of
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.vocabulary import OperationType
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.scans import ScanRequest, scan
from odfpy.query.slice_rows import scan_of

_COLUMNS: Final = ("size", "status")


@dataclass(frozen=True, slots=True)
class Tally:
    """Count and total size of files.

    Attributes:
        count: number of files.
        size: their bytes; files that share content in the store count individually.
    """

    count: int = 0
    size: int = 0


class Tallies:
    """The tallies of archives; thread-safe."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Multihash, Tally]] = {}
        self._lock = Lock()

    def get(self, dataset: StoredDataset, engines: EngineRegistry, control: CancellationToken) -> Tally:
        """Return the tally of an archive.

        Args:
            dataset: the archive.
            engines: engines that read new rows.
            control: reports whether the request was cancelled.

        Raises:
            OdfError: it was cancelled, or a slice cannot be read.
        """
        head = dataset.state.head
        with self._lock:
            known = self._known.get(dataset.folder)
        if head is None:
            return Tally()
        slices, tally = _since(dataset, head, known)
        if slices:
            tally = _counted(_request(dataset, slices), tally, engines, control)
        with self._lock:
            self._known[dataset.folder] = (head, tally)
        return tally


def _since(
    dataset: StoredDataset, head: Multihash, known: tuple[Multihash, Tally] | None
) -> tuple[list[SliceOfBlock], Tally]:
    """Return the slices between a known block and a head, with the tally of that block; all slices if it is not in the
    chain.
    """
    new: list[HashedBlock] = []
    for block in dataset.chain.iter_blocks(head):
        if known is not None and block.hash == known[0]:
            return slices_of(reversed(new)), known[1]
        new.append(block)
    return slices_of(reversed(new)), Tally()


def _request(dataset: StoredDataset, slices: list[SliceOfBlock]) -> ScanRequest:
    import pyarrow as pa

    vocabulary = dataset.state.vocab
    operation = vocabulary.operation_type_column
    schema = pa.schema([(operation, pa.int32()), *(arrow_schema().field(name) for name in _COLUMNS)])
    rows = (slices[0].data.offset_interval.start, slices[-1].data.offset_interval.end)
    return scan_of(str(dataset.handle), dataset.layout.data, slices, vocabulary, rows, (operation, *_COLUMNS), schema)


def _counted(request: ScanRequest, tally: Tally, engines: EngineRegistry, control: CancellationToken) -> Tally:
    """Add rows to a tally."""
    import pyarrow as pa
    import pyarrow.compute as pc

    count, size = tally.count, tally.size
    minus = pa.array([OperationType.RETRACT, OperationType.CORRECT_FROM], pa.int32())
    rows = engines.scan(request, control)
    with closing(rows) if rows is not None else nullcontext(scan(request)) as batches:
        for batch in batches:
            kept = batch.filter(pc.equal(batch.column("status"), Status.KEPT.value))
            signs = pc.if_else(pc.is_in(kept.column(0), minus), -1, 1)
            count += pc.sum(signs).as_py() or 0
            size += pc.sum(pc.multiply(signs, kept.column("size").cast(pa.int64()))).as_py() or 0
    return Tally(count, size)
