"""Plan templates: the engine's own queries, analyzed once and then applied to other rows with the same columns.

To analyze a plan, Spark applies a hundred rules to it: for a pull of a few rows, that was half of the work in Java.
The engine's own operators (groups, differences, sorts) are the same at each pull.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Final

from odfpy.data.lru_cache import LruCache
from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns, operator_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_LEAF: Final = "LocalRelation"


class Template:
    """The operators of a template, bottom up."""

    def __init__(self, plan: Node) -> None:
        """Take the operators from a plan in which each has one input, down to a relation.

        Raises:
            ValueError: an operator has several inputs.
        """
        self._operators: list[Node] = []
        while operator_name(plan) != _LEAF:
            self._operators.insert(0, plan)
            (plan,) = children(plan)
        self._columns = [(column.name(), column.exprId()) for column in columns(plan)]

    def over(self, catalyst: Catalyst, rows: Node) -> Node:
        """Return the operators over other rows with the same columns."""
        pairs = zip(columns(rows), self._columns, strict=True)
        plan = catalyst.project([catalyst.alias(column, name, known) for column, (name, known) in pairs], rows)
        for operator in self._operators:
            plan = operator.withNewChildren(catalyst.seq([plan]))
        return plan


class Templates:
    """A cache of the latest templates, by everything that they depend on."""

    def __init__(self, most: int = 64) -> None:
        self._known: LruCache[Hashable, Template] = LruCache(most)

    def over(
        self,
        catalyst: Catalyst,
        rows: Node,
        purpose: Hashable,
        query: Callable[[DataFrame], DataFrame],
        *,
        names: Sequence[str] | None = None,
        then: Callable[[Node], Node] | None = None,
    ) -> Node:
        """Return the plan of a query over some rows.

        Args:
            catalyst: the session.
            rows: the rows.
            purpose: everything that `query` and `then` depend on besides the columns.
            query: builds operators with one input over the rows that it is given.
            names: the names that it uses for the columns of the rows, in their order; None if they keep their own
                names.
            then: builds further operators over the plan of the query.
        """
        schema = str(rows.schema().json())

        def made() -> Template:
            plan = catalyst.plan(query(catalyst.dataframe(_no_rows(catalyst, schema, names))))
            return Template(plan if then is None else then(plan))

        key = catalyst.spark.sparkContext, purpose, schema, None if names is None else tuple(names)
        return self._known.get(key, made).over(catalyst, rows)


def _no_rows(catalyst: Catalyst, schema: str, names: Sequence[str] | None) -> Node:
    from pyspark.sql.types import StructField, StructType

    struct = StructType.fromJson(json.loads(schema))
    pairs = zip(struct.names if names is None else names, struct.fields, strict=True)
    return catalyst.empty(
        StructType([StructField(name, field.dataType, field.nullable, field.metadata) for name, field in pairs])
    )
