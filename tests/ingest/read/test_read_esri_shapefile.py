"""Shapefiles: attributes as they are written, geometries as GeoJSON, no feature lost."""

from __future__ import annotations

import json
import struct
from datetime import date
from decimal import Decimal as Dec
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.chains.schemas import optional, required
from support.ingest.preparing import zipped
from support.ingest.reading import Reader
from support.ingest.shapefiles import archive, files

from odfpy.chain.read_steps import ReadEsriShapefile
from odfpy.data.schemas.schema import Bool, Date, Decimal, Float64, Int64, String, Timestamp
from odfpy.errors import BadValue, IngestError, SchemaError
from odfpy.ingest.read.geo import dbf

ONE = {"id": 1, "name": "a"}
SQUARE = [[0, 0], [0, 4], [4, 4], [4, 0], [0, 0]]
HOLE = [[1, 1], [2, 1], [2, 2], [1, 2], [1, 1]]
FAR = [[9, 9], [9, 10], [10, 10], [10, 9], [9, 9]]


def geometry_of(table: pa.Table) -> Any:
    (text,) = table.column("geometry").to_pylist()
    return text and json.loads(text)["coordinates"]


def patched(content: dict[str, bytes], suffix: str, at: int, new: bytes) -> bytes:
    """An archive with some bytes of one file replaced."""
    name = f"data.{suffix}"
    old = content[name]
    return zipped({**content, name: old[:at] + new + old[at + len(new) :]})


def at_row(content: dict[str, bytes], row: int) -> int:
    """Offset of a row in the table."""
    start, width = struct.unpack_from("<2H", content["data.dbf"], 8)
    return start + row * width


# --- Attributes ---

ALL_KINDS = (
    ("text", "C", 12, 0), ("whole", "N", 18, 0), ("exact", "N", 12, 3), ("real", "F", 20, 8), ("flag", "L", 1, 0), ("day", "D", 8, 0),
)  # fmt: skip
VALUES = {"text": " a b ", "whole": -12, "exact": 1.25, "real": 2.5, "flag": True, "day": date(2024, 2, 29)}
NOTHING = dict.fromkeys(VALUES)


def test_types_are_those_of_the_table_and_columns_in_alphabetical_order(read_input: Reader):
    table = read_input(ReadEsriShapefile(), archive("point", [((1, 2), VALUES), ((3, 4), NOTHING)], fields=ALL_KINDS))
    assert table.schema == pa.schema(
        [
            ("day", pa.date32()),
            ("exact", pa.float64()),
            ("flag", pa.bool_()),
            ("geometry", pa.string()),
            ("real", pa.float64()),
            ("text", pa.string()),
            ("whole", pa.int64()),
        ]
    )
    first, second = table.to_pylist()
    assert first == VALUES | {"text": "a b", "geometry": '{"type":"Point","coordinates":[1.0,2.0]}'}
    assert second == NOTHING | {"geometry": '{"type":"Point","coordinates":[3.0,4.0]}'}


def test_a_schema_takes_columns_by_name(read_input: Reader):
    schema = optional(exact=Decimal(12, 3), absent=String(), whole=String(), day=Timestamp(), flag=Bool())
    table = read_input(ReadEsriShapefile(schema=schema), archive("point", [((1, 2), VALUES)], fields=ALL_KINDS))
    (row,) = table.to_pylist()
    assert table.column_names == ["exact", "absent", "whole", "day", "flag"]
    assert (row["exact"], row["absent"], row["whole"], row["flag"]) == (Dec("1.250"), None, "-12", True)
    assert str(row["day"]) == "2024-02-29 00:00:00+00:00"


def test_numbers_are_exact(read_input: Reader):
    fields = (("n", "N", 20, 0), ("m", "N", 20, 6))
    content = files("null", [(None, {"n": 1234567890123456789, "m": 0})], fields=fields)
    content = patched(content, "dbf", at_row(content, 0) + 21, b"  12345678901.123456")
    schema = optional(n=Int64(), m=Decimal(20, 6))
    assert read_input(ReadEsriShapefile(schema=schema), content).to_pylist() == [
        {"n": 1234567890123456789, "m": Dec("12345678901.123456")}
    ]
    assert read_input(ReadEsriShapefile(), content).column("n").to_pylist() == [1234567890123456789]


