"""An arrangement gives all rows of a key, however they came and were merged; damage is noticed, never believed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.state.arrangement import add_entries, all_rows, rows_of, sorted_by, write_run
from odfpy.state.fingerprints import Entries
from odfpy.state.merging import IndexSizes
from odfpy.state.run_file import RunInfo, StateDamaged

TINY = IndexSizes(block_rows=3, least_rows=2, part_rows=5, part_bytes=400)
SPREAD = 0x9E3779B97F4A7C15
"""Small numbers times this are all over the range of fingerprints."""

rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=20)


def entries(found: list[tuple[int, int]]) -> Entries:
    fingerprints = np.array([key * SPREAD % (1 << 64) for key, _ in found], np.uint64)
    return sorted_by(fingerprints, pa.table({"key": pa.array([key for key, _ in found], pa.int64()), "value": [
        value for _, value in found
    ]}, schema=pa.schema({"key": pa.int64(), "value": pa.int64()})))  # fmt: skip


def looked_up(folder: Path, runs: tuple[RunInfo, ...], keys: list[int]) -> Counter[tuple[int, int]]:
    wanted = np.unique(np.array([key * SPREAD % (1 << 64) for key in keys], np.uint64))
    tables = rows_of(folder, runs, wanted)
    return Counter((row["key"], row["value"]) for table in tables for row in table.to_pylist())


@given(st.lists(rows, min_size=1, max_size=8), st.lists(st.integers(0, 15)))
def test_all_rows_of_wanted_keys_and_no_others(batches: list[list[tuple[int, int]]], keys: list[int]) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        first = entries(batches[0])
        runs: tuple[RunInfo, ...] = (write_run(folder / "0", [first], first.rows.schema, TINY),)
        for number, batch in enumerate(batches[1:], start=1):
            runs = add_entries(folder, runs, folder / str(number), entries(batch), TINY)
        given_rows = [row for batch in batches for row in batch]
        assert looked_up(folder, runs, keys) == Counter(row for row in given_rows if row[0] in keys)
        assert looked_up(folder, runs, list(range(16))) == Counter(given_rows)
        whole = [row for batch in all_rows(folder, runs) for row in batch.to_pylist()]
        assert Counter((row["key"], row["value"]) for row in whole) == Counter(given_rows)


def test_runs_are_few_and_each_is_larger_than_what_follows(tmp_path: Path) -> None:
    runs: tuple[RunInfo, ...] = ()
    for number in range(60):
        batch = entries([(number % 13, number)])
        runs = add_entries(tmp_path, runs, tmp_path / str(number), batch, TINY)
    sizes = [run.rows for run in runs]
    assert sum(sizes) == 60
    assert len(sizes) <= 5
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize("damage", ["a bit", "its end", "all of it"])
def test_damage_is_noticed(damage: str, tmp_path: Path) -> None:
    batch = entries([(key, key) for key in range(13)])
    run = write_run(tmp_path / "run", [batch], batch.rows.schema, TINY)
    data = bytearray((tmp_path / "run").read_bytes())
    if damage == "a bit":
        for at in range(0, len(data), 7):  # in whatever part it is, a lookup of everything finds it
            other = bytearray(data)
            other[at] ^= 1
            (tmp_path / "run").write_bytes(other)
            try:
                found = looked_up(tmp_path, (run,), list(range(13)))
            except StateDamaged:
                continue
            assert found == Counter((key, key) for key in range(13)), "bytes between blocks have no meaning"
        return
    if damage == "its end":
        (tmp_path / "run").write_bytes(data[:-1])
    else:
        (tmp_path / "run").unlink()
    with pytest.raises(StateDamaged):
        looked_up(tmp_path, (run,), [1])


def test_a_run_that_could_not_be_written_leaves_no_file(tmp_path: Path) -> None:
    batch = entries([(1, 1)])

    def parts():  # type: ignore[no-untyped-def]
        yield batch
        raise OSError("no space")

    with pytest.raises(OSError, match="no space"):
        write_run(tmp_path / "run", parts(), batch.rows.schema, TINY)
    assert list(tmp_path.iterdir()) == []
