"""The engine contract: requests to engines, and their responses (ODF specification, "Engine Contract").

The values are those of the specification; additions of odfpy are at the end of a class, and marked as such. Times are
in UTC, offset intervals are inclusive, paths are absolute paths on the machine of the engine.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from odfpy.codec.errors import RaisedError as RaisedError  # noqa: PLC0414
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.scalars import U64
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.transform import Transform
from odfpy.engine.sql.ad_hoc import Projection as Projection  # noqa: PLC0414
from odfpy.engine.sql.ad_hoc import SqlRequest as SqlRequest  # noqa: PLC0414
from odfpy.engine.sql.ad_hoc import SqlResponseSuccess as SqlResponseSuccess  # noqa: PLC0414
from odfpy.engine.sql.ad_hoc import SqlTable as SqlTable  # noqa: PLC0414
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class Watermark:
    """A watermark: at `system_time` it was known that no row at or before `event_time` comes later."""

    system_time: Timestamp
    event_time: Timestamp


@dataclass(frozen=True, slots=True)
class Arrival:
    """The watermark of an input when one of its slices came (odfpy).

    Attributes:
        path: the slice.
        watermark: the watermark before the block that brought the slice: rows of the slice at or before it are late.
    """

    path: str
    watermark: Timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRequestInput:
    """The new part of one input.

    Attributes:
        query_alias: name of the input in the query.
        offset_interval: the rows to process, or None when there are no new ones.
        data_paths: the slices that hold these rows (perhaps among others), in order of offset.
        schema_file: a Parquet file without rows that has the input's schema in force.
        explicit_watermarks: watermarks of the input up to the end of the interval, oldest first. The last one is the
            latest that is known, even if it was set before the interval (odfpy: so row-by-row queries need no
            checkpoint to remember it).
        history_paths: the slices that hold the rows before the interval, in order of offset; None until the engine has
            asked for them (odfpy: state that is not in the checkpoint is computed from them).
        prev_offset: the last row before the interval, or None when there is none (odfpy).
        prev_watermark: the watermark of the input at the end of the previous interval (odfpy).
        arrivals: the watermarks at which the given slices came, for those that came when the input had one (odfpy).
        primary_key: the columns that identify a row in the current state of the input, according to its chain; empty if
            the state has at most one row (odfpy).
    """

    dataset_id: DatasetId
    dataset_alias: str
    query_alias: str
    vocab: DatasetVocabulary
    offset_interval: OffsetInterval | None = None
    data_paths: tuple[str, ...] = ()
    schema_file: str
    explicit_watermarks: tuple[Watermark, ...] = ()
    history_paths: tuple[str, ...] | None = None
    prev_offset: U64 | None = None
    prev_watermark: Timestamp | None = None
    arrivals: tuple[Arrival, ...] = ()
    primary_key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class OutputSoFar:
    """The output of a dataset before this run (odfpy).

    Attributes:
        schema_file: a Parquet file without rows that has the schema of the output.
        data_paths: the slices of the output, in order of offset.
    """

    schema_file: str
    data_paths: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformRequest:
    """One run of a derivative dataset's query over the new rows of its inputs.

    Attributes:
        system_time: the value for the system time column of every new row.
        vocab: names of the system columns of the output.
        query_inputs: the inputs, in declared order.
        next_offset: the offset of the first new row.
        prev_checkpoint_path: the checkpoint of the previous run.
        new_checkpoint_path: where to write the checkpoint of this run, if there is any.
        new_data_path: where to write the slice, if there are rows.
        recorded_schema: the schema of the output so far (odfpy), from which offsets and operation types keep their
            types.
        query_changed: whether the queries, the inputs or their columns differ from those of the previous run (odfpy):
            the run then has to turn the state of the output into that of the new queries, unless they work row by row.
        output_so_far: the output of all earlier runs; None until the engine has requested it (odfpy).
        prev_arrangement_path: folder of an arrangement of earlier rows, see `odfpy.engine.arrangement` (odfpy).
        new_arrangement_path: folder for the arrangement after this run; None if none is wanted (odfpy).
    """

    dataset_id: DatasetId
    dataset_alias: str
    system_time: Timestamp
    vocab: DatasetVocabulary
    transform: Transform
    query_inputs: tuple[TransformRequestInput, ...]
    next_offset: U64
    prev_checkpoint_path: str | None = None
    new_checkpoint_path: str
    new_data_path: str
    recorded_schema: DataSchema | None = None
    query_changed: bool = False
    output_so_far: OutputSoFar | None = None
    prev_arrangement_path: str | None = None
    new_arrangement_path: str | None = None


@dataclass(frozen=True, slots=True)
class SliceDescription:
    """A slice that the engine has written, hashed in the same pass; an addition of odfpy."""

    path: str
    offset_interval: OffsetInterval
    size: U64
    physical_hash: Multihash
    logical_hash: Multihash


@dataclass(frozen=True, slots=True)
class TransformResponseProgress:
    """The engine is still working."""


@dataclass(frozen=True, slots=True)
class TransformResponseSuccess:
    """The run succeeded; without an interval there were no rows, without a watermark it did not change.

    Attributes:
        slices: the slices written (odfpy).
        engine_version: the versions of engine, Spark and settings that made them (odfpy).
        output_schema: the schema of the output with its system columns, even without rows; if the query determines the
            primary key of the output, it is an attribute of the schema (odfpy).
        late_rows: the number of new rows of the inputs that were late (odfpy).
        ignored_rows: the number of changelog entries that were ignored for that reason (odfpy).
    """

    new_offset_interval: OffsetInterval | None = None
    new_watermark: Timestamp | None = None
    slices: tuple[SliceDescription, ...] = ()
    engine_version: str | None = None
    output_schema: DataSchema | None = None
    late_rows: U64 = 0
    ignored_rows: U64 = 0


@dataclass(frozen=True, slots=True)
class TransformResponseInvalidQuery:
    """The query is at fault.

    Attributes:
        fault: `invalid`, `unsupported`, `nondeterministic`, `too-large`, `too-long` or `too-deep` (odfpy); for a scan,
            also a problem with a slice: `damaged` or `missing`.
        hint: an alternative (odfpy).
        error: the error as it was raised; None from other engines (odfpy).
    """

    message: str
    fault: str = "invalid"
    hint: str | None = None
    error: RaisedError | None = None


@dataclass(frozen=True, slots=True)
class TransformResponseInternalError:
    """The engine is at fault.

    Attributes:
        error: the error as it was raised; None from other engines, or if it is not an error of odfpy (odfpy).
    """

    message: str
    backtrace: str | None = None
    error: RaisedError | None = None


@dataclass(frozen=True, slots=True)
class TransformResponseNeedsHistory:
    """The engine needs earlier rows: the request has to be repeated with them (odfpy).

    Attributes:
        inputs: positions of the inputs whose rows before the interval are needed.
        output: whether the rows of the output so far are needed.
    """

    inputs: tuple[U64, ...]
    output: bool = False


TransformResponse: TypeAlias = (
    TransformResponseProgress
    | TransformResponseNeedsHistory
    | TransformResponseSuccess
    | TransformResponseInvalidQuery
    | TransformResponseInternalError
)


@dataclass(frozen=True, slots=True)
class InputSchema:
    """An input as the analysis of a query sees it: only its schema and its primary key (odfpy)."""

    query_alias: str
    vocab: DatasetVocabulary
    schema_file: str
    primary_key: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AnalyzeRequest:
    """A request to analyze a query, without running it (odfpy)."""

    transform: Transform
    vocab: DatasetVocabulary
    inputs: tuple[InputSchema, ...]


ROW_BY_ROW: Final = "row-by-row"
"""The class of queries without state."""


@dataclass(frozen=True, slots=True)
class StepAnalysis:
    """The analysis of one step (odfpy).

    Attributes:
        alias: its name for later steps.
        query: the text of its query.
        query_class: for example `row-by-row`.
        reason: why it belongs to that class.
        state: the state that it needs.
    """

    alias: str | None
    query: str
    query_class: str
    reason: str
    state: str = "nothing"


@dataclass(frozen=True, slots=True)
class AnalyzeResponseSuccess:
    """The query can be processed (odfpy).

    Attributes:
        steps: the analysis of each query.
        output_columns: columns of the output, system columns first.
        output_schema: the schema of the slices that it would write.
        notes: notes for the author, one sentence each.
        primary_key: the columns that identify a row in the state of the output, empty if that has at most one row; None
            when the query does not determine them.
        watermark: how the watermark of the output is derived, in words; None when it does not advance.
        late: the policy for late rows, in words.
    """

    steps: tuple[StepAnalysis, ...]
    output_columns: tuple[str, ...]
    output_schema: DataSchema | None = None
    notes: tuple[str, ...] = ()
    primary_key: tuple[str, ...] | None = None
    watermark: str | None = None
    late: str = "corrected"


AnalyzeResponse: TypeAlias = AnalyzeResponseSuccess | TransformResponseInvalidQuery | TransformResponseInternalError


SqlResponse: TypeAlias = SqlResponseSuccess | TransformResponseInvalidQuery | TransformResponseInternalError


@dataclass(frozen=True, slots=True)
class PreprocessTable:
    """A table of a preprocessing query, with the rows that were read (odfpy).

    Attributes:
        name: its name in the query.
        data_path: a Parquet file with the rows; besides their columns it has their running number, see
            `odfpy.engine.spark.rows.handover`.
        watched: columns for which the response is to tell where they are passed on unchanged.
    """

    name: str
    data_path: str
    watched: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreprocessRequest:
    """A request to run the queries of an ingest; the result goes to `output_path` as an Arrow IPC stream (odfpy)."""

    transform: Transform
    tables: tuple[PreprocessTable, ...]
    output_path: str


@dataclass(frozen=True, slots=True)
class UnchangedColumn:
    """A column of a result that has the values of a column of a table (odfpy).

    Attributes:
        position: position of the column in the result, from 0.
        table: name of the table.
        column: name of its column.
    """

    position: U64
    table: str
    column: str


@dataclass(frozen=True, slots=True)
class PreprocessResponseSuccess:
    """The result has been written; `unchanged` lists watched columns that were passed on unchanged (odfpy)."""

    num_rows: U64
    unchanged: tuple[UnchangedColumn, ...] = ()


PreprocessResponse: TypeAlias = (
    PreprocessResponseSuccess | TransformResponseInvalidQuery | TransformResponseInternalError
)


@dataclass(frozen=True, slots=True)
class JobRequest:
    """A request to run a function of another package in the worker; see `odfpy.engine.jobs` (odfpy).

    Attributes:
        function: `module:name`.
        arguments: text that is passed to it.
        folder: a folder for the files that it writes, which is emptied when no client waits for the job any longer.
        reads: files that it reads, besides those in the folder; a confined engine sees no others.
    """

    function: str
    arguments: str
    folder: str
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class JobResponseDone:
    """The value that the function returned, or its error (odfpy)."""

    result: str | None = None
    error: RaisedError | None = None
