"""Metadata blocks, and dataset snapshots (ODF specification, "MetadataBlock", "DatasetSnapshot")."""

from __future__ import annotations

from odfpy.chain.events import MetadataEvent
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import DatasetAlias
from odfpy.values import dataclass

SPECIFICATION_VERSION = "0.39"
"""Version of the Open Data Fabric specification that this package follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataBlock:
    """A block of a metadata chain."""

    system_time: Timestamp
    prev_block_hash: Multihash | None = None
    sequence_number: U64
    event: MetadataEvent


@dataclass(frozen=True, slots=True)
class HashedBlock:
    """A block together with the hash of its original bytes, which is its name."""

    hash: Multihash
    block: MetadataBlock


@dataclass(frozen=True, slots=True)
class DatasetSnapshot:
    """A template from which a dataset is created."""

    name: DatasetAlias
    kind: DatasetKind
    metadata: tuple[MetadataEvent, ...]
