"""GeoJSON and newline-delimited GeoJSON: a row a feature, one text for each geometry, no feature lost."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.chains.schemas import optional
from support.ingest.reading import Reader, set_piece_size

from odfpy.chain.read_steps import ReadGeoJson, ReadNdGeoJson
from odfpy.data.schemas.schema import DataSchema, Date, Float64, Int64, List, Option, String, Timestamp
from odfpy.errors import BadValue
from odfpy.ingest.read.geo import geojson_features
from odfpy.ingest.read.geo.geometry_text import float_text

POINT = '{"type":"Point","coordinates":[1.5,2]}'
POINT_TEXT = '{"coordinates":[1.5,2],"type":"Point"}'
ID_AND_GEOMETRY = optional(id=Int64(), geometry=String())


def feature(properties: str = "{}", geometry: str = POINT, more: str = "") -> str:
    return f'{{"type":"Feature","properties":{properties},"geometry":{geometry}{more}}}'


def collection(*features: str) -> str:
    return '{"type":"FeatureCollection","features":[' + ",".join(features) + "]}"


@pytest.fixture(params=["GeoJson", "NdGeoJson"])
def read_features(request: pytest.FixtureRequest, read_input: Reader) -> Any:
    """Reads features of either format."""

    def run(*features: str, schema: DataSchema | None = None) -> pa.Table:
        if request.param == "GeoJson":
            return read_input(ReadGeoJson(schema=schema), collection(*features))
        return read_input(ReadNdGeoJson(schema=schema), "\n".join(features))

    return run


# --- Rows ---


def test_properties_and_geometry_are_columns(read_features: Any):
    table = read_features(
        feature('{"id": 1, "more": "x"}'),
        feature('{"more": "y"}', "null", ',"id":7,"bbox":[1,2,3,4]'),
        schema=ID_AND_GEOMETRY,
    )
    assert table.to_pylist() == [{"id": 1, "geometry": POINT_TEXT}, {"id": None, "geometry": None}]


def test_properties_may_be_null(read_features: Any):
    assert read_features(feature("null"), schema=ID_AND_GEOMETRY).to_pylist() == [{"id": None, "geometry": POINT_TEXT}]


def test_properties_are_typed_as_json_is(read_features: Any):
    schema = optional(day=Date(), at=Timestamp(), tags=List(Option(String())), geometry=String())
    table = read_features(
        feature('{"day": "2024-02-29", "at": "2024-01-01T00:00:00Z", "tags": ["a", null]}'), schema=schema
    )
    assert str(table.to_pylist()[0]["day"]) == "2024-02-29"
    assert table.to_pylist()[0]["tags"] == ["a", None]
    with pytest.raises(BadValue, match="column 'day' has '2023-02-29', which is not a valid Date"):
        read_features(feature("{}"), feature('{"day": "2023-02-29"}'), schema=schema)


def test_without_a_schema_columns_are_inferred_in_alphabetical_order(read_features: Any):
    table = read_features(
        feature('{"z": {"b": 1, "a": "x"}, "a": 1, "none": null}'), feature('{"z": null, "a": 1.5, "later": true}')
    )
    assert table.schema == pa.schema(
        [
            ("a", pa.float64()),
            ("geometry", pa.string()),
            ("none", pa.null()),
            ("z", pa.struct([("a", pa.string()), ("b", pa.int64())])),
            ("later", pa.bool_()),
        ]
    )
    assert table.column("a").to_pylist() == [1.0, 1.5]


def test_what_has_no_common_type_is_named(read_features: Any):
    with pytest.raises(BadValue, match=r"^input, line \d: column 'a' has '\"x\"', which is not a valid number as in"):
        read_features(feature('{"a": 1}'), "\n" + feature('{"a": "x"}'))


# --- The text of geometries ---

TEXTS = [
    ("[1.50, 2.0, 0, -0, -0.0]", "[1.5,2.0,0,-0.0,-0.0]"),
    ("[1e2, 1E-2, 1e15, 1e16, 12345678901234567.0]", "[100.0,0.01,1000000000000000.0,1e+16,1.2345678901234568e+16]"),
    ("[0.0001, 0.00001, 0.000012, -0.00001234, 0.000001, 1.5e-7]", "[0.0001,0.00001,0.000012,-0.00001234,1e-6,1.5e-7]"),
    ("[18446744073709551615, 18446744073709551616, -9223372036854775808, -9223372036854775809]",
     "[18446744073709551615,1.8446744073709552e+19,-9223372036854775808,-9.223372036854776e+18]"),
    ("[30.466304779052763, 0.1234567890123456789, 5e-324]", "[30.466304779052763,0.12345678901234568,5e-324]"),
    ("[ ]", "[]"),
    (r'["\u00e9 \u0001\n\"\\\/", null, true, {"b": 1, "a": [], "\u00e9": 0, "B": 0}]',
     r'["é \u0001\n\"\\/",null,true,{"B":0,"a":[],"b":1,"é":0}]'),
]  # fmt: skip


@pytest.mark.parametrize(("written", "text"), TEXTS)
def test_text_of_a_geometry_is_that_of_the_reference(read_features: Any, written: str, text: str):
    table = read_features(feature(geometry=f'{{"type": "Point", "coordinates": {written}}}'), schema=ID_AND_GEOMETRY)
    assert table.column("geometry").to_pylist() == [f'{{"coordinates":{text},"type":"Point"}}']


@settings(deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e16)
@example(1e-5)
@example(9.999e-5)
def test_text_of_a_float_names_it(value: float):
    text = float_text(value)
    assert float(text) == value
    assert "e" in text or "." in text
    assert len(text) <= len(repr(value)) + 4


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.text(max_size=3)
    | st.integers(-(2**64), 2**65)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=st.dictionaries(st.text(max_size=3), JSON_VALUES, max_size=3), indent=st.sampled_from([None, 1]))
def test_fast_and_slow_way_to_a_text_agree(read_input: Reader, value: dict[str, Any], indent: int | None):
    content = feature(geometry=json.dumps(value, indent=indent))
    fast = read_input(ReadNdGeoJson(schema=ID_AND_GEOMETRY), content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(geojson_features, "_EXPONENTS", ("",))
        slow = read_input(ReadNdGeoJson(schema=ID_AND_GEOMETRY), content)
    assert fast == slow
    numbers_as_floats = json.loads(fast.column("geometry")[0].as_py(), parse_int=float)
    assert numbers_as_floats == json.loads(json.dumps(value), parse_int=float)


# --- What is not GeoJSON ---

NO_FEATURE = [
    ("[1]", ".* is not an object"),
    ('{"type": "Point", "coordinates": [1, 2]}', "this is 'Point', not a Feature"),
    ('{"properties": {}, "geometry": null}', "this has no type, not a Feature"),
    ('{"type": "Feature", "properties": {}}', "the feature has no `geometry`"),
    ('{"type": "Feature", "geometry": null}', "the feature has no `properties`"),
    (feature("[]"), "the properties of the feature are not an object"),
    (feature(geometry='"x"'), "the geometry of the feature is not an object"),
    (feature(geometry='{"a": 1, "a": 2}'), "the geometry has no exact text: a key occurs twice"),
    (feature(geometry='{"a": [1e400]}'), "the geometry has no exact text: a number is not finite"),
    (feature(geometry='{"a": NaN}'), "the geometry has no exact text: a number is not finite"),
    (feature(more=',"geometry":null'), "the feature has 'geometry' twice"),
    (feature('{"geometry": 1}'), "the feature has a property 'geometry'"),
    (feature('{"id": 1, "id": 2}'), "column 'id' has 'two values', which is not a valid Int64"),
    (feature('{"id": 1.5}'), "column 'id' has '1.5', which is not a valid Int64"),
    (feature(geometry='{"a": "\\ud800"}'), "column 'geometry' has .*, which is not a valid String"),
    ('{"type": "Feature", "properties": {} "geometry": null}', "a comma or the end of the object is missing"),
    ('{"type": "Feature", properties: {}, "geometry": null}', "a key in quotes is missing"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), NO_FEATURE)
@pytest.mark.parametrize("lines_before", [0, 20])
@pytest.mark.parametrize("step", [ReadGeoJson(schema=ID_AND_GEOMETRY), ReadNdGeoJson(schema=ID_AND_GEOMETRY)])
def test_what_is_no_feature_is_named(
    read_input: Reader,
    small_pieces: None,
    text: str,
    message: str,
    lines_before: int,
    step: ReadGeoJson | ReadNdGeoJson,
):
    lines = [*[feature()] * lines_before, text, *[feature()] * 20]
    content = "\n".join(lines) if isinstance(step, ReadNdGeoJson) else collection("\n,".join(lines))
    with pytest.raises(BadValue, match=f"^input, line {lines_before + 1}: {message}"):
        read_input(step, content)


NO_COLLECTION = [
    ("[]", "the document is not an object"),
    ("{}", "the document has no `features`"),
    ('{"type": "FeatureCollection"}', "the document has no `features`"),
    ('{"features": []}', "the document has no `type`"),
    ('{"features": [], "type": "Feature"}', "the document is of the type 'Feature'"),
    (feature(), "the document is of the type 'Feature'"),
    ('{"type": "FeatureCollection", "type": "FeatureCollection", "features": []}', "key 'type' occurs twice"),
    ('{"type": "FeatureCollection", "features": [], "features": []}', "key 'features' occurs twice"),
    ('{"type": "FeatureCollection", "features": {}}', "`features` is not an array"),
    ('{"type": "FeatureCollection", "features": [', "'' is not an object"),
    ('{"type": "FeatureCollection", "features": [' + feature(), "a comma or the end of the array is missing"),
    ('{"type": "FeatureCollection", "features": [' + feature() + ",]}", "'\\]}' is not an object"),
    ('{"type": "FeatureCollection", "features": [,' + feature() + "]}", ".* is not an object"),
    ('{"type": "FeatureCollection", "features": []', "a comma or the end of the object is missing"),
    ('{"type": "FeatureCollection", "features": [],}', "a comma before the end of the object"),
    (collection() + "x", "something follows after the end of the document"),
    (collection() + collection(), "something follows after the end of the document"),
    (collection(feature(), feature())[:-30], "this is not JSON|a comma"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), NO_COLLECTION)
def test_what_is_no_collection_is_said(read_input: Reader, small_pieces: None, text: str, message: str):
    with pytest.raises(BadValue, match=f"^input, line 1: ({message})"):
        read_input(ReadGeoJson(), text)


@pytest.mark.parametrize("step", [ReadGeoJson(), ReadNdGeoJson()])
def test_bytes_that_are_not_utf8_are_an_error(
    read_input: Reader, small_pieces: None, step: ReadGeoJson | ReadNdGeoJson
):
    lines = [feature('{"a": "é"}')] * 8
    content = collection("\n,".join(lines)) if isinstance(step, ReadGeoJson) else "\n".join(lines)
    assert read_input(step, content).num_rows == 8
    with pytest.raises(BadValue, match="line 8: byte 0xff is not utf-8"):
        read_input(step, content.encode()[:-60] + b"\xff" + content.encode()[-59:])


@pytest.mark.parametrize("step", [ReadGeoJson(), ReadNdGeoJson()])
def test_very_deep_nesting_is_an_error(read_input: Reader, step: ReadGeoJson | ReadNdGeoJson):
    deep = feature(geometry='{"a":' + "[" * 100_000 + "]" * 100_000 + "}")
    with pytest.raises(BadValue, match="nested too deeply"):
        read_input(step, collection(deep) if isinstance(step, ReadGeoJson) else deep)


# --- Documents of all shapes ---


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", " \r\n"])
@pytest.mark.parametrize("step", [ReadGeoJson, ReadNdGeoJson])
def test_nothing_is_no_rows(read_input: Reader, text: str, step: type[ReadGeoJson | ReadNdGeoJson]):
    assert read_input(step(), text).shape == (0, 0)
    assert read_input(step(schema=ID_AND_GEOMETRY), text).shape == (0, 2)


def test_a_collection_without_features_is_no_rows(read_input: Reader):
    assert read_input(ReadGeoJson(schema=ID_AND_GEOMETRY), collection()).shape == (0, 2)


def test_members_of_the_collection_may_stand_anywhere(read_input: Reader, small_pieces: None):
    text = (
        '\ufeff{"name": "é]}", "crs": {"a": [[]]}, "features": ['
        + feature()
        + '], "bbox": [1], "type": "FeatureCollection"}'
    )
    assert read_input(ReadGeoJson(schema=ID_AND_GEOMETRY), text).num_rows == 1


def test_features_may_span_lines(read_input: Reader, small_pieces: None):
    pretty = json.dumps(json.loads(feature('{"id": 1, "a": "]}\\"{["}')), indent=2)
    series = read_input(ReadNdGeoJson(schema=ID_AND_GEOMETRY), f"{pretty}\r\n{pretty}{pretty}")
    assert series.to_pylist() == [{"id": 1, "geometry": POINT_TEXT}] * 3


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    features=st.lists(
        st.tuples(
            st.none() | st.integers(-5, 5), st.text(max_size=5), st.none() | st.lists(st.floats(-1e6, 1e6), max_size=3)
        ),
        max_size=8,
    ),
    indent=st.sampled_from([None, 1]),
    piece_size=st.sampled_from([1, 7, 64, 1 << 20]),
    ascii_only=st.booleans(),
)
def test_pieces_make_no_difference_and_no_feature_is_lost(
    read_input: Reader, features: list[Any], indent: int | None, piece_size: int, ascii_only: bool
):
    written = [
        {
            "type": "Feature",
            "properties": {"id": number, "name": name},
            "geometry": None if where is None else {"type": "Line", "coordinates": where},
        }
        for number, name, where in features
    ]
    wanted = [(number, name, where) for number, name, where in features]
    schema = optional(id=Int64(), name=String(), geometry=String())
    whole = json.dumps({"features": written, "type": "FeatureCollection"}, indent=indent, ensure_ascii=ascii_only)
    lines = "\n".join(json.dumps(item, indent=indent, ensure_ascii=ascii_only) for item in written)
    with pytest.MonkeyPatch.context() as patch:
        set_piece_size(patch, piece_size)
        for step, text in ((ReadGeoJson(schema=schema), whole), (ReadNdGeoJson(schema=schema), lines)):
            found = read_input(step, text).to_pylist()
            geometries = [row["geometry"] and json.loads(row["geometry"])["coordinates"] for row in found]
            assert [(row["id"], row["name"], at) for row, at in zip(found, geometries, strict=True)] == wanted


def test_large_collection_is_read_in_pieces(read_input: Reader):
    features = [feature(f'{{"id": {i}, "x": {i}.5}}') for i in range(30_000)]
    table = read_input(ReadGeoJson(), collection("\n,".join(features)))
    assert table.schema.field("x").type == pa.float64()
    assert table.column("id").to_pylist() == list(range(30_000))
    assert table.column("geometry").num_chunks > 1
    with pytest.raises(BadValue, match=r"^input, line 29992: column 'id' has '1.5', which is not a valid Int64"):
        read_input(
            ReadGeoJson(schema=optional(id=Int64(), y=Float64())),
            collection("\n,".join([*features[:29_991], feature('{"id": 1.5}')])),
        )
