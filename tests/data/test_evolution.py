"""How schemas may change: the rules of the specification, one by one, and as laws over random schemas."""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.random_schemas import schemas
from support.examples import examples

from odfpy.data.attributes import ExtraAttributes
from odfpy.data.schemas import schema as odf
from odfpy.data.schemas.evolution import check_evolution, extend_with, is_equivalent, normalized, without_options
from odfpy.data.schemas.schema import DataField, DataSchema, TimeUnit
from odfpy.errors import SchemaError


def schema(**types: odf.DataType) -> DataSchema:
    return DataSchema(tuple(DataField(name, kind) for name, kind in types.items()))


def struct(**types: odf.DataType) -> odf.Struct:
    return odf.Struct(schema(**types).fields)


INT, TEXT = odf.Int64(), odf.String()

ALLOWED = {
    "nothing": (schema(a=INT), schema(a=INT)),
    "new optional field": (schema(a=INT), schema(a=INT, b=odf.Option(TEXT))),
    "new optional field in front": (schema(a=INT), schema(b=odf.Option(TEXT), a=INT)),
    "reordered": (schema(a=INT, b=TEXT), schema(b=TEXT, a=INT)),
    "reordered in a struct": (schema(s=struct(a=INT, b=TEXT)), schema(s=struct(b=TEXT, a=INT))),
    "new optional field in a struct": (schema(s=struct(a=INT)), schema(s=struct(a=INT, b=odf.Option(INT)))),
    "new optional field in an optional list of structs": (
        schema(s=odf.Option(odf.List(struct(a=INT)))),
        schema(s=odf.Option(odf.List(struct(a=INT, b=odf.Option(INT))))),
    ),
    "defaults written out": (schema(t=odf.Timestamp()), schema(t=odf.Timestamp(TimeUnit.MILLISECOND, "UTC"))),
    "attributes": (
        DataSchema((DataField("a", INT),), ExtraAttributes.of({"x": 1})),
        DataSchema((DataField("a", INT, ExtraAttributes.of({"y": 2})),)),
    ),
}

REFUSED = {
    "removed": (schema(a=INT, b=TEXT), schema(a=INT), "'b' may not be removed"),
    "renamed": (schema(city=TEXT), schema(pity=TEXT), "'city' may not be removed or renamed"),
    "retyped": (schema(a=INT), schema(a=odf.Int32()), "'a' may not change from Int64 to Int32"),
    "rescaled": (
        schema(a=odf.Decimal(10, 2)),
        schema(a=odf.Decimal(10, 3)),
        r"'a' may not change from Decimal\(10, 2\) to Decimal\(10, 3\)",
    ),
    "another unit": (schema(t=odf.Timestamp()), schema(t=odf.Timestamp(TimeUnit.NANOSECOND)), "'t' may not change"),
    "another zone": (schema(t=odf.Timestamp()), schema(t=odf.Timestamp(None, "CET")), "'t' may not change"),
    "tightened": (schema(a=odf.Option(INT)), schema(a=INT), "'a' may not become required"),
    "loosened": (schema(a=INT), schema(a=odf.Option(INT)), "'a' may not become optional"),
    "new required field": (schema(a=INT), schema(a=INT, b=TEXT), "'b' is not optional"),
    "retyped beside a new field": (schema(a=INT), schema(b=odf.Option(INT), a=TEXT), "'a' may not change"),
    "retyped in a struct": (schema(s=struct(a=INT)), schema(s=struct(a=TEXT)), r"'s\.a' may not change"),
    "removed from a struct": (schema(s=struct(a=INT, b=INT)), schema(s=struct(a=INT)), r"'s\.b' may not be removed"),
    "new required field in a struct": (
        schema(s=struct(a=INT)),
        schema(s=struct(a=INT, b=INT)),
        r"'s\.b' is not optional",
    ),
    "items tightened": (
        schema(s=odf.List(odf.Option(INT))),
        schema(s=odf.List(INT)),
        r"'s\.item' may not become required",
    ),
    "another length": (schema(s=odf.List(INT, 3)), schema(s=odf.List(INT, 4)), "'s' may not change"),
    "map values retyped": (schema(m=odf.Map(TEXT, INT)), schema(m=odf.Map(TEXT, TEXT)), r"'m\.value' may not change"),
    "twice": (schema(a=INT), DataSchema((DataField("a", INT), DataField("a", INT))), "'a' occurs twice"),
}


@pytest.mark.parametrize(("old", "new"), ALLOWED.values(), ids=ALLOWED)
def test_allowed(old, new):
    check_evolution(old, new)


@pytest.mark.parametrize(("old", "new", "message"), REFUSED.values(), ids=REFUSED)
def test_refused_by_name(old, new, message):
    with pytest.raises(SchemaError, match=message) as caught:
        check_evolution(old, new)
    assert caught.value.hint or "twice" in message


