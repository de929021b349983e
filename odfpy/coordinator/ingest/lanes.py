"""The two lanes of an ingest, in this process and in the engine's worker, and the choice between them.

See the decision record "Two lanes". `ingest_file` runs the chosen lane, and commits its result.

`auto` chooses Spark if there is a cluster that shares the workspace's folder, or if input and state might exceed the
memory limit for ingests in this process. Preprocessing in Spark SQL does not require the Spark lane: for a small input,
merging and writing here takes less time than starting Spark tasks. The result is the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.read_steps import ReadParquet
from odfpy.chain.slices import slice_paths, slices_of
from odfpy.chain.sources import MergeAppend, MergeSnapshot
from odfpy.chain.state import ChainState
from odfpy.coordinator.ingest.ingest_request import SourceFile
from odfpy.coordinator.ingest.keyed_state import DatasetKeys
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.amounts import format_size, parse_size
from odfpy.data.slices.cut import SLICE_ROWS
from odfpy.data.timestamp import Timestamp
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.settings import EngineSettings
from odfpy.errors import EngineError
from odfpy.settings.sections import EngineSection, IngestSection
from odfpy.stages import stage
from odfpy.values import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.ingest.pipeline import IngestedData
    from odfpy.ingest.retractions import RetractionLimit

_TEXT_GROWS, _PARQUET_GROWS, _STATE_GROWS = 4, 10, 10
"""Measured maximum of memory per byte of a file: for text, Parquet, and the state of a dataset."""

_PART_BYTES: Final = 64 << 20
_SHUFFLE_BYTES: Final = 128 << 20


@dataclass(frozen=True, slots=True)
class Lane:
    """A lane, and the reason for choosing it.

    Attributes:
        is_spark: whether the lane is the engine's worker.
        reason: the reason, in a few words for the user.
    """

    is_spark: bool
    reason: str

    def __str__(self) -> str:
        return f"{'spark' if self.is_spark else 'local'}: {self.reason}"


def choose_lane(config: Config, state: ChainState, source: SetPollingSource | AddPushSource, path: Path) -> Lane:
    """Return the lane for a file.

    Args:
        config: settings of the workspace.
        state: the state of the dataset.
        source: the source that the file belongs to.
        path: path of the file, ready to be read.

    Raises:
        IngestError: the file does not exist.
    """
    from odfpy.ingest.read.files import opening

    ingest, engine = config.section(IngestSection), config.section(EngineSection)
    if ingest.lane != "auto":
        return Lane(ingest.lane == "spark", f"ingest.lane is {ingest.lane}")
    if EngineSettings(master=engine.master).is_cluster:
        if engine.storage is not None:
            return Lane(is_spark=False, reason="executors do not see the folder of the workspace (engine.storage)")
        return Lane(is_spark=True, reason=f"the engine's master is {engine.master}")
    with opening(str(path)):
        size = path.stat().st_size
    needed = size * (_PARQUET_GROWS if isinstance(source.read, ReadParquet) else _TEXT_GROWS)
    if isinstance(source.merge, MergeSnapshot):  # compared with the whole current state
        needed += state.data_bytes * _STATE_GROWS
    is_large = needed > parse_size(ingest.memory)
    what = f"input and state may take {format_size(needed)}" if needed else "there is nothing to read"
    return Lane(is_large, f"{what}, {'more than' if is_large else 'within'} ingest.memory ({ingest.memory})")


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIngest:
    """The ingest of one file, as input of both lanes.

    Attributes:
        dataset: the dataset, with its lock held.
        source: the source, which defines how to read and to merge.
        file: the file, fetched and prepared.
        engines: the engines of the workspace.
        scratch: a folder for the slices and temporary files.
        system_time: system time of the commit.
        limit: how much a snapshot may retract, None for no limit.
    """

    dataset: StoredDataset
    source: SetPollingSource | AddPushSource
    file: SourceFile
    engines: EngineRegistry
    scratch: Path
    system_time: Timestamp
    limit: RetractionLimit | None


def ingest_locally(ingest: FileIngest, keys: DatasetKeys) -> tuple[IngestedData, tuple[str, ...]]:
    """Read, merge and write in this process; return the data to commit, and remarks for the user.

    Args:
        ingest: the ingest.
        keys: the keys of the dataset, for the merge.

    Raises:
        OdfError: nothing can be committed.
    """
    from odfpy.ingest.pipeline import ingest_rows

    rows, remarks = _read_rows(ingest)
    ingested = ingest_rows(
        rows,
        keys.target(),
        ingest.source.merge,
        system_time=ingest.system_time,
        source_event_time=ingest.file.event_time,
        out=ingest.scratch / "data",
        limit=ingest.limit,
    )
    return ingested, remarks


def ingest_by_spark(ingest: FileIngest) -> tuple[IngestedData, tuple[str, ...]]:
    """Read, merge and write in the engine's worker; return the data to commit, and remarks for the user.

    Raises:
        OdfError: nothing can be committed.
    """
    from odfpy.engine.worker.client import SparkEngine
    from odfpy.ingest.lanes.client import ingest_on_spark
    from odfpy.ingest.lanes.request import LaneRequest

    engine = ingest.engines.get("spark")
    if not isinstance(engine, SparkEngine):
        raise EngineError("The Spark lane needs the Spark engine", hint="odf config set ingest.lane local")
    if engine.settings.is_cluster and engine.settings.storage is not None:
        raise EngineError(
            "The Spark lane needs a folder that executors share, and engine.storage says that they do not",
            hint="odf config set ingest.lane auto",
        )
    dataset, source, file, state = ingest.dataset, ingest.source, ingest.file, ingest.dataset.state
    slices: list[Path] = []
    if not isinstance(source.merge, MergeAppend):
        slices = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order(state.head)))
    size = file.path.stat().st_size + (state.data_bytes if slices else 0)
    request = LaneRequest(
        read=source.read,
        path=str(file.path.absolute()),
        name=file.name,
        strategy=source.merge,
        vocab=state.vocab,
        schema=state.schema,
        slices=tuple(str(item.absolute()) for item in slices),
        next_offset=state.next_offset,
        system_time=ingest.system_time,
        source_event_time=file.event_time,
        watermark=state.watermark,
        out=str(ingest.scratch.absolute() / "data"),
        part_bytes=_PART_BYTES,
        slice_rows=SLICE_ROWS,
        partitions=2 + size // _SHUFFLE_BYTES,
        one_machine=not engine.settings.is_cluster,
        limit=ingest.limit,
    )
    if source.preprocess is None:
        return ingest_on_spark(engine, request, ingest.scratch), ()
    from odfpy.ingest.lanes.preprocessed import preprocess_input

    request, remarks = preprocess_input(source.preprocess, request, ingest.engines, ingest.scratch.absolute())
    return ingest_on_spark(engine, request, ingest.scratch), remarks


def _read_rows(ingest: FileIngest) -> tuple[pa.Table, tuple[str, ...]]:
    """Read and preprocess the file; return the rows, and remarks for the user."""
    from odfpy.ingest.normalize import coerce_inferred_event_time
    from odfpy.ingest.preprocess import preprocess
    from odfpy.ingest.read import read, schema_of

    source, file = ingest.source, ingest.file
    with stage("read"):
        rows = read(source.read, file.path, name=file.name)
        if schema_of(source.read) is None:
            rows = coerce_inferred_event_time(rows, ingest.dataset.state.vocab)
    spool = ingest.scratch / "preprocessed"  # in the workspace, which cleans up after killed processes
    try:
        return preprocess(source.preprocess, rows, ingest.engines, spool=spool)
    finally:
        spool.unlink(missing_ok=True)  # the memory mapping stays valid