def test_whole_numbers_with_zeros_after_the_point_are_integers(read_input: Reader):
    content = archive("null", [(None, {"x": 5.0})], fields=(("x", "N", 8, 2),))
    assert read_input(ReadEsriShapefile(schema=optional(x=Int64())), content).to_pylist() == [{"x": 5}]


BAD = [
    (("n", "N", 8, 0), b"     x12", Int64(), "'n' has 'x12', which is not a valid Int64"),
    (("n", "N", 8, 0), b"     1.5", Int64(), "'n' has '1.5', which is not a valid Int64"),
    (("n", "N", 8, 2), b"     1,5", Float64(), "'n' has '1,5', which is not a valid Float64"),
    (("d", "D", 8, 0), b"20230229", Date(), "'d' has '2023-02-29', which is not a valid Date"),
    (("d", "D", 8, 0), b"2023    ", Date(), "'d' has '2023', which is not a valid Date"),
    (("l", "L", 1, 0), b"x", Bool(), "'l' has 'x', which is not a valid Bool"),
]


@pytest.mark.parametrize(("field", "raw", "wanted", "message"), BAD)
@pytest.mark.parametrize("with_schema", [True, False])
def test_values_that_libraries_give_null_for_are_errors(
    read_input: Reader, field: tuple[str, str, int, int], raw: bytes, wanted: Any, message: str, with_schema: bool
):
    content = files("null", [(None, {field[0]: None})] * 3, fields=(field,))
    broken = patched(content, "dbf", at_row(content, 1) + 1, raw)
    step = ReadEsriShapefile(schema=optional(**{field[0]: wanted}) if with_schema else None)
    with pytest.raises(BadValue, match=f"^input/data.dbf, row 2: column {message}"):
        read_input(step, broken)


def test_a_value_that_is_required(read_input: Reader):
    content = archive("null", [(None, ONE), (None, {"id": None, "name": "b"})])
    with pytest.raises(BadValue, match="row 2: column 'id' has no value"):
        read_input(ReadEsriShapefile(schema=required(id=Int64())), content)


def test_a_required_column_that_is_not_there(read_input: Reader):
    content = archive("null", [(None, ONE)])
    with pytest.raises(IngestError, match=r"^input/data.dbf, row 1: there is no column 'naem'$") as caught:
        read_input(ReadEsriShapefile(schema=required(naem=String())), content)
    assert caught.value.hint == "Did you mean name?"


def test_rows_marked_as_deleted_are_no_rows(read_input: Reader):
    content = files("point", [((i, i), {"id": i, "name": "x"}) for i in range(4)])
    deleted = patched(content, "dbf", at_row(content, 1), b"*")
    rows = read_input(ReadEsriShapefile(), deleted).to_pylist()
    assert [(row["id"], json.loads(row["geometry"])["coordinates"]) for row in rows] == [(i, [i, i]) for i in (0, 2, 3)]
    with pytest.raises(BadValue, match="row 2: the row has no mark"):
        read_input(ReadEsriShapefile(), patched(content, "dbf", at_row(content, 1), b"x"))


def test_column_of_another_type_can_be_left_out(read_input: Reader):
    content = patched(files("null", [(None, ONE)]), "dbf", 32 + 32 + 11, b"M")
    with pytest.raises(SchemaError, match="column 'name' is of the dBASE type 'M'"):
        read_input(ReadEsriShapefile(), content)
    assert read_input(ReadEsriShapefile(schema=optional(id=Int64())), content).to_pylist() == [{"id": 1}]


@pytest.mark.parametrize(
    ("names", "message"), [(("a", "a"), "two columns 'a'"), (("geometry", "b"), "'geometry', the name of")]
)
def test_columns_that_cannot_be_told_apart(read_input: Reader, names: tuple[str, str], message: str):
    content = files("null", [(None, {"x": 1, "y": 2})], fields=(("x", "N", 4, 0), ("y", "N", 4, 0)))
    for i, name in enumerate(names):
        content["data.dbf"] = content["data.dbf"].replace(b"xy"[i : i + 1] + b"\0" * 10, name.encode().ljust(11, b"\0"))
    with pytest.raises(IngestError, match=message):
        read_input(ReadEsriShapefile(), zipped(content))


# --- Encodings ---


