"""Normalization of new rows before they are merged, with checks (ODF specification, "Data Slices").

The merge relies on this: columns have distinct, unreserved names and plain layouts, timestamps are milliseconds in
UTC, and every row has an event time, keys, and an operation if the strategy takes operations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field

import pyarrow as pa
import pyarrow.compute as pc

from odfpy.chain.sources import MergeAppend, MergeSnapshot, MergeStrategy, MergeUpsertStream
from odfpy.data.schemas.arrow import plain_array, plain_type
from odfpy.data.schemas.retype import floored
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DatasetVocabulary, OperationType
from odfpy.errors import BadValue, IngestError, InvalidValue, did_you_mean
from odfpy.ingest.merge import merge_of
from odfpy.values import dataclass

TIMESTAMP = pa.timestamp("ms", "UTC")
OPERATION = pa.int32()


@dataclass(frozen=True, slots=True)
class NormalizedRows:
    """New rows in the form for a merge.

    Attributes:
        columns: event time first, without nulls, then the data columns in the order and with the nullability of the
            input.
        event_time_given: whether each row has its own event time; other rows have that of the source.
        operations: int32 without nulls, or None if the strategy determines operations.
        cut: number of times finer than a millisecond, by column, if there are any.
    """

    columns: pa.Table
    event_time_given: pa.ChunkedArray
    operations: pa.ChunkedArray | None
    cut: Mapping[str, int] = field(default_factory=dict)


def primary_key(strategy: MergeStrategy) -> tuple[str, ...]:
    """Return the columns that identify a row, none for Append."""
    return () if isinstance(strategy, MergeAppend) else strategy.primary_key


def normalize_rows(
    new: pa.Table,
    *,
    strategy: MergeStrategy,
    vocabulary: DatasetVocabulary,
    source_event_time: Timestamp,
    event_time_type: pa.DataType | None = None,
    recorded: Sequence[str] = (),
    first_row: int = 0,
) -> NormalizedRows:
    """Check new rows and normalize them.

    Args:
        new: rows that have been read and preprocessed.
        strategy: merge strategy of the source.
        vocabulary: names of the system columns.
        source_event_time: event time of rows that have none.
        event_time_type: type of the event time in the dataset's schema; by default milliseconds in UTC.
        recorded: columns of the dataset's schema.
        first_row: number of rows before these in the input, for messages.

    Raises:
        IngestError: rows that cannot be merged; the message names the column.
    """
    _check_columns(new.column_names, strategy, vocabulary)
    # an input without rows may have no columns: then it is an empty state, not a malformed one
    known = [*new.column_names, *(recorded if new.num_rows == 0 else ())]
    _check_merge_columns(known, strategy, vocabulary)
    columns, cut = {}, {}
    for name, column in zip(new.column_names, new.columns, strict=True):
        columns[name] = _plain(name, column)
        if count := _num_cut(column, columns[name]):
            cut[name] = count
    _check_keys(columns, primary_key(strategy), first_row)
    given_operations = columns.pop(vocabulary.operation_type_column, None)
    operations = _operations(given_operations, new.num_rows, strategy, vocabulary, first_row)
    event_time = _event_time(columns.pop(vocabulary.event_time_column, None), new.num_rows, event_time_type, vocabulary)
    given = pc.is_valid(event_time)
    filled = event_time.fill_null(_source_event_time(source_event_time, event_time.type))
    fields = [pa.field(vocabulary.event_time_column, filled.type, nullable=False)]
    fields += [new.schema.field(name).with_type(column.type) for name, column in columns.items()]
    table = pa.table([filled, *columns.values()], schema=pa.schema(fields))
    return NormalizedRows(table, given, operations, cut)


def count_null_event_times(new: pa.Table, rows: NormalizedRows, strategy: MergeStrategy, name: str) -> int:
    """Return the number of rows without an event time, although their input has the column.

    Retractions of an upsert stream do not count: the stored row is written for them.

    Args:
        new: rows that have been read and preprocessed.
        rows: the same rows, normalized.
        strategy: merge strategy of the source.
        name: name of the event time column.
    """
    if name not in new.column_names:
        return 0
    lacking = pc.invert(rows.event_time_given)
    if isinstance(strategy, MergeUpsertStream) and rows.operations is not None:
        lacking = pc.and_(lacking, pc.not_equal(rows.operations, int(OperationType.RETRACT)))
    return pc.sum(lacking).as_py() or 0


def coerce_inferred_event_time(new: pa.Table, vocabulary: DatasetVocabulary, first_row: int = 0) -> pa.Table:
    """Convert an event time whose type was inferred, not declared: numbers are seconds since 1970, text is RFC 3339.

    Args:
        new: rows that have been read.
        vocabulary: names of the system columns.
        first_row: number of rows before these in the input, for messages.

    Raises:
        BadValue: text that is not a time, or a number out of range.
    """
    name = vocabulary.event_time_column
    if new.column_names.count(name) != 1:
        return new
    column = _plain(name, new.column(name))
    if pa.types.is_integer(column.type):
        coerced = _cast(name, _cast(name, column, pa.int64()).cast(pa.timestamp("s", "UTC")), TIMESTAMP)
    elif pa.types.is_string(column.type):
        coerced = _parse_times(name, column, first_row)
    else:
        return new
    return new.set_column(new.column_names.index(name), name, coerced)


# --- Names -----------------------------------------------------------------------------------------------------------


def _check_columns(names: Sequence[str], strategy: MergeStrategy, vocabulary: DatasetVocabulary) -> None:
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise IngestError(
            f"Column {_quoted(repeated)} occurs more than once in the data",
            hint="Rename columns in the source's schema or its preprocessing query.",
        )
    system = [vocabulary.offset_column, vocabulary.system_time_column]
    if not merge_of(strategy).takes_operations:
        system.append(vocabulary.operation_type_column)
    conflicts = [name for name in system if name in names]
    if conflicts:
        what = f"Column {_quoted(conflicts)} of the data has the name of a system column"
        if len(conflicts) > 1:
            what = f"Columns {_quoted(conflicts)} of the data have the names of system columns"
        raise IngestError(
            what,
            hint="Rename it in the source's schema or preprocessing query, or give the system column another name "
            "with SetVocab.",
        )


def _check_merge_columns(names: Sequence[str], strategy: MergeStrategy, vocabulary: DatasetVocabulary) -> None:
    system = vocabulary.changelog_columns
    data = [name for name in names if name not in system]
    compared = (strategy.compare_columns or ()) if isinstance(strategy, MergeSnapshot) else ()
    for role, wanted in (("Primary key", primary_key(strategy)), ("Compare", compared)):
        for name in wanted:
            # Rows without an event time get the source's, so it can be compared, but it must not be a key.
            if name not in data and not (role == "Compare" and name == vocabulary.event_time_column):
                columns = f"The data has the columns {_quoted(data)}." if data else "The data has no columns."
                raise IngestError(
                    f"{role} column {name!r} is not in the data", hint=did_you_mean(name, data, otherwise=columns)
                )


def _check_keys(columns: dict[str, pa.ChunkedArray], keys: Iterable[str], first_row: int) -> None:
    for name in keys:
        if name in columns and columns[name].null_count:
            row = pc.index(pc.is_null(columns[name]), value=True).as_py()
            raise IngestError(
                f"Primary key column {name!r} is null, first in row {first_row + row + 1}",
                hint="Filter such rows out in the preprocessing query, or choose another primary key.",
            )


# --- Columns ---------------------------------------------------------------------------------------------------------


def _plain(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in its plain layout, with timestamps truncated to milliseconds."""
    try:
        plain = plain_type(column.type)
        if column.type != plain:
            column = pa.chunked_array([plain_array(chunk) for chunk in column.chunks], type=plain)
        if not pa.types.is_timestamp(plain) or plain == TIMESTAMP:
            return column
        if plain.unit in ("us", "ns"):
            column = floored(column, "millisecond")
        return column.cast(TIMESTAMP)
    except pa.ArrowException as error:
        raise IngestError(f"Column {name!r} cannot be stored: {error}") from error


