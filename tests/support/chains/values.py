"""Random metadata of every kind, made by reflection over the same shapes that drive the codecs."""

from __future__ import annotations

from functools import cache
from typing import Any

from hypothesis import strategies as st

from odfpy.chain.block import DatasetSnapshot, MetadataBlock
from odfpy.chain.events import MetadataEvent
from odfpy.codec.shape import (
    DatasetReference,
    Enumeration,
    Field,
    Integer,
    Leaf,
    OneOf,
    Record,
    Sequence,
    Shape,
    fields_of,
    shape_of,
)
from odfpy.data import timestamp
from odfpy.data.attributes import ExtraAttributes
from odfpy.data.multihash import ALGORITHMS, Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.names import AccountName, DatasetAlias, DatasetName

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
labels = st.from_regex(r"[A-Za-z0-9]{1,8}(-[A-Za-z0-9]{1,8}){0,2}", fullmatch=True)
names = st.lists(labels, min_size=1, max_size=3).map(".".join)
aliases = st.builds(DatasetAlias, names.map(DatasetName), st.none() | names.map(AccountName))
ids = st.binary(min_size=32, max_size=32).map(DatasetId)
hashes = st.one_of(
    st.builds(Multihash, st.sampled_from(sorted(ALGORITHMS)), st.binary(min_size=32, max_size=32)),
    st.builds(Multihash, st.integers(0x1000, 0x10FF), st.binary(max_size=64)),
)
times = st.integers(timestamp._MIN_NANOS, timestamp._MAX_NANOS).map(Timestamp)
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
attributes = st.dictionaries(texts, json_values, max_size=4).map(ExtraAttributes.of)

_LEAVES: dict[type, st.SearchStrategy[Any]] = {
    str: texts,
    bool: st.booleans(),
    bytes: st.binary(max_size=60),
    Timestamp: times,
    Multihash: hashes,
    DatasetId: ids,
    DatasetAlias: aliases,
    ExtraAttributes: attributes,
}


def values_of(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of a shape."""
    match shape:
        case Integer(range_):
            return st.integers(range_.least, range_.greatest)
        case Leaf(type_):
            return _LEAVES[type_]
        case DatasetReference():
            return ids | aliases
        case Enumeration(type_):
            return st.sampled_from(list(type_))
        case Sequence(item):
            return st.lists(values_of(item), max_size=3).map(tuple)
        case OneOf(members):
            return st.one_of([records_of(member) for member in members])
        case Record(type_):
            return records_of(type_)


@cache
def records_of(type_: type) -> st.SearchStrategy[Any]:
    """Records of a type, which may contain itself."""
    return st.deferred(lambda: st.builds(type_, **{field.name: _field(field) for field in fields_of(type_)}))


def _field(field: Field) -> st.SearchStrategy[Any]:
    return st.none() | values_of(field.shape) if field.optional else values_of(field.shape)


EVENT_KINDS = shape_of(MetadataEvent).members  # type: ignore[union-attr]
events = values_of(shape_of(MetadataEvent))
blocks = records_of(MetadataBlock)
snapshots = records_of(DatasetSnapshot)


def blocks_with(kind: type) -> st.SearchStrategy[MetadataBlock]:
    """Blocks whose event is of one kind."""
    return st.builds(
        MetadataBlock,
        system_time=times,
        prev_block_hash=st.none() | hashes,
        sequence_number=st.integers(0, 2**64 - 1),
        event=records_of(kind),
    )
