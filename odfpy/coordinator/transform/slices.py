"""Slices and watermarks of a dataset by time, derived from its chain; see also `odfpy.chain.slices`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from odfpy.chain.block import HashedBlock
from odfpy.chain.events import AddData, ExecuteTransform, ExecuteTransformInput, SetDataSchema
from odfpy.chain.metadata_chain import MetadataChain
from odfpy.chain.state import new_data_of
from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage.workspace_folder import WorkspaceFolder
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.evolution import normalized
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.files import replace_file


def watermark_times(blocks: Iterable[HashedBlock]) -> list[tuple[Timestamp, Timestamp]]:
    """Return the changes of the watermark, as pairs of system time and event time in the order of the blocks."""
    moves: list[tuple[Timestamp, Timestamp]] = []
    for hashed in blocks:
        event = hashed.block.event
        if not isinstance(event, (AddData, ExecuteTransform)) or event.new_watermark is None:
            continue
        if not moves or moves[-1][1] != event.new_watermark:
            moves.append((hashed.block.system_time, event.new_watermark))
    return moves


def watermarks_before(blocks: Iterable[HashedBlock], watermark: Timestamp | None) -> dict[Multihash, Timestamp]:
    """Return the watermark before the block of each slice, by physical hash of the slice.

    Args:
        blocks: blocks of a dataset, oldest first.
        watermark: the watermark before the first block.
    """
    watermarks = {}
    for hashed in blocks:
        event = hashed.block.event
        data = new_data_of(event)
        if data is not None and watermark is not None:
            watermarks[data.physical_hash] = watermark
        if isinstance(event, (AddData, ExecuteTransform)) and event.new_watermark is not None:
            watermark = event.new_watermark if watermark is None else max(watermark, event.new_watermark)
    return watermarks


def schema_file(folder: WorkspaceFolder, schema: DataSchema) -> Path:
    """Return an empty Parquet file with a schema; files are cached, since creating one loads Arrow.

    The file name contains the hashes of schema and content, so that a damaged file is detected and created again.
    """
    known = Multihash.of(json.dumps(to_tree(schema), sort_keys=True).encode())
    schemas = folder.readers_cache / "schemas"
    for path in schemas.glob(f"{known}.*.parquet"):
        with suppress(OSError):
            if path.name == _schema_name(known, path.read_bytes()):
                return path
    import pyarrow.parquet as pq

    from odfpy.data.schemas.arrow import to_arrow

    written = io.BytesIO()
    pq.write_table(to_arrow(schema).empty_table(), written)
    content = written.getvalue()
    path = schemas / _schema_name(known, content)
    replace_file(path, content)
    return path


def _schema_name(schema: Multihash, content: bytes) -> str:
    return f"{schema}.{Multihash.of(content)}.parquet"


def columns_changed(chain: MetadataChain, interval: ExecuteTransformInput) -> bool:
    """Return whether an input gained or lost columns in an interval, which changes the meaning of `*`."""
    before, now = interval.prev_block_hash, interval.new_block_hash
    if before is None or now is None:
        return False
    if not any(isinstance(hashed.block.event, SetDataSchema) for hashed in chain.iter_blocks(now, until=before)):
        return False
    old, new = (chain.state(head).schema for head in (before, now))
    return old is not None and new is not None and normalized(old).fields != normalized(new).fields
