"""The key index answers like the slices it was made of, however it was made; damage is noticed, never believed."""

from __future__ import annotations

import itertools
import random
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.state.current import KeyedState, ScannedState, StateColumn
from odfpy.state.database import database
from odfpy.state.indexed import IndexedState
from odfpy.state.key_index import INDEX, IndexPurpose, IndexSizes, KeyIndex
from odfpy.state.run_file import StateDamaged
from odfpy.testing.keyed_state import (
    C_FROM,
    C_TO,
    ID,
    NAME,
    SCHEMA,
    A,
    History,
    KeyedStateContract,
    R,
    current,
    keys_seen,
    rows_of,
    write_history,
)

TINY = IndexSizes(block_rows=3, least_rows=2, part_rows=5, part_bytes=400)


def purpose_of(history: History, keys: Sequence[str] = ("id",), *, keeps_rows: bool = True) -> IndexPurpose:
    return IndexPurpose(tuple(keys), keeps_rows, history.vocabulary)


def indexed(
    history: History, purpose: IndexPurpose, cuts: Sequence[int] = (), sizes: IndexSizes = TINY, name: str = "keys"
) -> KeyIndex:
    """An index that was extended up to each cut, then with all the rest; it is opened anew in between."""
    index = KeyIndex(history.folder / name, purpose, sizes=sizes)
    bounds = [0, *cuts, len(history.slices)]
    for start, end in itertools.pairwise(bounds):
        index.extended(history.slices[start:end], history.schema, f"after {end}")
        index = KeyIndex.open(index.folder, purpose, sizes)
    return index


def unanswerable() -> KeyedState:
    raise AssertionError("the index was of no use")


def state_of(index: KeyIndex, history: History) -> IndexedState:
    return IndexedState(index, history.schema, unanswerable)


def scanned(history: History) -> ScannedState:
    return ScannedState(history.slices, history.schema, history.vocabulary)


class TestIndexed(KeyedStateContract):
    sizes = IndexSizes()

    def make(self, history: History, keys: Sequence[str], *, keeps_rows: bool) -> KeyedState:
        purpose = purpose_of(history, keys, keeps_rows=keeps_rows)
        return state_of(indexed(history, purpose, range(len(history.slices)), self.sizes), history)


class TestIndexedInBlocks(TestIndexed):
    sizes = IndexSizes(block_rows=100, least_rows=10, part_rows=2000)


# --- Any history -----------------------------------------------------------------------------------------------------

FLOATS = st.sampled_from([0.0, -0.0, 1.5, float("nan"), None])
KEYS = st.fixed_dictionaries({"x": st.none() | st.lists(FLOATS, max_size=2), "text": st.sampled_from(["", "ö"])})
KEY_TYPE = pa.struct([("x", pa.list_(pa.float64())), ("text", pa.string())])
EVENTS = st.lists(
    st.tuples(st.sampled_from([A, A, R, C_FROM, C_TO]), KEYS, FLOATS, st.sampled_from(["", None, "name"])), max_size=12
)
PLAIN = pa.schema([*list(SCHEMA)[:4], ("id", KEY_TYPE), ("part", pa.float64()), ("name", pa.string())])
GROWN = PLAIN.append(pa.field("more", pa.list_(pa.struct([("n", pa.int8())]))))
COLUMNS = [StateColumn("k0", "id", "STRUCT(x DOUBLE[], text VARCHAR)"), StateColumn("k1", "part", "DOUBLE")]
VALUES = [NAME, StateColumn("v1", "more", "STRUCT(n TINYINT)[]")]


@st.composite
def histories(draw: st.DrawFn) -> tuple[list[pa.Table], list[int]]:
    """Slices, the later of which have a column more, and where to cut them for an index that is made bit by bit."""
    slices: list[pa.Table] = []
    start = 0
    batches = draw(st.lists(EVENTS, min_size=1, max_size=5))
    grows_at = draw(st.integers(0, len(batches)))
    for number, events in enumerate(batches):
        grown = number >= grows_at
        more = [(*event, [{"n": number}]) for event in events] if grown else events
        slices.append(rows_of(more, start, GROWN if grown else PLAIN))
        start += len(events)
    return slices, sorted(draw(st.lists(st.integers(0, len(slices)), max_size=3)))


