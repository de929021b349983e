"""The sum of a long chain, kept in the dataset's cache, so that a command need not walk the whole of it.

The file holds a `ChainState` in the codec of the blocks, after a line that says which release has written it and a
hash of the rest. It is good for the block that it names and, since blocks are linked by their hashes, for all that
follow: what a chain has grown since is summed up on top. A file that is damaged, of another release or of another
chain is as good as none. The head itself is always read, and `odf verify` never looks here.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Final

from odfpy import __version__
from odfpy.chain.metadata_chain import MetadataChain, sum_up
from odfpy.chain.state import ChainState
from odfpy.codec import flatbuffers_reader
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError
from odfpy.files import written_aside

FORMAT: Final = 3
"""Version of the file; it changes with the fields of `ChainState` and of the events."""

WALK: Final = 32
"""A chain that has grown by so many blocks is written down again; shorter walks cost less than that."""


def summed_up(chain: MetadataChain, file: Path) -> ChainState:
    """Return what a chain amounts to at its head.

    Args:
        chain: the chain.
        file: the cache, which is read and, after a long walk, written.

    Raises:
        OdfError: a block that is needed is missing or damaged, or the chain is empty.
    """
    known = _read(file)
    blocks = []
    for hashed in chain.iter_blocks():
        if known is not None and hashed.hash == known.head:
            break
        blocks.append(hashed)
    else:
        known = None  # it is not of this chain
    state = sum_up(reversed(blocks), known)
    if len(blocks) >= WALK:
        with contextlib.suppress(OSError):  # a cache that cannot be written is done without
            _write(file, state)
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