def _num_cut(column: pa.ChunkedArray, plain: pa.ChunkedArray) -> int:
    """Return the number of times that lose digits in their plain layout."""
    if not pa.types.is_timestamp(column.type) or column.type.unit not in ("us", "ns"):
        return 0
    naive = column.cast(pa.timestamp(column.type.unit))
    return pc.sum(pc.not_equal(naive.cast(pa.int64()), plain.cast(naive.type).cast(pa.int64()))).as_py() or 0


def _cast(name: str, column: pa.ChunkedArray, wanted: pa.DataType) -> pa.ChunkedArray:
    try:
        return column.cast(wanted)
    except pa.ArrowException as error:
        raise BadValue(f"Column {name!r} holds a value that does not fit {wanted}: {error}") from error


def _operations(
    column: pa.ChunkedArray | None,
    rows: int,
    strategy: MergeStrategy,
    vocabulary: DatasetVocabulary,
    first_row: int,
) -> pa.ChunkedArray | None:
    """Return the operation types of the rows; without a column, rows of an upsert stream are appended."""
    name = vocabulary.operation_type_column
    if not merge_of(strategy).takes_operations:
        return None
    if column is None:
        if not isinstance(strategy, MergeUpsertStream) and rows:
            raise IngestError(
                f"A changelog needs the column {name!r}, which is not in the data",
                hint="It holds 0 for +A, 1 for -R, 2 for -C and 3 for +C.",
            )
        return pa.chunked_array([pa.repeat(pa.scalar(0, OPERATION), rows)], type=OPERATION)
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        raise IngestError(f"Column {name!r} holds {column.type}, not the integers 0 to 3 of operation types")
    if pa.types.is_null(column.type):
        column = column.cast(OPERATION)
    wrong = pc.invert(pc.is_in(column, value_set=pa.array([int(op) for op in OperationType], column.type)))
    row = pc.index(wrong, value=True).as_py()
    if row >= 0:
        raise BadValue(
            f"Column {name!r} holds {column[row].as_py()} in row {first_row + row + 1}, which is not an operation type",
            hint="Operation types are 0 for +A, 1 for -R, 2 for -C and 3 for +C.",
        )
    return column.cast(OPERATION)


