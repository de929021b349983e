"""Large results become several slices, cut where the rows say, whatever wrote them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ingest.ingested import TIME, Ingested, table

from odfpy.chain.sources import MergeAppend, MergeSnapshot
from odfpy.data.slices.cut import SLICE_ROWS, cut_rows
from odfpy.data.slices.logical_hash import logical_hash
from odfpy.data.slices.slice import read_slice
from odfpy.errors import SchemaError
from odfpy.ingest.gather import combine, gather
from odfpy.ingest.order import time_order

APPEND, RETRACT, FROM, TO = range(4)


def rows_of(dataset: Ingested) -> list[dict[str, object]]:
    return list(dataset.history())


def times(*seconds: int) -> pa.Table:
    moments = pa.array([1000 * second for second in seconds], pa.int64()).cast(TIME)
    return pa.table({"event_time": moments, "id": pa.array(range(len(seconds)))})


# --- Where rows are cut ----------------------------------------------------------------------------------------------


def test_the_size_of_a_slice_is_part_of_the_format() -> None:
    assert SLICE_ROWS == 1_048_576


@given(st.lists(st.sampled_from([APPEND, RETRACT, FROM]), max_size=40), st.integers(2, 9))
def test_every_row_is_in_one_slice_of_nearly_the_same_size_and_pairs_stay_together(kinds: list[int], size: int) -> None:
    operations = [op for kind in kinds for op in ([FROM, TO] if kind == FROM else [kind])]
    cuts = cut_rows(len(operations), operations.__getitem__, size)
    assert [rank for start, stop in cuts for rank in range(start, stop)] == list(range(len(operations)))
    for number, (start, stop) in enumerate(cuts):
        assert operations[start] != TO
        assert start - number * size in (0, 1)
        assert stop > start


@pytest.mark.parametrize("threads", [1, 3])
def test_a_result_is_cut_into_slices_whose_offsets_go_on(tmp_path: Path, threads: int) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    result = dataset.ingest(times(5, 3, 4, 1, 2), threads=threads, slice_rows=2)
    infos = [item.info for item in result.slices]
    assert [(info.offset_start, info.offset_end, info.num_rows) for info in infos] == [(0, 1, 2), (2, 3, 2), (4, 4, 1)]
    assert [row["id"] for row in rows_of(dataset)] == [3, 4, 1, 2, 0]
    for item in result.slices:
        assert item.info.logical_hash == logical_hash(read_slice(item.path))
    assert result.slices[0].info.max_event_time < result.slices[1].info.min_event_time  # type: ignore[operator]


def test_several_slices_hold_the_rows_of_one(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "more").mkdir()
    one, more = (Ingested(tmp_path / name, MergeSnapshot(("id",))) for name in ("one", "more"))
    for content in ("id | name\n1 | a\n2 | b\n3 | c", "id | name\n1 | A\n2 | B\n4 | d\n5 | e"):
        one.ingest(table(content))
        more.ingest(table(content), slice_rows=3)
    assert (len(one.slices), len(more.slices)) == (2, 4)
    assert rows_of(more) == rows_of(one)
    assert read_slice(more.slices[1]).column("op").to_pylist() == [FROM, TO, FROM, TO], "the pair is not cut in two"


def test_nothing_is_left_of_slices_when_one_cannot_be_written(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeAppend())
    with pytest.raises(SchemaError):
        dataset.ingest(times(3, 2, 1).append_column("t", pa.array([1, 2, 3], pa.time32("s"))), slice_rows=1)
    assert list(tmp_path.iterdir()) == []


# --- Order and rows --------------------------------------------------------------------------------------------------

INSTANTS = st.integers(-(2**62), 2**62) | st.integers(-3, 3)


@given(st.lists(st.lists(INSTANTS, max_size=8), max_size=4))
def test_rows_are_ordered_by_time_and_then_place(chunks: list[list[int]]) -> None:
    column = pa.chunked_array([pa.array(chunk, pa.int64()).cast(TIME) for chunk in chunks], TIME)
    instants = [instant for chunk in chunks for instant in chunk]
    wanted = sorted(range(len(instants)), key=lambda place: (instants[place], place))
    order = time_order(column)
    assert (order.to_pylist() if order is not None else list(range(len(instants)))) == wanted
    assert (order is None) == (wanted == list(range(len(instants))))


def test_dates_are_ordered_too() -> None:
    days = pa.chunked_array([pa.array([3, 1, 2], pa.int32()).cast(pa.date32())])
    assert time_order(days).to_pylist() == [1, 2, 0]  # type: ignore[union-attr]


def test_rows_are_picked_from_columns_that_no_single_array_can_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.ingest.gather._MAX_SIZE", 100)
    column = pa.chunked_array([[f"text {number}" for number in range(start, start + 3)] for start in range(0, 30, 3)])
    large = combine(column)
    assert 1 < large.num_chunks < column.num_chunks
    places = pa.array([29, 0, 17, 17, 3], pa.int64())
    assert gather(large, places).to_pylist() == [f"text {place}" for place in places.to_pylist()]
    assert gather(large, places.slice(0, 0)).to_pylist() == []