@settings(max_examples=examples(6, 15))
@given(made=histories(), wanted=st.lists(st.tuples(KEYS, FLOATS), max_size=4))
def test_any_history_is_answered_as_by_the_slices(
    made: tuple[list[pa.Table], list[int]], wanted: list[tuple[Any, Any]]
) -> None:
    slices, cuts = made
    among = pa.table(
        {
            "k0": pa.array([key for key, _ in wanted], KEY_TYPE),
            "k1": pa.array([part for _, part in wanted], pa.float64()),
        }
    )
    with TemporaryDirectory() as folder:
        history = write_history(Path(folder), *slices, schema=GROWN)
        index = indexed(history, purpose_of(history, ["id", "part"]), cuts)
        for asked in (None, among):
            expected = current(scanned(history), COLUMNS, VALUES, asked)
            assert repr(current(state_of(index, history), COLUMNS, VALUES, asked)) == repr(expected)
        index = indexed(history, purpose_of(history, ["id"], keeps_rows=False), cuts, name="seen")
        for asked in (None, among):
            assert _seen_texts(state_of(index, history), asked) == _seen_texts(scanned(history), asked)


def _seen_texts(state: KeyedState, among: pa.Table | None) -> set[str]:
    """Seen keys in one form for those that are equal."""
    with database(threads=1) as db:
        if among is not None:
            db.register("new", among)
        relation = state.seen_keys(db, COLUMNS[:1], among=None if among is None else "new")
        relation.create_view("state")
        asked = "" if among is None else "WHERE EXISTS (SELECT 1 FROM new WHERE new.k0 = state.k0)"
        return {repr(row).replace("-0.0", "0.0") for row in db.sql(f"SELECT DISTINCT k0 FROM state {asked}").fetchall()}


# --- Its form --------------------------------------------------------------------------------------------------------


def test_the_number_of_files_is_logarithmic(tmp_path: Path) -> None:
    slices = [rows_of([(A, 10 * number + at, "a") for at in range(10)], 10 * number) for number in range(64)]
    history = write_history(tmp_path, *slices)
    index = indexed(history, purpose_of(history), range(64), IndexSizes(least_rows=1))
    assert len(index.runs) <= 7
    assert {path.name for path in index.folder.iterdir()} == {INDEX, *(run.name for run in index.runs)}


def test_what_has_ended_takes_no_room(tmp_path: Path) -> None:
    events = [event for key in range(50) for event in ((A, key, "a"), (R, key, "a"))]
    history = write_history(
        tmp_path, *(rows_of(events[at : at + 10], at) for at in range(0, 100, 10)), rows_of([(A, 1, "b")], 100)
    )
    index = indexed(history, purpose_of(history), range(len(history.slices)))
    assert sum(run.rows for run in index.runs) == 1


def test_only_blocks_that_can_match_are_read(tmp_path: Path) -> None:
    history = write_history(tmp_path, rows_of([(A, key, "a") for key in range(1000)]))
    index = indexed(history, purpose_of(history), (), IndexSizes(block_rows=10))
    (run,) = index.runs
    among = pa.table({"k0": [500]})
    data = bytearray((index.folder / run.name).read_bytes())
    spoilt = 0
    for at in range(0, run.schema_at, run.schema_at // 25):
        (index.folder / run.name).write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        try:
            assert current(state_of(index, history), among=among) == [(500, 500, "a")]
        except AssertionError as error:
            assert "no use" in str(error)  # noqa: PT017
            spoilt += 1
    assert spoilt < 3


# --- Damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def history(tmp_path: Path) -> History:
    events = [(A, key, f"{key}") for key in range(40)]
    changes = [event for key in range(0, 40, 3) for event in ((C_FROM, key, f"{key}"), (C_TO, key, "new"))]
    return write_history(tmp_path, rows_of(events), rows_of(changes, 40), rows_of([(R, 1, "1")], 40 + len(changes)))


@pytest.fixture
def index(history: History) -> KeyIndex:
    return indexed(history, purpose_of(history), [1, 2])


def answer(index: KeyIndex, history: History) -> tuple[list[tuple[Any, ...]], bool]:
    """The current rows, and whether the index had to be left aside."""
    try:
        opened = KeyIndex.open(index.folder, index.purpose, index.sizes)
    except StateDamaged:
        return current(scanned(history)), True
    state = IndexedState(opened, history.schema, lambda: scanned(history))
    return current(state), state.has_failed


def test_an_index_in_order_is_used(index: KeyIndex, history: History) -> None:
    assert len(index.runs) > 1
    assert answer(index, history) == (current(scanned(history)), False)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(3))