@pytest.mark.parametrize(
    ("cpg", "encoding", "name"),
    [
        ("UTF-8", "utf-8", "Žižkov 日本"),
        ("utf8\r\n", "utf-8", "Žižkov"),
        ("\ufeffUTF-8", "utf-8", "Žižkov"),
        ("1252", "cp1252", "Zürich €"),
        ("ANSI 1251", "cp1251", "Київ"),
        ("windows-1250", "cp1250", "Žižkov"),
        ("ISO 88591", "latin-1", "Zürich"),
        ("ISO-8859-15", "iso8859-15", "Zürich €"),
        ("88592", "iso8859-2", "Žižkov"),
        ("65001", "utf-8", "日本"),
        ("Big5", "big5", "台北"),
        (None, "utf-8", "Žižkov"),
        (None, "latin-1", "Zürich"),
    ],
)
@pytest.mark.parametrize("suffix", ["cpg", "cst", "CPG"])
def test_encoding_is_that_of_the_cpg_file(read_input: Reader, cpg: str | None, encoding: str, name: str, suffix: str):
    content = files("null", [(None, {"id": 1, "name": name})], encoding=encoding)
    if cpg is not None:
        content[f"data.{suffix}"] = cpg.encode()
    assert read_input(ReadEsriShapefile(), zipped(content)).column("name").to_pylist() == [name]


def test_encoding_is_else_that_of_the_table(read_input: Reader):
    content = files("null", [(None, {"id": 1, "name": "Київ"})], encoding="cp1251")
    assert read_input(ReadEsriShapefile(), patched(content, "dbf", 29, b"\xc9")).column("name").to_pylist() == ["Київ"]


def test_names_of_columns_are_in_the_encoding_too(read_input: Reader):
    content = files("null", [(None, {"größe": 1})], fields=(("größe", "N", 4, 0),), encoding="cp1252")
    content["data.cpg"] = b"1252"
    assert "größe" in read_input(ReadEsriShapefile(), zipped(content)).column_names


def test_bytes_that_are_not_in_the_encoding(read_input: Reader):
    content = files("null", [(None, ONE), (None, {"id": 2, "name": "é"})], encoding="latin-1")
    with pytest.raises(BadValue, match="row 2: column 'name' has bytes that are not utf-8"):
        read_input(ReadEsriShapefile(), zipped({**content, "data.cpg": b"UTF-8"}))
    with pytest.raises(IngestError, match="names the encoding 'klingon', which is not known"):
        read_input(ReadEsriShapefile(), zipped({**content, "data.cpg": b"klingon"}))


# --- Geometries ---

SHAPES = [
    ("null", None, None),
    ("point", None, None),
    ("point", (1.5, -2), '{"type":"Point","coordinates":[1.5,-2.0]}'),
    ("point", (1e-5, 1e16), '{"type":"Point","coordinates":[0.00001,1e+16]}'),
    ("point", (float("nan"), float("nan")), None),
    ("pointz", (1, 2, 3), '{"type":"Point","coordinates":[1.0,2.0,3.0]}'),
    ("pointm", (1, 2, 3), '{"type":"Point","coordinates":[1.0,2.0]}'),
    ("multipoint", [[1, 2], [3, 4]], '{"type":"MultiPoint","coordinates":[[1.0,2.0],[3.0,4.0]]}'),
    ("multipointz", [[1, 2, 3]], '{"type":"MultiPoint","coordinates":[[1.0,2.0,3.0]]}'),
    ("line", [[[0, 0], [1, 1]]], '{"type":"MultiLineString","coordinates":[[[0.0,0.0],[1.0,1.0]]]}'),
    ("linem", [[[0, 0, 7], [1, 1, 8]]], '{"type":"MultiLineString","coordinates":[[[0.0,0.0],[1.0,1.0]]]}'),
    ("linez", [[[0, 0, 7], [1, 1, 8]]], '{"type":"MultiLineString","coordinates":[[[0.0,0.0,7.0],[1.0,1.0,8.0]]]}'),
]


@pytest.mark.parametrize(("kind", "shape", "text"), SHAPES)
def test_geometry_is_geojson(read_input: Reader, kind: str, shape: Any, text: str | None):
    assert read_input(ReadEsriShapefile(), archive(kind, [(shape, ONE)])).column("geometry").to_pylist() == [text]


