"""Row by row: SELECT, WHERE, UNION ALL, explode. No state; operation types pass through.

The plan runs as Spark analyzed it, except that no operator may drop the columns in `CARRIED`: they are added to the
columns of each projection, from the inputs up. So each result row is known to represent a certain row of an input,
whatever the query selects (see the decision record "op in row-by-row queries").
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from odfpy.engine.spark.plan.catalyst import (
    Catalyst,
    Node,
    child_of,
    children,
    columns,
    items,
    number_named,
    operator_name,
    selected,
)
from odfpy.engine.spark.plan.step import CARRIED_BRANCH, CARRIED_INPUT, RESERVED_PREFIX
from odfpy.engine.spark.row_by_row.carried import CARRIED, Branch, Delta, Leaves
from odfpy.errors import InternalError


def carry(catalyst: Catalyst, plan: Node, leaves: Leaves | None = None) -> Delta:
    """Return a row-by-row plan with the carried columns added to its own.

    Args:
        catalyst: the session.
        plan: the plan.
        leaves: replaces the inputs; by default the plan's own inputs are read.
    """
    carrier = _Carrier(catalyst, leaves or (lambda _, leaf: leaf))
    below = carrier.carry(plan).plan
    return Delta(catalyst.project(columns(plan) + _carried_columns(below), below), tuple(carrier.branches))


@dataclass(frozen=True, slots=True)
class _Carried:
    """A plan with the carried columns, and the branches that its rows come from."""

    plan: Node
    branches: tuple[int, ...]


class _Carrier:
    def __init__(self, catalyst: Catalyst, leaves: Leaves) -> None:
        self._catalyst = catalyst
        self._leaves = leaves
        self._definitions: dict[int, Node] = {}
        self.branches: list[Branch] = []

    def carry(self, plan: Node) -> _Carried:
        """Return the same plan with the carried columns in its output, without aliases, views and CTEs."""
        match operator_name(plan):
            case "SubqueryAlias" | "View" | "expressions.PipeOperator" | "Sort" | "RepartitionByExpression":
                return self.carry(child_of(plan))
            case "Project":
                return self._project(plan)
            case "Filter":
                below = self.carry(child_of(plan))
                return _Carried(self._on(plan, below), below.branches)
            case "Generate":
                below = self._multiplied(plan)
                return _Carried(self._on(plan, below), below.branches)
            case "Expand":
                below = self._multiplied(plan)
                carried = _carried_columns(below.plan)
                copies = [items(copy) + carried for copy in items(plan.projections())]
                return _Carried(self._catalyst.expand(copies, columns(plan) + carried, below.plan), below.branches)
            case "Union":
                return self._union(plan)
            case "Join":
                return self._join(plan)
            case "WithCTE":
                for definition in items(plan.cteDefs()):
                    self._definitions[definition.id()] = definition.child()
                return self.carry(plan.plan())
            case "CTERelationRef":
                return self._reference(plan)
            case other:
                raise InternalError(f"{other} is not an operator of a query row by row")

    def _multiplied(self, plan: Node) -> _Carried:
        """Return the plan below an operator that makes several rows of one."""
        below = self.carry(child_of(plan))
        for branch in below.branches:
            self.branches[branch] = replace(self.branches[branch], fans_out=True)
        return below

    def _on(self, plan: Node, below: _Carried) -> Node:
        return plan.withNewChildren(self._catalyst.seq([below.plan]))

    def _project(self, plan: Node) -> _Carried:
        outputs = selected(plan)
        introduced = {column.name(): column for column in outputs if column.name().startswith(RESERVED_PREFIX)}
        if introduced:
            return self._input(plan, introduced[CARRIED_INPUT])
        below = self.carry(child_of(plan))
        return _Carried(self._catalyst.project(outputs + _carried_columns(below.plan), below.plan), below.branches)

    def _input(self, plan: Node, marker: Node) -> _Carried:
        """Return a source, where the carried columns begin, with the number of its branch."""
        number, source = len(self.branches), number_named(marker)
        self.branches.append(Branch(source, fans_out=False))
        branch = self._catalyst.alias(self._catalyst.integer(number), CARRIED_BRANCH)
        leaf = self._leaves(source, plan)
        return _Carried(self._catalyst.project([*selected(leaf), branch], leaf.child()), (number,))

    def _union(self, plan: Node) -> _Carried:
        parts = [(columns(child), self.carry(child)) for child in children(plan)]
        aligned = [self._catalyst.project(own + _carried_columns(part.plan), part.plan) for own, part in parts]
        return _Carried(self._catalyst.union(aligned), tuple(number for _, part in parts for number in part.branches))

    def _join(self, plan: Node) -> _Carried:
        """Rewrite a join of rows with constants: each row has its partners, in an undefined order."""
        sides = children(plan)
        at = next(at for at, side in enumerate(sides) if not _is_constant(side))
        below = self.carry(sides[at])
        for branch in below.branches:
            self.branches[branch] = replace(self.branches[branch], fans_out=True, is_joined=True)
        sides[at] = below.plan
        return _Carried(plan.withNewChildren(self._catalyst.seq(sides)), below.branches)

    def _reference(self, plan: Node) -> _Carried:
        """Return a use of a CTE: its definition in place, with the column identities of this use."""
        definition = self._definitions[plan.cteId()]
        below = self.carry(definition)
        pairs = zip(columns(definition), columns(plan), strict=True)
        renamed = [self._catalyst.alias(inner, outer.name(), outer.exprId()) for inner, outer in pairs]
        return _Carried(self._catalyst.project(renamed + _carried_columns(below.plan), below.plan), below.branches)


def _is_constant(plan: Node) -> bool:
    """Return whether a plan reads no input."""
    outputs = selected(plan) if operator_name(plan) == "Project" else []
    return all(output.name() != CARRIED_INPUT for output in outputs) and all(map(_is_constant, children(plan)))


def _carried_columns(plan: Node) -> list[Node]:
    """Return the carried columns of a plan, in their order."""
    by_name = {column.name(): column for column in columns(plan)}
    return [by_name[name] for name in CARRIED]
