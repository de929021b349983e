"""Positions of a graph's boxes, and routes of its edges around all boxes between them.

This is a layered drawing (Sugiyama, Tagawa, Toda 1981). Each layer is a column. An edge that passes through a column
has its own lane there, like a thin box, and is straight within it. So it curves only in the gaps between columns, where
there are no boxes. The result is a function of the graph alone, including the order of its items.
"""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

MARGIN: Final = 10
GAP: Final = 128
"""Gap between columns in pixels, in which edges curve and labels are placed."""

_BETWEEN: Final = 18
_LANE: Final = 10
_SWEEPS: Final = 8


@dataclass(frozen=True, slots=True)
class Size:
    """The size of a box in pixels, and its layer (0 is on the right)."""

    layer: int
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Box:
    """The position and size of a box, in pixels from the upper left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The vertical position at which edges begin and end."""
        return self.y + self.height / 2


@dataclass(frozen=True, slots=True)
class Layout:
    """A drawing without text.

    Attributes:
        boxes: boxes by the keys of their nodes.
        routes: the points of each edge from `of` to `made`. It crosses a gap from the first to the second point, from
            the third to the fourth and so on; in between it is straight, within a column.
        width: total width.
        height: total height.
    """

    boxes: Mapping[str, Box]
    routes: Sequence[Sequence[tuple[float, float]]]
    width: float
    height: float


@dataclass(slots=True)
class _Slot:
    """A box, or the lane of an edge within a column."""

    column: int
    width: float
    height: float
    y: float = 0.0
    before: list[_Slot] = field(default_factory=list)
    after: list[_Slot] = field(default_factory=list)

    @property
    def middle(self) -> float:
        return self.y + self.height / 2


def laid_out(sizes: Mapping[str, Size], edges: Sequence[tuple[str, str]]) -> Layout:
    """Return the layout, with one column per layer, the last layer on the left.

    Args:
        sizes: sizes of boxes by key; boxes of a layer keep this order, unless another order has fewer crossings.
        edges: keys of result and source of each edge. An edge backwards or within a layer is routed around boxes.
    """
    layers = sorted({size.layer for size in sizes.values()}, reverse=True)
    column_of = {layer: column for column, layer in enumerate(layers)}
    slots = {key: _Slot(column_of[size.layer], size.width, size.height) for key, size in sizes.items()}
    columns: list[list[_Slot]] = [[] for _ in layers]
    for slot in slots.values():
        columns[slot.column].append(slot)
    chains = [_chain(slots[of], slots[made], columns) for made, of in edges]
    columns = _ordered(columns)
    height = _stacked(columns)
    lefts, width = _lefts(columns)
    widths = [max(slot.width for slot in column) for column in columns]
    boxes = {key: Box(lefts[slot.column], slot.y, widths[slot.column], slot.height) for key, slot in slots.items()}
    routes = [list(_route(chain, lefts, widths)) for chain in chains]
    return Layout(boxes, routes, width, height)


def _chain(of: _Slot, made: _Slot, columns: list[list[_Slot]]) -> list[_Slot]:
    """Return the ends of an edge and its lanes in the columns between them, or in all its columns if it leads back."""
    is_forward = of.column < made.column
    passed = range(of.column + 1, made.column) if is_forward else range(of.column, made.column - 1, -1)
    chain = [of]
    for column in passed:
        chain.append(_Slot(column, 0, _LANE))
        columns[column].append(chain[-1])
    chain.append(made)
    for one, other in pairwise(chain):
        if abs(one.column - other.column) == 1:
            left, right = (one, other) if one.column < other.column else (other, one)
            left.after.append(right)
            right.before.append(left)
    return chain


# --- Order -----------------------------------------------------------------------------------------------------------


def _ordered(columns: list[list[_Slot]]) -> list[list[_Slot]]:
    """Return the tried order with the fewest crossings; each column is sorted by the mean of its neighbours."""
    best, fewest = columns, _crossings(columns)
    current = columns
    for sweep in range(_SWEEPS):
        if not fewest:
            break
        current = _swept(current, to_right=sweep % 2 == 0)
        crossings = _crossings(current)
        if crossings < fewest:
            best, fewest = current, crossings
    return best


