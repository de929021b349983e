"""Rows leave in batches of one size, so that nobody sees between which of them hidden rows were."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from odfpy.federation.relay.reading import even


@given(st.lists(st.integers(0, 9)), st.integers(1, 7))
def test_batches_have_one_size_whatever_the_source_gives(sizes: list[int], rows: int) -> None:
    table = pa.table({"n": range(sum(sizes))})
    given_ = [table.slice(sum(sizes[:at]), size).combine_chunks().to_batches() for at, size in enumerate(sizes)]
    found = list(even((batch for batches in given_ for batch in batches), rows))
    assert [row for batch in found for row in batch.column(0).to_pylist()] == list(range(sum(sizes)))
    assert all(batch.num_rows == rows for batch in found[:-1])
    assert all(0 < batch.num_rows <= rows for batch in found[-1:])
