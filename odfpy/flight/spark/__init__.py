"""Spark's data source `flight`: `spark.read.format("flight")`. Importing this package imports PySpark.

>>> from odfpy.flight.spark import register
>>> register(spark)  # not needed if Spark finds the module `pyspark_flight` by itself
>>> spark.read.format("flight").option("arrow-flight.server", "grpc://127.0.0.1:50050").load("orders")
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from odfpy.flight.options import source_of
from odfpy.flight.spark.source import FlightSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

__all__ = ["FlightSource", "load", "register"]
_SMALL: Final = 10 << 20


def register(session: SparkSession) -> None:
    """Register the data source in a session. Repeating it is harmless.

    Args:
        session: a session of Spark 4.0 or later.
    """
    session.dataSource.register(FlightSource)


def load(session: SparkSession, options: Mapping[str, str], *, broadcast_below: int = _SMALL) -> DataFrame:
    """Load a data frame, which is broadcast in joins if the server reports a small size.

    Spark cannot query the size of data sources in Python, and considers all of them large.

    Args:
        session: session that the data source is registered in.
        options: options of `spark.read.format("flight")`.
        broadcast_below: maximum size in bytes; 0 for never.
    """
    register(session)
    frame = session.read.format("flight").options(**options).load()
    source = source_of(options)
    size = source.service.plan(source.request).size
    return frame if size is None or size >= broadcast_below else frame.hint("broadcast")
