"""Blocks as a gzipped GNU tar: entries are named by the block's hash, contain its encoded bytes, and are oldest first.

A received archive is read entry by entry, with limits. tarfile only parses single headers: other features of tar (long
names, links, devices, sparse files, paths) are not needed for blocks, and are rejected.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, cast

from odfpy.chain.encoding import MAX_BLOCK_SIZE
from odfpy.data.multihash import Multihash
from odfpy.errors import InvalidValue
from odfpy.repository.peer_errors import ProtocolViolation
from odfpy.repository.smart_transfer.messages import BlocksBatch

MEDIA_TYPE = "application/tar+gzip"
ENCODING = "raw"

_MAX_END = 64 * 1024  # zeros after the last entry; tar pads to 10 KB
_LEVEL = 6
_BUFFER = 1 << 20


@dataclass(frozen=True, slots=True)
class ArchiveLimits:
    """Limits on the content of an archive.

    Attributes:
        blocks: maximum number of entries.
        block_size: maximum bytes of a block.
        total_size: maximum bytes of all blocks, which are in memory at the same time.
    """

    blocks: int = 1_000_000
    block_size: int = MAX_BLOCK_SIZE
    total_size: int = 128 * 1024 * 1024


def pack(blocks: Iterable[tuple[Multihash, bytes]]) -> BlocksBatch:
    """Pack blocks, oldest first; the result is deterministic."""
    target = io.BytesIO()
    count = 0
    # The gzip header must have no time, so that the result is deterministic.
    with (
        gzip.GzipFile(fileobj=target, mode="wb", compresslevel=_LEVEL, mtime=0, filename="") as packed,
        io.BufferedWriter(packed, _BUFFER) as stream,
    ):
        for name, data in blocks:
            entry = tarfile.TarInfo(str(name))
            entry.size = len(data)
            stream.write(entry.tobuf(tarfile.GNU_FORMAT))
            stream.write(data)
            stream.write(bytes(-len(data) % tarfile.BLOCKSIZE))
            count += 1
        stream.write(bytes(2 * tarfile.BLOCKSIZE))
    return BlocksBatch(count, MEDIA_TYPE, ENCODING, target.getvalue())


def unpack(batch: BlocksBatch, limits: ArchiveLimits) -> list[tuple[Multihash, bytes]]:
    """Return the blocks of an archive, in order; only their size is checked.

    Raises:
        ProtocolViolation: the archive is invalid, or exceeds the limits.
    """
    if (batch.media_type, batch.encoding) != (MEDIA_TYPE, ENCODING):
        raise ProtocolViolation(f"Blocks come as {batch.media_type[:80]!r}, {batch.encoding[:80]!r}: not supported")
    if batch.num_blocks > limits.blocks:
        raise ProtocolViolation(f"{batch.num_blocks} blocks at once, {limits.blocks} are allowed")
    blocks: list[tuple[Multihash, bytes]] = []
    total = 0
    try:
        with _unzipped(batch.payload) as stream:
            for name, data in _entries(stream, limits):
                total += len(data)
                if len(blocks) == batch.num_blocks:
                    raise ProtocolViolation(f"The archive has more than the {batch.num_blocks} blocks announced")
                if total > limits.total_size:
                    raise ProtocolViolation(f"The archive has more than the {limits.total_size} bytes allowed")
                blocks.append((name, data))
    except (OSError, EOFError, zlib.error) as error:
        raise ProtocolViolation(f"The archive of blocks cannot be read: {error}") from error
    if len(blocks) != batch.num_blocks:
        raise ProtocolViolation(f"The archive has {len(blocks)} blocks, {batch.num_blocks} are announced")
    return blocks


def _unzipped(payload: bytes) -> BinaryIO:
    # Small reads of a GzipFile are slow.
    stream = io.BufferedReader(gzip.GzipFile(fileobj=io.BytesIO(payload)), _BUFFER)
    return cast("BinaryIO", stream)


def _entries(stream: BinaryIO, limits: ArchiveLimits) -> Iterator[tuple[Multihash, bytes]]:
    while (header := _exactly(stream, tarfile.BLOCKSIZE)).strip(b"\0"):
        name, size = _read_header(header)
        if size > limits.block_size:
            raise ProtocolViolation(f"Block {name} of the archive has {size} bytes, {limits.block_size} are allowed")
        data = _exactly(stream, size)
        _exactly(stream, -size % tarfile.BLOCKSIZE)
        yield name, data
    # Zeros compress to almost nothing: without a limit, reading a small archive could take very long.
    if stream.read(_MAX_END).strip(b"\0") or stream.read(1):
        raise ProtocolViolation("The archive of blocks continues after its end")


def _read_header(header: bytes) -> tuple[Multihash, int]:
    try:
        entry = tarfile.TarInfo.frombuf(header, "utf-8", "surrogateescape")
    except (tarfile.TarError, ValueError) as error:
        raise ProtocolViolation(f"The archive of blocks is not a tar: {error}") from error
    try:
        name = Multihash.parse(entry.name)
    except InvalidValue:
        name = None
    if name is None or str(name) != entry.name or entry.type not in (tarfile.REGTYPE, tarfile.AREGTYPE):
        raise ProtocolViolation(f"An entry of the archive is not a block: {entry.name[:120]!r}")
    if entry.size < 0:
        raise ProtocolViolation(f"Block {name} of the archive has a size below zero")
    return name, entry.size


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) != count:
        raise ProtocolViolation("The archive of blocks ends in the middle of a block")
    return data
