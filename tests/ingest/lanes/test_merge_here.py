"""The Spark lane on one machine, where a task merges: its slices are those of the local lane.

Its tasks run here, one after the other, so that no Java is needed.
"""

from __future__ import annotations

import errno
import json
import os
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.ingest.lane_requests import following, lane_request, locally

from odfpy.chain.read_steps import ReadCsv, ReadParquet
from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)
from odfpy.codec.tree import from_tree, to_tree
from odfpy.data.data_warning import WarningKind
from odfpy.errors import IngestError, IntegrityError, TooManyRetractions
from odfpy.ingest.lanes.client import ingested_data
from odfpy.ingest.lanes.request import LaneRequest, LaneResult
from odfpy.ingest.lanes.runs import write_batches
from odfpy.ingest.lanes.spark import ingest
from odfpy.ingest.pipeline import IngestedData
from odfpy.ingest.retractions import RetractionLimit

KEYS = ("id", "key")
STRATEGIES: list[MergeStrategy] = [
    MergeLedger(KEYS),
    MergeSnapshot(KEYS),
    MergeChangelogStream(KEYS),
    MergeUpsertStream(KEYS),
]


HOW: dict[str, Any] = {"part_bytes": 1, "slice_rows": 200, "partitions": 1, "one_machine": True}


@dataclass(frozen=True)
class Tasks:
    """As much of a Spark context as tasks need."""

    items: tuple[Any, ...] = ()

    @property
    def sparkContext(self) -> Tasks:  # noqa: N802 - Spark's name
        return self

    def parallelize(self, items: list[Any], _: int) -> Tasks:
        return Tasks(tuple(items))

    def map(self, work: Callable[[Any], Any]) -> Tasks:
        there = pickle.loads(pickle.dumps(work))
        return Tasks(tuple(pickle.loads(pickle.dumps(there(item))) for item in self.items))

    def collect(self) -> list[Any]:
        return list(self.items)


def rows(count: int, seed: int, strategy: MergeStrategy) -> pa.Table:
    """Rows with keys that come again, but for a snapshot, and values that are not simply equal or not."""
    dice = np.random.default_rng(seed)
    ids = dice.permutation(3 * count)[:count] if isinstance(strategy, MergeSnapshot) else dice.integers(0, count, count)
    with_operations = isinstance(strategy, MergeChangelogStream | MergeUpsertStream)
    operations = {"op": pa.array(dice.choice([0, 0, 1, 3], count), pa.int32())} if with_operations else {}
    times = [None if at % 5 == 0 else 86_400_000 * int(at % 40) for at in dice.integers(0, 200, count)]
    return pa.table(
        {
            **operations,
            "event_time": pa.array(times, pa.timestamp("ms", "UTC")),
            "id": pa.array(ids, pa.uint64()),
            "key": pa.array([("", "a", "ž")[at % 3] for at in ids]),
            "real": pa.array(dice.choice([0.0, -0.0, float("nan"), 1.5], count)),
            "list": pa.array([[None, [], [0.0, None], [-0.0, None]][at] for at in dice.integers(0, 4, count)]),
            "text": pa.array([None if at == 0 else f"text {at}" for at in dice.integers(0, 3, count)]),
        }
    )


def request_for(path: Path, strategy: MergeStrategy, out: Path) -> LaneRequest:
    return lane_request(ReadParquet(), path, strategy, out, **HOW)


def by_tasks(request: LaneRequest) -> IngestedData:
    answer = ingest(Tasks(), json.dumps(to_tree(request)))  # type: ignore[arg-type]
    return ingested_data(from_tree(LaneResult, json.loads(answer)), request)


def two_inputs(folder: Path, strategy: MergeStrategy) -> LaneRequest:
    """The ingest of one input on top of another."""
    for number in range(2):
        table = rows(700, 11 + number, strategy)
        pq.write_table(table, folder / f"{number}.parquet", row_group_size=90)
    first = request_for(folder / "0.parquet", strategy, folder / "before")
    return replace(following(first, locally(first)), path=str(folder / "1.parquet"), out=str(folder / "out"))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
def test_the_slices_are_those_of_the_local_lane(tmp_path: Path, strategy: MergeStrategy) -> None:
    request = two_inputs(tmp_path, strategy)
    expected, found = locally(replace(request, out=str(tmp_path / "local"))), by_tasks(request)
    assert [item.info for item in found.slices] == [item.info for item in expected.slices]
    assert found.statistics == expected.statistics
    assert (found.schema, found.schema_changed) == (expected.schema, expected.schema_changed)
    assert len(found.slices) > 1
    assert not list(tmp_path.glob("*.runs")), "nothing else is left"


def test_a_snapshot_with_a_key_twice_is_refused_with_the_same_words(tmp_path: Path) -> None:
    strategy = MergeSnapshot(KEYS)
    request = two_inputs(tmp_path, strategy)
    twice = rows(300, 5, strategy)
    pq.write_table(pa.concat_tables([twice, twice.slice(200, 2)]), request.path, row_group_size=90)
    with pytest.raises(IngestError) as expected:
        locally(request)
    with pytest.raises(IngestError) as found:
        by_tasks(request)
    assert (found.value.message, found.value.hint) == (expected.value.message, expected.value.hint)


