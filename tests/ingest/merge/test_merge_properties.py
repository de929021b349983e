"""Merges of random batches against models in a few lines of Python."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.ingest.ingested import TIME, Ingested, Row, replay, same

from odfpy.chain.sources import (
    MergeAppend,
    MergeChangelogStream,
    MergeLedger,
    MergeSnapshot,
    MergeStrategy,
    MergeUpsertStream,
)

KEYS = ("id", "part")
Batch = tuple[list[Row], str]

SCHEMA = pa.schema(
    [
        ("event_time", TIME),
        ("id", pa.int64()),
        ("part", pa.string()),
        ("x", pa.float64()),
        ("items", pa.list_(pa.float64())),
        ("inner", pa.struct([("n", pa.int32()), ("text", pa.string())])),
        ("code", pa.binary(2)),
    ]
)

FLOATS = st.sampled_from([None, 0.0, -0.0, 1.5, math.nan])
TIMES = st.sampled_from([datetime(2024, 1, day, tzinfo=timezone.utc) for day in (1, 2, 3)])
ROWS = st.fixed_dictionaries(
    {
        "event_time": st.none() | TIMES,
        "id": st.integers(0, 2),
        "part": st.sampled_from(["", "ö"]),
        "x": FLOATS,
        "items": st.none() | st.lists(FLOATS, max_size=2),
        "inner": st.none()
        | st.fixed_dictionaries({"n": st.none() | st.integers(0, 1), "text": st.sampled_from(["", None])}),
        "code": st.sampled_from([None, b"\x00\x00", b"ab"]),
    }
)
OPERATIONS = st.sampled_from([0, 0, 0, 1, 2, 3])
SOURCE_TIMES = st.sampled_from(["2024-01-02", "2024-01-09"])


def batches(strategy: MergeStrategy, rows: st.SearchStrategy[Row] = ROWS) -> st.SearchStrategy[list[Batch]]:
    """A few inputs in turn."""
    if isinstance(strategy, (MergeUpsertStream, MergeChangelogStream)):
        rows = st.tuples(OPERATIONS, rows).map(lambda pair: {"op": pair[0], **pair[1]})
    unique = _key if isinstance(strategy, MergeSnapshot) else None
    return st.lists(st.tuples(st.lists(rows, max_size=6, unique_by=unique), SOURCE_TIMES), min_size=1, max_size=3)


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in KEYS)


def as_table(rows: list[Row], strategy: MergeStrategy) -> pa.Table:
    takes_operations = isinstance(strategy, (MergeUpsertStream, MergeChangelogStream))
    fields = [pa.field("op", pa.int32()), *SCHEMA] if takes_operations else list(SCHEMA)
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


@contextmanager
def ingested(strategy: MergeStrategy, inputs: list[Batch], **options: Any) -> Iterator[Ingested]:
    """A dataset that has taken in some batches."""
    with TemporaryDirectory() as folder:
        dataset = Ingested(Path(folder), strategy)
        for rows, at in inputs:
            dataset.ingest(as_table(rows, strategy), at, **options)
        yield dataset


# --- Models ----------------------------------------------------------------------------------------------------------


def with_time(row: Row, at: str) -> Row:
    time = row["event_time"] or datetime.fromisoformat(at).replace(tzinfo=timezone.utc)
    return {**row, "event_time": time}


def stored(row: Row) -> Row:
    """A row as it comes out of a dataset."""
    (out,) = pa.Table.from_pylist([row], schema=SCHEMA).to_pylist()
    return out


def is_changed(old: Row, new: Row) -> bool:
    compared = [name for name in old if name != "event_time" or new["event_time"] is not None]
    return not all(same(old[name], stored(new)[name]) for name in compared)


def snapshot_model(inputs: list[Batch]) -> dict[tuple[Any, ...], Row]:
    state: dict[tuple[Any, ...], Row] = {}
    for rows, at in inputs:
        before, state = state, {}
        for row in rows:
            old = before.get(_key(row))
            state[_key(row)] = stored(with_time(row, at)) if old is None or is_changed(old, row) else old
    return state


def upsert_model(inputs: list[Batch]) -> dict[tuple[Any, ...], Row]:
    state: dict[tuple[Any, ...], Row] = {}
    for rows, at in inputs:
        for key, row in {_key(row): row for row in rows}.items():
            if row["op"] == 1:
                state.pop(key, None)
            elif key not in state or is_changed(state[key], row):
                state[key] = stored(with_time(row, at))
    return state


def ledger_model(inputs: list[Batch], *, dedupe: bool = True) -> list[Row]:
    kept: list[Row] = []
    for rows, at in inputs:
        seen = {_key(row) for row in kept} if dedupe else set()
        new = [stored(with_time(row, at)) for row in rows if _key(row) not in seen]
        kept += sorted(new, key=lambda row: row["event_time"])
    return kept


def changelog_model(inputs: list[Batch]) -> list[Row]:
    kept: list[Row] = []
    for rows, at in inputs:
        new = [{"op": row["op"], **stored(with_time(row, at))} for row in rows]
        kept += sorted(new, key=lambda row: (_key(row), row["op"]))
    return kept


def written(dataset: Ingested, *, operations: bool = False) -> list[Row]:
    hidden = {"offset", "system_time", *(() if operations else ("op",))}
    return [{name: value for name, value in row.items() if name not in hidden} for row in dataset.history()]


# --- Properties ------------------------------------------------------------------------------------------------------

SNAPSHOT, UPSERT, LEDGER, APPEND = MergeSnapshot(KEYS), MergeUpsertStream(KEYS), MergeLedger(KEYS), MergeAppend()
CHANGELOG = MergeChangelogStream(KEYS)


@settings(max_examples=examples(10, 25), deadline=None)
@given(batches(SNAPSHOT))
def test_snapshot_leads_to_the_last_state(inputs: list[Batch]) -> None:
    with ingested(SNAPSHOT, inputs) as dataset:
        state = replay(dataset.history(), KEYS)
        expected = snapshot_model(inputs)
    assert {key: repr(state[key]) for key in sorted(state)} == {key: repr(expected[key]) for key in sorted(expected)}


@settings(max_examples=examples(10, 25), deadline=None)
@given(batches(UPSERT))
def test_upsert_stream_leads_to_the_last_row_of_each_key(inputs: list[Batch]) -> None:
    with ingested(UPSERT, inputs) as dataset:
        state = replay(dataset.history(), KEYS)
        expected = upsert_model(inputs)
    assert {key: repr(state[key]) for key in sorted(state)} == {key: repr(expected[key]) for key in sorted(expected)}


@settings(max_examples=examples(10, 25), deadline=None)
@given(batches(LEDGER))
def test_ledger_keeps_rows_with_unseen_keys(inputs: list[Batch]) -> None:
    with ingested(LEDGER, inputs) as dataset:
        assert repr(written(dataset)) == repr(ledger_model(inputs))


@settings(max_examples=examples(6, 15), deadline=None)
@given(batches(APPEND))
def test_append_keeps_all_rows(inputs: list[Batch]) -> None:
    with ingested(APPEND, inputs) as dataset:
        assert repr(written(dataset)) == repr(ledger_model(inputs, dedupe=False))


@settings(max_examples=examples(6, 15), deadline=None)
@given(batches(CHANGELOG))
def test_changelog_stream_keeps_all_rows(inputs: list[Batch]) -> None:
    with ingested(CHANGELOG, inputs) as dataset:
        assert repr(written(dataset, operations=True)) == repr(changelog_model(inputs))


@pytest.mark.parametrize("strategy", [SNAPSHOT, UPSERT, LEDGER], ids=lambda strategy: strategy.KIND)
def test_the_same_input_again_changes_nothing(strategy: MergeStrategy) -> None:
    @settings(max_examples=examples(6, 15), deadline=None)
    @given(batches(strategy))
    def check(inputs: list[Batch]) -> None:
        with ingested(strategy, inputs) as dataset:
            rows, _ = inputs[-1]
            assert dataset.ingest(as_table(rows, strategy), "2025-05-05").is_empty

    check()


GIVEN_TIMES = st.tuples(ROWS, TIMES).map(lambda pair: {**pair[0], "event_time": pair[1]})


def _sorted(rows: list[Row]) -> list[str]:
    return sorted(map(repr, rows))


@pytest.mark.parametrize(
    ("strategy", "outcome"),
    [
        (APPEND, lambda dataset: _sorted(written(dataset))),
        (UPSERT, lambda dataset: _sorted(list(replay(dataset.history(), KEYS).values()))),
    ],
    ids=lambda value: getattr(value, "KIND", ""),
)
def test_a_split_input_leads_to_the_same(strategy: MergeStrategy, outcome: Callable[[Ingested], list[str]]) -> None:
    @settings(max_examples=examples(6, 15), deadline=None)
    @given(batches(strategy, GIVEN_TIMES), st.integers(0, 6))
    def check(inputs: list[Batch], at: int) -> None:
        parts = [part for rows, time in inputs for part in ((rows[:at], time), (rows[at:], time))]
        with ingested(strategy, inputs) as whole, ingested(strategy, parts) as split:
            assert outcome(whole) == outcome(split)

    check()


@settings(max_examples=examples(6, 15), deadline=None)
@given(batches(SNAPSHOT, GIVEN_TIMES), st.randoms(use_true_random=False))
def test_a_snapshot_does_not_depend_on_the_order_of_its_input(inputs: list[Batch], random: Any) -> None:
    shuffled = [(random.sample(rows, len(rows)), at) for rows, at in inputs]
    with ingested(SNAPSHOT, inputs) as one, ingested(SNAPSHOT, shuffled) as other:
        assert [path.read_bytes() for path in one.slices] == [path.read_bytes() for path in other.slices]


# --- Determinism -----------------------------------------------------------------------------------------------------


def _large(strategy: MergeStrategy, seed: int) -> pa.Table:
    """More rows than fit into one of the database's vectors or row groups, with many ties."""
    count = 150_000
    place = pa.arange(0, count).to_numpy()
    ids = place * 7919 % (count if isinstance(strategy, MergeSnapshot) else 40_000) + seed * 5_000
    columns = {
        "event_time": pa.array(place * 31 % 5 * 86_400_000, TIME),
        "id": pa.array(ids),
        "x": pa.array(((ids + seed) % 1000 == 0) * 1.5 + place % 2 * (not isinstance(strategy, MergeSnapshot))),
    }
    if isinstance(strategy, (MergeUpsertStream, MergeChangelogStream)):
        columns["op"] = pa.array((place % 11 == 0) * 1, pa.int32())
    return pa.table(columns)


@pytest.mark.parametrize(
    "strategy",
    [
        MergeAppend(),
        MergeLedger(("id",)),
        MergeSnapshot(("id",)),
        MergeChangelogStream(("id",)),
        MergeUpsertStream(("id",)),
    ],
    ids=lambda strategy: strategy.KIND,
)
def test_result_does_not_depend_on_threads_or_chunks(strategy: MergeStrategy, tmp_path: Path) -> None:
    results = []
    for threads, chunks in ((1, 1), (2, 7), (5, 3)):
        folder = tmp_path / str(threads)
        folder.mkdir()
        dataset = Ingested(folder, strategy)
        for seed in (0, 3):
            new = _large(strategy, seed)
            size = -(-new.num_rows // chunks)
            parts = [new.slice(start, size) for start in range(0, new.num_rows, size)]
            assert dataset.ingest(pa.concat_tables(parts), threads=threads).slices
        results.append([path.read_bytes() for path in dataset.slices])
    assert results[0] == results[1] == results[2]
