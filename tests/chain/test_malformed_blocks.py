"""Bytes that strangers wrote: whatever they are, there is a block or one typed error, soon and in little memory."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from typing import Any

import flatbuffers
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.values import blocks
from support.examples import examples
from support.fixtures import KAMU
from support.processes.limits import run_limited

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.encoding import (
    BLOCK_VERSION,
    MAX_BLOCK_SIZE,
    ODF_METADATA_BLOCK,
    _Manifest,
    block_document,
    decode_block,
    encode_block,
)
from odfpy.chain.events import SetAttachments, SetDataSchema, SetInfo
from odfpy.codec import flatbuffers_writer
from odfpy.codec.yaml import dump
from odfpy.data.multihash import Multihash
from odfpy.data.schemas import schema
from odfpy.data.schemas.schema import DataField, DataSchema, DataType
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.attachments import AttachmentEmbedded, AttachmentsEmbedded
from odfpy.errors import MalformedBlock, MalformedData, UnsupportedVersion

GOLDEN = [path.read_bytes() for path in sorted(KAMU.glob("*/blocks/*"))]
NOW = Timestamp.parse("2024-01-01T00:00:00Z")


def block(event: Any) -> MetadataBlock:
    return MetadataBlock(system_time=NOW, sequence_number=1, event=event)


def manifest(content: bytes, *, kind: int = ODF_METADATA_BLOCK, version: int = BLOCK_VERSION) -> bytes:
    return flatbuffers_writer.write(_Manifest(kind, version, content))


def is_read_or_refused(data: bytes) -> bool:
    """Whether the bytes are a block; one that can be printed, written and read again like any other."""
    try:
        decoded = decode_block(data)
    except MalformedData:
        return False
    dump(block_document(HashedBlock(Multihash.of(data), decoded)))
    assert decode_block(encode_block(decoded)) == decoded
    return True


# --- Mutations of real blocks ----------------------------------------------------------------------------------------

NUMBERS = (0, 1, 2, 4, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF)


def overwrite(data: bytes, at: int, part: bytes) -> bytes:
    return data[:at] + part + data[at + len(part) :]


def mutate(rng: random.Random, data: bytes) -> bytes:
    at = rng.randrange(len(data))
    length = rng.choice((1, 2, 4, 8, 16, 64))
    other = rng.choice(GOLDEN)
    return rng.choice(
        [
            lambda: overwrite(data, at, bytes([data[at] ^ (1 << rng.randrange(8))])),
            lambda: overwrite(data, at, rng.randbytes(length)),
            lambda: overwrite(data, at, bytes(length)),
            lambda: overwrite(data, at, struct.pack("<I", rng.choice((*NUMBERS, len(data), rng.randrange(len(data)))))),
            lambda: overwrite(data, at & ~3, struct.pack("<I", rng.choice(NUMBERS))),
            lambda: overwrite(data, at & ~1, struct.pack("<H", rng.choice(NUMBERS) & 0xFFFF)),
            lambda: data[:at],
            lambda: data[:at] + data[at + length :],
            lambda: data[:at] + rng.randbytes(length) + data[at:],
            lambda: data[:at] + other[at:],
            lambda: overwrite(data, at, data[rng.randrange(len(data)) :][:length]),
        ]
    )()


def test_ten_thousand_mutated_blocks():
    rng = random.Random(20240101)
    read = 0
    for _ in range(10_000):
        data = rng.choice(GOLDEN)
        for _ in range(rng.choice((1, 1, 1, 2, 5))):
            data = mutate(rng, data) or b"\0"
        read += is_read_or_refused(data)
    assert 500 < read < 9_500, "mutations should neither all be harmless nor all be noticed"


@settings(max_examples=examples(80, 300))
@given(blocks, st.data())
def test_mutated_random_blocks(original: MetadataBlock, data: st.DataObject):
    encoded = encode_block(original)
    at = data.draw(st.integers(0, len(encoded) - 1))
    is_read_or_refused(overwrite(encoded, at, data.draw(st.binary(min_size=1, max_size=8))))


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes):
    is_read_or_refused(data)
    is_read_or_refused(manifest(data))


@pytest.mark.parametrize("data", [GOLDEN[0], max(GOLDEN, key=len)], ids=["shortest path", "longest"])
def test_truncation_anywhere(data: bytes):
    assert is_read_or_refused(data)
    for size in range(len(data)):
        is_read_or_refused(data[:size])
        is_read_or_refused(data[:size] + bytes(len(data) - size))


@pytest.mark.parametrize("size", [0, 1, 3, 4, 7, 8, 100, 100_000])
@pytest.mark.parametrize("filling", [b"\x00", b"\x01", b"\x04", b"\xff"])
def test_monotonous_bytes(size: int, filling: bytes):
    with pytest.raises(MalformedBlock):
        decode_block(filling * size)
    with pytest.raises(MalformedBlock):
        decode_block(manifest(filling * size))


# --- Wrong manifests -------------------------------------------------------------------------------------------------

CONTENT = flatbuffers_writer.write(block(SetInfo("a")))


@pytest.mark.parametrize("version", [-1, 0, 1, 4, 2**31 - 1])
def test_other_versions_are_refused(version: int):
    with pytest.raises(UnsupportedVersion, match=f"version {version}") as caught:
        decode_block(manifest(CONTENT, version=version))
    assert caught.value.hint


@pytest.mark.parametrize("kind", [0, 1, -1, 2**62])
def test_other_kinds_are_refused(kind: int):
    with pytest.raises(MalformedBlock, match="Not a metadata block"):
        decode_block(manifest(CONTENT, kind=kind))


def test_too_large_blocks_are_refused_unread():
    with pytest.raises(MalformedBlock, match="larger than the limit"):
        decode_block(bytes(MAX_BLOCK_SIZE + 1))


def test_manifest_without_content_is_refused():
    with pytest.raises(MalformedBlock):
        decode_block(manifest(b""))


# --- Small buffers that describe large values ------------------------------------------------------------------------
# A writer may point to one table from many places, which no tree of values would: bombs are made of such pointers.

UNIONS = {member.__name__: number for number, member in enumerate(DataType.__args__, 1)}
SET_DATA_SCHEMA, SET_INFO = 10, 8


def table(builder: Any, slots: int, **fields: int) -> int:
    """A table with offsets (`s3=...`) and kinds of unions (`u2=...`) in some slots."""
    builder.StartObject(slots)
    for name, value in fields.items():
        slot = int(name[1:])
        if name[0] == "u":
            builder.PrependUint8Slot(slot, value, 0)
        else:
            builder.PrependUOffsetTRelativeSlot(slot, value, 0)
    offset: int = builder.EndObject()
    return offset


def vector(builder: Any, offsets: list[int]) -> int:
    builder.StartVector(4, len(offsets), 4)
    for offset in reversed(offsets):
        builder.PrependUOffsetTRelative(offset)
    end: int = builder.EndVector()
    return end


def finish(builder: Any, event: int, number: int) -> bytes:
    """A block with an event table that was written already."""
    builder.StartObject(5)
    builder.PrependStructSlot(0, flatbuffers_writer._write_timestamp(builder, NOW), 0)
    builder.PrependUint64Slot(2, 1, 0)
    builder.PrependUint8Slot(3, number, 0)
    builder.PrependUOffsetTRelativeSlot(4, event, 0)
    builder.Finish(builder.EndObject())
    return manifest(bytes(builder.Output()))


def block_with_type(build: Callable[[Any], tuple[int, str]]) -> bytes:
    """A block that sets a schema of one field, whose type is made by hand."""
    builder = flatbuffers.Builder(1024)
    type_, kind = build(builder)
    name = builder.CreateString("a")
    field = table(builder, 4, s0=name, u1=UNIONS[kind], s2=type_)
    data_schema = table(builder, 2, s0=vector(builder, [field]))
    return finish(builder, table(builder, 2, s1=data_schema), SET_DATA_SCHEMA)


def maps_of_maps(levels: int) -> bytes:
    """Each map's key and value are the same map: 2 to the power of `levels` types."""

    def build(builder: Any) -> tuple[int, str]:
        type_, kind = table(builder, 0), "String"
        for _ in range(levels):
            type_ = table(builder, 5, u0=UNIONS[kind], s1=type_, u2=UNIONS[kind], s3=type_)
            kind = "Map"
        return type_, kind

    return block_with_type(build)


