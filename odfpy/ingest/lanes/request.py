"""Messages between the coordinator and the Spark lane in the engine's worker, as values that JSON can carry."""

from __future__ import annotations

from dataclasses import dataclass

from odfpy.chain.read_steps import ReadStep
from odfpy.chain.sources import MergeStrategy
from odfpy.data.data_warning import DataWarning
from odfpy.data.scalars import U64
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.writer import SliceInfo
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.ingest.pipeline import IngestStatistics
from odfpy.ingest.retractions import RetractionLimit


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneRequest:
    """An ingest. Fields without a description are parameters of `odfpy.ingest.pipeline.ingest_rows`.

    Attributes:
        read: the read step; None for an Arrow file of rows that have been read and preprocessed.
        path: the file.
        name: name of the file in messages.
        part_bytes: approximate bytes of the parts in which the file is read.
        partitions: number of Spark's shuffle partitions; does not affect the result.
        one_machine: whether all tasks run on one machine, so that Spark need not merge; does not affect the result.
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
    one_machine: bool = False
    limit: RetractionLimit | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneResult:
    """The result of a lane; see `odfpy.ingest.pipeline.IngestedData`. `slice_files` returns the paths of the slices."""

    slices: tuple[SliceInfo, ...]
    schema: DataSchema | None
    statistics: IngestStatistics
    warnings: tuple[DataWarning, ...] = ()
