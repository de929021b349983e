"""Rows that an engine gives back, in the columns that they are to have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from odfpy.data.schemas.retype import plain_batch

PLACE = pa.struct([pa.field("lat", pa.float64(), nullable=False)])


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (PLACE, [{"lat": 1.5}, None]),
        (pa.list_(PLACE), [[{"lat": 1.5}, None], None]),
        (pa.struct([pa.field("at", PLACE)]), [{"at": None}, None]),
    ],
)
def test_a_structure_may_be_null_though_a_member_of_it_may_not(kind: pa.DataType, values: list[object]) -> None:
    schema = pa.schema([("a", kind)])
    rows = pa.record_batch([pa.array(values, kind)], schema=schema)
    assert plain_batch(rows, schema).to_pylist() == rows.to_pylist()
