"""Which slices of a dataset hold which rows, read off its chain."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, DataSlice, ExecuteTransform, ExecuteTransformInput, SetDataSchema
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.object_store import ObjectStore
from odfpy.chain.state import new_data_of
from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage import Storage
from odfpy.data.evolution import normalized
from odfpy.data.multihash import Multihash
from odfpy.data.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.errors import InternalError, ObjectNotFound
from odfpy.files import written_aside


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
    """As many of the newest blocks as hold all rows from an offset on.

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
    """Those slices that hold any of the rows `start` to `end`, both inclusive."""
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


def watermark_times(blocks: Iterable[HashedBlock]) -> list[tuple[Timestamp, Timestamp]]:
    """When the watermark moved, and to where: pairs of system time and event time, in the order of the blocks."""
    moves: list[tuple[Timestamp, Timestamp]] = []
    for hashed in blocks:
        event = hashed.block.event
        if not isinstance(event, (AddData, ExecuteTransform)) or event.new_watermark is None:
            continue
        if not moves or moves[-1][1] != event.new_watermark:
            moves.append((hashed.block.system_time, event.new_watermark))
    return moves


def watermarks_before(blocks: Iterable[HashedBlock], watermark: Timestamp | None) -> dict[Multihash, Timestamp]:
    """What was known of time when slices came: the watermark before the block of each, by physical hash.

    Args:
        blocks: of a dataset, the oldest first.
        watermark: before the first of them.
    """
    found = {}
    for hashed in blocks:
        event = hashed.block.event
        data = new_data_of(event)
        if data is not None and watermark is not None:
            found[data.physical_hash] = watermark
        if isinstance(event, (AddData, ExecuteTransform)) and event.new_watermark is not None:
            watermark = event.new_watermark if watermark is None else max(watermark, event.new_watermark)
    return found


def schema_file(storage: Storage, schema: DataSchema) -> Path:
    """A Parquet file without rows that has the given schema; kept in the cache, since making one takes Arrow."""
    text = json.dumps(to_tree(schema), sort_keys=True)
    path = storage.cache / "schemas" / f"{Multihash.of(text.encode())}.parquet"
    if not path.exists():
        import pyarrow.parquet as pq

        from odfpy.data.arrow import to_arrow

        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as temporary:
            pq.write_table(to_arrow(schema).empty_table(), temporary)
    return path


def columns_changed(chain: MetadataChain, interval: ExecuteTransformInput) -> bool:
    """Whether an input has got other columns in an interval: then `*` is not what it was in the last run."""
    before, now = interval.prev_block_hash, interval.new_block_hash
    if before is None or now is None:
        return False
    if not any(isinstance(one.block.event, SetDataSchema) for one in chain.iter_blocks(now, until=before)):
        return False
    old, new = (chain.state(head).schema for head in (before, now))
    return old is not None and new is not None and normalized(old).fields != normalized(new).fields
