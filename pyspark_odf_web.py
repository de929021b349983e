"""Where Spark looks for data sources: modules called `pyspark_...` with a `DefaultSource`."""

from odfpy.federation.spark.source import WebSource as DefaultSource

__all__ = ["DefaultSource"]
