from __future__ import annotations

import pyarrow as pa
import pytest

from odfpy.data.schemas.fit import fit_table
from odfpy.errors import SchemaError


def test_columns_follow_the_schema_and_missing_ones_are_null() -> None:
    table = pa.table({"b": [1], "a": ["x"], "c": [True]})
    wanted = pa.schema([("a", pa.string()), ("new", pa.list_(pa.int8())), ("b", pa.int32())])
    fitted = fit_table(table, wanted)
    assert fitted.schema == wanted
    assert fitted.to_pylist() == [{"a": "x", "new": None, "b": 1}]


def test_a_value_that_does_not_fit_is_an_error_that_names_the_column() -> None:
    with pytest.raises(SchemaError, match="Column 'b'"):
        fit_table(pa.table({"b": [300]}), pa.schema([("b", pa.int8())]))


def test_structs_grow() -> None:
    wanted = pa.schema([("s", pa.struct([("x", pa.int64()), ("y", pa.string())]))])
    assert fit_table(pa.table({"s": [{"x": 1}, None]}), wanted).to_pylist() == [{"s": {"x": 1, "y": None}}, {"s": None}]