def _event_time(
    column: pa.ChunkedArray | None, rows: int, recorded: pa.DataType | None, vocabulary: DatasetVocabulary
) -> pa.ChunkedArray:
    """Return event times as dates or milliseconds in UTC, null where they are missing."""
    if column is None or pa.types.is_null(column.type):
        nulls = pa.nulls(rows, recorded or TIMESTAMP)
        return pa.chunked_array([nulls], type=nulls.type)
    if pa.types.is_date(column.type):
        return column.cast(pa.date32())
    if pa.types.is_timestamp(column.type):
        _check_range(vocabulary.event_time_column, column)
        return column
    raise IngestError(
        f"Event time column {vocabulary.event_time_column!r} holds {column.type}, not dates or timestamps",
        hint="Declare it as Timestamp or Date in the source's schema, or cast it in the preprocessing query.",
    )


def _check_range(name: str, column: pa.ChunkedArray) -> None:
    """Check that event times, which become watermarks, are between the years 1 and 9999."""
    for millis in pc.min_max(column.cast(pa.int64())).as_py().values():
        try:
            Timestamp.from_millis(millis or 0)
        except InvalidValue as error:
            raise BadValue(f"Event time column {name!r} holds a time out of range: {error}") from error


def _source_event_time(time: Timestamp, wanted: pa.DataType) -> pa.Scalar:
    millis = pa.scalar(time.millis, TIMESTAMP)
    # by floor, since a cast to a date rejects times other than midnight
    return pc.floor_temporal(millis, unit="day").cast(wanted) if pa.types.is_date(wanted) else millis


def _parse_times(name: str, column: pa.ChunkedArray, first_row: int) -> pa.ChunkedArray:
    values = []
    for row, text in enumerate(column.to_pylist(), first_row + 1):
        try:
            values.append(None if text is None else Timestamp.parse(text).millis)
        except InvalidValue as error:
            raise BadValue(f"Event time column {name!r} holds {text!r} in row {row}, which is not a time") from error
    return pa.chunked_array([pa.array(values, pa.int64()).cast(TIMESTAMP)], type=TIMESTAMP)


def _quoted(names: Iterable[str]) -> str:
    return ", ".join(repr(name) for name in names)
