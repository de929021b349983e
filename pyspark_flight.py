"""Where Spark looks for data sources: modules called `pyspark_...` with a `DefaultSource`."""

from odfpy.flight.spark.source import FlightSource as DefaultSource

__all__ = ["DefaultSource"]
