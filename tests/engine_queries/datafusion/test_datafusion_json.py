"""The JSON functions that manifests of the reference implementation use in DataFusion's SQL."""

from __future__ import annotations

import pyarrow as pa
import pytest

from odfpy.dataset.transform import TransformSql
from odfpy.engine.datafusion.engine import DataFusionEngine

TEXT = (
    '{"s":"x","i":1,"f":1.5,"l":[1,{"e":null}],"b":true,"n":null,"big":99999999999999999999,"half":"\\ud800","é":"ü"}'
)


def value(expression: str, text: str | None = TEXT) -> object:
    rows = pa.table({"j": pa.array([text], pa.string())})
    made = DataFusionEngine().preprocess(
        TransformSql("datafusion", query=f"select {expression} as v from input"), {"input": rows}
    )
    return made.column("v")[0].as_py()


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("json_get_str(j, 's')", "x"),
        ("json_get_str(j, 'é')", "ü"),
        ("json_get_str(j, 'i')", None),
        ("json_get_str(j, 'half')", None),
        ("json_get_str(j, 'nope')", None),
        ("json_get_int(j, 'i')", 1),
        ("json_get_int(j, 'f')", None),
        ("json_get_int(j, 'b')", None),
        ("json_get_int(j, 'big')", None),
        ("json_get_float(j, 'f')", 1.5),
        ("json_get_float(j, 'i')", 1.0),
        ("json_get_float(j, 's')", None),
        ("json_get_bool(j, 'b')", True),
        ("json_get_bool(j, 'i')", None),
        ("json_get_json(j, 'l')", '[1,{"e":null}]'),
        ("json_get_json(j, 'n')", "null"),
        ("json_get_int(json_get_json(j, 'l'), 0)", 1),
        ("json_get_int(json_get_json(j, 'l'), 2)", None),
        ("json_contains(j, 'n')", True),
        ("json_contains(j, 'nope')", False),
        ("json_length(j)", 9),
        ("json_length(json_get_json(j, 'l'))", 2),
        ("json_length(json_get_json(j, 's'))", None),
    ],
)
def test_what_is_there_and_of_the_kind_is_found(expression: str, expected: object):
    assert value(expression) == expected


@pytest.mark.parametrize("text", [None, "", "{", "NaN", "[" * 100_000, '{"s": NaN}', '{"s": 1e400'])
def test_what_is_no_json_has_nothing_in_it(text: str | None):
    assert value("json_get_str(j, 's')", text) is None
    assert value("json_length(j)", text) is None
