"""The graph of datasets, as pure functions over ids and their inputs.

Nothing here is recursive: chains of datasets may have thousands of members. Cycles are errors, but a workspace may have
them. So sorting never fails; callers that cannot handle a cycle check for it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Final, Generic, TypeVar

from odfpy.errors import UsageError

Node = TypeVar("Node", bound=Hashable)

_SHOWN: Final = 8


class DependencyCycle(UsageError, code="E102"):
    """Datasets would be derived from themselves."""


class CycleInWorkspace(DependencyCycle, code="E103"):
    """Existing datasets are derived from themselves; the request is not the cause."""

    exit_code = 1


def cycle_error(names: Sequence[str], *, hint: str, error: type[DependencyCycle] = DependencyCycle) -> DependencyCycle:
    """Return the error for a cycle.

    Args:
        names: the datasets of the cycle; the first one is also the last.
        hint: how to break the cycle.
        error: class of the error, which depends on whether the cycle exists already.
    """
    left_out = len(names) - _SHOWN
    shown = names if left_out <= 1 else [*names[: _SHOWN - 1], f"... ({left_out} more)", names[-1]]
    return error(f"Circular dependency: {' -> '.join(shown)}", hint=hint)


class DependencyOrder(Generic[Node]):
    """Topological order of nodes and their dependencies, inputs first; computed on demand.

    Attributes:
        nodes: all nodes so far; those of a cycle are adjacent.
    """

    def __init__(self, inputs_of: Callable[[Node], Iterable[Node]], nodes: Iterable[Node] = ()) -> None:
        self.nodes: list[Node] = []
        self._inputs_of = inputs_of
        self._cycles: dict[Node, frozenset[Node]] = {}
        self._seen: dict[Node, int] = {}
        self.extend(nodes)

    def extend(self, nodes: Iterable[Node]) -> None:
        """Add nodes and their dependencies, preserving the given order as far as possible."""
        for node in nodes:
            if node not in self._seen:
                self._explore(node)

    def cycle_of(self, node: Node) -> frozenset[Node]:
        """Return the strongly connected component of a node; empty if the node does not depend on itself."""
        self.extend([node])
        return self._cycles.get(node, frozenset())

    def way_round(self, node: Node) -> tuple[Node, ...]:
        """Return the shortest path from a node back to itself, with the node at both ends; empty if there is none."""
        cycle = self.cycle_of(node)
        came_from: dict[Node, Node] = {}
        waiting = [node] if cycle else []
        for at in waiting:
            for item in self._inputs_of(at):
                if item == node:
                    way = [node, at]
                    while way[-1] != node:
                        way.append(came_from[way[-1]])
                    return tuple(reversed(way))
                if item in cycle and item not in came_from:
                    came_from[item] = at
                    waiting.append(item)
        return ()

    def _explore(self, start: Node) -> None:
        """Run Tarjan's algorithm for strongly connected components, which finds components of inputs first."""
        low: dict[Node, int] = {}
        open_nodes: dict[Node, None] = {}  # on the current path, or in a cycle with a node of the path
        path = [(start, self._entered(start, low, open_nodes))]
        while path:
            node, inputs = path[-1]
            for item in inputs:
                if item not in self._seen:
                    path.append((item, self._entered(item, low, open_nodes)))
                    break
                if item in open_nodes:
                    low[node] = min(low[node], self._seen[item])
            else:
                path.pop()
                if path:
                    above = path[-1][0]
                    low[above] = min(low[above], low[node])
                if low[node] == self._seen[node]:
                    self._close(node, open_nodes)

    def _entered(self, node: Node, low: dict[Node, int], open_nodes: dict[Node, None]) -> Iterable[Node]:
        self._seen[node] = low[node] = len(self._seen)
        open_nodes[node] = None
        return iter(list(self._inputs_of(node)))

    def _close(self, node: Node, open_nodes: dict[Node, None]) -> None:
        """Pop a component from the open nodes, given its first visited node."""
        members: list[Node] = []
        while not members or members[-1] != node:
            members.append(open_nodes.popitem()[0])
        self.nodes += reversed(members)
        if len(members) > 1 or node in self._inputs_of(node):
            cycle = frozenset(members)
            self._cycles.update(dict.fromkeys(members, cycle))
