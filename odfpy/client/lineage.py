"""The lineage of a dataset, for display and traversal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from odfpy.coordinator.storage.results import LineageNode


@dataclass(frozen=True, slots=True, repr=False)
class Lineage:
    """A dataset and its inputs, recursively.

    Attributes:
        node: the dataset, with its inputs.
    """

    node: LineageNode

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return str(self.node.handle)

    @property
    def inputs(self) -> tuple[Lineage, ...]:
        """The direct inputs."""
        return tuple(map(Lineage, self.node.inputs))

    def names(self) -> list[str]:
        """Return the distinct datasets of the lineage, derived ones before their inputs."""
        return [str(node.handle) for node in self.node.walk()]

    def __repr__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        waiting = [("", self.node)]
        while waiting:
            indent, node = waiting.pop()
            again = ", as above: a cycle" if node.is_above else ""
            yield f"{indent}{node.handle}  {node.kind.value.lower()}{again}"
            waiting += [(f"{indent}  ", item) for item in reversed(node.inputs)]

    def _repr_html_(self) -> str:
        from odfpy.coordinator.lineage.lineage_graph import lineage_graph
        from odfpy.provenance.graph import svg

        return svg(lineage_graph(self.node))