@pytest.mark.parametrize(
    ("rings", "polygons"),
    [
        ([SQUARE], [[SQUARE]]),
        ([SQUARE, HOLE], [[SQUARE, HOLE]]),
        ([FAR, SQUARE, HOLE], [[FAR], [SQUARE, HOLE]]),
        ([HOLE, FAR, SQUARE], [[FAR], [SQUARE, HOLE]]),
        ([HOLE], [[HOLE]]),
    ],
)
def test_holes_belong_to_the_areas_around_them(read_input: Reader, rings: Any, polygons: Any):
    table = read_input(ReadEsriShapefile(), archive("poly", [(rings, ONE)]))
    assert table.column("geometry")[0].as_py().startswith('{"type":"MultiPolygon"')
    assert geometry_of(table) == polygons


def test_heights_of_areas_are_kept(read_input: Reader):
    rings = [[[*point, i] for i, point in enumerate(ring[:-1])] for ring in (SQUARE, HOLE)]
    ((outer, inner),) = geometry_of(read_input(ReadEsriShapefile(), archive("polyz", [(rings, ONE)])))
    assert [point[2] for point in outer] == [0, 1, 2, 3, 0]
    assert [point[2] for point in inner] == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(
    ("at", "new", "message"),
    [
        (108 + 36, struct.pack("<i", 2_000_000), "it is damaged"),  # parts
        (108 + 36, struct.pack("<i", -1), "it is damaged|not those of its points"),
        (108 + 40, struct.pack("<i", 2_000_000_000), "it is damaged"),  # points
        (108 + 40, struct.pack("<i", -1), "it is damaged|not those of its points"),
        (108 + 44, struct.pack("<2i", 0, -2), "its parts are not those of its points"),
        (108 + 44, struct.pack("<2i", 0, 99), "its parts are not those of its points"),
        (108 + 44, struct.pack("<2i", 1, 2), "its parts are not those of its points"),
        (108 + 52, struct.pack("<d", float("nan")), "a coordinate is not finite"),
        (108, struct.pack("<i", 31), "it is damaged|GeoJSON has no multipatch"),
        (108, struct.pack("<i", 99), "it is damaged"),
    ],
)  # fmt: skip
def test_damaged_geometry_is_an_error(read_input: Reader, at: int, new: bytes, message: str):
    content = files("line", [([[[0, 0], [1, 1]], [[2, 2], [3, 3]]], ONE)])
    with pytest.raises(BadValue, match=f"^input/data.shp, row 1: the shape cannot be read: ({message})"):
        read_input(ReadEsriShapefile(), patched(content, "shp", at, new))


def test_without_geometry_shapes_are_not_decoded(read_input: Reader):
    content = patched(files("line", [([[[0, 0], [1, 1]]], ONE)]), "shp", 108, struct.pack("<i", 99))
    assert read_input(ReadEsriShapefile(schema=optional(id=Int64())), content).to_pylist() == [{"id": 1}]


def test_the_index_says_where_shapes_are(read_input: Reader):
    content = files("point", [((1, 1), ONE), ((2, 2), ONE)])
    index = content["data.shx"]
    swapped = index[:100] + index[108:116] + index[100:108]
    table = read_input(ReadEsriShapefile(), zipped({**content, "data.shx": swapped}))
    assert [json.loads(text)["coordinates"] for text in table.column("geometry").to_pylist()] == [[2, 2], [1, 1]]
    without = {name: data for name, data in content.items() if not name.endswith(".shx")}
    table = read_input(ReadEsriShapefile(), zipped(without))
    assert [json.loads(text)["coordinates"] for text in table.column("geometry").to_pylist()] == [[1, 1], [2, 2]]


# --- Archives ---


@pytest.mark.parametrize("sub_path", ["b/roads.shp", "b/roads.*", "*/roads.shp", "**/roads.shp", "b/*"])
def test_sub_path_chooses_one_of_several(read_input: Reader, sub_path: str):
    content = {
        **files("null", [(None, {"id": 1, "name": "x"})], name="a/rivers"),
        **files("null", [(None, {"id": 2, "name": "y"})], name="b/roads"),
        "b/readme.txt": b"",
    }
    assert read_input(ReadEsriShapefile(sub_path=sub_path), zipped(content)).column("id").to_pylist() == [2]


def test_names_may_be_in_capitals(read_input: Reader):
    content = {name.upper(): data for name, data in files("null", [(None, ONE)]).items()}
    assert read_input(ReadEsriShapefile(), zipped(content)).num_rows == 1


