"""Cache of the states of long chains, so that a command need not read all of their blocks.

A process also keeps recently used states in memory. A cache file holds a `ChainState` in the encoding of blocks, after
a line with the release that wrote it and a hash of the content. It is valid for the block that it names and, since
blocks are linked by hash, for all chains that contain this block: later blocks are applied on top. A file that is
damaged, or belongs to another release or chain, is ignored. The head itself is always read, and `odf verify` does not
use the cache.
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
from odfpy.files import replaced_atomically
from odfpy.values import dataclass

FORMAT: Final = 3
"""Version of the file format; to be incremented when fields of `ChainState` or of events change."""

WALK: Final = 16
"""Number of new blocks after which the state is written again; reading fewer blocks takes less time than writing it."""


_MAX_IN_MEMORY: Final = 256


@dataclass(frozen=True, slots=True)
class _Known:
    """The state of a chain at a block.

    Attributes:
        state: the state, None if there is none.
        unwritten: number of its blocks that are not in the file.
    """

    state: ChainState | None
    unwritten: int = 0


class ChainCache:
    """The chain states of one workspace, in memory and in a file for each chain; thread-safe."""

    def __init__(self) -> None:
        self._latest: LruCache[Path, _Known] = LruCache(_MAX_IN_MEMORY)

    def summed_up(self, chain: MetadataChain, file: Path) -> ChainState:
        """Return the state of a chain at its head.

        Args:
            chain: the chain.
            file: cache file of the chain, which is read and, after many new blocks, written.

        Raises:
            OdfError: a required block is missing or damaged, or the chain is empty.
        """
        known = self._latest.get(file, lambda: _Known(_read(file)))
        blocks = []
        for hashed in chain.iter_blocks():
            if known.state is not None and hashed.hash == known.state.head:
                break
            blocks.append(hashed)
        else:
            known = _Known(None)  # the state belongs to another chain
        state, unwritten = sum_up(reversed(blocks), known.state), known.unwritten + len(blocks)
        if unwritten >= WALK:
            with contextlib.suppress(OSError, TypeError, OverflowError):  # the cache is optional
                _write(file, state)
                unwritten = 0
        self._latest.put(file, _Known(state, unwritten))
        return state


def _heading() -> bytes:
    return f"odfpy chain state {FORMAT} {__version__}\n".encode()


def _read(file: Path) -> ChainState | None:
    try:
        content = file.read_bytes()
    except OSError:
        return None
    heading, size = _heading(), len(Multihash.of(b"").digest)
    if not content.startswith(heading) or len(content) < len(heading) + size:
        return None
    digest, data = content[len(heading) : len(heading) + size], content[len(heading) + size :]
    if Multihash.of(data).digest != digest:
        return None
    try:
        return flatbuffers_reader.read(ChainState, data)
    except OdfError:
        return None


def _write(file: Path, state: ChainState) -> None:
    from odfpy.codec import flatbuffers_writer  # only writers need the builder

    data = flatbuffers_writer.write(state)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replaced_atomically(file) as temporary:
        temporary.write_bytes(_heading() + Multihash.of(data).digest + data)
