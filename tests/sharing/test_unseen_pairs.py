"""Corrections that change nothing of what a caller sees."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from odfpy.sharing.files.unseen_pairs import without_unseen_pairs

FROM, TO = "update_preimage", "update_postimage"


def kept(rows: Sequence[tuple[Any, str]], kind: pa.DataType, at_once: int) -> list[tuple[Any, str]]:
    schema = pa.schema([("value", kind), ("_change_type", pa.string())])
    parts = [rows[start : start + at_once] for start in range(0, len(rows), at_once)]
    batches = [pa.record_batch([pa.array(column) for column in zip(*part, strict=True)], schema=schema)
               for part in parts]  # fmt: skip
    found = pa.Table.from_batches(without_unseen_pairs(iter(batches)), schema)
    return [(row["value"], row["_change_type"]) for row in found.to_pylist()]


@pytest.mark.parametrize("at_once", [1, 2, 3, 100])
@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pa.int64(), 1, 2),
        (pa.int64(), None, 0),
        (pa.string(), "a", "b"),
        (pa.bool_(), True, False),
        (pa.list_(pa.int64()), [1, None], [1]),
        (pa.struct([("a", pa.int64())]), {"a": None}, None),
        (pa.decimal128(5, 2), None, Decimal(1)),
    ],
)
def test_only_equal_halves_go(kind: pa.DataType, one: Any, other: Any, at_once: int) -> None:
    rows = [(one, "insert"), (one, FROM), (one, TO), (one, FROM), (other, TO), (other, FROM), (other, TO), (one, TO)]
    rows += [(one, "delete"), (other, FROM)]
    found = kept(rows, kind, at_once)
    assert [word for _, word in found] == ["insert", FROM, TO, TO, "delete", FROM]
    assert found == kept([rows[place] for place in (0, 3, 4, 7, 8, 9)], kind, 100)


def test_two_nans_are_equal() -> None:
    nan = float("nan")
    assert kept([(nan, FROM), (nan, TO)], pa.float64(), 100) == []


def test_corrections_of_many_rows() -> None:
    rows = list(itertools.chain.from_iterable([(n, FROM), (n + n % 2, TO)] for n in range(10_000)))
    assert len(kept(rows, pa.int64(), 999)) == 10_000
