"""The source `flight` of Spark: `spark.read.format("flight")`. Importing this package imports PySpark.

>>> from odfpy.flight.spark import register
>>> register(spark)  # not needed where Spark finds the module `pyspark_flight` by itself
>>> spark.read.format("flight").option("arrow-flight.server", "grpc://127.0.0.1:50050").load("orders")
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.flight.spark.source import FlightSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["FlightSource", "register"]


def register(session: SparkSession) -> None:
    """Make the source known to a session. Doing it again does no harm.

    Args:
        session: of Spark 4.0 or later.
    """
    session.dataSource.register(FlightSource)
