"""Late rows are counted: new ones that happened at or before the watermark."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pyarrow as pa
import pytest
from support.ingest.ingested import Ingested, table

from odfpy.chain.sources import MergeAppend, MergeLedger, MergeSnapshot, MergeUpsertStream
from odfpy.data.lateness import late_rows
from odfpy.data.timestamp import Timestamp

FEBRUARY = Timestamp.parse("2024-02-01T00:00:00Z")


def test_a_row_is_late_at_or_before_the_watermark(tmp_path: Path) -> None:
    new = table("event_time | id\n2024-01-31 | 1\n2024-02-01 | 2\n2024-02-02 | 3")
    assert Ingested(tmp_path, MergeAppend()).ingest(new, watermark=FEBRUARY).statistics.late == 2


def test_nothing_is_late_where_there_is_no_watermark(tmp_path: Path) -> None:
    assert Ingested(tmp_path, MergeAppend()).ingest(table("event_time | id\n2024-01-31 | 1")).statistics.late == 0


def test_rows_that_were_seen_before_are_not_late(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeLedger(("id",)))
    dataset.ingest(table("event_time | id\n2024-01-01 | 1"))
    again = table("event_time | id\n2024-01-01 | 1\n2024-01-02 | 2\n2024-03-01 | 3")
    assert dataset.ingest(again, watermark=FEBRUARY).statistics.late == 1


@pytest.mark.parametrize("strategy", [MergeSnapshot(("id",)), MergeUpsertStream(("id",))])
def test_a_late_correction_counts_once_and_a_retraction_not_at_all(
    strategy: MergeSnapshot | MergeUpsertStream, tmp_path: Path
) -> None:
    dataset = Ingested(tmp_path, strategy)
    dataset.ingest(table("event_time | id | name\n2024-01-01 | 1 | a\n2024-01-01 | 2 | b"))
    is_upsert = isinstance(strategy, MergeUpsertStream)
    change = "op | event_time | id | name\n+A | 2024-01-02 | 1 | A\n-R | 2024-01-01 | 2 | b"
    state = "event_time | id | name\n2024-01-02 | 1 | A"
    told = dataset.ingest(table(change if is_upsert else state), watermark=FEBRUARY).statistics
    assert (told.corrected, told.retracted, told.late) == (1, 1, 1)


@pytest.mark.parametrize(("watermark", "late"), [("2024-02-01", 1), ("2024-02-01T23:59:59Z", 1), ("2024-02-02", 2)])
def test_dates_count_from_their_midnight(watermark: str, late: int) -> None:
    days = pa.chunked_array([[date(2024, 2, 1), date(2024, 2, 2)]], pa.date32())
    assert late_rows(days, pa.array([0, 0], pa.int32()), Timestamp.parse(watermark)) == late


def test_times_finer_than_milliseconds_are_compared_exactly() -> None:
    times = pa.chunked_array([[5, 6]], pa.int64()).cast(pa.timestamp("ms", "UTC"))
    assert late_rows(times, pa.array([0, 3], pa.int32()), Timestamp(5_999_999)) == 1
