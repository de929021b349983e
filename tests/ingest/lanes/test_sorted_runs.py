"""Sorted runs give the rows of all in one order, by rank."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.ingest.ingested import TIME

from odfpy.ingest.lanes import runs, sorted_runs
from odfpy.ingest.lanes.runs import Run, write_table
from odfpy.ingest.lanes.sorted_runs import SortedRuns

TIMES = st.lists(st.integers(-5, 5) | st.integers(-(2**60), 2**60), min_size=1, max_size=40)


def run_of(path: Path, number: int, times: list[int], arrow: pa.DataType, step: int) -> Run:
    """A run whose rows say where they are from."""
    moments = np.sort(np.array(times, np.int64))
    whole = pa.array(moments).cast(pa.int32() if pa.types.is_date(arrow) else pa.int64()).cast(arrow)
    places = pa.array([(number << 20) + place for place in range(len(times))])
    write_table(pa.table({"event_time": whole, "place": places}), str(path))
    return Run(str(path), len(times), None, moments[::step].copy())


@pytest.mark.parametrize("arrow", [TIME, pa.date32()], ids=str)
@pytest.mark.parametrize("step", [1, 3, 64])
def test_rows_by_rank_are_those_of_one_stable_sort(
    step: int, arrow: pa.DataType, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (runs, sorted_runs):
        monkeypatch.setattr(module, "SAMPLE_STEP", step)

    @given(st.lists(TIMES, min_size=1, max_size=4), st.integers(1, 60))
    def holds(parts: list[list[int]], size: int) -> None:
        if pa.types.is_date(arrow):
            parts = [[time % 2**20 for time in part] for part in parts]
        rows = sorted(
            (time, (number << 20) + place)
            for number, part in enumerate(parts)
            for place, time in enumerate(sorted(part))
        )
        with TemporaryDirectory() as folder:
            made = [run_of(Path(folder) / str(number), number, part, arrow, step) for number, part in enumerate(parts)]
            together = SortedRuns(made, "event_time")
            found = []
            for start in range(0, len(rows), size):
                found += together.rows(start, min(start + size, len(rows))).column("place").to_pylist()
        assert found == [place for _, place in rows]

    holds()
