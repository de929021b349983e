"""A reader under fire, and damage to the files that it reads."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from odfpy.chain.read_steps import ReadStep


@dataclass(frozen=True)
class Target:
    """A reader under fire.

    Attributes:
        cases: a read step with valid files; one of each is chosen at random.
        tokens: texts inserted into them.
        check: raises AssertionError unless the rows are those of the content.
        damage: makes another file of one.
    """

    cases: Sequence[tuple[ReadStep, Sequence[bytes]]]
    tokens: Sequence[bytes]
    check: Callable[[ReadStep, bytes, pa.Table], None]
    damage: Callable[[random.Random, bytes, Sequence[bytes]], bytes]


def damaged(rng: random.Random, content: bytes, tokens: Sequence[bytes]) -> bytes:
    """Content with one to three changes."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        at = rng.randint(0, len(changed))
        until = min(len(changed), at + rng.choice((0, 1, 1, 2, 5, 20)))
        match rng.randrange(9):
            case 0:
                changed[at:until] = b""
            case 1:
                changed[at:until] = rng.choice(tokens)
            case 2:
                changed[at:at] = changed[until : until + 30]
            case 3 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 4 | 5 | 6 | 7 if at < len(changed) and chr(changed[at]).isalnum():
                changed[at] = rng.choice(b"0123456789" if chr(changed[at]).isdigit() else b"abcxyzABC")
            case 4 if rng.random() < 0.3:
                del changed[at:]
            case _:
                changed[at:at] = rng.choice(tokens)
    return bytes(changed)
