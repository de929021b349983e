"""Ingest of outside data into a root dataset (ODF specification, "Ingestion").

1. fetch       a file and the state of its source, unless there is nothing new   (pull only)
2. read        typed rows from bytes
3. preprocess  SQL over `input`
4. merge       new rows with the state of the dataset, and write slices
5. commit      schema if it changed, slices, watermark and source state, in one step

Step 1 is part of `Puller`. Pulls, `odf ingest`, watches and REST call `ingest_file` for the other steps: `lanes` runs
steps 2 to 4 in this process or on Spark, and this module commits their result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from odfpy.chain.events import (
    AddData,
    AddPushSource,
    DataSlice,
    MetadataEvent,
    SetDataSchema,
    SetPollingSource,
    SourceState,
)
from odfpy.chain.sources import MergeLedger, MergeStrategy, MergeUpsertStream
from odfpy.chain.state import ChainState
from odfpy.coordinator.ingest.event_times import warnings_of_future, warnings_of_rows
from odfpy.coordinator.ingest.ingest_request import SourceFile
from odfpy.coordinator.ingest.keyed_state import DatasetKeys
from odfpy.coordinator.ingest.lanes import FileIngest, Lane, choose_lane, ingest_by_spark, ingest_locally
from odfpy.coordinator.ingest.new_columns import new_columns, warnings_of_absent_columns, warnings_of_new_columns
from odfpy.coordinator.ingest.overrides import NOTHING, Overrides
from odfpy.coordinator.ingest.snapshots import require_whole, retraction_limit
from odfpy.coordinator.ingest.watermarks import policy_of
from odfpy.coordinator.storage.approvals import Approvals
from odfpy.coordinator.storage.clock import warnings_of_given_time
from odfpy.coordinator.storage.commit import commit_events, commit_time
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.storage.results import Progress, PullResult
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.evolution import with_attributes
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.watermark import WatermarkPolicy
from odfpy.dataset.kind import DatasetKind
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import IngestError, InvalidQuery, SchemaError, UsageError, did_you_mean
from odfpy.stages import stage

if TYPE_CHECKING:
    from odfpy.data.data_warning import DataWarning
    from odfpy.ingest.pipeline import IngestedData, IngestStatistics

DEFAULT_SOURCE = "default"


def push_source(dataset: StoredDataset, name: str | None) -> AddPushSource:
    """Return the push source with a name, or the only one.

    Raises:
        UsageError: the source does not exist, or there are several and none is named.
        SourceNotApproved: the source has a query that is not approved in this workspace.
    """
    chosen = _push_source(dataset, name)
    Approvals(dataset.workspace_folder).require(dataset, chosen)
    return chosen


def _push_source(dataset: StoredDataset, name: str | None) -> AddPushSource:
    sources = {source.source_name: source for source in dataset.state.push_sources}
    if not sources:
        pulls = f"`odf pull {dataset.handle}` brings it up to date."
        if dataset.state.kind is DatasetKind.DERIVATIVE:
            how, hint = "it is derived from other datasets", pulls
        elif dataset.state.polling_source:
            how, hint = "it is pulled, not pushed to", pulls
        else:
            how, hint = "it has no push source", "Add an AddPushSource event to its manifest, then `odf add --replace`."
        raise UsageError(f"Nothing can be ingested into {dataset.handle}: {how}", hint=hint)
    if name is None and len(sources) == 1:
        return next(iter(sources.values()))
    chosen = sources.get(name or DEFAULT_SOURCE)
    if chosen is None:
        names = ", ".join(sources)
        raise UsageError(
            f"{dataset.handle} has no push source {name or DEFAULT_SOURCE!r}; it has {names}",
            hint=did_you_mean(name or "", sources, otherwise="Name one (`--source-name`, or `sourceName` over REST)."),
        )
    return chosen


def reporting_rows(progress: Callable[[Progress], None], dataset: str, file: str) -> AbstractContextManager[None]:
    """Report how many rows of a file have been read, while it is ingested.

    Args:
        progress: called with the number of rows.
        dataset: name of the dataset.
        file: name of the file.
    """
    from odfpy.ingest.read.progress import rows_reported_to

    return rows_reported_to(lambda rows: progress(Progress(dataset, f"ingesting {file}", rows, None, "rows")))


def ingest_file(
    dataset: StoredDataset,
    source: SetPollingSource | AddPushSource,
    file: SourceFile,
    engines: EngineRegistry,
    scratch: Path,
    overrides: Overrides = NOTHING,
) -> PullResult:
    """Run steps 2 to 5 for one file; the caller holds the dataset's lock.

    Args:
        dataset: the dataset.
        source: the source.
        file: the file, fetched and prepared.
        engines: the engines of the workspace.
        scratch: a folder for temporary files.
        overrides: exceptions that the user allows.

    Raises:
        TooManyRetractions: the file is a snapshot that lacks more rows than allowed.
        OdfError: nothing was committed.
    """
    from odfpy.data.memory import bulk_memory

    with bulk_memory(), _naming_file(file.name), DatasetKeys(dataset, source.merge, scratch) as keys:
        if source.preprocess is not None:
            engines.expect(source.preprocess.engine)
        limit = retraction_limit(dataset, source.merge, overrides)
        require_whole(source, file.path, file.name)
        absent = warnings_of_absent_columns(source, file.path, file.name, dataset.state.vocab.event_time_column)
        policy = policy_of(dataset)
        lane = choose_lane(Config.load(dataset.workspace_folder.root), dataset.state, source, file.path)
        ingest = FileIngest(
            dataset=dataset,
            source=source,
            file=file,
            engines=engines,
            scratch=scratch,
            system_time=commit_time(dataset.state),
            limit=limit,
        )
        ingested, remarks = _run_lane(lane, ingest, keys)
        events = events_of(dataset.state, ingested, file.state, policy, source.read.schema)
        result = _commit(ingest, ingested, events, keys)
        return _with_outcome(result, ingest, ingested, absent, remarks, lane)


@contextmanager
def _naming_file(name: str) -> Iterator[None]:
    """Add the name of the file to errors of queries, merges and schemas in the block; readers already include it."""
    try:
        yield
    except (IngestError, SchemaError, InvalidQuery) as error:
        if name not in error.message:
            error.message = f"{name}: {error.message}"
        raise


def _run_lane(lane: Lane, ingest: FileIngest, keys: DatasetKeys) -> tuple[IngestedData, tuple[str, ...]]:
    """Run steps 2 to 4 in a lane; return the data to commit, and remarks for the user."""
    from odfpy.ingest.cut_times import with_fine_keys

    ingest = replace(ingest, source=with_fine_keys(ingest.source))
    return ingest_by_spark(ingest) if lane.is_spark else ingest_locally(ingest, keys)


def _commit(ingest: FileIngest, ingested: IngestedData, events: list[MetadataEvent], keys: DatasetKeys) -> PullResult:
    """Commit events with their slices, and extend the key index."""
    written = {item.info.physical_hash: item.path for item in ingested.slices}
    with stage("commit"):
        result = commit_events(ingest.dataset, ingest.dataset.state, events, ingest.system_time, written)
    # After the commit: an index that is behind the head can be extended later. An index that is ahead of it, for a
    # block that was never committed, would have to be rebuilt from all slices.
    with stage("index of keys"):
        keys.extend(result.new_head, ingested.schema)
    return result


def _with_outcome(
    result: PullResult,
    ingest: FileIngest,
    ingested: IngestedData,
    absent: tuple[DataWarning, ...],
    remarks: tuple[str, ...],
    lane: Lane,
) -> PullResult:
    """Return the result of a commit with counts, warnings and notes about its rows.

    Args:
        result: the result of the commit.
        ingest: the ingest.
        ingested: the committed rows.
        absent: warnings about columns that the file lacks.
        remarks: remarks of the lane for the user.
        lane: the lane.
    """
    dataset, source, file = ingest.dataset, ingest.source, ingest.file
    counts, repeated = _outcome(ingested.statistics, source.merge)
    warnings = (*absent, *result.warnings, *ingested.warnings)
    warnings += warnings_of_future(dataset, result.watermark, ingest.system_time)
    before = dataset.state.schema
    if before is not None and (names := new_columns(before, ingested.schema)):
        from odfpy.ingest.read import schema_of

        if schema_of(source.read) is None:
            warnings += warnings_of_new_columns(names, before)
        remarks = (*remarks, f"new column{'s' if len(names) > 1 else ''} {', '.join(map(repr, names))}")
    if not file.is_dated:
        vocab, are_first = dataset.state.vocab, not dataset.state.num_records
        warnings += warnings_of_rows(source, ingested, vocab, file.event_time, are_first=are_first)
        untimed = ingested.statistics.untimed
        warnings += warnings_of_given_time(file.name, file.event_time, untimed, ingest.system_time)
    return replace(result, counts=counts, warnings=warnings, notes=(*result.notes, *remarks, *repeated), lane=str(lane))


def advance_source(dataset: StoredDataset, source_state: SourceState | None) -> PullResult:
    """Record a new source state without rows; the caller holds the dataset's lock."""
    state = dataset.state
    # The watermark is repeated: an event without it would reset it, which chain rules forbid.
    event = AddData(
        prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
        prev_offset=state.last_offset,
        new_watermark=state.watermark,
        new_source_state=source_state,
    )
    is_new = source_state is not None and source_state not in state.source_states
    return commit_events(dataset, state, [event] if is_new else [], commit_time(state))


