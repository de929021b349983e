"""Lineages in the form of server responses, of any size, without datasets."""

from __future__ import annotations

import random
from typing import Any


def many_nodes(count: int) -> dict[str, list[dict[str, Any]]]:
    """Return a lineage: a quarter are roots, a quarter isolated, the others derived from one to three before them."""
    chance = random.Random(7)
    nodes = [
        {
            "id": f"did:odf:fed01{number:060x}", "name": f"com.example.flow.dataset-{number:05}",
            "kind": "Root" if number < count // 2 else "Derivative", "numRecords": number * 37,
            "watermark": "2026-01-01T00:00:00Z", "updatedAt": "2026-01-02T00:00:00Z", "hasFailed": number % 97 == 0,
            "heldBackBy": [],
        }
        for number in range(count)
    ]  # fmt: skip
    edges = []
    for number in range(count // 2, count):
        near = max(0, number - max(20, count // 20))
        first = 0 if near < count // 2 else near
        before = {
            chance.randrange(first, number - count // 4 if first == 0 else number) for _ in range(chance.randint(1, 3))
        }
        edges += [
            {"input": nodes[one]["id"], "output": nodes[number]["id"], "takenIn": None, "holdsBack": number % 5 == 0}
            for one in sorted(before)
        ]
    return {"nodes": nodes, "edges": edges}
