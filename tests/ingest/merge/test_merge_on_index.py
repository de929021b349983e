"""Merges that look keys up in an index make the same slices, byte by byte, as those that ask the slices."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.ingest.ingested import TIME, Ingested

from odfpy.chain.sources import MergeLedger, MergeSnapshot, MergeStrategy, MergeUpsertStream
from odfpy.data.schemas.schema import DataSchema
from odfpy.data.slices.slice import read_slice
from odfpy.ingest.normalize import primary_key
from odfpy.state.current import KeyedState
from odfpy.state.indexed import IndexedState
from odfpy.state.key_index import IndexPurpose, IndexSizes, KeyIndex

KEYS = ("id", "at")
PLAIN = pa.schema([("event_time", TIME), ("id", pa.float64()), ("at", pa.list_(pa.float64())), ("x", pa.float64())])
GROWN = PLAIN.append(pa.field("more", pa.struct([("n", pa.int32())])))
STRATEGIES = [MergeLedger(KEYS), MergeSnapshot(KEYS), MergeUpsertStream(KEYS)]

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, float("nan")])
ROWS = st.fixed_dictionaries(
    {
        "event_time": st.none() | st.sampled_from([datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2)]),
        "id": NUMBERS,
        "at": st.lists(NUMBERS | st.none(), max_size=1),
        "x": NUMBERS | st.none(),
        "more": st.none() | st.fixed_dictionaries({"n": st.none() | st.integers(0, 1)}),
        "op": st.sampled_from([0, 0, 1, 3]),
    }
)


def key_of(row: dict[str, Any]) -> str:
    return repr((row["id"], row["at"])).replace("-0.0", "0.0")


def table(rows: list[dict[str, Any]], strategy: MergeStrategy, *, grown: bool) -> pa.Table:
    fields = list(GROWN if grown else PLAIN)
    if isinstance(strategy, MergeUpsertStream):
        fields = [pa.field("op", pa.int32()), *fields]
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


class WithIndex:
    """A dataset whose merges use an index, which is caught up before each of them."""

    def __init__(self, folder: Path, strategy: MergeStrategy) -> None:
        self.dataset = Ingested(folder / "data", strategy)
        self.dataset.folder.mkdir(parents=True)
        purpose = IndexPurpose(primary_key(strategy), not isinstance(strategy, MergeLedger), self.dataset.vocabulary)
        self.index = KeyIndex(folder / "keys", purpose, sizes=IndexSizes(block_rows=2, least_rows=1, part_rows=3))
        self.covered = 0

    def state(self, schema: DataSchema) -> KeyedState:
        if self.dataset.schema is not None:
            new = self.dataset.slices[self.covered :]
            self.index = self.index.extended(new, self.dataset.schema, f"{len(self.dataset.slices)}")
            self.covered = len(self.dataset.slices)
        return IndexedState(self.index, schema, self.unanswerable)

    @staticmethod
    def unanswerable() -> KeyedState:
        raise AssertionError("the index was of no use")


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda strategy: type(strategy).__name__)
@settings(max_examples=examples(5, 8))
@given(data=st.data())
def test_slices_are_the_same(strategy: MergeStrategy, data: st.DataObject) -> None:
    unique = key_of if isinstance(strategy, MergeSnapshot) else None
    batches = data.draw(st.lists(st.lists(ROWS, max_size=6, unique_by=unique), min_size=1, max_size=4))
    grows_at = data.draw(st.integers(0, len(batches)))
    with TemporaryDirectory() as folder:
        indexed = WithIndex(Path(folder) / "indexed", strategy)
        plain = Ingested(Path(folder) / "plain", strategy)
        plain.folder.mkdir()
        for number, rows in enumerate(batches):
            new = table(rows, strategy, grown=number >= grows_at)
            plain.ingest(new)
            indexed.dataset.ingest(new, state=indexed.state)
        slices = [[path.read_bytes() for path in dataset.slices] for dataset in (plain, indexed.dataset)]
        assert slices[0] == slices[1]


def test_a_key_of_negative_zero_is_that_of_zero(tmp_path: Path) -> None:
    """duckdb 1.5 passes over it in a join of several columns, if it is left to itself."""
    strategy = MergeUpsertStream(primary_key=("id", "at"))
    row = {"event_time": None, "at": [], "x": None, "more": None, "op": 0}
    for dataset, state in (
        (Ingested(tmp_path / "plain", strategy), None),
        ((indexed := WithIndex(tmp_path / "indexed", strategy)).dataset, indexed.state),
    ):
        dataset.folder.mkdir(parents=True, exist_ok=True)
        for rows in ([{**row, "id": 0.0, "x": 0.0}, {**row, "id": 1.0}], [{**row, "id": -0.0}]):
            new = table(rows, strategy, grown=True)
            dataset.ingest(new) if state is None else dataset.ingest(new, state=state)
        assert [entry["op"] for path in dataset.slices for entry in read_slice(path).to_pylist()] == [0, 0, 2, 3]
