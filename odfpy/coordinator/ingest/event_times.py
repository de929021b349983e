"""Warnings about rows without an event time, which get that of their input, and about event times in the future."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from odfpy.chain.events import AddPushSource, SetPollingSource, Source
from odfpy.chain.sources import (
    EventTimeFromMetadata,
    EventTimeFromPath,
    EventTimeFromSystemTime,
    FetchFilesGlob,
    FetchUrl,
)
from odfpy.data.duration import Duration
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.coordinator.storage.stored_dataset import StoredDataset
    from odfpy.data.data_warning import DataWarning
    from odfpy.ingest.pipeline import IngestedData


_FUTURE: Final = Duration(24 * 60 * 60)
"""Tolerance for event times ahead of the clock: data may be in another time zone."""

_MAX_NAMES: Final = 5
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TELLING: Final = {"date", "datetime", "day", "time", "timestamp", "ts", "when"}


def is_chosen(source: Source) -> bool:
    """Return whether a manifest explicitly defines the event time of rows without one."""
    return (
        isinstance(source, SetPollingSource)
        and isinstance(source.fetch, FetchUrl | FetchFilesGlob)
        and source.fetch.event_time is not None
    )


def remarks_on_columns(source: Source, columns: pa.Schema, vocab: DatasetVocabulary) -> tuple[str, ...]:
    """Return a warning if the event time column is missing, but other columns may be intended as such.

    Args:
        source: the source of the dataset.
        columns: the columns of the source, after preprocessing.
        vocab: names of the system columns.
    """
    name = vocab.event_time_column
    if name in columns.names or is_chosen(source):
        return ()
    meant = _candidates(columns, vocab)
    if not meant:
        return ()
    remark = (
        f"no column {name!r}: every row gets {_time_of(source)}. {_either(meant)} could be meant: rename it in the"
        " schema or in `preprocess`, or let SetVocab name it (eventTimeColumn)"
    )
    return (remark,)


def warnings_of_rows(
    source: Source, ingested: IngestedData, vocab: DatasetVocabulary, given: Timestamp, *, are_first: bool
) -> tuple[DataWarning, ...]:
    """Return warnings about rows without an event time.

    Args:
        source: the source of the dataset.
        ingested: the ingested rows.
        vocab: names of the system columns.
        given: the event time assigned to such rows.
        are_first: whether these are the first rows of the dataset.
    """
    warnings = _warnings_of_first_rows(source, ingested, vocab, given) if are_first else ()
    rows, read = ingested.statistics.lacking, ingested.statistics.read
    # If a manifest defines the event time, all rows of a file may lack one: that is not a gap.
    if warnings or not rows or not ingested.slices or (rows == read and is_chosen(source)):
        return warnings
    from odfpy.data.amounts import count_of
    from odfpy.data.data_warning import DataWarning, WarningKind

    verbs = ("has", "gets") if rows == 1 else ("have", "get")
    time = Timestamp.from_millis(given.millis)  # with the precision of rows
    message = (
        f"{count_of(rows, 'row')} of {read} {verbs[0]} no {vocab.event_time_column!r} and {verbs[1]}"
        f" {_time_of(source)}, {time}; if this is wrong, supply it in `preprocess`, or filter such rows out"
    )
    return (DataWarning(WarningKind.EVENT_TIME, message, rows),)


def warnings_of_future(
    dataset: StoredDataset, watermark: Timestamp | None, system_time: Timestamp
) -> tuple[DataWarning, ...]:
    """Return a warning when the watermark moves into the future, for example by a mistyped year or a forecast.

    Args:
        dataset: the dataset before the ingest.
        watermark: the watermark after the ingest.
        system_time: the time of the commit.
    """
    before = dataset.state.watermark
    if not _is_future(watermark, system_time) or _is_future(before, system_time):
        return ()
    from odfpy.data.data_warning import DataWarning, WarningKind

    message = (
        f"event times are in the future, and so is the watermark, {watermark}: rows with earlier times will be late. If"
        f" this is wrong, `odf reset {dataset.handle} {dataset.state.head}` undoes the ingest"
    )
    return (DataWarning(WarningKind.EVENT_TIME, message),)


def _is_future(watermark: Timestamp | None, now: Timestamp) -> bool:
    return watermark is not None and Duration.between(now, watermark) > _FUTURE


def _warnings_of_first_rows(
    source: Source, ingested: IngestedData, vocab: DatasetVocabulary, given: Timestamp
) -> tuple[DataWarning, ...]:
    """Return warnings if the first rows of a dataset all lack an event time."""
    rows = ingested.statistics.untimed
    if not rows or rows < ingested.statistics.read or ingested.schema is None or is_chosen(source):
        return ()
    from odfpy.data.data_warning import DataWarning, WarningKind
    from odfpy.data.schemas.arrow import to_arrow

    meant = _candidates(to_arrow(ingested.schema), vocab)
    time = Timestamp.from_millis(given.millis)  # with the precision of rows
    message = f"no row has an {vocab.event_time_column!r}: every row gets {_time_of(source)}, {time}"
    message += f"; {_either(meant)} could be meant" if meant else ""
    return (DataWarning(WarningKind.EVENT_TIME, message, rows, meant),)


def _candidates(columns: pa.Schema, vocab: DatasetVocabulary) -> tuple[str, ...]:
    data = ((field.name, field.type) for field in columns if field.name not in vocab.columns)
    return event_time_candidates(data)[:_MAX_NAMES]


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(map(repr, names))


def _time_of(source: Source) -> str:
    """Describe the event time of rows without one."""
    if isinstance(source, AddPushSource):
        return "the time of the ingest"
    fetch = source.fetch
    if isinstance(fetch, FetchUrl | FetchFilesGlob):
        if isinstance(fetch.event_time, EventTimeFromPath):
            return "the time in the name of the file"
        if isinstance(fetch.event_time, EventTimeFromSystemTime):
            return "the time of the pull"
    if isinstance(fetch, FetchUrl) or (
        isinstance(fetch, FetchFilesGlob) and isinstance(fetch.event_time, EventTimeFromMetadata)
    ):
        return "the time of the file"
    return "the time of the pull"


def event_time_candidates(columns: Iterable[tuple[str, pa.DataType]]) -> tuple[str, ...]:
    """Return names of columns that may hold event times, by type or by name; matches by type come first.

    Args:
        columns: names and types of data columns, without system columns.
    """
    import pyarrow as pa

    by_type, by_name = [], []
    for name, kind in columns:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            by_type.append(name)
        elif (pa.types.is_string(kind) or pa.types.is_integer(kind)) and _sounds_like_time(name):
            by_name.append(name)
    return (*by_type, *by_name)


def _sounds_like_time(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and (not _TELLING.isdisjoint((words[0], words[-1])) or (len(words) > 1 and words[-1] == "at"))
