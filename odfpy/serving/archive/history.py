"""The history of a record: the rows that say what it was and is, and the blocks of the chain that hold these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Final

from odfpy.archive.record import FileRecord
from odfpy.archive.rows import COLUMNS, arrow_schema, records_of
from odfpy.chain.block import HashedBlock
from odfpy.chain.slices import SliceOfBlock
from odfpy.chain.state import new_data_of
from odfpy.coordinator.storage.stored_dataset import StoredDataset
from odfpy.engine.scans import ScanRequest
from odfpy.errors import IntegrityError
from odfpy.query.slice_rows import scan_of

if TYPE_CHECKING:
    import pyarrow as pa

_SAYS_NOTHING_NEW: Final = ("who", "why")


@dataclass(frozen=True, slots=True)
class RecordedVersion:
    """A row of the chain that says what a file is.

    Attributes:
        record: what it says.
        offset: of the row.
        block: holds the row.
    """

    record: FileRecord
    offset: int
    block: HashedBlock


def slices_with(dataset: StoredDataset, offsets: Sequence[int]) -> list[SliceOfBlock]:
    """The slices that hold some rows, in the order of `offsets`; the chain is walked back to the oldest of them.

    Raises:
        IntegrityError: no block has one of them.
    """
    found: dict[int, SliceOfBlock] = {}
    missing = set(offsets)
    for block in dataset.chain.iter_blocks():
        data = new_data_of(block.block.event)
        if data is None:
            continue
        here = {at for at in missing if data.offset_interval.start <= at <= data.offset_interval.end}
        found |= dict.fromkeys(here, SliceOfBlock(block, data))
        missing -= here
        if not missing:
            return [found[at] for at in offsets]
    raise IntegrityError(f"No block of {dataset.handle} has row {min(missing)}", hint="`odf verify` names the damage.")


def scan_for(dataset: StoredDataset, slices: Sequence[SliceOfBlock], offsets: Sequence[int]) -> ScanRequest:
    """Asks for the rows of a record.

    Args:
        dataset: the archive.
        slices: of each row, as `slices_with` has found them.
        offsets: of the rows, ascending.
    """
    schema, store = arrow_schema(), dataset.layout.data
    requests = [
        scan_of(str(dataset.handle), store, [part], dataset.state.vocab, (at, at), COLUMNS, schema)
        for part, at in zip(slices, offsets, strict=True)
    ]
    first = requests[0]
    parts = tuple(part for request in requests for part in request.parts)
    return ScanRequest(parts, first.names, first.schema, first.vocab)


def versions_of(
    rows: pa.Table,
    slices: Sequence[SliceOfBlock],
    offsets: Sequence[int],
    id: str,  # noqa: A002 - the field's name
) -> list[RecordedVersion]:
    """The versions of a file, the oldest first.

    Args:
        rows: those that `scan_for` asks for.
        slices: of each row.
        offsets: of the rows.
        id: of the file.

    Raises:
        IntegrityError: they are rows of another file.
    """
    found = [
        RecordedVersion(record, at, part.block)
        for record, part, at in zip(records_of(rows), slices, offsets, strict=True)
    ]
    if any(version.record.id != id for version in found):
        raise IntegrityError(f"The search index says that rows are about {id}, which are not", hint="Remove the cache.")
    return found


def changed_fields(before: FileRecord, after: FileRecord) -> list[str]:
    """The names of the fields that a correction has changed."""
    names = [field.name for field in fields(FileRecord) if field.name not in _SAYS_NOTHING_NEW]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
