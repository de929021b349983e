"""Answers and their schemas as JSON: what the reference's recorded answers do not show."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from odfpy.errors import SchemaError
from odfpy.query.wire.layouts import DataFormat, laid_out
from odfpy.query.wire.schema_formats import SchemaFormat, write_schema

AOS, SOA, AOA = DataFormat.ARRAY_OF_STRUCTURES, DataFormat.STRUCTURE_OF_ARRAYS, DataFormat.ARRAY_OF_ARRAYS

NESTED = pa.table(
    {
        "s": pa.array([{"x": 1, "y": [{"z": "a"}]}, None]),
        "m": pa.array([[("k", {"v": 1})], None], pa.map_(pa.string(), pa.struct([("v", pa.int32())]))),
        "n": pa.array([[(1, {"v": 1})], []], pa.map_(pa.int32(), pa.struct([("v", pa.int32())]))),
    }
)


@pytest.mark.parametrize(
    ("layout", "tree"),
    [
        (
            AOS,
            [
                {"s": {"x": 1, "y": [{"z": "a"}]}, "m": {"k": {"v": 1}}, "n": [{"key": 1, "value": {"v": 1}}]},
                {"s": None, "m": None, "n": []},
            ],
        ),
        (
            SOA,
            {
                "s": [{"x": 1, "y": [{"z": "a"}]}, None],
                "m": [{"k": {"v": 1}}, None],
                "n": [[{"key": 1, "value": {"v": 1}}], []],
            },
        ),
        (AOA, [[[1, [["a"]]], {"k": [1]}, [{"key": 1, "value": [1]}]], [None, None, []]]),
    ],
)
def test_nested_values(layout: DataFormat, tree: Any):
    assert laid_out(NESTED, layout) == tree


@pytest.mark.parametrize("layout", DataFormat)
def test_no_rows(layout: DataFormat):
    assert laid_out(pa.table({"a": pa.array([], pa.int64())}), layout) == ({"a": []} if layout is SOA else [])


def test_columns_of_one_name_have_a_layout_only_without_names():
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert laid_out(table, AOA) == [[1, 2]]
    for layout in (AOS, SOA):
        with pytest.raises(SchemaError, match="Two columns of the answer are called 'a'"):
            laid_out(table, layout)


KINDS = {
    "i8": pa.int8(),
    "u16": pa.uint16(),
    "f16": pa.float16(),
    "f32": pa.float32(),
    "f64": pa.float64(),
    "ok": pa.bool_(),
    "day": pa.date32(),
    "local": pa.timestamp("us"),
    "seconds": pa.timestamp("s", "UTC"),
    "clock": pa.time32("ms"),
    "long": pa.duration("ns"),
    "small": pa.decimal128(9, 2),
    "wide": pa.decimal128(38, 0),
    "bytes": pa.large_binary(),
    "five": pa.binary(5),
    "items": pa.list_(pa.field("item", pa.string(), nullable=False)),
    "parts": pa.struct([pa.field("x", pa.int32(), nullable=False)]),
    "map": pa.map_(pa.string(), pa.int64()),
}
SCHEMA = pa.schema(list(KINDS.items()))


def test_parquet_schema():
    assert (
        write_schema(SCHEMA, SchemaFormat.PARQUET)
        == """message arrow_schema {
  OPTIONAL INT32 i8 (INTEGER(8,true));
  OPTIONAL INT32 u16 (INTEGER(16,false));
  OPTIONAL FIXED_LEN_BYTE_ARRAY (2) f16 (FLOAT16);
  OPTIONAL FLOAT f32;
  OPTIONAL DOUBLE f64;
  OPTIONAL BOOLEAN ok;
  OPTIONAL INT32 day (DATE);
  OPTIONAL INT64 local (TIMESTAMP(MICROS,true));
  OPTIONAL INT64 seconds;
  OPTIONAL INT32 clock (TIME(MILLIS,false));
  OPTIONAL INT64 long;
  OPTIONAL INT32 small (DECIMAL(9,2));
  OPTIONAL FIXED_LEN_BYTE_ARRAY (16) wide (DECIMAL(38,0));
  OPTIONAL BYTE_ARRAY bytes;
  OPTIONAL FIXED_LEN_BYTE_ARRAY (5) five;
  OPTIONAL group items (LIST) {
    REPEATED group list {
      REQUIRED BYTE_ARRAY item (STRING);
    }
  }
  OPTIONAL group parts {
    REQUIRED INT32 x;
  }
  OPTIONAL group map (MAP) {
    REPEATED group entries {
      REQUIRED BYTE_ARRAY key (STRING);
      OPTIONAL INT64 value;
    }
  }
}
"""
    )


def test_parquet_schema_as_json_has_the_same_columns():
    tree = write_schema(SCHEMA, SchemaFormat.PARQUET_JSON)
    assert [field["name"] for field in tree["fields"]] == list(KINDS)
    by_name = {field["name"]: field for field in tree["fields"]}
    assert by_name["wide"] == {
        "name": "wide",
        "repetition": "OPTIONAL",
        "type": "FIXED_LEN_BYTE_ARRAY(16)",
        "logicalType": "DECIMAL(38,0)",
    }
    (items,) = by_name["items"]["fields"]
    assert (items["name"], items["repetition"], items["type"]) == ("list", "REPEATED", "struct")


def test_arrow_schema_as_json():
    tree = write_schema(SCHEMA, SchemaFormat.ARROW_JSON)
    types = {field["name"]: field["data_type"] for field in tree["fields"]}
    assert types["i8"] == "Int8"
    assert types["u16"] == "UInt16"
    assert types["f16"] == "Float16"
    assert types["ok"] == "Boolean"
    assert types["local"] == {"Timestamp": ["Microsecond", "UTC"]}  # datasets have no other zone
    assert types["clock"] == {"Time32": "Millisecond"}
    assert types["wide"] == {"Decimal128": [38, 0]}
    assert types["bytes"] == "Binary"
    assert types["five"] == {"FixedSizeBinary": 5}
    assert types["items"]["List"]["data_type"] == "Utf8"
    assert types["parts"]["Struct"][0]["nullable"] is False
    assert [part["name"] for part in types["map"]["Map"][0]["data_type"]["Struct"]] == ["key", "value"]
