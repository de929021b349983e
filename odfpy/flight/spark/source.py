"""`spark.read.format("flight")`, `df.write.format("flight")` and `spark.readStream.format("flight")`.

Spark creates these objects in Python processes that it starts for each request, and pickles them to its workers.
Options are evaluated on the machine where Spark plans, so that only that machine needs the certificate files.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from odfpy.flight.options import Source, source_of
from odfpy.flight.spark.reader import FlightReader
from odfpy.flight.spark.schema import errors_with_hints, spark_schema
from odfpy.flight.spark.stream import FlightStreamReader
from odfpy.flight.spark.writer import FlightWriter

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySpark's warnings about the version of pandas, which is not used
    from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class FlightSource(DataSource):
    """The data source: a table or a query of any Flight server."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format`."""
        return "flight"

    def schema(self) -> StructType:
        """Request the columns from the server."""
        with errors_with_hints():
            source = self._source()
            return spark_schema(source.service.plan(source.request).schema)

    def reader(self, schema: StructType) -> FlightReader:
        """Return the reader of a data frame."""
        with errors_with_hints():
            return FlightReader(self._source(), schema)

    def streamReader(self, schema: StructType) -> FlightStreamReader:  # noqa: N802  Spark's name
        """Return the reader of a stream."""
        with errors_with_hints():
            return FlightStreamReader(self._source(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> FlightWriter:
        """Return the writer of a data frame."""
        with errors_with_hints():
            return FlightWriter(self._source(), schema, overwrite=overwrite)

    def _source(self) -> Source:
        return source_of(dict(self.options))