def structs_of_structs(levels: int, width: int) -> bytes:
    """Each struct's fields are all the same field: `width` to the power of `levels`."""

    def build(builder: Any) -> tuple[int, str]:
        name = builder.CreateString("a")
        type_, kind = table(builder, 0), "String"
        for _ in range(levels):
            field = table(builder, 4, s0=name, u1=UNIONS[kind], s2=type_)
            type_, kind = table(builder, 1, s0=vector(builder, [field] * width)), "Struct"
        return type_, kind

    return block_with_type(build)


def keywords(text: str, count: int) -> bytes:
    """All keywords are the same text."""
    builder = flatbuffers.Builder(1024)
    words = vector(builder, [builder.CreateString(text)] * count)
    return finish(builder, table(builder, 2, s1=words), SET_INFO)


def nested_options(levels: int) -> bytes:
    def build(builder: Any) -> tuple[int, str]:
        type_, kind = table(builder, 0), "String"
        for _ in range(levels):
            type_, kind = table(builder, 2, u0=UNIONS[kind], s1=type_), "Option"
        return type_, kind

    return block_with_type(build)


BOMBS = {
    "maps of the same map": lambda: maps_of_maps(60),
    "fewer maps of the same map": lambda: maps_of_maps(20),
    "structs of the same field": lambda: structs_of_structs(5, 1000),
    "a million fields": lambda: structs_of_structs(1, 1_000_000),
    "one long text many times": lambda: keywords("x" * 1_000_000, 100_000),
    "empty texts": lambda: keywords("", 3_000_000),
    "nesting": lambda: nested_options(200),
    "more nesting": lambda: nested_options(20_000),
}


