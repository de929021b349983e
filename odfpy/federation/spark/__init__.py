"""Spark's data source `odf-web`: `spark.read.format("odf-web")`. Importing this package imports PySpark.

>>> from odfpy.federation.spark import register
>>> register(spark)  # not needed where Spark finds the module `pyspark_odf_web` by itself
>>> options = {"relay": "grpc+tls://na.example.com:50051", "cert": "ann.pem", "key": "ann.key", "ca": "ca.pem"}
>>> spark.read.format("odf-web").options(**options).load("lineitem")

For queries with joins and aggregates, see `odfpy.web.spark_sql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.federation.spark.source import WebSource
from odfpy.federation.spark.sql import spark_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WebSource", "register", "spark_sql"]


def register(session: SparkSession) -> None:
    """Register the data source in a session. Repeating it is harmless.

    Args:
        session: a session of Spark 4.0 or later.
    """
    session.dataSource.register(WebSource)
