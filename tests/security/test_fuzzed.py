"""What parses others' bytes gives a value or an error of ours, whatever they are.

`make attack` goes on for long, guided by coverage; what it has found is in `corpus/`, a folder for each target.
"""

from __future__ import annotations

import random

import pytest
from support.attack.targets import CORPUS, TARGETS, corpus
from support.examples import examples

CHANGED, CHANGED_THOROUGH = 15, 60
"""Damaged inputs of each target, always the same; `make attack` goes on for long."""

_PIECES = (b"\0", b"\xff" * 4, b"-1", b"[" * 40, b'"', b"\\", b"99999999999999999999", b"null", b"\xed\xa0\x80", b"{}")


@pytest.mark.parametrize("name", TARGETS)
def test_what_it_is_meant_for_and_what_was_found_once(name: str) -> None:
    target = TARGETS[name]
    tried = [target.tried(data) for data in corpus(name)]
    assert any(tried)


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_inputs(name: str) -> None:
    target, chance, known = TARGETS[name], random.Random(name), corpus(name)
    for _ in range(examples(CHANGED, CHANGED_THOROUGH)):
        target.tried(damaged(chance, chance.choice(known))[: target.most_bytes])


def test_what_was_found_belongs_to_a_target() -> None:
    assert {path.parent.name for path in CORPUS.rglob("*") if path.is_file()} <= set(TARGETS)


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Some bytes changed, left out, repeated, or others put between."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 5))):
        at, size = chance.randrange(len(found) + 1), chance.choice((1, 1, 4, 30))
        match chance.randrange(4):
            case 0:
                found[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del found[at : at + size]
            case 2:
                found[at:at] = found[at : at + size]
            case _:
                found[at:at] = chance.choice(_PIECES)
    return bytes(found)
