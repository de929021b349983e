"""What the coordinator and the Spark lane in the engine's worker say to each other, as values that JSON can carry."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.chain.sources import MergeStrategy, ReadStep
from odfpy.data.multihash import Multihash
from odfpy.data.scalars import U64
from odfpy.data.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRequest:
    """An ingest; what is not explained is as for `odfpy.ingest.pipeline.ingest_rows`.

    Attributes:
        read: how to read the file; None for an Arrow file of rows that have been read and preprocessed.
        path: the file.
        name: what it is called in messages.
        part_bytes: the file is read in parts of about so many bytes.
        partitions: of Spark's shuffles; makes no difference to the result.
    """

    read: ReadStep | None
    path: str
    name: str
    strategy: MergeStrategy
    vocab: DatasetVocabulary
    schema: DataSchema | None
    slices: tuple[str, ...]
    next_offset: U64
    system_time: Timestamp
    source_event_time: Timestamp
    watermark: Timestamp | None
    out: str
    part_bytes: U64
    slice_rows: U64
    partitions: U64


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneSlice:
    """A slice that was written; see `odfpy.data.slice_writer.SliceInfo`."""

    path: str
    physical_hash: Multihash
    logical_hash: Multihash
    offset_start: U64
    offset_end: U64
    size: U64
    num_rows: U64
    min_event_time: Timestamp | None
    max_event_time: Timestamp | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneCounts:
    """See `odfpy.ingest.pipeline.IngestStatistics`."""

    read: U64 = 0
    appended: U64 = 0
    corrected: U64 = 0
    retracted: U64 = 0
    dropped: U64 = 0
    repeated: U64 = 0
    late: U64 = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneResult:
    """What came of it; see `odfpy.ingest.pipeline.IngestedData`."""

    slices: tuple[LaneSlice, ...]
    schema: DataSchema | None
    counts: LaneCounts
