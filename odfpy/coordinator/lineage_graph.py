"""The lineage of a dataset as a graph."""

from __future__ import annotations

from odfpy.coordinator.results import LineageNode
from odfpy.dataset.identity import DatasetId
from odfpy.provenance.graph import Graph, GraphEdge, GraphNode


def lineage_graph(tree: LineageNode) -> Graph:
    """A box for each dataset, however often it is an input."""
    nodes: dict[DatasetId, LineageNode] = {}
    layers: dict[DatasetId, int] = {}
    edges: dict[tuple[str, str], GraphEdge] = {}

    def walk(node: LineageNode, layer: int) -> None:
        key = node.handle.id
        if key in nodes and layers[key] >= layer:
            return
        nodes[key], layers[key] = node, layer
        for item in node.inputs:
            label = "holds back" if item.holds_back else ""
            edges[str(key), str(item.handle.id)] = GraphEdge(str(key), str(item.handle.id), label)
            walk(item, layer + 1)

    walk(tree, 0)
    boxes = [_box(node, layers[key], is_first=key == tree.handle.id) for key, node in nodes.items()]
    return Graph(f"Lineage of {tree.handle}", boxes, list(edges.values()))


def _box(node: LineageNode, layer: int, *, is_first: bool) -> GraphNode:
    kind = node.kind.value.lower()
    watermark = "no watermark" if node.watermark is None else f"watermark {node.watermark}"
    return GraphNode(str(node.handle.id), (str(node.handle), kind, watermark), layer, "asked" if is_first else kind)
