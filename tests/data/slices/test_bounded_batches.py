"""Batches that are bounded in bytes: which columns are read as dictionaries, and that values do not depend on it."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.data.slices import bounded_batches as module
from odfpy.data.slices.bounded_batches import BATCH_BYTES, bounded_batches

ROWS = 65_536
DIFFERENT = [f"name {number:07}" for number in range(150_000)]
"""More than the megabyte after which writers give a dictionary up."""
OFTEN = ["one", "two", "three"] * 50_000


def batches_of(path, values, columns=("name",), **options):
    table = pa.table(dict.fromkeys(columns, values))
    pq.write_table(table, path, **options)
    return list(bounded_batches(path, pq.read_metadata(path), ROWS, columns=["name"])), table["name"].to_pylist()


def values_of(batches):
    return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.mark.parametrize(
    ("values", "is_dictionary"),
    [
        (DIFFERENT, False),
        (OFTEN, True),
        ([None] * 10 + DIFFERENT, False),
        ([None] * ROWS + DIFFERENT, False),
        (DIFFERENT[:1000], True),
        ([value.encode() for value in DIFFERENT], False),
        (OFTEN[:90_000] + DIFFERENT, False),
    ],
    ids=("different", "often", "some nulls", "nulls first", "few", "bytes", "different later"),
)
@pytest.mark.parametrize("row_group_size", [1 << 20, 100_000])
def test_a_dictionary_that_was_given_up_is_not_made_again(tmp_path, values, is_dictionary, row_group_size):
    batches, right = batches_of(tmp_path / "file", values, row_group_size=row_group_size)
    assert values_of(batches) == right
    assert all(pa.types.is_dictionary(batch.column(0).type) == is_dictionary for batch in batches)


def test_long_values_in_a_dictionary_that_was_given_up_stay_there(tmp_path):
    values = ["x" * 100_000] * 1500 + DIFFERENT  # more than two batches
    batches, _ = batches_of(tmp_path / "file", values)
    assert (tmp_path / "file").stat().st_size < 5_000_000
    assert all(pa.types.is_dictionary(batch.column(0).type) for batch in batches)
    assert max(sum(map(len, values_of([batch]))) for batch in batches) <= 1.1 * BATCH_BYTES
    assert sum(map(len, batches)) == len(values)


def test_only_columns_that_are_read_are_looked_at(tmp_path, monkeypatch):
    looked = []
    monkeypatch.setattr(module, "_reads_faster_without", lambda _, __, column, *___: looked.append(column))
    batches_of(tmp_path / "file", DIFFERENT, columns=("name", "other"))
    assert looked == ["name"]


@settings(max_examples=examples(50, 200), deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.lists(st.none() | st.text("ab", max_size=9), max_size=60),
    st.integers(1, 60),
    st.integers(8, 80),
    st.integers(1, 3),
)
def test_values_are_the_same_however_they_are_read(tmp_path, monkeypatch, values, in_a_group, dictionary, look):
    monkeypatch.setattr(module, "_WORTH_A_LOOK", 0)
    monkeypatch.setattr(module, "_LOOK_ROWS", look)
    batches, right = batches_of(
        tmp_path / "file",
        pa.array(values, pa.string()),
        row_group_size=in_a_group,
        dictionary_pagesize_limit=dictionary,
        data_page_size=16,
        write_batch_size=2,
    )
    assert values_of(batches) == right
