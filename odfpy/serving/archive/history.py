"""The history of a record: all rows of a file, and the blocks of the chain that contain these rows."""

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
    """A row of the chain that describes a file.

    Attributes:
        record: the record in the row.
        offset: offset of the row.
        block: block that contains the row.
    """

    record: FileRecord
    offset: int
    block: HashedBlock


def slices_with(dataset: StoredDataset, offsets: Sequence[int]) -> list[SliceOfBlock]:
    """Return the slices that contain some rows, in the order of `offsets`, walking the chain back to the oldest of
    them.

    Raises:
        IntegrityError: no block contains one of them.
    """
    by_offset: dict[int, SliceOfBlock] = {}
    missing = set(offsets)
    for block in dataset.chain.iter_blocks():
        data = new_data_of(block.block.event)
        if data is None:
            continue
        in_slice = {at for at in missing if data.offset_interval.start <= at <= data.offset_interval.end}
        by_offset |= dict.fromkeys(in_slice, SliceOfBlock(block, data))
        missing -= in_slice
        if not missing:
            return [by_offset[at] for at in offsets]
    raise IntegrityError(f"No block of {dataset.handle} has row {min(missing)}", hint="`odf verify` names the damage.")


def scan_for(dataset: StoredDataset, slices: Sequence[SliceOfBlock], offsets: Sequence[int]) -> ScanRequest:
    """Build the scan for the rows of a record.

    Args:
        dataset: the archive.
        slices: slice of each row, from `slices_with`.
        offsets: offsets of the rows, ascending.
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
    """Return the versions of a file, oldest first.

    Args:
        rows: result of the scan from `scan_for`.
        slices: slice of each row.
        offsets: offsets of the rows.
        id: id of the file.

    Raises:
        IntegrityError: the rows belong to another file.
    """
    versions = [
        RecordedVersion(record, at, part.block)
        for record, part, at in zip(records_of(rows), slices, offsets, strict=True)
    ]
    if any(version.record.id != id for version in versions):
        raise IntegrityError(f"The search index says that rows are about {id}, which are not", hint="Remove the cache.")
    return versions


def changed_fields(before: FileRecord, after: FileRecord) -> list[str]:
    """Return the names of the fields that a correction has changed."""
    names = [field.name for field in fields(FileRecord) if field.name not in _SAYS_NOTHING_NEW]
    return [name for name in names if getattr(before, name) != getattr(after, name)]
