"""The order of what depends on each other, and circles in it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.coordinator.lineage.graph import DependencyOrder, cycle_error

Inputs = Mapping[str, str]
"""What each node is derived from, a letter a node."""


def order(inputs: Inputs, *nodes: str) -> DependencyOrder[str]:
    return DependencyOrder(lambda node: inputs.get(node, ""), nodes or inputs)


ORDERS: dict[str, tuple[Inputs, str]] = {
    "nothing": ({}, ""),
    "a chain": ({"c": "b", "b": "a", "a": ""}, "abc"),
    "a diamond": ({"d": "bc", "b": "a", "c": "a"}, "abcd"),
    "in the order given where nothing else is said": ({"b": "", "a": "", "c": ""}, "bac"),
    "a circle behind a node and before one": ({"z": "a", "a": "b", "b": "ar"}, "rabz"),
}


@pytest.mark.parametrize(("inputs", "wanted"), ORDERS.values(), ids=ORDERS)
def test_inputs_come_first(inputs: Inputs, wanted: str):
    assert "".join(order(inputs).nodes) == wanted


CIRCLES: dict[str, tuple[Inputs, dict[str, str]]] = {
    "none": ({"b": "a"}, {"a": "", "b": ""}),
    "a node of itself": ({"a": "a"}, {"a": "aa"}),
    "two": ({"a": "b", "b": "a"}, {"a": "aba", "b": "bab"}),
    "three": ({"a": "b", "b": "c", "c": "a"}, {"a": "abca", "b": "bcab", "c": "cabc"}),
    "behind a node, and before one": ({"z": "a", "a": "br", "b": "a"}, {"z": "", "r": "", "a": "aba"}),
    "two that share a node": ({"a": "bc", "b": "a", "c": "a"}, {"a": "aba", "b": "bab", "c": "cac"}),
    "one in another": ({"a": "b", "b": "bc", "c": "a"}, {"a": "abca", "b": "bb"}),
}


@pytest.mark.parametrize(("inputs", "ways"), CIRCLES.values(), ids=CIRCLES)
def test_a_circle_is_shown_from_any_of_its_nodes(inputs: Inputs, ways: dict[str, str]):
    found = order(inputs)
    assert {node: "".join(found.way_round(node)) for node in ways} == ways


def test_what_is_asked_for_later_is_added():
    found = order({"b": "a", "c": "b", "x": "c"}, "b")
    assert found.nodes == ["a", "b"]
    found.extend("x")
    assert found.nodes == ["a", "b", "c", "x"]


def test_chains_may_be_of_any_length():
    inputs = {number: [number - 1] for number in range(1, 20_000)}
    found = DependencyOrder(lambda node: inputs.get(node, []), [19_999])
    assert found.nodes == list(range(20_000))
    inputs[0] = [19_999]
    assert len(DependencyOrder(inputs.__getitem__, [0]).way_round(7)) == 20_001


def test_of_a_long_circle_the_message_shows_some():
    names = [f"d{number}" for number in range(100)]
    error = cycle_error([*names, "d0"], hint="...")
    assert error.message.endswith("d0 -> d1 -> d2 -> d3 -> d4 -> d5 -> d6 -> ... (93 more) -> d0")


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef"))))
def test_whatever_the_graph_each_node_comes_once_and_behind_what_it_needs(inputs: dict[str, set[str]]):
    found = DependencyOrder(lambda node: sorted(inputs.get(node, ())), inputs)
    place = {node: at for at, node in enumerate(found.nodes)}
    assert len(place) == len(found.nodes)
    for node, needed in inputs.items():
        for item in needed:
            in_one_circle = item in found.cycle_of(node)
            assert in_one_circle == (node in _reached(inputs, item))
            assert in_one_circle or place[item] < place[node]
        way = found.way_round(node)
        assert bool(way) == bool(found.cycle_of(node))
        assert all(after in inputs[before] for before, after in pairwise(way))


def _reached(inputs: dict[str, set[str]], node: str) -> set[str]:
    found, waiting = {node}, [node]
    while waiting:
        for item in inputs.get(waiting.pop(), ()):
            if item not in found:
                found.add(item)
                waiting.append(item)
    return found
