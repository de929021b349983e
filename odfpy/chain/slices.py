"""The slices of a dataset and their intervals of rows, derived from its chain."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, ExecuteTransform
from odfpy.chain.state import new_data_of
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.errors import HashMismatch, ObjectNotFound
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class SliceOfBlock:
    """A slice and the block that added it."""

    block: HashedBlock
    data: DataSlice


def slices_of(blocks: Iterable[HashedBlock]) -> list[SliceOfBlock]:
    """Return the slices of blocks, in the order of the blocks."""
    pairs = ((block, new_data_of(block.block.event)) for block in blocks)
    return [SliceOfBlock(block, data) for block, data in pairs if data is not None]


def newest_blocks(
    newest_first: Iterable[HashedBlock], start: int | None, *, watermark: bool = False
) -> list[HashedBlock]:
    """Return the newest blocks that contain all rows from an offset on.

    Args:
        newest_first: all blocks.
        start: offset of the first requested row, None for no rows.
        watermark: whether to include the last change of the watermark.

    Returns:
        The blocks, oldest first.
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
    """Return the slices that contain any of the rows `start` to `end`, both inclusive.

    Args:
        slices: the slices.
        start: offset of the first row.
        end: offset of the last row.
    """
    return [
        item for item in slices if item.data.offset_interval.start <= end and item.data.offset_interval.end >= start
    ]


def slice_files(store: ObjectStore, slices: Iterable[SliceOfBlock]) -> list[Path]:
    """Return the files of slices, for readers of footers only.

    Raises:
        ObjectNotFound: a file is missing; the message names block and file.
    """
    paths = []
    for item in slices:
        path = store.local_path(item.data.physical_hash)
        if path is None or not path.is_file():
            raise _missing(store, item)
        paths.append(path)
    return paths


def slice_paths(store: ObjectStore, slices: Iterable[SliceOfBlock], *, of: object = None) -> list[Path]:
    """Return the files of slices, after comparing each with the hash in its block.

    Args:
        store: store of the slices.
        slices: the slices.
        of: name of the dataset, for messages.

    Raises:
        ObjectNotFound: a file is missing; the message names block and file.
        HashMismatch: a file is damaged, or has been replaced.
    """
    paths = []
    for item in slices:
        try:
            path = store.checked_path(item.data.physical_hash)
        except ObjectNotFound:
            path = None
        except HashMismatch as error:
            message = f"{error.message}, so it is not the data file {_of_block(item)}"
            repair = f"odf verify {of} --repair" if of else "odf verify --repair"
            hint = f"Nothing was computed from it. `{repair}` fetches it again from a repository that has the dataset."
            raise error.with_message(f"{of}: {message}" if of else message, hint=hint) from error
        if path is None:
            raise _missing(store, item)
        paths.append(path)
    return paths


def _missing(store: ObjectStore, item: SliceOfBlock) -> ObjectNotFound:
    return ObjectNotFound(
        f"Missing data file {store.describe(item.data.physical_hash)} {_of_block(item)}",
        hint="Copy the file of that name from another copy of the dataset.",
    )


def _of_block(item: SliceOfBlock) -> str:
    return f"of block {item.block.block.sequence_number} ({item.block.hash})"
