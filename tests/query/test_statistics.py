"""Bounds of columns are what footers tell; of times, nothing that Python's own cannot have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.engine.bounds import bounds_of, least_time
from odfpy.query.statistics import bounds, event_times, last_row_at, system_times

FIRST, LAST = Timestamp(1_000_000_001), Timestamp(1_500_000_999)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A slice of others, whose times have nanoseconds."""
    times = pa.array([FIRST.nanos, LAST.nanos], pa.timestamp("ns", "UTC"))
    path = tmp_path / "slice"
    pq.write_table(pa.table({"offset": [0, 1], "op": [0, 0], "system_time": times, "event_time": times}), path)
    return path


def test_times_with_nanoseconds_are_not_told(path: Path) -> None:
    assert bounds(path, "system_time") is None
    assert event_times(path, DEFAULT_VOCABULARY) is None
    assert list(bounds_of(str(path), "event_time")) == [None]
    assert least_time([str(path)], "event_time") is None
    assert bounds(path, "offset") == (0, 1)


def test_times_out_of_all_years_are_not_told(tmp_path: Path) -> None:
    """Python has no such dates, and pyarrow raises what it likes."""
    times = pa.array([-(10**15), 10**15], pa.timestamp("ms", "UTC"))
    pq.write_table(pa.table({"event_time": times}), tmp_path / "slice")
    assert least_time([str(tmp_path / "slice")], "event_time") is None
    assert list(bounds_of(str(tmp_path / "slice"), "event_time")) == [None]


def test_system_times_are_read_then(path: Path) -> None:
    assert system_times(path, DEFAULT_VOCABULARY) == (FIRST, LAST)
    assert last_row_at(path, DEFAULT_VOCABULARY, Timestamp(LAST.nanos - 1)) == 0
    assert last_row_at(path, DEFAULT_VOCABULARY, LAST) == 1


def test_commands_have_no_pandas_for_such_times(path: Path) -> None:
    program = f"""
from pathlib import Path
from odfpy.extras import do_without_pandas
do_without_pandas()
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.query.statistics import event_times, system_times
path = Path({str(path)!r})
print(event_times(path, DEFAULT_VOCABULARY), *system_times(path, DEFAULT_VOCABULARY))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", f"None {FIRST} {LAST}\n")