def events_of(
    state: ChainState,
    ingested: IngestedData,
    source_state: SourceState | None,
    policy: WatermarkPolicy,
    declared: DataSchema | None,
) -> list[MetadataEvent]:
    """Return the events that commit new rows: the schema if it changed, then one event for each slice.

    Args:
        state: the state of the chain before these events.
        ingested: the rows.
        source_state: the source state after these rows.
        policy: determines the watermark after them.
        declared: the columns that the source declares, with their attributes.

    Raises:
        SchemaError: the schema is committed without rows, and no slice could be written with it.
    """
    changed: list[MetadataEvent] = []
    if ingested.schema_changed and ingested.schema is not None:
        if not ingested.slices:
            from odfpy.data.slices.writer import check_writable

            check_writable(ingested.schema, state.vocab)
        # Rows carry no column attributes: new columns get those declared by the source.
        changed = [SetDataSchema(schema=with_attributes(ingested.schema, state.schema, declared))]
    return [*changed, *_data_events(state, ingested, source_state, policy)]


def _data_events(
    state: ChainState, ingested: IngestedData, source_state: SourceState | None, policy: WatermarkPolicy
) -> list[AddData]:
    """Return one event for each slice.

    Watermark and source state are in the last event; earlier, they would not be true yet.
    """
    infos = [item.info for item in ingested.slices]
    greatest = [info.max_event_time for info in infos if info.max_event_time is not None]
    last = AddData(
        prev_checkpoint=state.checkpoint.physical_hash if state.checkpoint else None,
        prev_offset=state.last_offset,
        new_watermark=policy.after_rows(state.watermark, greatest),
        new_source_state=source_state,
    )
    if not infos:
        return [last] if source_state is not None and source_state not in state.source_states else []
    before = replace(last, new_watermark=state.watermark, new_source_state=None)
    events = []
    for info in infos:
        interval = OffsetInterval(info.offset_start, info.offset_end)
        data = DataSlice(info.logical_hash, info.physical_hash, interval, info.size)
        event = last if info is infos[-1] else before
        events.append(replace(event, prev_offset=info.offset_start - 1 if info.offset_start else None, new_data=data))
    return events


def _outcome(statistics: IngestStatistics, strategy: MergeStrategy) -> tuple[dict[str, int], tuple[str, ...]]:
    """Return the counts of rows by outcome, including late rows, and a remark on unexpected repetitions."""
    superseded = statistics.repeated if isinstance(strategy, MergeUpsertStream) else 0
    counts = {
        "read": statistics.read,
        "appended": statistics.appended,
        "corrected": statistics.corrected,
        "retracted": statistics.retracted,
        "unchanged": statistics.dropped - superseded,
        "superseded": superseded,
        "late": statistics.late,
    }
    if not isinstance(strategy, MergeLedger) or not statistics.repeated or statistics.appended < 2:
        return counts, ()
    many = statistics.repeated
    rows = "1 row has the key of a row" if many == 1 else f"{many} rows have keys of rows"
    return counts, (f"{rows} before it in the same input; a ledger keeps all rows of a new key",)
