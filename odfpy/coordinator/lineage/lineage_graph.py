"""The lineage of a dataset as a graph."""

from __future__ import annotations

from odfpy.coordinator.lineage.graph import DependencyOrder
from odfpy.coordinator.storage.results import LineageNode
from odfpy.dataset.identity import DatasetId
from odfpy.provenance.graph import Graph, GraphEdge, GraphNode


def lineage_graph(tree: LineageNode) -> Graph:
    """Return a graph with one box for each dataset, even if it is an input several times."""
    nodes = {node.handle.id: node for node in tree.walk()}
    layers = _layers(tree, nodes)
    edges = [
        GraphEdge(str(key), str(item.handle.id), "holds back" if item.holds_back else "")
        for key, node in nodes.items()
        for item in node.inputs
    ]
    boxes = [_box(node, layers[key], is_first=key == tree.handle.id) for key, node in nodes.items()]
    return Graph(f"Lineage of {tree.handle}", boxes, edges)


def _layers(tree: LineageNode, nodes: dict[DatasetId, LineageNode]) -> dict[DatasetId, int]:
    """Return the layer of each dataset: the length of the longest path from the root of the tree."""
    followed = {
        key: [item.handle.id for item in node.inputs if not item.is_above] for key, node in nodes.items()
    }  # without the edges that close a cycle
    layers = dict.fromkeys(nodes, 0)
    for key in reversed(DependencyOrder(followed.__getitem__, [tree.handle.id]).nodes):
        for item in followed[key]:
            layers[item] = max(layers[item], layers[key] + 1)
    return layers


def _box(node: LineageNode, layer: int, *, is_first: bool) -> GraphNode:
    kind = node.kind.value.lower()
    watermark = "no watermark" if node.watermark is None else f"watermark {node.watermark}"
    return GraphNode(str(node.handle.id), (str(node.handle), kind, watermark), layer, "asked" if is_first else kind)