def test_a_shapefile_that_is_not_packed(read_input: Reader):
    with pytest.raises(IngestError, match="not a zip file") as caught:
        read_input(ReadEsriShapefile(), files("null", [(None, ONE)])["data.shp"])
    assert caught.value.hint == "It is a part of a shapefile: put its .shp, .dbf and .shx into one zip file."


TWO = {**files("null", [(None, ONE)], name="a"), **files("null", [(None, ONE)], name="b")}


@pytest.mark.parametrize(
    ("content", "sub_path", "message"),
    [
        (b"x", None, "input is not a zip file"),
        (zipped({"readme.txt": b""}), None, "There is no shapefile in input"),
        (zipped(TWO), None, "There are 2 shapefiles in input: 'a.shp', 'b.shp'"),
        (zipped(TWO), "c.*", "There is no shapefile in input under the subPath 'c.*'"),
        (zipped({"a.shp": TWO["a.shp"], "b.dbf": TWO["b.dbf"]}), None, "input has no attributes (.dbf) for a.shp"),
        (zipped({**TWO, "../x": b""}), "a.shp", "input has an entry '../x', which points outside of the archive"),
        (archive("null", [(None, ONE)])[:-3], None, "input is truncated or damaged"),
    ],
)
def test_archive_without_such_a_shapefile(read_input: Reader, content: bytes, sub_path: str | None, message: str):
    with pytest.raises(IngestError) as caught:
        read_input(ReadEsriShapefile(sub_path=sub_path), content)
    assert caught.value.message.startswith(message)
    assert caught.value.hint


def test_nothing_is_no_rows(read_input: Reader):
    assert read_input(ReadEsriShapefile(), b"").shape == (0, 0)
    assert read_input(ReadEsriShapefile(schema=optional(id=Int64())), b"").shape == (0, 1)
    assert read_input(ReadEsriShapefile(), archive("null", [])).shape == (0, 3)


@pytest.mark.parametrize("suffix", ["shp", "dbf", "shx"])
def test_file_that_is_cut_off(read_input: Reader, suffix: str):
    content = files("point", [((1, 2), ONE), ((3, 4), ONE)])
    whole = content[f"data.{suffix}"]
    for length in range(len(whole) - (suffix == "dbf")):
        with pytest.raises((IngestError, SchemaError), match=r"^(The index of )?input/data"):
            read_input(ReadEsriShapefile(), zipped({**content, f"data.{suffix}": whole[:length]}))


@pytest.mark.parametrize(("at", "count"), [(4, 1), (4, 3)])
def test_more_or_fewer_attributes_than_shapes(read_input: Reader, at: int, count: int):
    content = files("point", [((1, 2), ONE), ((3, 4), ONE)])
    with pytest.raises(IngestError, match=r"continues after|truncated"):
        read_input(ReadEsriShapefile(), patched(content, "dbf", at, struct.pack("<i", count)))
    other = files("point", [((1, 2), ONE)])
    with pytest.raises(IngestError, match="has 1 shapes and 2 rows of attributes"):
        read_input(
            ReadEsriShapefile(), zipped({**content, "data.shp": other["data.shp"], "data.shx": other["data.shx"]})
        )


# --- What was written is read ---

COORDINATE = st.floats(-1e6, 1e6)
ROWS = st.lists(
    st.tuples(
        st.none() | st.tuples(COORDINATE, COORDINATE),
        st.fixed_dictionaries(
            {
                "id": st.none() | st.integers(-(10**8), 10**9),
                "name": st.none()
                | st.text(st.characters(codec="utf-8", categories=["L", "N"]), min_size=1, max_size=4),
            }
        ),
    ),
    max_size=8,
)


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, batch=st.sampled_from([1, 60, 1 << 20]))
def test_what_was_written_is_read(read_input: Reader, rows: list[Any], batch: int):
    content = files("point", rows)
    content["data.cpg"] = b"UTF-8"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dbf, "_BATCH", batch)
        found = read_input(ReadEsriShapefile(), zipped(content)).to_pylist()
    wanted = [{**values, "geometry": list(shape) if shape else None} for shape, values in rows]
    assert [
        {**row, "geometry": row["geometry"] and json.loads(row["geometry"])["coordinates"]} for row in found
    ] == wanted
