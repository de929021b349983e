"""The sum of a long chain, kept in the dataset's cache, so that a command need not walk the whole of it.

A process keeps the sums that it has used last in memory, too. The file holds a `ChainState` in the codec of the blocks,
after a line that says which release has written it and a hash of the rest. It is good for the block that it names and,
since blocks are linked by their hashes, for all that follow: what a chain has grown since is summed up on top. A file
that is damaged, of another release or of another chain is as good as none. The head itself is always read, and
`odf verify` never looks here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from odfpy import __version__
from odfpy.chain.metadata_chain import MetadataChain, sum_up
from odfpy.chain.state import ChainState
from odfpy.codec import flatbuffers_reader
from odfpy.data.lru_cache import LruCache
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.files import written_aside
from odfpy.values import dataclass

FORMAT: Final = 3
"""Version of the file; it changes with the fields of `ChainState` and of the events."""

WALK: Final = 16
"""A chain that has grown by so many blocks is written down again; shorter walks cost less than that."""


_MAX_IN_MEMORY: Final = 256


@dataclass(frozen=True, slots=True)
class _Known:
    """The sum of a chain up to a block.

    Attributes:
        state: the sum, None where nothing is known.
        unwritten: blocks in it that the file does not have.
    """

    state: ChainState | None
    unwritten: int = 0


class ChainCache:
    """The sums of the chains of one workspace: in memory, and in a file for each chain. For all threads."""

    def __init__(self) -> None:
        self._latest: LruCache[Path, _Known] = LruCache(_MAX_IN_MEMORY)

    def summed_up(self, chain: MetadataChain, file: Path) -> ChainState:
        """Return what a chain amounts to at its head.

        Args:
            chain: the chain.
            file: its cache, which is read and, after a long walk, written.

        Raises:
            OdfError: a block that is needed is missing or damaged, or the chain is empty.
        """
        known = self._latest.get(file, lambda: _Known(_read(file)))
        blocks = []
        for hashed in chain.iter_blocks():
            if known.state is not None and hashed.hash == known.state.head:
                break
            blocks.append(hashed)
        else:
            known = _Known(None)  # it is not of this chain
        state, unwritten = sum_up(reversed(blocks), known.state), known.unwritten + len(blocks)
        if unwritten >= WALK:
            with contextlib.suppress(OSError, TypeError, OverflowError):  # what cannot be written is done without
                _write(file, state)
                unwritten = 0
        self._latest.put(file, _Known(state, unwritten))
        return state


def _heading() -> bytes:
    return f"odfpy chain state {FORMAT} {__version__}\n".encode()


def _read(file: Path) -> ChainState | None:
    try:
        found = file.read_bytes()
    except OSError:
        return None
    heading, size = _heading(), len(Multihash.of(b"").digest)
    if not found.startswith(heading) or len(found) < len(heading) + size:
        return None
    digest, data = found[len(heading) : len(heading) + size], found[len(heading) + size :]
    if Multihash.of(data).digest != digest:
        return None
    try:
        return flatbuffers_reader.read(ChainState, data)
    except OdfError:
        return None


def _write(file: Path, state: ChainState) -> None:
    from odfpy.codec import flatbuffers_writer  # only writers pay for importing the builder

    data = flatbuffers_writer.write(state)
    file.parent.mkdir(parents=True, exist_ok=True)
    with written_aside(file) as temporary:
        temporary.write_bytes(_heading() + Multihash.of(data).digest + data)