@pytest.mark.parametrize("name", BOMBS)
def test_bomb_is_refused_in_bounded_time_and_memory(name: str):
    data = BOMBS[name]()
    with pytest.raises(MalformedBlock):
        run_limited(decode_block, data, megabytes=400, seconds=20)


def test_shared_texts_are_fine_within_reason():
    assert decode_block(keywords("word", 2)).event == SetInfo(None, ("word", "word"))


def test_deep_types_are_read():
    event = decode_block(nested_options(90)).event
    assert isinstance(event, SetDataSchema)
    assert is_read_or_refused(nested_options(90))


def test_large_honest_blocks_are_read():
    columns = tuple(DataField(f"column_{number}", schema.Option(schema.Int64())) for number in range(5_000))
    texts = AttachmentsEmbedded((AttachmentEmbedded("README.md", "x" * 5_000_000),))
    for event in (SetDataSchema(schema=DataSchema(columns)), SetAttachments(texts)):
        assert decode_block(encode_block(block(event))) == block(event)


# --- Values that are not values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("what", "damage"),
    [
        ("year 10000", lambda data: data.replace(struct.pack("<iH", 2024, 1), struct.pack("<iH", 10_000, 1))),
        ("year 0", lambda data: data.replace(struct.pack("<iH", 2024, 1), struct.pack("<iH", 0, 1))),
        ("least year", lambda data: data.replace(struct.pack("<iH", 2024, 1), struct.pack("<iH", -(2**31), 1))),
        ("day 0", lambda data: data.replace(struct.pack("<iH", 2024, 1), struct.pack("<iH", 2024, 0))),
        ("day 367", lambda data: data.replace(struct.pack("<iH", 2024, 1), struct.pack("<iH", 2024, 367))),
        ("text that is not UTF-8", lambda data: data.replace(b"a word", b"a \xff\xfe!!")),
    ],
)
def test_impossible_value_is_refused(what: str, damage: Callable[[bytes], bytes]):
    del what
    data = encode_block(block(SetInfo("a word")))
    assert damage(data) != data
    with pytest.raises(MalformedBlock):
        decode_block(damage(data))


def test_union_with_kind_but_without_value_is_refused():
    with pytest.raises(MalformedBlock, match="a kind without a value"):
        decode_block(block_with_type(lambda builder: (table(builder, 2, u0=UNIONS["String"]), "Option")))


def test_unknown_kind_of_event_is_refused():
    builder = flatbuffers.Builder(1024)
    with pytest.raises(MalformedBlock, match="Unknown kind 14"):
        decode_block(finish(builder, table(builder, 0), 14))
