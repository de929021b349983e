"""The source `odf-web` of Spark: `spark.read.format("odf-web")`. Importing this package imports PySpark.

>>> from odfpy.federation.spark import register
>>> register(spark)  # not needed where Spark finds the module `pyspark_odf_web` by itself
>>> options = {"relay": "grpc+tls://na.example.com:50051", "cert": "ann.pem", "key": "ann.key", "ca": "ca.pem"}
>>> spark.read.format("odf-web").options(**options).load("lineitem")

Queries with joins and aggregates are `odfpy.web.spark_sql`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odfpy.federation.spark.source import WebSource
from odfpy.federation.spark.sql import spark_sql

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["WebSource", "register", "spark_sql"]


def register(session: SparkSession) -> None:
    """Make the source known to a session. Doing it again does no harm.

    Args:
        session: of Spark 4.0 or later.
    """
    session.dataSource.register(WebSource)
