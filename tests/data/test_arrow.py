"""Between the schema of a dataset and Arrow's, and from any layout to the plain one."""

from __future__ import annotations

import pickle
from copy import copy
from dataclasses import fields, replace
from typing import get_args

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.arrow_limits import as_far_as_arrow_can
from support.chains.random_schemas import data_types, schemas
from support.examples import examples

from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.arrow import (
    from_arrow,
    from_arrow_type,
    plain_array,
    plain_schema,
    plain_type,
    to_arrow,
    to_arrow_type,
)
from odfpy.data.schemas.evolution import normal_type, normalized
from odfpy.data.schemas.schema import DataField, DataSchema, TimeUnit
from odfpy.errors import SchemaError

PAIRS = {
    odf.Bool(): pa.bool_(),
    odf.Date(): pa.date32(),
    odf.UInt64(): pa.uint64(),
    odf.Float16(): pa.float16(),
    odf.String(): pa.string(),
    odf.Binary(): pa.binary(),
    odf.Binary(7): pa.binary(7),
    odf.Decimal(38, 2): pa.decimal128(38, 2),
    odf.Decimal(39, 2): pa.decimal256(39, 2),
    odf.Duration(TimeUnit.SECOND): pa.duration("s"),
    odf.Time(TimeUnit.SECOND): pa.time32("s"),
    odf.Time(TimeUnit.MICROSECOND): pa.time64("us"),
    odf.Timestamp(TimeUnit.MILLISECOND, "UTC"): pa.timestamp("ms", "UTC"),
    odf.Timestamp(TimeUnit.NANOSECOND, "Europe/Berlin"): pa.timestamp("ns", "Europe/Berlin"),
    odf.Null(): pa.null(),
    odf.List(odf.Int32()): pa.list_(pa.field("item", pa.int32(), nullable=False)),
    odf.List(odf.Option(odf.Int32())): pa.list_(pa.field("item", pa.int32())),
    odf.List(odf.Option(odf.Int32()), 3): pa.list_(pa.field("item", pa.int32()), 3),
    odf.Map(odf.String(), odf.Option(odf.Int8()), keys_sorted=False): pa.map_(pa.string(), pa.int8()),
    odf.Struct((DataField("x", odf.Int8()), DataField("y", odf.Option(odf.String())))): pa.struct(
        [pa.field("x", pa.int8(), nullable=False), pa.field("y", pa.string())]
    ),
}


@pytest.mark.parametrize(("data_type", "arrow"), PAIRS.items(), ids=lambda value: str(value)[:40])
def test_types_and_back(data_type, arrow):
    assert to_arrow_type(data_type).equals(arrow, check_metadata=True)
    assert from_arrow_type(arrow) == data_type


def test_unit_and_zone_have_defaults():
    assert to_arrow_type(odf.Timestamp()) == pa.timestamp("ms", "UTC")
    assert to_arrow_type(odf.Time()) == pa.time32("ms")
    assert to_arrow_type(odf.Duration()) == pa.duration("ms")
    assert from_arrow_type(pa.timestamp("us")) == odf.Timestamp(TimeUnit.MICROSECOND, None)


def test_option_is_nullability():
    schema = DataSchema((DataField("a", odf.Int8()), DataField("b", odf.Option(odf.Int8()))))
    assert to_arrow(schema) == pa.schema([pa.field("a", pa.int8(), nullable=False), pa.field("b", pa.int8())])


@given(schemas())
def test_schemas_survive_the_way_to_arrow_and_back(schema):
    bare = normalized(DataSchema(tuple(_bare(field) for field in schema.fields)))
    assert normalized(from_arrow(to_arrow(schema))) == bare


@given(data_types())
def test_what_to_arrow_gives_is_plain(data_type):
    arrow = to_arrow_type(data_type)
    assert plain_type(arrow).equals(arrow, check_metadata=True)


@pytest.mark.parametrize(
    ("data_type", "place"),
    [
        (odf.Option(odf.Option(odf.Int8())), "'outer.odd'"),
        (odf.Decimal(99, 2), "'outer.odd'"),
        (odf.Decimal(10, 1 << 20), "'outer.odd'"),
        (odf.Binary(1 << 40), "'outer.odd'"),
        (odf.Map(odf.Option(odf.String()), odf.Int8()), "'outer.odd'"),
        (odf.List(odf.Decimal(0, 0)), "'outer.odd.item'"),
    ],
)
def test_what_arrow_cannot_hold_is_refused_by_name(data_type, place):
    schema = DataSchema((DataField("outer", odf.Struct((DataField("odd", data_type),))),))
    with pytest.raises(SchemaError, match=place):
        to_arrow(schema)


@pytest.mark.parametrize("arrow", [pa.month_day_nano_interval(), pa.dense_union([pa.field("x", pa.int8())])], ids=str)
def test_what_odf_does_not_have_is_refused_by_name(arrow):
    with pytest.raises(SchemaError, match=r"'outer\.item\.odd'"):
        from_arrow(pa.schema([("outer", pa.list_(pa.struct([("odd", arrow)])))]))


