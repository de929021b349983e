"""The contract of sources: SQL in, rows out, as they come, in the types that are wanted, within limits.

with source.read(sql, schema, ReadLimits(seconds=60), control) as reader:
    for batch in reader: ...

The SQL is made by `odfpy.federation.sql`, and trusted. What the source says is not: its columns are compared, its
values cast, and its errors kept for operators.
"""

from __future__ import annotations

import logging
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

from odfpy.data.memory import bytes_of
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import OdfError, QueryCancelled, QueryTimedOut, ResultTooLarge
from odfpy.federation.errors import SourceFailed, SourceMismatch

if TYPE_CHECKING:
    import pyarrow as pa

    from odfpy.engine.row_stream import RowStream

BATCH_ROWS: Final = 8192
"""Rows of a batch, of sources that give rows one by one."""

_LOG = logging.getLogger("odfpy")
_MAX_LENGTH: Final = 1000
_OURS: Final = (QueryCancelled, QueryTimedOut, ResultTooLarge, SourceFailed)
"""Errors that say nothing of a source that nobody may know."""

_USER_IN_URL: Final = re.compile(r"(\w+://)[^/\s@]+@")
_HINT: Final = "The operator of the relay finds the reason in its log."


@dataclass(frozen=True, slots=True)
class ReadLimits:
    """Limits of a read. What is above them is an error, never cut off in silence.

    Attributes:
        rows: rows at most.
        bytes: bytes of Arrow data at most.
        seconds: until the source is stopped.
    """

    rows: int | None = None
    bytes: int | None = None
    seconds: float | None = None


NO_LIMITS: Final = ReadLimits()


class Source(ABC):
    """A place with data. Threads may share it; each read has a connection of its own.

    Attributes:
        name: for messages.
        dialect: of its SQL, by sqlglot's name.
        engine: whose SQL it is, by the name of a writer (`odfpy.federation.sql.engines`): sqlglot does not tell all
            engines apart.
    """

    engine: ClassVar[str]

    def __init__(self, name: str, dialect: str, secrets: Sequence[str] = ()) -> None:
        """
        Args:
            name: for messages.
            dialect: of its SQL, by sqlglot's name.
            secrets: texts that no message may have.
        """
        self.name = name
        self.dialect = dialect
        self._secrets = tuple(sorted({one for one in secrets if one}, key=len, reverse=True))

    @abstractmethod
    def _stream(self, sql: str, wanted: pa.Schema | None, limits: ReadLimits, control: CancellationToken) -> RowStream:
        """The rows of a query. Whatever this and its rows raise is told as a failure of the source.

        Args:
            sql: one SELECT.
            wanted: the types that are going to be wanted, for sources whose values have no certain type; None if only
                the columns are.
            limits: those that the source can keep itself.
            control: says whether it is still wanted; whoever waits for the source has to wake up then.
        """

    def close(self) -> None:  # noqa: B027  most hold nothing
        """Give up what is held between reads."""

    def schema(self, relation: str, control: CancellationToken | None = None) -> pa.Schema:
        """The columns of a relation, as the source has them. For operators: the error has the words of the source.

        Args:
            relation: one SELECT (`odfpy.federation.model.relations`).
            control: stops it from elsewhere.

        Raises:
            SourceFailed: the source is not there, refuses, or has no such columns.
        """
        sql = f"SELECT * FROM ({relation}) AS odf_relation LIMIT 0"  # noqa: S608  checked when it was applied
        with CancellationToken(parent=control) as inner, self._failures(inner):
            stream = self._stream(sql, None, NO_LIMITS, inner)
            try:
                return stream.schema
            finally:
                stream.close()

    def read(
        self, sql: str, schema: pa.Schema, limits: ReadLimits = NO_LIMITS, cancelled: CancellationToken | None = None
    ) -> pa.RecordBatchReader:
        """The rows of a query, read from the source as they are taken.

        A reader that is given up before its end is dropped, or its control cancelled: then the source stops.

        Args:
            sql: one SELECT, in the dialect of the source.
            schema: its columns, in order, with the types that are wanted.
            limits: how much there may be.
            cancelled: stops it from elsewhere.

        Raises:
            SourceFailed: the source is not there, refuses, or breaks off; also while rows are taken.
            SourceMismatch: it gives other columns, or values that do not fit; also while rows are taken.
            QueryCancelled, QueryTimedOut, ResultTooLarge: it was stopped; also while rows are taken.
        """
        import pyarrow as pa

        control = CancellationToken(limits.seconds, parent=cancelled)
        try:
            with self._failures(control):
                stream = self._stream(sql, schema, limits, control)
            reading = _Reading(self, stream, schema, limits, control)
        except BaseException:
            control.close()
            raise
        return pa.RecordBatchReader.from_batches(schema, reading)

    # --- What goes wrong ---

    def mismatch(self, message: str, detail: str) -> SourceMismatch:
        """The error of columns that are not those which are wanted.

        Args:
            message: names the column, and no value.
            detail: for operators.
        """
        error = SourceMismatch(f"Source {self.name}: {message}", hint=_HINT)
        error.detail = self.redacted(detail)
        _LOG.warning("source %s: %s: %s", self.name, message, error.detail)
        return error

    def redacted(self, text: object) -> str:
        """A text of the source without secrets, and not too long."""
        found = str(text)
        for secret in self._secrets:
            found = found.replace(secret, "***")
        return _USER_IN_URL.sub(r"\1***@", found)[:_MAX_LENGTH]

    @contextmanager
    def _failures(self, control: CancellationToken) -> Iterator[None]:
        """Turn whatever a source or its library raises into what may be told."""
        try:
            yield
        except _OURS:
            raise
        except Exception as error:  # noqa: BLE001  libraries have errors of all kinds
            if control.is_stopped:
                raise control.why from None
            failed = SourceFailed(f"Source {self.name} cannot be read", hint=_HINT)
            words = error.message if isinstance(error, OdfError) else f"{type(error).__name__}: {error}"
            failed.detail = self.redacted(words)
            _LOG.warning("source %s: %s", self.name, failed.detail)
            raise failed from None  # what it came of may hold secrets


