"""Classes of queries, in the order in which they are tried. A class of a later release is one more module here."""

from __future__ import annotations

from odfpy.engine.spark.classes.base import QueryClass
from odfpy.engine.spark.classes.row_by_row import RowByRow

CLASSES: tuple[QueryClass, ...] = (RowByRow(),)
