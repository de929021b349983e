"""Graphs as text: DOT for Graphviz, and self-contained HTML pages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Final

from odfpy.data.rows.text_table import cells
from odfpy.escaping import escape_controls
from odfpy.provenance.layout import GAP, MARGIN, Box, Layout, Size, laid_out

_CHARACTER: Final = 7.2
_LINE: Final = 17
_PADDING: Final = 10
_PAPER: Final = 14
_LINES: Final = "#7d7d7d"  # visible on both white and black
_ARROW: Final = (
    '<defs><marker id="odf-arrow" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    f'<path d="M0,0 L8,4 L0,8 z" fill="{_LINES}"/></marker></defs>'
)
_FONT: Final = "Courier"
"""Font for Graphviz. Without font files, it knows the widths of only a few fonts; browsers replace this one by any
`monospace` font. For other fonts it uses the widths of Times, which are so narrow that text would exceed its box."""

_COLOURS: Final = {"root": "#e3f1e3", "derivative": "#e3ebf7", "asked": "#fbf0d4", "more": "#f2f2f2"}


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A box of a graph.

    Attributes:
        key: identifier of the box for edges.
        lines: its text; the first line is the title.
        layer: distance from the first layer; 0 is on the left.
        kind: `asked`, `derivative`, `root` or `more`; determines the colour.
    """

    key: str
    lines: tuple[str, ...]
    layer: int
    kind: str


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """A line between two boxes: the result, its source, and a label for the relation if it is not obvious."""

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
    """Return the graph in DOT, for Graphviz."""
    lines = [
        f"digraph {_quoted(escape_controls(graph.title))} {{",
        "  rankdir=LR;",
        f'  node [shape=box, style="filled,rounded", fontname="{_FONT}", fontsize=10];',
        f'  edge [fontname="{_FONT}", fontsize=9];',
    ]
    for node in graph.nodes:
        label = "".join(f"{_label(line)}\\l" for line in node.lines)
        lines.append(f'  {_quoted(node.key)} [label="{label}", fillcolor={_quoted(_COLOURS[node.kind])}];')
    for edge in graph.edges:
        label = f' [label="{_label(edge.label)}", style=dashed]' if edge.label else ""
        lines.append(f"  {_quoted(edge.of)} -> {_quoted(edge.made)}{label};")
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return f'"{_escaped(text)}"'


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _label(text: str) -> str:
    """Return a text as a line of a label, with escapes for sequences that Graphviz would read as HTML entities."""
    return _escaped(escape_controls(text).replace("&", "&amp;"))


# --- A page ----------------------------------------------------------------------------------------------------------


def html(graph: Graph, text: Sequence[str] = ()) -> str:
    """Return the graph as an HTML page: a drawing with text below it. It loads nothing and runs no script.

    Args:
        graph: the graph.
        text: lines of preformatted text.
    """
    title = escape(escape_controls(graph.title))
    shown = f"<pre>{escape(chr(10).join(map(escape_controls, text)))}</pre>" if text else ""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
            f"<title>{title}</title>",
            "<style>body{font:14px sans-serif;margin:24px}pre{font-size:12px}</style></head><body>",
            f"<h1>{title}</h1>",
            svg(graph),
            shown,
            "</body></html>",
        ]
    )


def svg(graph: Graph) -> str:
    """Return the drawing alone, to embed in a page; it has its natural size in pixels, and scrolls if there is no room.

    Texts are fitted to the available width (`textLength`), whatever the font of the reader.
    """
    sizes = {node.key: _size(node) for node in graph.nodes}
    edges = [edge for edge in graph.edges if edge.made in sizes and edge.of in sizes]
    layout = laid_out(sizes, [(edge.made, edge.of) for edge in edges])
    parts = [_drawn_edge(edge, route) for edge, route in zip(edges, layout.routes, strict=True)]
    parts += [_drawn_box(node, layout.boxes[node.key]) for node in graph.nodes]
    labels, end = _labels(edges, layout)
    width, height = f"{layout.width:.0f}", f"{max(layout.height, end + MARGIN):.0f}"
    title = escape(escape_controls(graph.title))
    start = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="odf-graph" role="img" aria-label="{title}"'
        f' width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="monospace" font-size="12"'
        ' style="max-width:none;white-space:pre">'
    )
    return "\n".join(['<div style="overflow-x:auto">', start, _ARROW, *parts, *labels, "</svg></div>"])


