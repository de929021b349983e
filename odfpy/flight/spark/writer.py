"""Writing data frames: a DoPut call for each partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import datasource
from pyspark.sql.datasource import WriterCommitMessage

from odfpy.flight.conversion import plain_batch
from odfpy.flight.options import Source
from odfpy.flight.spark.schema import arrow_schema, errors_with_hints
from odfpy.flight.writing import begin, end, write_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_BATCHES = hasattr(datasource, "DataSourceArrowWriter")
"""Whether Spark passes batches; Spark 4.0 passes rows."""
_Base: Any = datasource.DataSourceArrowWriter if _BATCHES else datasource.DataSourceWriter
_ROWS_IN_BATCH = 10_000


@dataclass
class Written(WriterCommitMessage):
    """The result of a task that has written its rows.

    Attributes:
        rows: number of rows.
        transaction: id of the transaction that contains them, if any.
    """

    rows: int
    transaction: bytes | None


class FlightWriter(_Base):  # type: ignore[misc]
    """Writes a data frame: each task appends its rows, in its own transaction if the server supports these."""

    def __init__(self, source: Source, schema: StructType, *, overwrite: bool) -> None:
        """Start a write. Rows to be overwritten are deleted now, before any task appends rows.

        Args:
            source: the parsed options.
            schema: schema of the frame.
            overwrite: whether to delete existing rows.
        """
        super().__init__()
        self._source = source
        self._columns = arrow_schema(schema)
        self._name = str(uuid4())
        if overwrite:
            write_rows(source.service, source.request, self._columns, (), replace_rows=True)

    def write(self, iterator: Iterator[Any]) -> Written:
        """Append the rows of a task, in a worker."""
        service, request = self._source.service, self._source.request
        task = TaskContext.get()
        attempt = f"{self._name}/{task.partitionId()}/{task.attemptNumber()}" if task else self._name
        with errors_with_hints():
            transaction = begin(service) if self._source.transactions else None
            try:
                rows = write_rows(
                    service,
                    request,
                    self._columns,
                    self._batches(iterator),
                    transaction=transaction,
                    attempt=attempt,
                )
            except BaseException:
                if transaction is not None:
                    end(service, transaction, commit=False)
                raise
        return Written(rows, transaction)

    def commit(self, messages: list[Any]) -> None:
        """Commit the rows of all tasks."""
        self._end(messages, commit=True)

    def abort(self, messages: list[Any]) -> None:
        """Roll back the rows of all tasks, where that is possible."""
        self._end(messages, commit=False)

    def _end(self, messages: list[Any], *, commit: bool) -> None:
        with errors_with_hints():
            for message in messages:
                if message is not None and message.transaction is not None:
                    end(self._source.service, message.transaction, commit=commit)

    def _batches(self, found: Iterator[Any]) -> Iterator[pa.RecordBatch]:
        if _BATCHES:
            for batch in found:
                yield plain_batch(batch, self._columns)  # timestamps are in the session's time zone
            return
        rows: list[dict[str, Any]] = []
        for row in found:
            rows.append(row.asDict(recursive=True))
            if len(rows) == _ROWS_IN_BATCH:
                yield pa.RecordBatch.from_pylist(rows, self._columns)
                rows.clear()
        yield pa.RecordBatch.from_pylist(rows, self._columns)
