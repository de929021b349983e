"""The slices of a dataset and the rows that each of them holds, read off its chain."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, ExecuteTransform
from odfpy.chain.object_store import ObjectStore
from odfpy.chain.state import new_data_of
from odfpy.errors import InternalError, ObjectNotFound
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class SliceOfBlock:
    """A slice and the block that added it."""

    block: HashedBlock
    data: DataSlice


def slices_of(blocks: Iterable[HashedBlock]) -> list[SliceOfBlock]:
    """The slices that some blocks carry, in the order of the blocks."""
    found = ((block, new_data_of(block.block.event)) for block in blocks)
    return [SliceOfBlock(block, data) for block, data in found if data is not None]


def newest_blocks(
    newest_first: Iterable[HashedBlock], start: int | None, *, watermark: bool = False
) -> list[HashedBlock]:
    """Return the newest blocks that hold all rows from an offset on.

    Args:
        newest_first: all blocks.
        start: offset of the first row that is wanted, None for no rows.
        watermark: whether the last move of the watermark is wanted too.

    Returns:
        Blocks, the oldest first.
    """
    taken = []
    watermarks = set()
    has_rows = start is None
    for hashed in newest_first:
        taken.append(hashed)
        event = hashed.block.event
        if isinstance(event, (AddData, ExecuteTransform)) and event.new_watermark is not None:
            watermarks.add(event.new_watermark)
        data = new_data_of(event)
        has_rows = has_rows or (data is not None and start is not None and data.offset_interval.start <= start)
        if has_rows and (not watermark or len(watermarks) > 1):
            break
    return taken[::-1]


def overlapping(slices: Iterable[SliceOfBlock], start: int, end: int) -> list[SliceOfBlock]:
    """Those slices that hold any of the rows `start` to `end`, both inclusive.

    Args:
        slices: the slices.
        start: offset of the first row.
        end: offset of the last row.
    """
    return [
        item for item in slices if item.data.offset_interval.start <= end and item.data.offset_interval.end >= start
    ]


def slice_paths(store: ObjectStore, slices: Iterable[SliceOfBlock]) -> list[Path]:
    """The files of slices.

    Raises:
        ObjectNotFound: one is missing; the message names block and file.
    """
    paths = []
    for item in slices:
        name = item.data.physical_hash
        path = store.local_path(name)
        if path is None:
            raise InternalError(f"{store.describe(name)} is not on this machine")
        if not path.is_file():
            raise ObjectNotFound(
                f"Missing data file {path} of block {item.block.block.sequence_number} ({item.block.hash})",
                hint="Copy the file of that name from another copy of the dataset.",
            )
        paths.append(path)
    return paths
