"""Queries of the engine's own that are analyzed once, and put over other rows of the same columns ever after.

To analyze a plan, Spark goes over it with a hundred rules: for a pull of a few rows, that was half of what Java did.
What the engine puts over rows (groups, differences, their order) is the same at each pull.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable
from typing import Final

from odfpy.engine.spark.plan.catalyst import Catalyst, Node, children, columns, operator_name

_LEAF: Final = "LocalRelation"


class Template:
    """The operators that a query puts over its rows, each over the one before, the lowest first."""

    def __init__(self, catalyst: Catalyst, schema: str, query: Callable[[Node], Node]) -> None:
        from pyspark.sql.types import StructType

        wanted = StructType.fromJson(json.loads(schema))
        plan = query(catalyst.empty(wanted))
        self._operators: list[Node] = []
        while operator_name(plan) != _LEAF:
            self._operators.insert(0, plan)
            (plan,) = children(plan)
        self._columns = [(name, column.exprId()) for name, column in zip(wanted.names, columns(plan), strict=True)]

    def over(self, catalyst: Catalyst, rows: Node) -> Node:
        """The query over other rows of the same columns."""
        pairs = zip(columns(rows), self._columns, strict=True)
        plan = catalyst.project([catalyst.alias(column, name, known) for column, (name, known) in pairs], rows)
        for operator in self._operators:
            plan = operator.withNewChildren(catalyst.seq([plan]))
        return plan


class Templates:
    """The latest templates, by what they depend on."""

    def __init__(self, most: int = 64) -> None:
        self._most = most
        self._known: dict[Hashable, Template] = {}

    def over(self, catalyst: Catalyst, rows: Node, purpose: Hashable, query: Callable[[Node], Node]) -> Node:
        """The plan of a query over some rows.

        Args:
            catalyst: the session.
            rows: the rows, of which each column has a name of its own.
            purpose: all that the query depends on besides the columns of the rows.
            query: puts operators of one input over the rows that it is given.
        """
        schema = str(rows.schema().json())
        key = catalyst.spark.sparkContext, purpose, schema
        template = self._known.pop(key, None) or Template(catalyst, schema, query)
        self._known[key] = template
        while len(self._known) > self._most:
            del self._known[next(iter(self._known))]
        return template.over(catalyst, rows)
