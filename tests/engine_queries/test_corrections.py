"""Pairs of corrections of which a query lets one half, both halves or none through."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from support.engine.requests import SYMBOLS

from odfpy.data.vocabulary import OperationType
from odfpy.engine.corrections import TaggedRows, finalize_correction_pairs


def carried(rows):
    """Rows as (symbol, branch, offset)."""
    return TaggedRows(
        pa.record_batch({"row": pa.array(range(len(rows)), pa.int64())}),
        np.array([SYMBOLS[symbol] for symbol, _, _ in rows], dtype=np.int64),
        np.array([branch for _, branch, _ in rows], dtype=np.int64),
        np.array([offset for _, _, offset in rows], dtype=np.int64),
    )


def finalized(*batches):
    done = list(finalize_correction_pairs(carried(batch) for batch in batches))
    kept = [row for batch in done for row in batch.rows.column(0).to_pylist()]
    return [OperationType(kind).symbol for batch in done for kind in batch.operation_types], kept


def test_a_whole_pair_stays_a_pair():
    assert finalized([("+A", 0, 4), ("-C", 0, 5), ("+C", 0, 6)])[0] == ["+A", "-C", "+C"]


def test_a_lone_half_becomes_a_retraction_or_an_append():
    assert finalized([("-C", 0, 5), ("+A", 0, 7)])[0] == ["-R", "+A"]
    assert finalized([("-R", 0, 4), ("+C", 0, 6)])[0] == ["-R", "+A"]


def test_halves_of_different_pairs_are_no_pair():
    assert finalized([("-C", 0, 5), ("+C", 0, 8)])[0] == ["-R", "+A"]


def test_halves_on_different_branches_are_no_pair():
    assert finalized([("-C", 0, 5), ("+C", 1, 6)])[0] == ["-R", "+A"]


def test_rows_that_fan_out_make_no_pairs():
    assert finalized([("-C", -1, 5), ("+C", -1, 6)])[0] == ["-R", "+A"]


def test_a_pair_may_be_cut_by_batches():
    assert finalized([("-C", 0, 5)], [], [("+C", 0, 6), ("-C", 0, 7)])[0] == ["-C", "+C", "-R"]


@st.composite
def changelogs(draw):
    """What a filter left of a changelog with pairs."""
    rows, offset = [], 0
    for kind in draw(st.lists(st.sampled_from(["+A", "-R", "pair"]), max_size=20)):
        rows += [("-C", 0, offset), ("+C", 0, offset + 1)] if kind == "pair" else [(kind, 0, offset)]
        offset += 2 if kind == "pair" else 1
    return [row for row in rows if draw(st.booleans())]


@given(changelogs(), st.data())
def test_neither_weights_nor_rows_change_and_batches_make_no_difference(rows, data):
    cut = data.draw(st.integers(0, len(rows)))
    whole, kept = finalized(rows)
    assert finalized(rows[:cut], rows[cut:])[0] == whole
    assert kept == sorted(kept)
    weights = {kind.symbol: kind.weight for kind in OperationType}
    assert [weights[symbol] for symbol in whole] == [weights[symbol] for symbol, _, _ in rows]
    for at, symbol in enumerate(whole):
        if symbol == "-C":
            assert whole[at + 1] == "+C"
        if symbol == "+C":
            assert whole[at - 1] == "-C"
