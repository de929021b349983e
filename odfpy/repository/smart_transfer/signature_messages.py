"""Messages on signatures in the middle of a push, so that no head is ever there unsigned.

The protocol has no message for them. A server of ours says in its handshake that it takes some (`Odf-Takes`), and a
client then sends them after the files and before it says that this is all. They are stored before the head moves, or
the push is refused. Nobody else sees a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TAKES_HEADER: Final = "odf-takes"
TAKES_SIGNATURES: Final = "signatures"

MAX_FILES: Final = 500
"""Files in one message."""


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file beside the chain, by its path in the dataset."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class PushSignatures:
    """Signatures of blocks that are pushed, and of the head; before them, what is said of keys that have ended."""

    signatures: tuple[SideFile, ...]
