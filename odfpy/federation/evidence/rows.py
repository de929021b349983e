"""Rows of stored answers: how they are written to datasets and read back.

Rows of parts are read back exactly as the relays sent them, since their hashes are signed. ODF only has milliseconds in
UTC, and fewer layouts than Arrow; so values that a dataset would change are stored as plain numbers or text. Rows of
the answer are meant for users: they have the types of any dataset.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from odfpy.data.rows.rows_hash import RowsHasher
from odfpy.data.schemas.arrow import plain_array, plain_type
from odfpy.data.schemas.retype import floored
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.federation.errors import AuthenticationFailed
from odfpy.query.query import Query

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.engine.cancellation import CancellationToken

SYSTEM: Final = (
    DEFAULT_VOCABULARY.offset_column,
    DEFAULT_VOCABULARY.operation_type_column,
    DEFAULT_VOCABULARY.system_time_column,
    DEFAULT_VOCABULARY.event_time_column,
)
"""Columns that every dataset has."""

_PART: Final = "part"
_TIMESTAMP: Final = pa.timestamp("ms", "UTC")
_APPENDED: Final = 0


# --- Rows of parts ---


def parts_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of the dataset that stores the parts of a fragment.

    Args:
        schema: schema of the fragment.
    """
    columns = [pa.field(f"c{number}", _carrier(field.type)) for number, field in enumerate(schema)]
    return pa.schema([pa.field(_PART, pa.int64()), *columns])


def write_parts(path: Path, schema: pa.Schema, parts: Iterable[tuple[int, Sequence[Path]]]) -> None:
    """Write the rows of parts into one file, in the form their dataset stores.

    Args:
        path: the file.
        schema: schema of the fragment.
        parts: number of each part, and the files that it consists of.
    """
    kept = parts_schema(schema)
    with pq.ParquetWriter(path, kept) as writer:
        for number, paths in parts:
            for batch in batches_of(paths, schema):
                numbers = pa.repeat(pa.scalar(number, pa.int64()), batch.num_rows)
                columns = [_cast(column, _carrier(column.type)) for column in batch.columns]
                writer.write_batch(pa.record_batch([numbers, *columns], schema=kept))


