"""Graphs as text: DOT for Graphviz, and a page that needs nothing but a browser."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Final

_CHARACTER: Final = 7.2
_LINE: Final = 17
_PADDING: Final = 10
_GAP: Final = 40
_ARROW: Final = (
    "<style>.odf-graph text{font:12px monospace}.odf-graph .t{font-weight:bold}</style>"
    '<defs><marker id="odf-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path d="M0,0 L8,4 L0,8 z" fill="#666"/></marker></defs>'
)
_COLOURS: Final = {"root": "#e3f1e3", "derivative": "#e3ebf7", "asked": "#fbf0d4", "more": "#f2f2f2"}


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A box.

    Attributes:
        key: what edges call it.
        lines: its text, the first line is its title.
        layer: how far it stands from the first ones; 0 is on the left.
        kind: `asked`, `derivative`, `root` or `more`: its colour.
    """

    key: str
    lines: tuple[str, ...]
    layer: int
    kind: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A line between two boxes: what is made, what it is made of, and in which sense, if that is not plain."""

    made: str
    of: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    """Boxes and lines."""

    title: str
    nodes: Sequence[GraphNode]
    edges: Sequence[GraphEdge]


def dot(graph: Graph) -> str:
    """The graph for Graphviz."""
    lines = [
        f"digraph {_quoted(graph.title)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="filled,rounded", fontname="sans-serif", fontsize=10];',
    ]
    for node in graph.nodes:
        label = _quoted("\n".join(node.lines)).replace("\n", "\\l")
        lines.append(f'  {_quoted(node.key)} [label={label[:-1]}\\l", fillcolor={_quoted(_COLOURS[node.kind])}];')
    for edge in graph.edges:
        label = f" [label={_quoted(edge.label)}, style=dashed]" if edge.label else ""
        lines.append(f"  {_quoted(edge.of)} -> {_quoted(edge.made)}{label};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


# --- A page ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Box:
    x: float
    y: float
    width: float
    height: float


def html(graph: Graph, text: Sequence[str] = ()) -> str:
    """The graph as a page: a drawing, and text below it. Nothing is loaded from anywhere, and no script runs.

    Args:
        graph: the graph.
        text: lines to be shown as they are.
    """
    shown = f"<pre>{escape(chr(10).join(text))}</pre>" if text else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{escape(graph.title)}</title>",
            "<style>body{font:14px sans-serif;margin:24px}svg{max-width:none}pre{font-size:12px}</style></head><body>",
            f"<h1>{escape(graph.title)}</h1>",
            svg(graph),
            shown,
            "</body></html>",
        ]
    )


def svg(graph: Graph) -> str:
    """The drawing alone, to be put into a page."""
    boxes, width, height = _laid_out(graph.nodes)
    parts = [_drawn_edge(edge, boxes) for edge in graph.edges if edge.made in boxes and edge.of in boxes]
    parts += [_drawn_box(node, boxes[node.key]) for node in graph.nodes]
    size = f'width="{width:.0f}" height="{height:.0f}"'
    start = f'<svg xmlns="http://www.w3.org/2000/svg" class="odf-graph" role="img" {size}>'
    return "\n".join([start, _ARROW, *parts, "</svg>"])


def _laid_out(nodes: Sequence[GraphNode]) -> tuple[Mapping[str, _Box], float, float]:
    """A column for each layer, what is made of others on the right."""
    layers: defaultdict[int, list[GraphNode]] = defaultdict(list)
    for node in nodes:
        layers[node.layer].append(node)
    found: dict[str, _Box] = {}
    x, highest = float(_PADDING), 0.0
    for layer in sorted(layers, reverse=True):
        width = max(len(line) for node in layers[layer] for line in node.lines) * _CHARACTER + 2 * _PADDING
        y = float(_PADDING)
        for node in layers[layer]:
            height = len(node.lines) * _LINE + _PADDING
            found[node.key] = _Box(x, y, width, height)
            y += height + _PADDING
        x, highest = x + width + _GAP * 2, max(highest, y)
    return found, x, highest + _PADDING


def _drawn_box(node: GraphNode, box: _Box) -> str:
    lines = [
        f'<text x="{box.x + _PADDING:.0f}" y="{box.y + _LINE * (at + 1):.0f}"{_title(at)}>{escape(line)}</text>'
        for at, line in enumerate(node.lines)
    ]
    frame = (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6"'
        f' fill="{_COLOURS[node.kind]}" stroke="#888"/>'
    )
    return "".join([frame, *lines])


def _title(line: int) -> str:
    return ' class="t"' if line == 0 else ""


def _drawn_edge(edge: GraphEdge, boxes: Mapping[str, _Box]) -> str:
    made, of = boxes[edge.made], boxes[edge.of]
    x1, y1 = of.x + of.width, of.y + of.height / 2
    x2, y2 = made.x, made.y + made.height / 2
    bend = max(_GAP, (x2 - x1) / 2)
    dashed = ' stroke-dasharray="5 4"' if edge.label else ""
    line = (
        f'<path d="M{x1:.0f},{y1:.0f} C{x1 + bend:.0f},{y1:.0f} {x2 - bend:.0f},{y2:.0f} {x2:.0f},{y2:.0f}" fill="none"'
        f' stroke="#666"{dashed} marker-end="url(#odf-arrow)"/>'
    )
    if not edge.label:
        return line
    return f'{line}<text x="{(x1 + x2) / 2:.0f}" y="{(y1 + y2) / 2 - 4:.0f}" fill="#666">{escape(edge.label)}</text>'
