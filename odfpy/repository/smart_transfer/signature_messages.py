"""Messages with signatures during a push, so that no head is ever visible unsigned.

The protocol has no message for them. An odfpy server announces support in its handshake (`Odf-Takes`), and a client
then sends them after the files and before the completion. They are stored before the head moves, or the push is
rejected. Other implementations are not affected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

TAKES_HEADER: Final = "odf-takes"
TAKES_SIGNATURES: Final = "signatures"

MAX_FILES: Final = 500
"""Maximum number of files in one message."""


@dataclass(frozen=True, slots=True)
class SideFile:
    """A file next to the chain, with its path in the dataset."""

    path: str
    text: str


@dataclass(frozen=True, slots=True)
class PushSignatures:
    """Signatures of pushed blocks, and of the head, preceded by revocations of keys."""

    signatures: tuple[SideFile, ...]