class _Reading:
    """The batches of a read: in the types that are wanted, within the limits."""

    def __init__(
        self, source: Source, stream: RowStream, schema: pa.Schema, limits: ReadLimits, control: CancellationToken
    ) -> None:
        self._source = source
        self._stream = stream
        self._schema = schema
        self._limits = limits
        self._control = control
        self._rows = 0
        self._bytes = 0
        try:
            self._check_columns()
        except SourceMismatch:
            self.close()
            raise
        self._batches = iter(stream)

    def __iter__(self) -> _Reading:
        return self

    def __next__(self) -> pa.RecordBatch:
        try:
            batch = self._next()
            fitting = None if batch is None else self._fitting(batch)
            if fitting is not None:
                self._count(fitting)
        except BaseException:
            self.close()
            raise
        if fitting is None:
            self.close()
            raise StopIteration
        return fitting

    def _next(self) -> pa.RecordBatch | None:
        with self._source._failures(self._control):  # noqa: SLF001  a part of it
            self._control.check()
            batch = next(self._batches, None)
            if batch is None:
                self._control.check()  # some libraries end where they are stopped
            return batch

    def close(self) -> None:
        """Stop the source, if it has not ended."""
        with suppress(Exception):  # it is not wanted any more, whatever it says
            self._stream.close()
        self._control.close()

    def __del__(self) -> None:
        self.close()

    def _check_columns(self) -> None:
        found, wanted = self._stream.schema.names, self._schema.names
        if [one.lower() for one in found] != [one.lower() for one in wanted]:
            missing = [name for name in wanted if name.lower() not in {one.lower() for one in found}]
            what = f"it has no column {missing[0]!r}" if missing else "its columns are others than those wanted"
            raise self._source.mismatch(what, f"has {found}, wanted are {wanted}")

    def _fitting(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        import pyarrow as pa

        columns = []
        for column, field in zip(batch.columns, self._schema, strict=True):
            try:
                columns.append(fitted(column, field.type))
            except (pa.ArrowException, ValueError) as error:
                message = f"column {field.name!r} has values that do not fit the type {field.type}"
                raise self._source.mismatch(message, f"{column.type}: {error}") from None
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _count(self, batch: pa.RecordBatch) -> None:
        self._rows += batch.num_rows
        self._bytes += bytes_of(batch)
        for most, found, what in (
            (self._limits.rows, self._rows, "rows"),
            (self._limits.bytes, self._bytes, "bytes"),
        ):
            if most is not None and found > most:
                raise ResultTooLarge(
                    f"Source {self._source.name} gives more than {most:,} {what}",
                    hint="Ask for less: other columns, a condition, a LIMIT.",
                )


def fitted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """A column in another type, without loss.

    Raises:
        pa.ArrowException: a value does not fit.
    """
    import pyarrow as pa

    if column.type.equals(kind):
        return column
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    return column.cast(kind)


def secret_of(variable: str | None, environment: Mapping[str, str]) -> str | None:
    """The value of a variable of the environment; None where no variable is named.

    Args:
        variable: its name.
        environment: all of them.

    Raises:
        SourceFailed: it is not set.
    """
    if variable is None:
        return None
    found = environment.get(variable)
    if not found:
        failed = SourceFailed("A source cannot be read: its password is not set", hint=_HINT)
        failed.detail = f"the variable {variable} is not set where the relay runs"
        raise failed
    return found


class SourceBatches:
    """Rows as a `RowStream`: a schema, batches, and what is to be done at the end."""

    def __init__(self, schema: pa.Schema, batches: Iterator[Any], end: Any = None) -> None:
        """
        Args:
            schema: of the batches.
            batches: the rows.
            end: called once when no more of them are wanted.
        """
        self.schema = schema
        self._batches = batches
        self._end = end

    def __iter__(self) -> Iterator[Any]:
        """The rows."""
        return self._batches

    def close(self) -> None:
        """Make no more of them."""
        end, self._end = self._end, None
        if end is not None:
            end()
