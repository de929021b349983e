"""The hash of rows without an order, beside one made by hand from lines of JSON."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timezone
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odfpy.data.multihash import Multihash
from odfpy.data.rows.rows_hash import RowsHasher

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("f", pa.float64()), ("l", pa.list_(pa.int32()))])
ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(-(2**63), 2**63 - 1),
        "s": st.none() | st.text(max_size=5),
        "f": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "l": st.none() | st.lists(st.none() | st.integers(-9, 9), max_size=3),
    }
)


def hashed(rows: list[dict[str, Any]], cuts: tuple[int, ...] = (), held: int = 1 << 20) -> Multihash:
    with RowsHasher(held) as hasher:
        places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
        for start, end in pairwise(places):
            hasher.update(pa.RecordBatch.from_pylist(rows[start:end], schema=SCHEMA))
        assert hasher.num_rows == len(rows)
        return hasher.finish()


def line_of(row: dict[str, Any]) -> str:
    return json.dumps({name: row[name] for name in SCHEMA.names}, separators=(",", ":"), ensure_ascii=False)


def by_hand(rows: list[dict[str, Any]]) -> str:
    digests = sorted(hashlib.sha3_256(line.encode()).digest() for line in map(line_of, rows))
    return "f1620" + hashlib.sha3_256(b"".join(digests)).hexdigest()


@given(st.lists(ROW, max_size=12), st.randoms(use_true_random=False), st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_it_is_what_one_makes_by_hand_in_any_order(rows: list[Any], random: Any, cuts: tuple[int, int]) -> None:
    mixed = list(rows)
    random.shuffle(mixed)
    assert str(hashed(mixed, cuts)) == by_hand(rows)
    assert str(hashed(mixed, cuts, held=3)) == by_hand(rows), "also when digests were put aside"


@given(st.lists(ROW, max_size=6), st.lists(ROW, max_size=6))
def test_other_rows_have_another_hash(one: list[Any], other: list[Any]) -> None:
    is_same = sorted(map(line_of, one)) == sorted(map(line_of, other))
    assert (hashed(one) == hashed(other)) == is_same


def test_a_row_twice_is_not_a_row_once() -> None:
    row = {"n": 1, "s": None, "f": None, "l": None}
    assert len({str(hashed([row] * count)) for count in range(4)}) == 4


def test_values_that_json_does_not_have() -> None:
    time = datetime(2024, 1, 2, 3, 4, 5, 600, timezone.utc)
    schema = pa.schema([("d", pa.decimal128(5, 2)), ("t", pa.timestamp("us", "UTC")), ("b", pa.binary())])
    batch = pa.RecordBatch.from_pylist([{"d": Decimal("1.50"), "t": time, "b": b"\xff"}], schema=schema)
    line = b'{"d":"1.50","t":"2024-01-02T03:04:05.000600Z","b":"ff"}'
    with RowsHasher() as hasher:
        hasher.update(batch)
        assert hasher.finish() == Multihash.of(hashlib.sha3_256(line).digest())
