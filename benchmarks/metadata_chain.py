"""What a block costs: encoding, decoding, summing up, checking the rules, printing, for a chain of many blocks.

    python benchmarks/metadata_chain.py [--blocks 10000]

Times are processor time in microseconds a block, the least of some runs, which other work on the machine disturbs
least; SHA3-256 over the same bytes stands beside them. Nothing is asserted on time.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from support import print_machine

from odfpy.chain.encoding import block_document, decode_block, encode_block
from odfpy.chain.events import AddData, DataSlice, MetadataEvent, Seed, SetDataSchema, SourceState
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import sum_up
from odfpy.chain.new_blocks import validate
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.codec.yaml import dump
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas import schema
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.identity import DatasetId
from odfpy.dataset.kind import DatasetKind

START = Timestamp.parse("2024-01-01T00:00:00.123456789Z")


def events(count: int) -> Iterable[MetadataEvent]:
    """A dataset that took in a slice every minute."""
    yield Seed(DatasetId(bytes(range(32))), DatasetKind.ROOT)
    fields = tuple(DataField(f"column_{number}", schema.Option(schema.String())) for number in range(20))
    yield SetDataSchema(schema=DataSchema(fields))
    for number in range(count - 2):
        digest = hashlib.sha3_256(str(number).encode()).digest()
        interval = OffsetInterval(100 * number, 100 * number + 99)
        yield AddData(
            prev_offset=100 * number - 1 if number else None,
            new_data=DataSlice(Multihash(0x300016, digest), Multihash(0x16, digest), interval, 12_345),
            new_watermark=Timestamp(START.nanos + number * 60_000_000_000),
            new_source_state=SourceState("default", "odf/etag", digest.hex()),
        )


def cost(work: Callable[[], object], count: int, repeat: int = 3) -> float:
    """Microseconds for each of `count` things."""
    least = float("inf")
    for _ in range(repeat):
        start = time.process_time()
        work()
        least = min(least, time.process_time() - start)
    return least / count * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, default=10_000)
    count = parser.parse_args().blocks
    layout = DatasetLayout.in_memory()
    new = layout.chain.prepare(ChainState(), events(count), START)
    layout.chain.commit(new)
    blocks = layout.chain.in_order()
    encoded = [layout.blocks.read(hashed.hash) for hashed in blocks]
    print_machine("flatbuffers")
    print(f"{count} blocks, {sum(map(len, encoded)) // count} bytes each")
    rows: dict[str, Callable[[], object]] = {
        "sha3-256 (hashlib)": lambda: [hashlib.sha3_256(data).digest() for data in encoded],
        "encode": lambda: [encode_block(hashed.block) for hashed in blocks],
        "decode": lambda: [decode_block(data) for data in encoded],
        "sum up": lambda: sum_up(blocks),
        "check all rules": lambda: validate(blocks),
        "to a document": lambda: [block_document(hashed) for hashed in blocks],
    }
    for name, work in rows.items():
        print(f"{name:24}{cost(work, count):8.1f} us a block")
    few = blocks[:: max(1, count // 1000)]
    print(f"{'to YAML':24}{cost(lambda: [dump(block_document(hashed)) for hashed in few], len(few)):8.1f} us a block")
    with tempfile.TemporaryDirectory() as folder:
        local = DatasetLayout.local(Path(folder))
        (Path(folder) / "blocks").mkdir()
        for hashed, data in zip(blocks, encoded, strict=True):
            (Path(folder) / "blocks" / str(hashed.hash)).write_bytes(data)
        local.refs.compare_and_swap(HEAD, None, blocks[-1].hash)
        print(f"{'state of a local chain':24}{cost(local.chain.state, count):8.1f} us a block")


if __name__ == "__main__":
    main()
