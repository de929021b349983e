"""`spark.read.format("flight")`, `df.write.format("flight")` and `spark.readStream.format("flight")`.

Spark makes these objects in processes of Python that it starts for a question each, and pickles them to its workers.
Options are read where Spark plans, so that only that machine needs the files of certificates.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from odfpy.flight.options import Source, source_of
from odfpy.flight.spark.reader import FlightReader
from odfpy.flight.spark.schema import spark_schema, told
from odfpy.flight.spark.stream import FlightStreamReader
from odfpy.flight.spark.writer import FlightWriter

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # PySpark's remarks on the version of pandas, which is not used
    from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class FlightSource(DataSource):
    """A table or a query of any Flight server."""

    @classmethod
    def name(cls) -> str:
        """Return the word for `format`."""
        return "flight"

    def schema(self) -> StructType:
        """Ask the server for the columns."""
        with told():
            source = self._source()
            return spark_schema(source.service.plan(source.request).schema)

    def reader(self, schema: StructType) -> FlightReader:
        """Return what plans and reads a frame."""
        with told():
            return FlightReader(self._source(), schema)

    def streamReader(self, schema: StructType) -> FlightStreamReader:  # noqa: N802  Spark's name
        """Return what plans and reads a stream."""
        with told():
            return FlightStreamReader(self._source(), schema)

    def writer(self, schema: StructType, overwrite: bool) -> FlightWriter:
        """Return what writes a frame."""
        with told():
            return FlightWriter(self._source(), schema, overwrite=overwrite)

    def _source(self) -> Source:
        return source_of(dict(self.options))
