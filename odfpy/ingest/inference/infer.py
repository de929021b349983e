"""Inference of a whole source, step by step, and the resulting rows.

1. take a sample of the first input, and unpack it (`sample`)
2. find its format (`formats`, `delimited`)
3. find the columns and their types (`columns`, `types`, `times`)
4. choose the event time (`event_time`), find keys (`keys`), choose a merge strategy (`strategy`)
5. rename system columns whose names occur in the data
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from odfpy.chain.events import SetPollingSource, SetVocab
from odfpy.chain.read_steps import ReadStep
from odfpy.chain.sources import (
    EventTimeFromMetadata,
    EventTimeFromPath,
    EventTimeSource,
    FetchFilesGlob,
    FetchUrl,
    MergeAppend,
    PrepStep,
)
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY, DatasetVocabulary
from odfpy.errors import OdfError
from odfpy.ingest.archive import UnpackLimits
from odfpy.ingest.event_time import event_time_of, modified_at
from odfpy.ingest.fetch import FetchContext
from odfpy.ingest.inference.columns import Column, FoundColumns, SkippedField, find_columns
from odfpy.ingest.inference.event_time import FoundEventTime, find_event_time
from odfpy.ingest.inference.formats import find_format
from odfpy.ingest.inference.keys import Key, find_keys
from odfpy.ingest.inference.sample import Sample, take_sample, unpacked
from odfpy.ingest.inference.strategy import Choice, choose_strategy
from odfpy.ingest.pipeline import IngestTarget, ingest_rows
from odfpy.ingest.read import FilePart, read_part
from odfpy.ingest.read.part import WHOLE

SHOWN_ROWS: Final = 10
"""Number of rows to show as a preview of the dataset."""

_MAX_LAST_SIZE: Final = 64 << 20
_DATED: Final = (
    EventTimeFromPath(r"(\d{4}-\d{2}-\d{2})", "%Y-%m-%d"),
    EventTimeFromPath(r"(\d{4}_\d{2}_\d{2})", "%Y_%m_%d"),
    EventTimeFromPath(r"(?<!\d)(\d{8})(?!\d)", "%Y%m%d"),
    EventTimeFromPath(r"(\d{4}-\d{2})", "%Y-%m"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """All findings about a source from its first rows.

    Attributes:
        fetch: the fetch step.
        prepare: the prepare steps.
        read: the read step, with its schema.
        columns: data columns, in order.
        left_out: fields that cannot become columns.
        rows: number of sampled rows.
        sample: the sampled rows, as a file.
        part: the sampled part of that file.
        is_whole: whether the sample is the whole input.
        event_time: the column with the time of the event.
        keys: candidates for primary keys.
        choice: the merge strategy.
        others: the alternative strategies.
        vocabulary: names of system columns that differ from the defaults.
        remarks: uncertainties.
    """

    fetch: FetchUrl | FetchFilesGlob
    prepare: tuple[PrepStep, ...]
    read: ReadStep
    columns: tuple[Column, ...]
    left_out: tuple[SkippedField, ...]
    rows: int
    sample: Sample
    part: FilePart
    is_whole: bool
    event_time: FoundEventTime
    keys: tuple[Key, ...]
    choice: Choice
    others: tuple[Choice, ...]
    vocabulary: SetVocab | None
    remarks: tuple[str, ...] = ()


def infer(step: FetchUrl | FetchFilesGlob, context: FetchContext, limits: UnpackLimits) -> Findings:
    """Infer a source from its first rows.

    Args:
        step: the fetch step.
        context: the context of the fetch; its scratch folder contains the sample afterwards.
        limits: limits on unpacked output.

    Raises:
        IngestError: the source cannot be fetched, unpacked or read, or nothing can be inferred from it.
    """
    fetched = take_sample(step, context)  # (1)
    prepare, sample = unpacked(fetched, context.scratch, limits)
    found = find_format(sample, context.scratch)  # (2)
    columns = find_columns(found.read, found.sample)  # (3)
    rows = read_part(_with_schema(columns.read, columns.columns), found.sample.path, columns.part, name=sample.name)
    event_time = find_event_time(columns.columns, rows)  # (4)
    name = None if event_time.column is None else event_time.column.name
    keys = find_keys(columns.columns, rows, name)
    choice, others = choose_strategy(keys, columns.columns, rows.num_rows, event_time)
    declared = _declared(columns, event_time, choice)
    if name is None:
        step = replace(step, event_time=_event_time_source(step, fetched))
        fetched = _timed(step, fetched, context.now)
    read = _with_schema(columns.read, declared)
    return Findings(
        fetch=step,
        prepare=prepare,
        read=read,
        columns=declared,
        left_out=columns.left_out,
        rows=rows.num_rows,
        sample=replace(found.sample, event_time=fetched.event_time),
        part=columns.part,
        is_whole=found.sample.is_whole and not columns.part.has_end,
        event_time=event_time,
        keys=keys,
        choice=choice,
        others=others,
        vocabulary=_vocabulary([column.name for column in declared], name),  # (5)
        remarks=(*found.remarks, *_remarks_on_last(read, fetched, context, limits)),
    )


def _remarks_on_last(read: ReadStep, fetched: Sample, context: FetchContext, limits: UnpackLimits) -> tuple[str, ...]:
    """Return a remark if the last of several files cannot be read like the first: sources change over the years."""
    if fetched.last is None:
        return ()
    scratch = context.scratch / "last"
    scratch.mkdir()
    try:
        _, sample = unpacked(fetched.last, scratch, limits)
        sample = find_format(sample, scratch).sample
        if sample.path.stat().st_size <= _MAX_LAST_SIZE:
            read_part(read, sample.path, WHOLE, name=sample.name)
    except OdfError as error:
        return (f"the last file does not match the first: {error.message}",)
    return ()


def first_rows(
    source: SetPollingSource, vocabulary: DatasetVocabulary, found: Findings, now: Timestamp, scratch: Path
) -> pa.Table:
    """Return the first rows of a new dataset, through all steps of an ingest except for the commit.

    Args:
        source: the source from its manifest.
        vocabulary: names of the system columns.
        found: the findings; their sample must still exist.
        now: the time of the ingest.
        scratch: a folder for the slice that is never committed.

    Raises:
        IngestError: the rows cannot be read or merged.
        SchemaError: a column cannot be stored.
    """
    name = found.sample.name
    rows = read_part(source.read, found.sample.path, found.part, name=name)
    ingested = ingest_rows(
        rows,
        IngestTarget(vocab=vocabulary),
        source.merge,
        system_time=now,
        source_event_time=found.sample.event_time,
        out=scratch / "rows",
    )
    if not ingested.slices:
        return pa.table({})
    return pq.read_table(ingested.slices[0].path).slice(0, SHOWN_ROWS)


def _with_schema(step: ReadStep, columns: Sequence[Column]) -> ReadStep:
    return replace(step, schema=DataSchema(tuple(column.field for column in columns)))


def _declared(found: FoundColumns, event_time: FoundEventTime, choice: Choice) -> tuple[Column, ...]:
    """Return the columns as the schema declares them: keys and complete event times are required."""
    keys = () if isinstance(choice.strategy, MergeAppend) else choice.strategy.primary_key
    complete = event_time.column.name if event_time.column is not None and not event_time.nulls else None
    required = {*keys, complete}
    return tuple(replace(column, type=column.plain) if column.name in required else column for column in found.columns)


# --- Event time and system columns -----------------------------------------------------------------------------------


def _event_time_source(step: FetchUrl | FetchFilesGlob, sample: Sample) -> EventTimeSource:
    """Return the source of event times: the names of the files if all have a date, else the modification times."""
    if isinstance(step, FetchFilesGlob):
        for source in _DATED:
            if all(_is_dated(source, name) for name in sample.names):
                return source
    return EventTimeFromMetadata()


def _is_dated(source: EventTimeFromPath, name: str) -> bool:
    if not re.search(source.pattern, name):
        return False
    try:
        event_time_of(source, path=name, modified=None, now=Timestamp(0))
    except OdfError:
        return False
    return True


def _timed(step: FetchUrl | FetchFilesGlob, sample: Sample, now: Timestamp) -> Sample:
    if not isinstance(step, FetchFilesGlob) or step.event_time is None:
        return sample
    modified = modified_at(sample.path.stat().st_mtime_ns, sample.name)
    time = event_time_of(step.event_time, path=sample.name, modified=modified, now=now)
    return replace(sample, event_time=time)


def _vocabulary(names: Sequence[str], event_time: str | None) -> SetVocab | None:
    """Return new names for system columns whose default names occur in the data, and the name of the event time."""
    usual = DEFAULT_VOCABULARY
    wanted = {
        "offset_column": usual.offset_column,
        "operation_type_column": usual.operation_type_column,
        "system_time_column": usual.system_time_column,
        "event_time_column": usual.event_time_column,
    }
    other = {key: _free(name, names) for key, name in wanted.items() if name in names}
    other.pop("event_time_column", None)
    if event_time is None and usual.event_time_column in names:
        other["event_time_column"] = _free(usual.event_time_column, names)
    elif event_time not in (None, usual.event_time_column):
        other["event_time_column"] = str(event_time)
    return SetVocab(**other) if other else None


def _free(name: str, names: Sequence[str]) -> str:
    wanted = f"odf_{name}"
    while wanted in names:
        wanted += "_"
    return wanted
