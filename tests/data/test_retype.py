"""Rows that an engine gives back, in the columns that they are to have."""

from __future__ import annotations

import pyarrow as pa
import pytest

from odfpy.data.schemas.retype import floored, plain_batch

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


def test_times_are_cut_in_an_hour_that_comes_twice():
    """In the time of their zone, Arrow does not know which of the two it is."""
    twice = pa.array([1729987200_123_456, 1729990800_123_456, -1, None], pa.timestamp("us", "Europe/Berlin"))
    assert floored(twice, "millisecond").cast(pa.int64()).to_pylist() == [
        1729987200_123_000, 1729990800_123_000, -1_000, None
    ]  # fmt: skip
    assert floored(twice, "millisecond").type == twice.type