def test_setting_the_same_again_is_a_no_op_and_all_else_is_not():
    old = DataSchema((DataField("t", odf.Timestamp(), ExtraAttributes('{"b": 1, "a": 2}')),))
    same = DataSchema((DataField("t", odf.Timestamp(TimeUnit.MILLISECOND, "UTC"), ExtraAttributes('{"a":2,"b":1}')),))
    assert is_equivalent(old, same)
    assert is_equivalent(schema(a=INT), DataSchema((DataField("a", INT, ExtraAttributes("{}")),)))
    assert not is_equivalent(schema(a=INT), DataSchema((DataField("a", INT, ExtraAttributes('{"x":1}')),)))
    assert not is_equivalent(schema(a=INT, b=INT), schema(b=INT, a=INT))
    assert not is_equivalent(schema(a=INT), schema(a=odf.Option(INT)))


# --- Extending by what a slice has ------------------------------------------------------------------------------------


def test_optional_fields_of_either_side_are_kept():
    old = DataSchema((DataField("a", INT, ExtraAttributes.of({"x": 1})), DataField("b", odf.Option(TEXT))))
    new = schema(c=odf.Option(INT), a=INT)
    assert extend_with(old, new) == DataSchema((*old.fields, DataField("c", odf.Option(INT))))


def test_structs_grow_inside():
    old = schema(s=odf.Option(struct(a=INT)))
    new = schema(s=odf.Option(struct(b=odf.Option(TEXT), a=INT)))
    assert extend_with(old, new) == schema(s=odf.Option(struct(a=INT, b=odf.Option(TEXT))))


def test_required_values_fit_where_optional_ones_are_recorded():
    assert extend_with(schema(a=odf.Option(INT)), schema(a=INT)) == schema(a=odf.Option(INT))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (schema(a=INT, b=TEXT), schema(a=INT), "'b' is missing"),
        (schema(a=INT), schema(a=INT, b=TEXT), "'b' is not optional"),
        (schema(a=INT), schema(a=odf.Option(INT)), "'a' is required"),
        (schema(a=INT), schema(a=TEXT), "'a' is String in the new data where Int64 is recorded"),
    ],
)
def test_slices_that_do_not_fit_are_refused_by_name(old, new, message):
    with pytest.raises(SchemaError, match=message):
        extend_with(old, new)


# --- Laws ------------------------------------------------------------------------------------------------------------


@st.composite
def grown(draw: st.DrawFn, old: DataSchema) -> DataSchema:
    """A schema that may follow, by the rules read literally: shuffled, new optional fields, other attributes."""
    names = {field.name for field in old.fields}
    added = [
        DataField(f.name, odf.Option(without_options(f.type))) for f in draw(schemas()).fields if f.name not in names
    ]
    kept = [dataclasses.replace(field, extra=None) if draw(st.booleans()) else field for field in old.fields]
    return DataSchema(tuple(draw(st.permutations(kept + added))))


@given(schemas())
def test_a_schema_may_follow_itself(old):
    check_evolution(old, old)
    assert is_equivalent(old, old)
    assert is_equivalent(old, normalized(old))
    assert extend_with(old, old) == old


@settings(max_examples=examples(10, 30), deadline=None)
@given(st.data())
def test_grown_schemas_may_follow_and_the_way_back_is_closed(data):
    old = data.draw(schemas())
    new = data.draw(grown(old))
    check_evolution(old, new)
    if len(new.fields) > len(old.fields):
        with pytest.raises(SchemaError, match="removed"):
            check_evolution(new, old)


@settings(max_examples=examples(10, 30), deadline=None)
@given(st.data())
def test_evolution_is_transitive(data):
    first = data.draw(schemas())
    second = data.draw(grown(first))
    third = data.draw(grown(second))
    check_evolution(first, third)


@settings(max_examples=examples(10, 30), deadline=None)
@given(st.data())
def test_extending_is_an_evolution_that_has_all_of_the_slice(data):
    old = data.draw(schemas())
    slice_schema = data.draw(grown(old))
    extended = extend_with(old, slice_schema)
    check_evolution(old, extended)
    assert extended.fields[: len(old.fields)] == old.fields
    assert set(extended.names) == set(slice_schema.names)
    assert extend_with(extended, slice_schema) == extended


@given(schemas(), schemas())
def test_schemas_that_follow_each_other_both_ways_differ_in_order_and_attributes_only(one, other):
    def allowed(old: DataSchema, new: DataSchema) -> bool:
        try:
            check_evolution(old, new)
        except SchemaError:
            return False
        return True

    if allowed(one, other) and allowed(other, one):
        assert sorted(one.names) == sorted(other.names)


def test_the_rules_need_no_arrow():
    program = (
        "import sys, odfpy.data.schemas.evolution, odfpy.data.schemas.schema, odfpy.data.vocabulary, odfpy.data.schemas.system_columns;"
        "import odfpy.data.multihash, odfpy.data.timestamp, odfpy.data.attributes, odfpy.data.schemas.ddl;"
        "assert not {'pyarrow', 'numpy', 'sqlglot', 'duckdb'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
