"""Raw Arrow schemas of older blocks."""

from __future__ import annotations

import contextlib
import random
import struct

import pyarrow as pa
import pytest
from support.chains.events import RAW_ARROW, ROOT, unchecked

from odfpy.chain.events import SetDataSchema
from odfpy.chain.metadata_chain import sum_up
from odfpy.data.schemas import schema
from odfpy.data.schemas.arrow import from_arrow
from odfpy.data.schemas.raw_arrow import check_upgrade, read_raw_arrow
from odfpy.data.schemas.schema import DataField, DataSchema
from odfpy.errors import SchemaError


def raw(arrow: pa.Schema) -> bytes:
    """The root table of the schema, without the message that Arrow puts it into: moved to the front of the buffer."""
    message = arrow.serialize().to_pybytes()[8:]
    (root,) = struct.unpack_from("<I", message)
    vtable = root - struct.unpack_from("<i", message, root)[0]
    (header_slot,) = struct.unpack_from("<H", message, vtable + 8)
    at = root + header_slot
    target = at + struct.unpack_from("<I", message, at)[0]
    # An offset to the schema's table where the root offset is; all else can stay, offsets being relative.
    return struct.pack("<I", target) + message[4:]


WIDE = pa.schema(
    [
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("op", pa.int32(), nullable=False),
        pa.field("system_time", pa.timestamp("ms", "UTC"), nullable=False),
        pa.field("event_time", pa.timestamp("ms", "UTC")),
        pa.field("city", pa.string()),
        pa.field("tags", pa.list_(pa.field("item", pa.string()))),
        pa.field("at", pa.struct([pa.field("x", pa.float64()), pa.field("y", pa.float64(), nullable=False)])),
        pa.field("price", pa.decimal128(10, 2)),
    ]
)


def test_a_schema_recorded_by_the_reference():
    fields = (DataField("a", schema.Int64()), DataField("b", schema.Bool()))
    assert read_raw_arrow(RAW_ARROW) == DataSchema(fields)


def test_any_schema():
    assert read_raw_arrow(raw(WIDE)) == from_arrow(WIDE)


def test_it_is_the_schema_of_its_dataset():
    state = sum_up(unchecked([ROOT, SetDataSchema(raw_arrow_schema=raw(WIDE))]))
    assert state.schema == from_arrow(WIDE)


def required(arrow: pa.Schema) -> DataSchema:
    """The same columns, none of which may hold nulls, at no level."""
    place = {"tags": schema.List(schema.String())}
    point = (DataField("x", schema.Float64()), DataField("y", schema.Float64()))
    place["at"] = schema.Struct(point)
    found = from_arrow(arrow)
    return DataSchema(
        tuple(
            DataField(field.name, place.get(field.name, getattr(field.type, "inner", field.type)))
            for field in found.fields
        )
    )


def test_fields_may_become_required_when_a_schema_takes_its_place():
    check_upgrade(from_arrow(WIDE), from_arrow(WIDE))
    check_upgrade(from_arrow(WIDE), required(WIDE))
    check_upgrade(from_arrow(required_arrow := WIDE.remove(7)), from_arrow(required_arrow))


@pytest.mark.parametrize(
    ("name", "type_"),
    [
        ("city", schema.Int64()),
        ("tags", schema.List(schema.UInt32())),
        ("at", schema.Struct((DataField("x", schema.Float64()),))),
        ("price", schema.Decimal(12, 2)),
    ],
)
def test_types_may_not_change(name: str, type_: schema.DataType):
    fields = tuple(
        DataField(field.name, type_ if field.name == name else field.type) for field in required(WIDE).fields
    )
    with pytest.raises(SchemaError, match=name):
        check_upgrade(from_arrow(WIDE), DataSchema(fields))


def test_malformed_bytes():
    rng = random.Random(3)
    for _ in range(3_000):
        data = bytearray(rng.choice((RAW_ARROW, raw(WIDE))))
        for _ in range(rng.choice((1, 2, 4))):
            data[rng.randrange(len(data))] = rng.randrange(256)
        with contextlib.suppress(SchemaError):
            read_raw_arrow(bytes(data[: rng.choice((len(data), rng.randrange(len(data))))]))
    for nothing in (b"", b"\0", bytes(100), b"\xff" * 100):
        with pytest.raises(SchemaError):
            read_raw_arrow(nothing)