def _swept(columns: Sequence[Sequence[_Slot]], *, to_right: bool) -> list[list[_Slot]]:
    found = [list(column) for column in columns]
    order = range(1, len(found)) if to_right else range(len(found) - 2, -1, -1)
    for number in order:
        places = {id(slot): at for at, slot in enumerate(found[number - 1 if to_right else number + 1])}
        wanted = {}
        for at, slot in enumerate(found[number]):
            near = [places[id(neighbour)] for neighbour in (slot.before if to_right else slot.after)]
            wanted[id(slot)] = sum(near) / len(near) if near else float(at)
        found[number].sort(key=lambda slot: wanted[id(slot)])
    return found


def _crossings(columns: Sequence[Sequence[_Slot]]) -> int:
    """Return the number of crossings of lines in the gaps."""
    count = 0
    for left, right in pairwise(columns):
        places = {id(slot): at for at, slot in enumerate(right)}
        ends: list[int] = []
        for slot in left:
            reached = sorted(places[id(neighbour)] for neighbour in slot.after)
            count += sum(len(ends) - bisect_right(ends, at) for at in reached)
            for at in reached:
                insort(ends, at)
    return count


# --- Places ----------------------------------------------------------------------------------------------------------


def _stacked(columns: Sequence[Sequence[_Slot]]) -> float:
    """Set the vertical position of each slot near its neighbours, and return the total height."""
    for column in columns:
        _place(column, [0.0] * len(column))
    for sweep in range(_SWEEPS):
        for column in columns if sweep % 2 == 0 else reversed(columns):
            wanted = []
            for slot in column:
                ties = (slot.before if sweep % 2 == 0 else slot.after) or slot.before + slot.after
                wanted.append(sum(tie.middle for tie in ties) / len(ties) - slot.height / 2 if ties else slot.y)
            _place(column, wanted)
    top = min((slot.y for column in columns for slot in column), default=0.0)
    bottom = 0.0
    for column in columns:
        for slot in column:
            slot.y = float(round(slot.y - top + MARGIN))
            bottom = max(bottom, slot.y + slot.height)
    return bottom + MARGIN


def _place(column: Sequence[_Slot], wanted: Sequence[float]) -> None:
    """Set the positions of a column's slots nearest to the wanted ones, in their order and without overlap.

    This is isotonic regression by pooling: slots that would overlap move together to the mean of their wanted
    positions.
    """
    pools: list[tuple[float, int]] = []  # sum of wanted positions less the space before, and number of slots
    room = [0.0]
    for slot in column:
        room.append(room[-1] + slot.height + _BETWEEN)
    for at, place in enumerate(wanted):
        total, count = place - room[at], 1
        while pools and pools[-1][0] / pools[-1][1] >= total / count:
            before, others = pools.pop()
            total, count = total + before, count + others
        pools.append((total, count))
    places = (total / count for total, count in pools for _ in range(count))
    for at, (slot, place) in enumerate(zip(column, places, strict=True)):
        slot.y = place + room[at]


def _lefts(columns: Sequence[Sequence[_Slot]]) -> tuple[list[float], float]:
    """Return the left edges of the columns, and the total width; outer gaps leave room for edges that turn around."""
    turns_left = any(slot.column == 0 and not slot.width for slot in columns[0]) if columns else False
    turns_right = any(not slot.width for slot in columns[-1]) if columns else False
    lefts, x = [], float(MARGIN + (GAP if turns_left else 0))
    for column in columns:
        lefts.append(x)
        x += max(slot.width for slot in column) + GAP
    return lefts, x - (0 if turns_right else GAP) + MARGIN


def _route(chain: Sequence[_Slot], lefts: Sequence[float], widths: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield the points from the right side of the source to the left side of the result, through the lanes."""
    first, *lanes, last = chain
    yield lefts[first.column] + widths[first.column], first.middle
    to_right = first.column < last.column
    for lane in lanes:
        left, right = lefts[lane.column], lefts[lane.column] + widths[lane.column]
        yield left if to_right else right, lane.middle
        yield right if to_right else left, lane.middle
    yield lefts[last.column], last.middle
