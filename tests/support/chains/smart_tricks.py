"""Hostile archives of blocks."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Callable
from dataclasses import replace

from support.chains.small_datasets import NOON, make_dataset, seed

from odfpy.chain.block import MetadataBlock
from odfpy.chain.encoding import hash_block
from odfpy.chain.events import SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.data.multihash import Multihash
from odfpy.repository.smart_transfer.archive import ENCODING, MEDIA_TYPE, pack
from odfpy.repository.smart_transfer.messages import BlocksBatch

Named = list[tuple[Multihash, bytes]]


def blocks_of(layout: DatasetLayout) -> Named:
    return [(block.hash, layout.blocks.read(block.hash)) for block in layout.chain.in_order()]


def some(number: int = 1) -> Named:
    """Return the blocks of a valid dataset."""
    return blocks_of(make_dataset(DatasetLayout.in_memory(), "a", "b", number=number))


def zipped(raw: bytes, count: int) -> BlocksBatch:
    return BlocksBatch(count, MEDIA_TYPE, ENCODING, gzip.compress(raw, 1))


def entry(name: str, data: bytes = b"", **fields: object) -> bytes:
    """One entry of a tar."""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


END = bytes(1024)


def with_first(**fields: object) -> Callable[[], BlocksBatch]:
    """Return a valid archive except for its first entry."""

    def make() -> BlocksBatch:
        (name, data), *rest = some()
        others = {key: value for key, value in fields.items() if key != "name"}
        first = entry(str(fields.get("name", name)), data, **others)
        return zipped(first + b"".join(entry(str(name), data) for name, data in rest) + END, 3)

    return make


def longname() -> BlocksBatch:
    """Return an archive with a long name in a separate block, which may be endless."""
    blocks = some()
    return zipped(
        entry("././@LongLink", b"x" * 4096, type=tarfile.GNUTYPE_LONGNAME) + entry(str(blocks[0][0])) + END, 1
    )


def pax() -> BlocksBatch:
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, data in some():
            info = tarfile.TarInfo(str(name))
            info.size, info.pax_headers = len(data), {"path": "../../etc/passwd"}
            archive.addfile(info, io.BytesIO(data))
    return zipped(target.getvalue(), 3)


def altered() -> BlocksBatch:
    (name, data), *rest = some()
    return pack([(name, data[:-1] + bytes([data[-1] ^ 1])), *rest])


def garbage_block() -> BlocksBatch:
    data = b"no FlatBuffer at all" * 10
    return pack([(Multihash.of(data), data)])


def cut_block() -> BlocksBatch:
    _, data = some()[0]
    return pack([(Multihash.of(data[:-40]), data[:-40])])


def endless_block() -> BlocksBatch:
    """Return a header that announces 8 GB."""
    return zipped(entry(str(some()[0][0]), size=8 << 30), 1)


def bomb() -> BlocksBatch:
    """Return a valid archive followed by 24 MB of zeros."""
    good = gzip.decompress(pack(some()).payload)
    target = io.BytesIO()
    with gzip.GzipFile(fileobj=target, mode="wb", compresslevel=1) as stream:
        stream.write(good)
        for _ in range(3):
            stream.write(bytes(1 << 23))
    return BlocksBatch(3, MEDIA_TYPE, ENCODING, target.getvalue())


def gap() -> BlocksBatch:
    blocks = some()
    return pack([blocks[0], blocks[2]])


def cycle() -> BlocksBatch:
    """Return a block after the first one whose predecessor is its own successor."""
    first, data = hash_block(MetadataBlock(system_time=NOON, prev_block_hash=None, sequence_number=0, event=seed()))
    other, more = hash_block(
        MetadataBlock(
            system_time=NOON, prev_block_hash=Multihash.of(b"later"), sequence_number=1, event=SetInfo(description="x")
        )
    )
    return pack([(first.hash, data), (other.hash, more)])


ARCHIVES: dict[str, Callable[[], BlocksBatch]] = {
    "a path for a name": with_first(name="../../../etc/passwd"),
    "an absolute path": with_first(name="/etc/passwd"),
    "a hash in another form": with_first(name="F1620" + "AB" * 32),
    "a folder before the name": with_first(name=f"blocks/{some()[0][0]}"),
    "a symbolic link": with_first(type=tarfile.SYMTYPE, linkname="/etc/passwd"),
    "a hard link": with_first(type=tarfile.LNKTYPE, linkname="x"),
    "a device": with_first(type=tarfile.CHRTYPE),
    "a folder": with_first(type=tarfile.DIRTYPE),
    "a sparse file": with_first(type=tarfile.GNUTYPE_SPARSE),
    "a long name": longname,
    "pax headers": pax,
    "an endless block": endless_block,
    "a bomb": bomb,
    "no gzip": lambda: BlocksBatch(1, MEDIA_TYPE, ENCODING, b"PK" * 500),
    "cut in the middle": lambda: replace(pack(some()), payload=pack(some()).payload[:-100]),
    "no tar": lambda: zipped(b"x" * 2048, 1),
    "no end": lambda: zipped(entry(str(some()[0][0]), some()[0][1]), 1),
    "something after the end": lambda: zipped(gzip.decompress(pack(some()).payload) + b"more", 3),
    "nothing": lambda: pack([]),
    "more than announced": lambda: replace(pack(some()), num_blocks=2),
    "less than announced": lambda: replace(pack(some()), num_blocks=4),
    "very many": lambda: replace(pack(some()), num_blocks=2**32 - 1),
    "another media type": lambda: replace(pack(some()), media_type="application/zip"),
    "another encoding": lambda: replace(pack(some()), encoding="base64"),
    "an altered block": altered,
    "a block that is none": garbage_block,
    "a cut block": cut_block,
    "a gap": gap,
    "another order": lambda: pack(some()[::-1]),
    "a block twice": lambda: pack([some()[0], *some()]),
    "a cycle": cycle,
    "no beginning": lambda: pack(some()[1:]),
}
