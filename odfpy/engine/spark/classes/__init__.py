"""Classes of queries without state, in the order in which they are tried; row by row is the only one.

All other queries go through `odfpy.engine.spark.incremental.operators`, where a new kind is a module.
"""

from __future__ import annotations

from odfpy.engine.spark.classes.base import QueryClass
from odfpy.engine.spark.classes.row_by_row import RowByRow

CLASSES: tuple[QueryClass, ...] = (RowByRow(),)
