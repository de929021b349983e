"""Small datasets whose slices are arbitrary bytes: sufficient for transfers."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.encoding import hash_block
from odfpy.chain.events import AddData, Checkpoint, DataSlice, MetadataEvent, Seed, SetDataSchema, SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import ARROW0_SHA3_256, Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind

NOON = Timestamp.parse("2024-01-01T12:00:00Z")
LOGICAL_HASH = Multihash(ARROW0_SHA3_256.code, bytes(32))


def dataset_id(number: int = 1) -> DatasetId:
    return DatasetId(bytes([number]) * 32)


def seed(number: int = 1) -> Seed:
    return Seed(dataset_id(number), DatasetKind.ROOT)


def make_dataset(layout: DatasetLayout, *texts: str, number: int = 1) -> DatasetLayout:
    """Create a dataset with several metadata events."""
    append(layout, [seed(number)])
    return add_info(layout, *texts)


def add_info(layout: DatasetLayout, *texts: str) -> DatasetLayout:
    """One more block for each text."""
    append(layout, [SetInfo(description=text) for text in texts])
    return layout


def append(layout: DatasetLayout, events: Iterable[MetadataEvent]) -> None:
    chain = layout.chain
    state = chain.state() if layout.refs.get(HEAD) else ChainState()
    chain.commit(chain.prepare(state, events, NOON))


def add_slice(layout: DatasetLayout, content: bytes, checkpoint: bytes | None = None) -> tuple[Multihash, ...]:
    """Add a slice of one row, with the given content, and a checkpoint; return their names."""
    state = layout.chain.state()
    events: list[MetadataEvent] = [] if state.set_schema else [SetDataSchema(schema=DataSchema(fields=()))]
    names = [layout.data.insert(content)] + ([layout.checkpoints.insert(checkpoint)] if checkpoint else [])
    events.append(slice_event(state, content, checkpoint))
    append(layout, events)
    return tuple(names)


def slice_event(state: ChainState, content: bytes, checkpoint: bytes | None = None) -> AddData:
    return AddData(
        prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
        prev_offset=state.last_offset,
        new_data=DataSlice(
            LOGICAL_HASH, Multihash.of(content), OffsetInterval(state.next_offset, state.next_offset), len(content)
        ),
        new_checkpoint=Checkpoint(Multihash.of(checkpoint), len(checkpoint)) if checkpoint else None,
    )


def put_block(layout: DatasetLayout, event: MetadataEvent, previous: Multihash | None, number: int) -> HashedBlock:
    """Put a block without checking rules, and move the head to it."""
    block = MetadataBlock(system_time=NOON, prev_block_hash=previous, sequence_number=number, event=event)
    hashed, data = hash_block(block)
    layout.blocks.insert(data)
    set_head(layout, hashed.hash)
    return hashed


def set_head(layout: DatasetLayout, head: Multihash) -> None:
    layout.refs.compare_and_swap(HEAD, layout.refs.get(HEAD), head)


def contents(store: ObjectStore) -> dict[Multihash, bytes]:
    return {name: store.read(name) for name in store}


def image(layout: DatasetLayout) -> tuple[object, ...]:
    """Return the complete state of a dataset: its head and its objects."""
    return (layout.refs.get(HEAD), *(contents(store) for store in (layout.blocks, layout.data, layout.checkpoints)))
