"""Warnings on sources without event times: all rows of an input get one and the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from odfpy.chain.events import AddPushSource, SetPollingSource
from odfpy.chain.sources import EventTimeFromMetadata, FetchFilesGlob, FetchUrl
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.data.data_warning import DataWarning
    from odfpy.ingest.pipeline import IngestedData

Source: TypeAlias = SetPollingSource | AddPushSource

_MOST_NAMES: Final = 5


def is_chosen(source: Source) -> bool:
    """Return whether a manifest says itself where rows without an event time get theirs from."""
    return (
        isinstance(source, SetPollingSource)
        and isinstance(source.fetch, FetchUrl | FetchFilesGlob)
        and source.fetch.event_time is not None
    )


def remarks_on_columns(source: Source, columns: pa.Schema, vocab: DatasetVocabulary) -> tuple[str, ...]:
    """Return what a manifest may have overlooked: there is no event time, but columns that could be meant.

    Args:
        source: of the dataset.
        columns: what comes from it, after preprocessing.
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


def warnings_of_first_rows(
    source: Source, ingested: IngestedData, vocab: DatasetVocabulary, given: Timestamp
) -> tuple[DataWarning, ...]:
    """Return what to say when the first rows of a dataset have come without any event time.

    Args:
        source: of the dataset.
        ingested: the rows.
        vocab: names of the system columns.
        given: the event time of all of them.
    """
    rows = ingested.statistics.untimed
    if not rows or rows < ingested.statistics.read or ingested.schema is None or is_chosen(source):
        return ()
    from odfpy.data.data_warning import DataWarning, WarningKind
    from odfpy.data.schemas.arrow import to_arrow

    meant = _candidates(to_arrow(ingested.schema), vocab)
    time = Timestamp.from_millis(given.millis)  # as it is in the rows
    message = f"no row brings an {vocab.event_time_column!r}: every row gets {_time_of(source)}, {time}"
    message += f"; {_either(meant)} could be meant" if meant else ""
    return (DataWarning(WarningKind.EVENT_TIME, message, rows, meant),)


def _candidates(columns: pa.Schema, vocab: DatasetVocabulary) -> tuple[str, ...]:
    from odfpy.ingest.event_time_columns import event_time_candidates

    data = ((field.name, field.type) for field in columns if field.name not in vocab.columns)
    return event_time_candidates(data)[:_MOST_NAMES]


def _either(names: tuple[str, ...]) -> str:
    return " or ".join(map(repr, names))


def _time_of(source: Source) -> str:
    """Return what rows without an event time get, in words."""
    if isinstance(source, AddPushSource):
        return "the time of the ingest"
    fetch = source.fetch
    if isinstance(fetch, FetchUrl) or (
        isinstance(fetch, FetchFilesGlob) and isinstance(fetch.event_time, EventTimeFromMetadata)
    ):
        return "the time of the file"
    return "the time of the pull"