def test_a_snapshot_that_retracts_too_much_is_refused_with_the_same_words(tmp_path: Path) -> None:
    request = replace(two_inputs(tmp_path, MergeSnapshot(KEYS)), limit=RetractionLimit())
    with pytest.raises(TooManyRetractions, match="has 700 rows, and would retract") as expected:
        locally(request)
    with pytest.raises(TooManyRetractions) as found:
        by_tasks(request)
    assert (found.value.message, found.value.hint) == (expected.value.message, expected.value.hint)
    assert not list(tmp_path.glob("out*")), "nothing is left"
    lifted = replace(request, limit=RetractionLimit(is_lifted=True))
    told = by_tasks(lifted).warnings
    assert told == locally(replace(lifted, out=str(tmp_path / "local"))).warnings
    assert (told[0].kind, len(told[0].examples)) == (WarningKind.RETRACTIONS, 10)


def test_keys_that_a_ledger_knows_with_other_values_are_those_that_its_index_tells(tmp_path: Path) -> None:
    """The index is the local lane's; the Spark lane reads the history."""
    request = two_inputs(tmp_path, MergeLedger(KEYS))
    assert request.schema is not None
    old, new = (pq.read_table(tmp_path / name) for name in ("0.parquet", "1.parquet"))
    seen: dict[tuple[int, str], set[str]] = {}
    for row in old.to_pylist():
        seen.setdefault((row["id"], row["key"]), set()).add(values_of(row))
    now: dict[tuple[int, str], set[str]] = {}
    for row in new.to_pylist():
        now.setdefault((row["id"], row["key"]), set()).add(values_of(row))
    expected = [key for key, values in now.items() if key in seen and values.isdisjoint(seen[key])]
    assert expected
    (warning,) = by_tasks(request).warnings
    assert (warning.kind, warning.count) == (WarningKind.KNOWN_OTHERWISE, len(expected))
    assert warning.examples == tuple(f"id = {number}, key = '{key}'" for number, key in expected[:10])


def test_nor_does_a_new_key_that_comes_again_hide_them(tmp_path: Path) -> None:
    strategy = MergeLedger(("id",))
    pq.write_table(pa.table({"id": [1], "real": [1.0]}), tmp_path / "old.parquet")
    pq.write_table(pa.table({"id": [1, 2, 2, 2], "real": [99.0, 1.0, 2.0, 3.0]}), tmp_path / "new.parquet")
    first = request_for(tmp_path / "old.parquet", strategy, tmp_path / "before")
    request = replace(following(first, locally(first)), path=str(tmp_path / "new.parquet"), out=str(tmp_path / "out"))
    assert [(warning.kind, warning.count) for warning in by_tasks(request).warnings] == [
        (WarningKind.KNOWN_OTHERWISE, 1)
    ]


def test_a_part_that_fails_once_is_read_again_and_so_are_those_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk may be full for a moment only, and what other tasks have read stays."""
    (tmp_path / "in.csv").write_text("id,text\n" + "".join(f"{at},{'x' * 50}\n" for at in range(1_000)))
    step = ReadCsv(header=True, infer_schema=True)
    request = lane_request(step, tmp_path / "in.csv", MergeAppend(), tmp_path / "out", **(HOW | {"part_bytes": 10_000}))
    failed = set()

    def full_once(schema: pa.Schema, batches: Any, path: str) -> None:
        if path.endswith("run-2-0") and path not in failed:
            failed.add(path)
            batches = full()
        write_batches(schema, batches, path)

    def full() -> Iterator[pa.RecordBatch]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        yield

    monkeypatch.setattr("odfpy.ingest.lanes.runs.write_batches", full_once)
    found = by_tasks(request)
    assert failed
    assert found.statistics.read == 1_000
    expected = locally(replace(request, out=str(tmp_path / "local")))
    assert [item.info for item in found.slices] == [item.info for item in expected.slices]


def values_of(row: dict[str, Any]) -> str:
    """The values of a row; -0.0 is 0.0."""
    real, items = row["real"] + 0.0, row["list"] and [item and item + 0.0 for item in row["list"]]
    return repr((real, items, row["text"])).replace("-0.0", "0.0")


def test_rows_that_a_ledger_knows_as_they_are_need_no_word(tmp_path: Path) -> None:
    strategy = MergeLedger(("id",))
    table = pa.table({"id": pa.array(range(300)), "real": [float("nan"), -0.0, None] * 100})
    pq.write_table(table, tmp_path / "old.parquet", row_group_size=90)
    pq.write_table(pa.concat_tables([table.slice(7), table.slice(0, 7)]), tmp_path / "new.parquet", row_group_size=70)
    first = request_for(tmp_path / "old.parquet", strategy, tmp_path / "before")
    request = replace(following(first, locally(first)), path=str(tmp_path / "new.parquet"), out=str(tmp_path / "out"))
    assert by_tasks(request).warnings == ()


def test_a_damaged_slice_is_named(tmp_path: Path) -> None:
    request = two_inputs(tmp_path, MergeUpsertStream(KEYS))
    damaged = Path(request.slices[0])
    content = bytearray(damaged.read_bytes())
    content[20:200] = bytes(180)
    damaged.write_bytes(content)
    with pytest.raises(IntegrityError, match=damaged.name):
        by_tasks(request)
