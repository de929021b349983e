"""Who is derived from whom, as pure functions over ids and their inputs."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from odfpy.errors import UsageError

Node = TypeVar("Node", bound=Hashable)


class DependencyCycle(UsageError, code="E102"):
    """Datasets would be derived from themselves."""


def in_dependency_order(
    nodes: Iterable[Node], inputs_of: Callable[[Node], Iterable[Node]], name_of: Callable[[Node], str] = str
) -> list[Node]:
    """The nodes and everything they depend on, inputs first; otherwise in the order given.

    Raises:
        DependencyCycle: the message shows the cycle.
    """
    ordered: dict[Node, None] = {}
    trail: list[Node] = []
    pending: list[tuple[Node, bool]] = [(node, False) for node in reversed(list(nodes))]
    while pending:
        node, done = pending.pop()
        if done:
            trail.pop()
            ordered[node] = None
            continue
        if node in ordered:
            continue
        if node in trail:
            cycle = [*trail[trail.index(node) :], node]
            raise DependencyCycle(
                f"Datasets are derived from each other in a circle: {' -> '.join(map(name_of, cycle))}",
                hint="Take one of the inputs out.",
            )
        trail.append(node)
        pending.append((node, True))
        pending.extend((item, False) for item in reversed(list(inputs_of(node))))
    return list(ordered)


def dependents(node: Node, inputs: Mapping[Node, Iterable[Node]]) -> list[Node]:
    """The nodes that are directly derived from a node."""
    return [other for other, items in inputs.items() if node in set(items)]
