"""Registry of the planning functions of stateful operators, by Spark's name of the operator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from odfpy.engine.spark.incremental.operators.aggregate import aggregate, distinct
from odfpy.engine.spark.incremental.operators.join import join
from odfpy.engine.spark.incremental.operators.planner import Operator
from odfpy.engine.spark.incremental.operators.set_operation import set_operation
from odfpy.engine.spark.incremental.operators.window_function import limit, window

OPERATORS: Final[Mapping[str, Operator]] = {
    "Aggregate": aggregate,
    "Distinct": distinct,
    "Window": window,
    "Join": join,
    "Except": set_operation,
    "Intersect": set_operation,
    "GlobalLimit": limit,
    "LocalLimit": limit,
    "Offset": limit,
}
