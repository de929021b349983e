"""The ingest pipeline from new rows to data slices (ODF specification, "Ingestion").

Steps of `ingest_rows`:
1. check and normalize the rows (`normalize`);
2. extend the schema of the dataset by their columns (`evolve`), and fit the rows to it;
3. merge them with the current state and sort them (`local_merge`, `merge`);
   check the retractions of a snapshot (`retractions`);
4. add the system columns and write the slices.
The result is not committed here: the coordinator does that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.sources import MergeSnapshot, MergeStrategy
from odfpy.data.data_warning import DataWarning
from odfpy.data.lateness import late_rows
from odfpy.data.memory import from_numpy
from odfpy.data.scalars import U64
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.cut import SLICE_ROWS
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.ingest.cut_times import warnings_of_cut_times
from odfpy.ingest.evolve import untyped_columns
from odfpy.ingest.fit import fit_rows
from odfpy.ingest.local_merge import MergedRows, merge_locally
from odfpy.ingest.normalize import count_null_event_times, normalize_rows
from odfpy.ingest.retractions import RetractionLimit, StateChange, check_retractions
from odfpy.ingest.write import OrderedRows, SliceLayout, WrittenSlice, write_slices
from odfpy.stages import stage
from odfpy.state.current import KeyedState, ScannedState
from odfpy.state.database import SharedDatabase
from odfpy.values import dataclass


@dataclass(frozen=True, slots=True)
class IngestStatistics:
    """Counts of the rows of an input by their outcome.

    Attributes:
        read: number of input rows.
        appended: rows with +A.
        corrected: rows with +C; each is preceded by its -C, unless a changelog omits it.
        retracted: rows with -R.
        dropped: input rows without effect: seen before, unchanged, or superseded within the input.
        repeated: input rows whose key had occurred before in the input.
        late: rows with +A or +C at or before the watermark of the dataset before the ingest.
        untimed: input rows without an event time.
        lacking: untimed rows whose input has the column, without retractions of an upsert stream.
    """

    read: U64 = 0
    appended: U64 = 0
    corrected: U64 = 0
    retracted: U64 = 0
    dropped: U64 = 0
    repeated: U64 = 0
    late: U64 = 0
    untimed: U64 = 0
    lacking: U64 = 0


@dataclass(frozen=True, slots=True)
class IngestedData:
    """Slices that are to be committed.

    Attributes:
        slices: the written slices, in order; empty if nothing is new.
        schema: schema in force after the commit; None if the dataset has none yet and the input determines none.
        schema_changed: whether to commit `schema`: it is the first one, or has new columns and there are slices.
        statistics: counts of rows by outcome.
        warnings: warnings for the user.
    """

    slices: tuple[WrittenSlice, ...]
    schema: DataSchema | None
    schema_changed: bool
    statistics: IngestStatistics
    warnings: tuple[DataWarning, ...] = ()

    @property
    def is_empty(self) -> bool:
        """True if there is nothing to commit."""
        return not self.slices and not self.schema_changed


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestTarget:
    """The dataset that receives the rows, as it is before the ingest.

    Attributes:
        vocab: names of the system columns.
        schema: its schema, None before there is one.
        next_offset: offset of the next row.
        watermark: its watermark; rows at or before it are late.
        state: returns the state for lookups of keys, given the schema including columns of the new rows; None while
            the dataset has no rows.
        database: database for the lookups; None to open one.
    """

    vocab: DatasetVocabulary
    schema: DataSchema | None = None
    next_offset: U64 = 0
    watermark: Timestamp | None = None
    state: Callable[[DataSchema], KeyedState] | None = None
    database: SharedDatabase | None = None


def ingest_rows(
    new: pa.Table,
    target: IngestTarget,
    strategy: MergeStrategy,
    *,
    system_time: Timestamp,
    source_event_time: Timestamp,
    out: Path,
    limit: RetractionLimit | None = None,
    threads: int | None = None,
    slice_rows: int = SLICE_ROWS,
) -> IngestedData:
    """Convert new rows to data slices.

    Args:
        new: rows that have been read and preprocessed, in the order of the input.
        target: the dataset.
        strategy: the merge strategy.
        system_time: time of the commit.
        source_event_time: event time of rows that have none.
        out: file to write, replacing an existing one; further slices of a large result are written beside it, and
            so is a temporary folder for data that does not fit into memory.
        limit: limit on the retractions of a snapshot; by default none.
        threads: the maximum number of threads, by default one per processor; the result does not depend on it.
        slice_rows: the maximum number of rows of a slice.

    Raises:
        IngestError: the rows cannot be merged; the message names the row and the reason.
        TooManyRetractions: the snapshot retracts more rows than allowed.
        SchemaError: the rows do not fit the schema of the dataset; the message names the field.
        IntegrityError: the history of the dataset is damaged.
    """
    vocab, schema = target.vocab, target.schema
    if schema is None and new.num_rows == 0 and (new.num_columns == 0 or untyped_columns(new.schema)):
        return IngestedData((), None, schema_changed=False, statistics=IngestStatistics())
    known = {} if schema is None else {field.name: field.type for field in to_arrow(schema)}
    with stage("normalize"):
        rows = normalize_rows(  # (1)
            new,
            strategy=strategy,
            vocabulary=vocab,
            source_event_time=source_event_time,
            event_time_type=known.get(vocab.event_time_column),
            recorded=tuple(known),
        )
        cut = rows.cut
        extended, rows = fit_rows(rows, schema, vocab)  # (2)
    with (
        stage("merge"),
        SharedDatabase(threads=threads, scratch=out.parent / f"{out.name}.scratch") as own,
    ):
        state = ScannedState([], extended, vocab) if target.state is None else target.state(extended)
        merged = merge_locally(rows, strategy, state, vocab, shared=target.database or own)  # (3)
    untimed = rows.event_time_given.length() - (pc.sum(rows.event_time_given).as_py() or 0)
    lacking = count_null_event_times(new, rows, strategy, vocab.event_time_column)
    statistics = replace(_statistics(new.num_rows, merged, vocab, target.watermark), untimed=untimed, lacking=lacking)
    warnings = (*merged.warnings, *warnings_of_cut_times(cut, strategy))
    if len(merged.rows.operations) == 0:
        return IngestedData((), extended if schema is None else schema, schema is None, statistics, warnings)
    if limit is not None and isinstance(strategy, MergeSnapshot):
        change = StateChange(new.num_rows, statistics.appended, statistics.retracted)
        warnings += check_retractions(change, limit, lambda most: _retracted_keys(merged.rows, strategy, most))
    form = SliceLayout(extended, vocab, system_time)
    with stage("write"):
        written = write_slices(
            out, merged.rows, form, target.next_offset, threads=threads, slice_rows=slice_rows
        )  # (4)
    return IngestedData(written, extended, extended != schema, statistics, warnings)


def _retracted_keys(rows: OrderedRows, strategy: MergeSnapshot, most: int) -> list[dict[str, Any]]:
    """Return the primary keys of the first retracted rows."""
    ranks = np.flatnonzero(rows.operations.to_numpy() == int(OperationType.RETRACT))[:most]
    places = from_numpy(ranks) if rows.positions is None else rows.positions.take(from_numpy(ranks))
    keys: list[dict[str, Any]] = rows.columns.select(list(strategy.primary_key)).take(places).to_pylist()
    return keys


def _statistics(
    read: int, merged: MergedRows, vocab: DatasetVocabulary, watermark: Timestamp | None
) -> IngestStatistics:
    operations = merged.rows.operations
    counts = {entry["values"]: entry["counts"] for entry in pc.value_counts(operations).to_pylist()}
    appended, retracted, _, corrected = (counts.get(int(op), 0) for op in OperationType)
    late = 0
    if watermark is not None:
        late = late_rows(merged.rows.column(vocab.event_time_column), operations, watermark)
    return IngestStatistics(read, appended, corrected, retracted, read - merged.used, merged.repeated, late)
