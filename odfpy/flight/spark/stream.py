"""Streams: new rows are new endpoints of a FlightInfo that grows, or rows with greater values in a column."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from odfpy.flight.errors import FlightFailed
from odfpy.flight.filters import Filter, filters_from_json, filters_to_json
from odfpy.flight.options import Source
from odfpy.flight.spark.reader import Rows
from odfpy.flight.spark.schema import arrow_schema, errors_with_hints

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

_ENDPOINTS, _AFTER = "endpoints", "after"
_START: Final[dict[str, Any]] = {_ENDPOINTS: 0, _AFTER: ""}


class FlightStreamReader(DataSourceStreamReader):
    """Reads a stream. Its offset in Spark's checkpoints is a number of endpoints, or a value of a column."""

    def __init__(self, source: Source, schema: StructType) -> None:
        self._source = source
        self._rows = Rows(source.service, arrow_schema(schema), source.single_use)
        self._word = _ENDPOINTS if source.stream_column is None else _AFTER

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Return the offset before the first row."""
        return {self._word: _START[self._word]}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, Any]:  # noqa: N802  Spark's name
        """Request the current end offset from the server. Only Spark 4.2 and later pass the end of the last batch."""
        del limit  # Flight cannot request a part of the new rows
        begun = start or self.initialOffset()
        with errors_with_hints():
            if self._source.stream_column is None:
                return {_ENDPOINTS: len(self._source.service.plan(self._source.request).endpoints)}
            greatest = self._greatest(self._source.stream_column)
            return begun if greatest is None else {_AFTER: _as_text(greatest)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """Plan the rows between two offsets, deterministically."""
        if start == end:
            return []
        with errors_with_hints():
            if self._source.stream_column is None:
                return self._new_endpoints(int(start[_ENDPOINTS]), int(end[_ENDPOINTS]))
            column = self._source.stream_column
            bounds = [Filter(column, "<=", _value_of(end[_AFTER]))]
            if start[_AFTER]:
                bounds.append(Filter(column, ">", _value_of(start[_AFTER])))
            request = self._source.request
            return self._rows.partitions(replace(request, filters=(*request.filters, *bounds)))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read the rows of an endpoint, in a worker."""
        with errors_with_hints():
            yield from self._rows.read(partition)

    def _new_endpoints(self, start: int, end: int) -> list[InputPartition]:
        found = replace(self._rows, single_use=False).partitions(self._source.request)  # a batch is planned anew
        if len(found) < end:
            raise FlightFailed(
                f"{self._source.service.location} had {end} endpoints for {self._source.request.what}, and now has "
                f"{len(found)}",
                hint="A stream needs a FlightInfo that only grows, or a column that does (arrow-flight.stream-column).",
            )
        return found[start:end]

    def _greatest(self, column: str) -> Any:
        table = self._source.service.read(self._source.service.commands.greatest(self._source.request, column))
        return table.column(0)[0].as_py() if table.num_rows else None


def _as_text(value: Any) -> str:
    (found,) = json.loads(filters_to_json([("", "=", value)]))
    return json.dumps(found[2])


def _value_of(text: str) -> Any:
    (found,) = filters_from_json(f'[["", "=", {text}]]')
    return found.value