def batches_of(paths: Iterable[Path], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a part with their original types, not all of which Parquet can represent.

    Args:
        paths: its files.
        schema: schema of the fragment.
    """
    for path in paths:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches():
                yield batch.cast(schema)


class PartFiles:
    """The rows of the parts of one fragment, extracted from their dataset into one file for each part.

    Attributes:
        sizes: row count and order-independent hash of each part, once it is read.
    """

    def __init__(self, fragment: str, schema: pa.Schema, numbers: Iterable[int], folder: Path) -> None:
        """
        Args:
            fragment: name of the fragment.
            schema: its columns.
            numbers: numbers of the existing parts.
            numbers: numbers of the existing parts.
            folder: folder for the files.
        """
        self._schema = schema
        self._paths = {number: folder / f"{fragment}-{number:06}.parquet" for number in numbers}
        self.sizes: dict[int, tuple[int, str]] = {}

    @property
    def paths(self) -> list[Path]:
        """The files, in the order of the parts."""
        return list(self._paths.values())

    def read(self, workspace: Workspace, dataset: str, control: CancellationToken) -> None:
        """Read the dataset and write the files.

        Args:
            workspace: the workspace that it is in.
            dataset: id of the dataset.
            control: lets another thread cancel it.

        Raises:
            AuthenticationFailed: it has other columns, or rows that belong to no part.
            OdfError: it cannot be read.
        """
        with ExitStack() as stack:
            open_ = {
                number: (
                    stack.enter_context(pq.ParquetWriter(path, self._schema)),
                    stack.enter_context(RowsHasher()),
                )
                for number, path in self._paths.items()
            }
            for batch in rows_of(workspace, dataset, parts_schema(self._schema).names, control):
                self._take(batch, open_)
            for number, (_, hasher) in open_.items():
                self.sizes[number] = hasher.num_rows, str(hasher.finish())

    def _take(self, batch: pa.RecordBatch, open_: Mapping[int, tuple[pq.ParquetWriter, RowsHasher]]) -> None:
        numbers = batch.column(0)
        for number in pc.unique(numbers).to_pylist():
            if number not in open_:
                raise AuthenticationFailed(f"There are rows of a part {number} that no relay has signed")
            chosen = batch.filter(pc.equal(numbers, number))
            columns = [
                _restored(column, field.type) for column, field in zip(chosen.columns[1:], self._schema, strict=True)
            ]
            rows = pa.record_batch(columns, schema=self._schema)
            writer, hasher = open_[number]
            writer.write_batch(rows)
            hasher.update(rows)


def _carrier(kind: pa.DataType) -> pa.DataType:
    """Return the type in which a dataset stores values of a type exactly."""
    types = pa.types
    if types.is_temporal(kind) and not types.is_date32(kind):
        return pa.int64()
    if types.is_null(kind):
        return pa.int8()
    if types.is_float16(kind):
        return pa.float32()
    if types.is_list(kind):
        return pa.list_(_carrier(kind.value_type))
    return plain_type(kind)


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_time32(column.type):
        column = column.cast(pa.int32())
    return column.cast(kind)


def _restored(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if pa.types.is_null(kind):
        return pa.nulls(len(column))
    column = column.cast(_carrier(kind))
    if pa.types.is_time32(kind):
        column = column.cast(pa.int32())
    return column.cast(kind)


# --- Rows of the answer ---


def kept_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns of the dataset that stores an answer.

    Args:
        schema: schema of the answer.
    """
    return pa.schema([pa.field(field.name, _kept_type(field.type)) for field in schema])


def kept_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Convert rows of an answer to their stored form: times become milliseconds in UTC; finer digits are truncated.

    Args:
        batch: the rows.
    """
    return pa.record_batch([_kept_column(column) for column in batch.columns], schema=kept_schema(batch.schema))


def _kept_type(kind: pa.DataType) -> pa.DataType:
    plain = plain_type(kind)
    return _TIMESTAMP if pa.types.is_timestamp(plain) else plain


def _kept_column(column: pa.Array) -> pa.Array:
    plain = plain_array(column)
    if not pa.types.is_timestamp(plain.type) or plain.type == _TIMESTAMP:
        return plain
    if plain.type.unit in ("us", "ns"):
        plain = floored(plain, "millisecond")
    return plain.cast(_TIMESTAMP)


# --- Rows of any evidence dataset ---


def rows_of(
    workspace: Workspace, dataset: str, columns: Sequence[str], control: CancellationToken
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a dataset in order, without the system columns.

    Args:
        workspace: the workspace that it is in.
        dataset: id of the dataset.
        columns: the exact columns that it must have.
        control: lets another thread cancel it.

    Raises:
        DatasetNotFound: the dataset does not exist.
        AuthenticationFailed: it has other columns, or its rows were corrected or retracted.
        OdfError: it cannot be read.
    """
    workspace.datasets.handle(dataset)
    text = f'SELECT * FROM "{dataset}"'  # noqa: S608  an id
    with workspace.queries.service.run(Query(text, "datafusion"), control) as answer:
        if list(answer.schema.names) != [*SYSTEM, *columns]:
            raise AuthenticationFailed(f"The dataset has the columns {', '.join(answer.schema.names[len(SYSTEM) :])}")
        following = 0
        for batch in answer:
            offsets = pa.array(range(following, following + batch.num_rows), pa.int64())
            if not batch.column(0).cast(pa.int64()).equals(offsets):
                raise AuthenticationFailed("The dataset has lost rows, or has additional ones")
            if pc.any(pc.not_equal(batch.column(1), _APPENDED)).as_py():
                raise AuthenticationFailed("The dataset has rows that were corrected or retracted")
            following += batch.num_rows
            yield batch.select(range(len(SYSTEM), batch.num_columns))
