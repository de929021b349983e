"""Comparison of the rows that a reader gives with those of an independent one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from support.chains.schemas import optional

from odfpy.data.schemas.schema import Bool, Date, Float64, Int64, String

Rows = Sequence[Sequence[Any]]
SCHEMA = optional(id=Int64(), x=Float64(), name=String(), day=Date(), ok=Bool())
GEO_SCHEMA = optional(id=Int64(), x=Float64(), name=String(), day=Date(), ok=Bool(), geometry=String())


def check_rows(table: pa.Table, wanted: Rows) -> None:
    found = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    assert len(found) == len(wanted), f"{len(found)} rows of {len(wanted)}"
    for row, texts in zip(found, wanted, strict=True):
        assert len(row) == len(texts)
        for value, text in zip(row, texts, strict=True):
            assert is_same(value, text), f"{value!r} for {text!r}"


def is_same(value: Any, given: Any) -> bool:
    """Return whether a value equals that of a text, or of a JSON value."""
    if value is None or given is None:
        return value is given
    match value:
        case bool():
            return given is value or str(given).lower() == str(value).lower()
        case int():
            return Decimal(given) == value
        case float() if math.isnan(value):
            return str(given).lower() == "nan"
        case float():
            return float(given) == value
        case date():
            return str(given) == value.isoformat()
        case dict():
            return all(is_same(item, given.get(key)) for key, item in value.items()) and (
                given.keys() <= value.keys() or bool(value)
            )
        case list():
            return len(value) == len(given) and all(map(is_same, value, given))
    return bool(value == given)


def encoded(texts: Sequence[str]) -> list[bytes]:
    return [text.encode() for text in texts]
