"""The state that is computed from the slices themselves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.errors import IntegrityError
from odfpy.state.current import ScannedState
from odfpy.testing.keyed_state import SCHEMA, A, History, KeyedStateContract, R, rows_of, write_history


def scanned(history: History) -> ScannedState:
    return ScannedState(history.slices, history.schema, history.vocabulary)


class TestScanned(KeyedStateContract):
    def make(self, history: History, keys: Sequence[str], *, keeps_rows: bool) -> ScannedState:
        return scanned(history)


def test_rows_are_found_by_offset_in_any_order(tmp_path: Path) -> None:
    events = [(A, number % 5, f"{number}") for number in range(20)]
    history = write_history(tmp_path, rows_of(events), rows_of([(R, 4, "19")], 20), row_group_size=3)
    rows = scanned(history).rows(pa.array([20, 3, 17, 3]))
    assert [(row["offset"], row["op"], row["name"]) for row in rows.to_pylist()] == [
        (20, R, "19"),
        (3, A, "3"),
        (17, A, "17"),
        (3, A, "3"),
    ]
    assert rows.schema.types == SCHEMA.types


def test_a_slice_that_lacks_an_offset_is_found_out(tmp_path: Path) -> None:
    rows = rows_of([(A, 1, "a"), (A, 2, "b"), (A, 3, "c")])
    state = scanned(write_history(tmp_path, rows.take(pa.array([0, 2]))))
    with pytest.raises(IntegrityError, match="do not hold all offsets"):
        state.rows(pa.array([1]))


def test_a_slice_that_is_missing_is_found_out(tmp_path: Path) -> None:
    history = write_history(tmp_path, rows_of([(A, 1, "a")]), rows_of([(A, 2, "b")], 1))
    state = ScannedState(history.slices[1:], history.schema, history.vocabulary)
    with pytest.raises(IntegrityError, match="do not hold all offsets"):
        state.rows(pa.array([0, 1]))
