"""The web of relays for programs: `odfpy.web.connect(...)` (ADR 0042), and `odfpy.web.spark_sql(...)` in Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from odfpy.federation.client import Web, connect, verify
from odfpy.federation.execution.answer import WebAnswer

if TYPE_CHECKING:
    from odfpy.federation.spark.sql import spark_sql

__all__ = ["Web", "WebAnswer", "connect", "spark_sql", "verify"]


def __getattr__(name: str) -> Any:
    """Import what needs PySpark when somebody asks for it."""
    if name == "spark_sql":
        from odfpy.federation.spark.sql import spark_sql

        return spark_sql
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