def _size(node: GraphNode) -> Size:
    width = max(_width(line) for line in node.lines) + 2 * _PADDING
    return Size(node.layer, float(round(width)), len(node.lines) * _LINE + _PADDING)


def _width(text: str) -> float:
    return cells(escape_controls(text)) * _CHARACTER


def _text(text: str, x: float, y: float, more: str = "") -> str:
    length = f' textLength="{_width(text):.1f}" lengthAdjust="spacingAndGlyphs"' if text else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{length}{more}>{escape(escape_controls(text))}</text>'


def _drawn_box(node: GraphNode, box: Box) -> str:
    lines = [
        _text(line, box.x + _PADDING, box.y + _LINE * (at + 1), "" if at else ' font-weight="bold"')
        for at, line in enumerate(node.lines)
    ]
    frame = (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6"'
        f' fill="{_COLOURS[node.kind]}" stroke="#888"/>'
    )
    return "".join([frame, *lines])


def _drawn_edge(edge: GraphEdge, route: Sequence[tuple[float, float]]) -> str:
    """Return a line that curves in gaps, and is straight within columns; if it turns around, it stays in the gap."""
    path = [f"M{route[0][0]:.0f},{route[0][1]:.0f}"]
    for number, ((x1, y1), (x2, y2)) in enumerate(pairwise(route)):
        if number % 2:
            path.append(f"L{x2:.0f},{y2:.0f}")
            continue
        out, into = _bends(x1, x2, is_first=number == 0, is_last=number == len(route) - 2)
        path.append(f"C{out:.0f},{y1:.0f} {into:.0f},{y2:.0f} {x2:.0f},{y2:.0f}")
    dashed = ' stroke-dasharray="5 4"' if edge.label else ""
    return f'<path d="{" ".join(path)}" fill="none" stroke="{_LINES}"{dashed} marker-end="url(#odf-arrow)"/>'


def _bends(x1: float, x2: float, *, is_first: bool, is_last: bool) -> tuple[float, float]:
    """Return the control points of a curve between two x positions; the curve stays between all four points."""
    if x1 != x2:
        return (x1 + x2) / 2, (x1 + x2) / 2
    turn = GAP / 2 if is_first else -GAP / 2 if is_last else 0
    return x1 + turn, x1 + turn


def _labels(edges: Sequence[GraphEdge], layout: Layout) -> tuple[list[str], float]:
    """Return the labels of edges, and the lower end of all.

    A label is placed on the line in its first gap, once for all lines with the same origin. Labels that would
    overlap move down. They have a background, since other lines may pass below.
    """
    middles: dict[tuple[float, float, str], list[float]] = {}
    for edge, route in zip(edges, layout.routes, strict=True):
        if edge.label:
            (x, y), (_, other) = route[:2]
            middles.setdefault((x, y, edge.label), []).append((y + other) / 2)
    found = sorted((x, sum(ys) / len(ys), label) for (x, _, label), ys in middles.items())
    parts, free, column, end = [], 0.0, 0.0, 0.0
    for x, y, label in found:
        top = max(float(round(y)) - _PAPER / 2, free if x == column else 0.0)
        column, free = x, top + _PAPER + 2
        width = _width(label) + 8
        left = x + (GAP - width) / 2
        paper = f'<path d="M{left:.0f},{top:.0f} h{width:.0f} v{_PAPER} h-{width:.0f} z" fill="#f2f2f2"/>'
        parts.append(paper + _text(label, left + 4, top + 11, ' fill="#444"'))
        end = max(end, free)
    return parts, end