def _bare(field: DataField) -> DataField:
    """Without attributes, which Arrow does not carry."""
    return DataField(field.name, _bare_type(normal_type(field.type)))


def _bare_type(data_type: odf.DataType) -> odf.DataType:
    match data_type:
        case odf.Option(inner):
            return odf.Option(_bare_type(inner))
        case odf.List(item, length):
            return odf.List(_bare_type(item), length)
        case odf.Map(key, value, is_sorted):
            return odf.Map(_bare_type(key), _bare_type(value), is_sorted)
        case odf.Struct(fields):
            return odf.Struct(tuple(_bare(field) for field in fields))
        case _:
            return data_type


# --- Plain layouts ---------------------------------------------------------------------------------------------------

LEAVES = [
    (pa.int8(), [1, None, -3, 4]),
    (pa.string(), ["a", None, "", "a longer text than fits a view"]),
    (pa.large_string(), ["a", None, "b", ""]),
    (pa.string_view(), ["a", None, "", "a longer text than fits a view"]),
    (pa.large_binary(), [b"a", None, b"", b"b"]),
    (pa.binary_view(), [b"a", None, b"", b"b"]),
    (pa.dictionary(pa.int8(), pa.string()), ["x", None, "x", "y"]),
    (pa.dictionary(pa.int32(), pa.large_string()), ["x", None, "x", "y"]),
]


@st.composite
def arrays(draw: st.DrawFn, rows: int, depth: int = 2) -> pa.Array:
    """Arrays of every layout, nested, sliced, with garbage under nulls."""
    kind = draw(
        st.sampled_from(
            ["leaf", "ree", "struct", "list", "large", "view", "large view", "fixed"] if depth else ["leaf"]
        )
    )
    if kind == "leaf":
        arrow, values = draw(st.sampled_from(LEAVES))
        with as_far_as_arrow_can():
            return pa.array([draw(st.sampled_from(values)) for _ in range(rows)], arrow)
    if kind == "ree":
        return pc.run_end_encode(pa.array([draw(st.sampled_from([1, None])) for _ in range(rows)], pa.int16()))
    mask = pa.array([draw(st.booleans()) for _ in range(rows)], pa.bool_())
    if kind == "struct":
        names = [f"f{at}" for at in range(draw(st.integers(1, 2)))]
        return pa.StructArray.from_arrays([draw(arrays(rows, depth - 1)) for _ in names], names, mask=mask)
    if kind == "fixed":
        return pa.FixedSizeListArray.from_arrays(draw(arrays(rows * 2, depth - 1)), 2, mask=mask)
    items = draw(arrays(5, depth - 1))
    wide = pa.int64() if "large" in kind else pa.int32()
    if kind in ("list", "large"):
        offsets = pa.array(sorted(draw(st.lists(st.integers(0, 5), min_size=rows + 1, max_size=rows + 1))), wide)
        return (pa.LargeListArray if kind == "large" else pa.ListArray).from_arrays(offsets, items, mask=mask)
    starts = [draw(st.integers(0, 5)) for _ in range(rows)]
    sizes = [draw(st.integers(0, 5 - start)) for start in starts]
    made = pa.LargeListViewArray if kind == "large view" else pa.ListViewArray
    return made.from_arrays(pa.array(starts, wide), pa.array(sizes, wide), items, mask=mask)


@settings(max_examples=examples(60, 200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data(), st.integers(0, 4))
def test_plain_arrays_have_the_same_values(data, rows):
    array = data.draw(arrays(rows))
    start = data.draw(st.integers(0, rows))
    part = array.slice(start, data.draw(st.integers(0, rows - start)))
    plain = plain_array(part)
    plain.validate(full=True)
    assert plain.to_pylist() == part.to_pylist()
    assert plain.type == plain_type(array.type)
    assert plain_array(plain) is plain


def test_plain_schemas_have_no_metadata_and_items_called_item():
    field = pa.field(
        "a", pa.large_list(pa.field("element", pa.string_view(), metadata={"x": "y"})), metadata={"x": "y"}
    )
    plain = plain_schema(pa.schema([field], metadata={"x": "y"}))
    assert plain.equals(pa.schema([("a", pa.list_(pa.field("item", pa.string())))]), check_metadata=True)


def test_extension_types_are_their_storage():
    assert plain_type(pa.uuid()) == pa.binary(16)
    array = pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16, None], pa.binary(16)))
    assert plain_array(array).to_pylist() == [b"0" * 16, None]


def test_types_without_parameters_are_values_of_their_own():
    plain = [kind for kind in get_args(odf.DataType) if kind.__mro__[1] is not object]
    assert len(plain) == 15
    for kind in plain:
        one, name = kind(), kind.__name__
        assert (one == kind(), hash(one) == hash(kind()), repr(one), fields(one)) == (True, True, f"{name}()", ())
        assert [other for other in plain if one == other()] == [kind]
        assert (copy(one), pickle.loads(pickle.dumps(one)), replace(one)) == (one, one, one)
