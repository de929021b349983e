"""Block hashes are those of the reference implementation, in the version that is written and in the one before it."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
from support.fixtures import VECTORS

from odfpy.chain import encoding
from odfpy.chain.block import MetadataBlock
from odfpy.chain.encoding import decode_block, encode_block
from odfpy.chain.events import MetadataEvent
from odfpy.codec import flatbuffers_writer
from odfpy.codec.tree import from_tree
from odfpy.codec.yaml import load_documents
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp


@cache
def vectors(file: str) -> dict[str, dict[str, Any]]:
    text = re.sub(r"mh\((\w+)\)", lambda match: str(Multihash.of(match[1].encode())), (VECTORS / file).read_text())
    (document,) = load_documents(text)
    return {vector["name"]: vector for vector in document.tree}


ALL = [(file, name) for file in ("blocks.yaml", "blocks-more.yaml") for name in vectors(file)]
OLD = list(vectors("blocks-more.yaml"))


def block_of(vector: dict[str, Any]) -> MetadataBlock:
    return MetadataBlock(
        system_time=Timestamp.parse("2020-01-01T12:00:00Z"),
        prev_block_hash=Multihash.of(b"prev"),
        sequence_number=117,
        event=from_tree(MetadataEvent, vector["event"]),
    )


@pytest.fixture
def encode_version_2(monkeypatch: pytest.MonkeyPatch) -> Callable[[MetadataBlock], bytes]:
    """An encoder of blocks of version 2, which had the `Timestamp` struct wherever it happened to fall."""

    def write_unaligned(builder: Any, value: Timestamp) -> int:
        year, ordinal, seconds, nanos = value.to_ordinal()
        builder.Prep(1, 16)
        for part in (
            nanos.to_bytes(4, "little"),
            seconds.to_bytes(4, "little"),
            bytes(2),
            ordinal.to_bytes(2, "little"),
            year.to_bytes(4, "little", signed=True),
        ):
            for byte in reversed(part):
                builder.PrependByte(byte)
        offset: int = builder.Offset()
        return offset

    def encode(block: MetadataBlock) -> bytes:
        with monkeypatch.context() as patch:
            patch.setattr(flatbuffers_writer, "_write_timestamp", write_unaligned)
            patch.setattr(encoding, "BLOCK_VERSION", 2)
            return encode_block(block)

    return encode


@pytest.mark.parametrize(("file", "name"), ALL)
def test_block_has_the_hash_of_the_reference(file: str, name: str):
    vector = vectors(file)[name]
    data = encode_block(block_of(vector))
    assert Multihash.of(data).digest.hex() == vector["hash"]
    assert decode_block(data) == block_of(vector)


@pytest.mark.parametrize("name", OLD)
def test_block_of_version_2_is_read(name: str, encode_version_2: Callable[[MetadataBlock], bytes]):
    vector = vectors("blocks-more.yaml")[name]
    data = encode_version_2(block_of(vector))
    assert Multihash.of(data).digest.hex() == vector["hash_v2"], "the test's encoder is not that of version 2"
    assert decode_block(data) == block_of(vector)


def test_versions_differ_in_bytes(encode_version_2: Callable[[MetadataBlock], bytes]):
    block = block_of(vectors("blocks-more.yaml")["add_data_full"])
    assert encode_version_2(block) != encode_block(block)
