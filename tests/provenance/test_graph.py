"""Drawings of graphs: all texts fit into their boxes, and no line hides behind a box or a label."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.rows.text_table import cells
from odfpy.provenance.graph import Graph, GraphEdge, GraphNode, dot, html, svg

SVG = "{http://www.w3.org/2000/svg}"
LONG = "com.example.a-name-of-so-many-words-that-it-is-longer-than-anything-that-people-would-write-by-hand"
WATERMARK = "watermark 2024-01-05T00:00:00.123Z"
MAX_WIDTH = 7.25
"""Pixels of a letter of the usual monospaced fonts at 12 pixels: 0.6 of these, DejaVu and Menlo a little more."""


@dataclass(frozen=True)
class Area:
    """A rectangle of a drawing."""

    x: float
    y: float
    width: float
    height: float

    def holds(self, x: float, y: float, *, but: float = 1.5) -> bool:
        """Whether a point is inside, and not just at the border."""
        return self.x + but < x < self.x + self.width - but and self.y + but < y < self.y + self.height - but

    def meets(self, other: Area) -> bool:
        """Whether two have a point in common."""
        across = self.x < other.x + other.width and other.x < self.x + self.width
        return across and self.y < other.y + other.height and other.y < self.y + self.height


class Drawing:
    """What is to be seen in the drawing of a graph."""

    def __init__(self, graph: Graph) -> None:
        (self.top,) = ET.fromstring(svg(graph)).iter(f"{SVG}svg")
        self.size = Area(0, 0, float(self.top.attrib["width"]), float(self.top.attrib["height"]))
        self.boxes = [
            Area(*(float(one.attrib[name]) for name in ("x", "y", "width", "height")))
            for one in self.top.findall(f"{SVG}rect")
        ]
        paths = self.top.findall(f"{SVG}path")
        self.lines = [one.attrib["d"] for one in paths if one.attrib["fill"] == "none"]
        self.papers = [self._paper(one.attrib["d"]) for one in paths if one.attrib["fill"] != "none"]

    @staticmethod
    def _paper(path: str) -> Area:
        x, y, width, height = re.findall(r"-?\d+", path)[:4]
        return Area(float(x), float(y), float(width), float(height))

    def texts(self) -> Iterator[tuple[str, Area]]:
        """All texts, as wide as they are made."""
        for one in self.top.findall(f"{SVG}text"):
            x, y, length = (float(one.attrib[name]) for name in ("x", "y", "textLength"))
            yield str(one.text), Area(x, y - 10, length, 12)


def points(path: str) -> Iterator[tuple[float, float]]:
    """Points of a line of a drawing, close to each other, from its beginning on."""
    at = (0.0, 0.0)
    for letter, text in re.findall(r"([MLC])([^MLC]*)", path):
        numbers = [float(number) for number in re.findall(r"-?\d+", text)]
        ends = list(zip(numbers[::2], numbers[1::2], strict=True))
        knots = [at, at, ends[-1], ends[-1]] if letter == "L" else [at, *ends]
        if letter != "M":
            for step in range(101):
                t = step / 100
                share = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3)
                x, y = (sum(part * knot[axis] for part, knot in zip(share, knots, strict=True)) for axis in (0, 1))
                yield x, y
        at = ends[-1]


def holds_its_promises(graph: Graph) -> Drawing:
    drawing = Drawing(graph)
    assert len(drawing.boxes) == len(graph.nodes)
    for at, box in enumerate(drawing.boxes):
        assert not any(box.meets(other) for other in drawing.boxes[at + 1 :])
        assert box.x >= 0
        assert box.y >= 0
        assert box.x + box.width <= drawing.size.width
        assert box.y + box.height <= drawing.size.height
    for text, area in drawing.texts():
        assert area.width <= cells(text) * MAX_WIDTH
        corners = ((area.x, area.y), (area.x + area.width, area.y + area.height))
        around = [*drawing.boxes, *drawing.papers]
        assert any(all(one.holds(*corner, but=0.5) for corner in corners) for one in around), text
    for at, paper in enumerate(drawing.papers):
        assert not any(paper.meets(other) for other in [*drawing.boxes, *drawing.papers[at + 1 :]])
        assert paper.y + paper.height <= drawing.size.height
    for path in drawing.lines:
        for x, y in points(path):
            assert not any(box.holds(x, y) for box in drawing.boxes), path
            assert 0 <= x <= drawing.size.width
            assert 0 <= y <= drawing.size.height
    return drawing


def box(key: str, layer: int, name: str | None = None) -> GraphNode:
    return GraphNode(key, (name or f"com.example.{key}", "derivative", WATERMARK), layer, "derivative")


DIAMOND = Graph(
    "a diamond",
    [box("c", 0), box("b", 1, LONG), box("a", 2)],
    [GraphEdge("c", "b"), GraphEdge("c", "a", "holds back"), GraphEdge("b", "a")],
)


def test_an_edge_that_skips_a_layer_leads_around_the_box_there() -> None:
    drawing = holds_its_promises(DIAMOND)
    (around,) = (path for path in drawing.lines if "L" in path)
    b = drawing.boxes[1]
    assert b.width > cells(LONG) * 7.2
    assert any(b.x < x < b.x + b.width for x, _ in points(around)), "it passes the column, above the box or below it"


def test_a_label_stands_on_its_line() -> None:
    (paper,) = (drawing := Drawing(DIAMOND)).papers
    (dashed,) = (path for path in drawing.lines if "L" in path)
    assert any(paper.holds(x, y) for x, y in points(dashed))
    both = replace(DIAMOND, edges=[GraphEdge("c", "a", "holds back"), GraphEdge("b", "a", "holds back")])
    assert len(holds_its_promises(both).papers) == 1


def test_an_edge_that_closes_a_circle_leads_back_around_all() -> None:
    holds_its_promises(replace(DIAMOND, edges=[*DIAMOND.edges, GraphEdge("a", "c"), GraphEdge("b", "b")]))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    names = st.one_of(st.none(), st.text("aW.-日<&\n\x1b", min_size=1, max_size=60))
    layers = draw(st.lists(st.integers(0, 5), min_size=1, max_size=10))
    nodes = [box(str(at), layer, draw(names)) for at, layer in enumerate(layers)]
    keys = st.sampled_from([node.key for node in nodes])
    edges = st.builds(GraphEdge, keys, keys, st.sampled_from(["", "", "holds back", "because of"]))
    return Graph("any", nodes, draw(st.lists(edges, max_size=20)))


@given(graphs())
def test_any_graph_can_be_read(graph: Graph) -> None:
    holds_its_promises(graph)
    assert svg(graph) == svg(graph)


def test_lines_that_need_not_cross_do_not() -> None:
    """`x` is made of `q`, `y` of `p`: the boxes behind change places."""
    graph = Graph(
        "crossed",
        [box("top", 0), box("x", 1), box("y", 1), box("p", 2), box("q", 2)],
        [GraphEdge("top", "x"), GraphEdge("top", "y"), GraphEdge("x", "q"), GraphEdge("y", "p")],
    )
    _, x, y, p, q = holds_its_promises(graph).boxes
    assert (x.y < y.y) == (q.y < p.y)


def test_texts_of_others_stay_texts() -> None:
    text = '<img src=x>&lt;"\\\n\x1b[2J'
    graph = Graph(text, [GraphNode("k", (text,), 0, "root")], [GraphEdge("k", "k", text)])
    page = html(graph, [text])
    assert "<img" not in page
    assert "\x1b" not in page
    assert page.count("&lt;img src=x&gt;&amp;lt;&quot;\\\\n\\x1b[2J") == 6, "title, name, heading, box, edge, below"
    drawn = dot(graph)
    assert "\x1b" not in drawn
    assert '[label="<img src=x>&amp;lt;\\"\\\\\\\\n\\\\x1b[2J\\l"' in drawn


def test_letters_in_dot_have_a_width_that_graphviz_knows_without_fonts() -> None:
    """Otherwise it takes them for Times, and boxes are narrower than the text that a browser shows in them."""
    assert re.findall(r'fontname="([^"]+)"', dot(DIAMOND)) == ["Courier", "Courier"]
