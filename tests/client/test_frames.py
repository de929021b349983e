"""Answers as frames of pandas and Polars: with the values that they have."""

from __future__ import annotations

import sys
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pytest
from support.chains.connecting import RATES

from odfpy.client.connection import Connection
from odfpy.client.frames import pandas_frame, polars_frame
from odfpy.errors import EngineError, SchemaError

GREATEST = 2**63 - 1
TABLE = pa.table(
    {
        "whole": pa.array([1, 2], pa.int64()),
        "gaps": pa.array([GREATEST, None], pa.int64()),
        "large": pa.array([None, 2**64 - 1], pa.uint64()),
        "inner": pa.array([{"x": GREATEST}, {"x": None}], pa.struct({"x": pa.int64()})),
        "items": pa.array([[GREATEST, None], None], pa.list_(pa.int64())),
    }
)


def test_integers_beside_nulls_stay_exact_in_pandas() -> None:
    frame = pandas_frame(TABLE, {})
    assert [str(kind) for kind in frame.dtypes[:3]] == ["int64", "Int64", "UInt64"]
    assert frame["gaps"].tolist() == [GREATEST, pd.NA]
    assert frame["large"].tolist() == [pd.NA, 2**64 - 1]
    assert frame["inner"].tolist() == [{"x": GREATEST}, {"x": None}]
    assert list(frame["items"][0]) == [GREATEST, None]


def test_columns_of_one_name_stay_apart_in_pandas() -> None:
    frame = pandas_frame(TABLE.select(["whole", "gaps"]).rename_columns(["a", "a"]), {})
    assert [str(kind) for kind in frame.dtypes] == ["int64", "Int64"]


def test_pandas_may_be_given_its_types(here: Connection) -> None:
    frame = here.sql(f'SELECT id FROM "{RATES}"', limit=1).to_pandas(types_mapper=pd.ArrowDtype)
    assert str(frame["id"].dtype) == "int64[pyarrow]"


def test_without_pandas_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(EngineError, match="package pandas, which is not installed") as caught:
        pandas_frame(TABLE, {})
    assert caught.value.hint == "pip install pandas"


def test_types_that_polars_does_not_have_are_named() -> None:
    big = pa.table({"big": pa.array([[Decimal("1.5")]], pa.list_(pa.decimal256(76, 2)))})
    with pytest.raises(SchemaError, match=r"'big' of type list<item: decimal256\(76, 2\)>"):
        polars_frame(big)


def test_polars_takes_no_two_columns_of_one_name() -> None:
    with pytest.raises(SchemaError, match="'a'"):
        polars_frame(TABLE.select(["whole", "gaps"]).rename_columns(["a", "a"]))