def test_a_flipped_bit_anywhere_changes_no_answer(seed: int, index: KeyIndex, history: History) -> None:
    expected, dice = current(scanned(history)), random.Random(seed)
    for path in sorted(index.folder.iterdir()):
        whole = path.read_bytes()
        for _ in range(8):
            at = dice.randrange(len(whole))
            path.write_bytes(whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :])
            assert answer(index, history)[0] == expected, f"{path.name} at {at}"
        path.write_bytes(whole)


def test_a_file_cut_anywhere_is_noticed(index: KeyIndex, history: History) -> None:
    expected, dice = current(scanned(history)), random.Random(1)
    for path in sorted(index.folder.iterdir()):
        whole = path.read_bytes()
        for length in (0, 1, len(whole) - 2, len(whole) - 1, *(dice.randrange(len(whole)) for _ in range(5))):
            path.write_bytes(whole[:length])
            assert answer(index, history) == (expected, True), f"{path.name} of {length} bytes"
        path.write_bytes(whole)


def test_a_missing_file_is_noticed(index: KeyIndex, history: History) -> None:
    expected = current(scanned(history))
    for path in sorted(index.folder.iterdir()):
        whole = path.read_bytes()
        path.unlink()
        assert answer(index, history) == (expected, True)
        path.write_bytes(whole)


def test_a_run_of_another_index_is_noticed(index: KeyIndex, history: History, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = write_history(tmp_path / "other", rows_of([(A, key, "other") for key in range(40)]))
    strange = indexed(other, purpose_of(other))
    shutil.copy(strange.folder / strange.runs[0].name, index.folder / index.runs[0].name)
    assert answer(index, history) == (current(scanned(history)), True)


@pytest.mark.parametrize("words", [(b'"format": 2', b'"format": 3'), (b"duckdb ", b"ducks ")], ids=["format", "hash"])
def test_an_index_of_another_release_is_not_opened(words: tuple[bytes, bytes], index: KeyIndex) -> None:
    text, _, _ = (index.folder / INDEX).read_bytes().rstrip(b"\n").rpartition(b"\n")
    changed = text.replace(*words)
    assert changed != text
    (index.folder / INDEX).write_bytes(b"\n".join((changed, str(Multihash.of(changed, BLAKE3)).encode(), b"")))
    with pytest.raises(StateDamaged, match="another release"):
        KeyIndex.open(index.folder, index.purpose)


def test_an_index_for_another_purpose_is_not_opened(index: KeyIndex) -> None:
    for other in (
        replace(index.purpose, keys=("name",)),
        replace(index.purpose, keeps_rows=False),
        replace(index.purpose, vocabulary=replace(DEFAULT_VOCABULARY, offset_column="o")),
    ):
        with pytest.raises(StateDamaged, match="another purpose"):
            KeyIndex.open(index.folder, other)


def test_what_the_index_was_not_made_for_is_asked_of_the_data(index: KeyIndex, history: History) -> None:
    def state() -> IndexedState:
        return IndexedState(index, history.schema, lambda: scanned(history))

    assert keys_seen(state()) == set(range(40))
    assert keys_seen(state(), StateColumn("k0", "name", "VARCHAR")) == {"new", *map(str, range(40))}
    assert current(state(), [StateColumn("k0", "name", "VARCHAR")], [ID])[-1][1] == "new"


def test_a_damaged_index_cannot_be_extended(index: KeyIndex, history: History) -> None:
    for run in index.runs:
        (index.folder / run.name).write_bytes(b"")
    with pytest.raises(StateDamaged):
        index.extended(history.slices, history.schema, "next")


def test_what_a_killed_writer_left_is_removed(index: KeyIndex, history: History) -> None:
    (index.folder / "run-half").write_bytes(b"half")
    (index.folder / ".tmp-half").write_bytes(b"half")
    index.extended([], history.schema, "next")
    assert {path.name for path in index.folder.iterdir()} == {INDEX, *(run.name for run in index.runs)}
    assert KeyIndex.open(index.folder, index.purpose).token == "next"
