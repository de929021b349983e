"""Trees of the inputs of datasets, of any depth, including cycles."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Generic

from odfpy.coordinator.lineage.graph import DependencyOrder, Node
from odfpy.coordinator.storage.results import LineageNode


class LineageTrees(Generic[Node]):
    """Builder of trees; the tree of a shared input is built once.

    A cycle is followed once, from its entry: a repeated dataset is marked, and has no inputs.
    """

    def __init__(
        self, inputs_of: Callable[[Node], Sequence[Node]], make: Callable[[Node, Sequence[LineageNode]], LineageNode]
    ) -> None:
        """
        Args:
            inputs_of: returns the direct inputs of a dataset.
            make: creates the node of a dataset from the nodes of its inputs.
        """
        self._inputs_of = inputs_of
        self._make = make
        self._made: dict[Node, LineageNode] = {}

    def tree(self, top: Node) -> LineageNode:
        """Return the tree of a dataset and all its direct and indirect inputs."""
        order = DependencyOrder(lambda node: () if node in self._made else self._inputs_of(node), [top])
        for node in order.nodes:
            if node not in self._made and not order.cycle_of(node):
                self._made[node] = self._make(node, [self._at(item, order) for item in self._inputs_of(node)])
        return self._at(top, order)

    def _at(self, node: Node, order: DependencyOrder[Node]) -> LineageNode:
        return self._made[node] if node in self._made else self._around(node, order.cycle_of(node))

    def _around(self, start: Node, cycle: frozenset[Node]) -> LineageNode:
        """Return the tree of a dataset in a cycle; the trees of inputs outside of the cycle already exist."""
        above: dict[Node, Node | None] = {start: None}
        waiting = [start]
        for node in waiting:
            for item in self._inputs_of(node):
                if item in cycle and item not in above:
                    above[item] = node
                    waiting.append(item)
        trees: dict[Node, LineageNode] = {}
        for node in reversed(waiting):
            inputs = []
            for item in self._inputs_of(node):
                if item not in cycle:
                    inputs.append(self._made[item])
                elif above[item] == node:
                    inputs.append(trees[item])
                else:
                    inputs.append(replace(self._make(item, ()), is_above=True))
            trees[node] = self._make(node, inputs)
        return trees[start]
