"""Queries over files: they answer as over the same rows in memory, whichever slices hold these."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.engine.datafusion.datasets import name_dataset
from odfpy.engine.datafusion.files import FileRows
from odfpy.engine.datafusion.session import name_rows, new_session, rows_in_order, run_query
from odfpy.engine.sql.files import FilesRequest, FileTable
from odfpy.errors import UnsupportedQuery

SCHEMA = pa.schema([("n", pa.int64()), ("s", pa.string()), ("d", pa.float64()), ("t", pa.timestamp("ms", "UTC"))])
ROW = st.fixed_dictionaries(
    {
        "n": st.none() | st.integers(0, 6),
        "s": st.none() | st.sampled_from(["a", "b", "c", "d", "e", " IN (["]),
        "d": st.none() | st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf")]),
        "t": st.none() | st.integers(0, 3),
    }
)
NUMBERS = "(0, 1, 2, 3, 4)"
CONDITIONS = [
    f"n NOT IN {NUMBERS}", f"n IN {NUMBERS}", "n NOT IN (0, 1, NULL, 3, 4)", "n NOT IN (1, 2)",
    "s NOT IN ('a', 'b', 'c', 'd')", "d NOT IN (0, 1, 2, 3, 4)", "NOT (n BETWEEN 1 AND 2)", "n <> 3", "n IS DISTINCT FROM 3",
    f"NOT (n IN {NUMBERS} AND s = 'a')", f"NOT (n IN {NUMBERS} OR s = 'a')", f"n IN {NUMBERS} OR s IN ('a', 'b', 'c', 'd')",
    f"(n IN {NUMBERS}) = false", f"(n IN {NUMBERS}) IS NULL", f"(n IN {NUMBERS}) IS NOT TRUE", f"n IN {NUMBERS} AND s > 'a'",
    "NOT (n = 1 OR n = 2 OR n = 3 OR n = 4 OR n = 5)", "s LIKE 'a%'", "s NOT LIKE 'a%'", "d > 1", "NOT (d > 1)", "n IS NULL",
    "t NOT IN ('1970-01-01', '1970-01-02', '1970-01-03', '1970-01-05')", "s = ' IN (['", f"n <> (SELECT max(n) FROM r WHERE n NOT IN {NUMBERS})",
]  # fmt: skip


def in_memory(rows: pa.Table, query: str) -> list[Any]:
    context = new_session(deterministic=False)
    name_rows(context, "r", rows.schema, rows.to_batches())
    return list(rows_in_order(run_query(context, query)))


def in_files(folder: Path, slices: Sequence[pa.Table], query: str) -> list[Any]:
    context = new_session(deterministic=False)
    paths = [str(folder / f"{number}.parquet") for number in range(len(slices))]
    for path, rows in zip(paths, slices, strict=True):
        pq.write_table(rows, path)
    name_dataset(context, "r", ds.dataset(paths, slices[0].schema, format="parquet"), slices[0].schema)
    return list(rows_in_order(run_query(context, query)))


def values(batches: list[Any]) -> str:
    return repr([row for batch in batches for row in batch.to_pylist()])


@given(slices=st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=3), condition=st.sampled_from(CONDITIONS))
def test_conditions_are_those_of_sql(
    tmp_path_factory: pytest.TempPathFactory, slices: list[list[dict[str, Any]]], condition: str
) -> None:
    """Arrow, which looks at files, has another meaning of nulls in some of them."""
    tables = [pa.Table.from_pylist(rows, SCHEMA) for rows in slices]
    query = f"SELECT n, s, d FROM r WHERE {condition}"
    found = in_files(tmp_path_factory.mktemp("files"), tables, query)
    assert values(found) == values(in_memory(pa.concat_tables(tables), query))


@pytest.mark.parametrize(
    "query",
    [
        "SELECT sum(d) AS x FROM r",
        "SELECT k, sum(d) AS x FROM r GROUP BY k ORDER BY k",
        "SELECT n FROM r ORDER BY k LIMIT 3",
        "SELECT n FROM r LIMIT 3",
        "SELECT first_value(n) AS x FROM r WHERE k = 1",
        "SELECT md5(string_agg(CAST(n AS TEXT), ',')) AS x FROM r",
    ],
)
def test_slices_are_read_one_after_the_other(tmp_path: Path, query: str) -> None:
    """As they came, sums of fractions, ties and whatever follows from an order were others each time."""
    numbers = range(24_000)
    rows = pa.table(
        {
            "n": numbers,
            "k": [number % 2 for number in numbers],
            "d": [(-1) ** number * 1.1 ** (number % 700) for number in numbers],
        }
    )
    slices = [rows.slice(start, 2_000) for start in range(0, len(numbers), 2_000)]
    found = {values(in_files(tmp_path, slices, query)) for _ in range(6)}
    assert len(found) == 1
    if "sum" not in query:  # which follows from the lengths of batches
        assert found == {values(in_memory(rows, query))}


def test_a_min_that_would_be_wrong_is_refused() -> None:
    rows = pa.table({"k": ["a", "a"], "d": [1.0, float("nan")]})
    with pytest.raises(UnsupportedQuery, match="wrong min or max"):
        in_memory(rows, 'WITH a AS (SELECT k, max(d) FROM r GROUP BY k) SELECT "max(r.d)" FROM a')


def test_times_of_spark_are_not_wrapped_around(tmp_path: Path) -> None:
    """As INT96, in which those before 1677 and after 2262 are no number of nanoseconds."""
    never = datetime(9999, 12, 31, 23, 59, 59, tzinfo=timezone.utc).replace(tzinfo=None)
    table = pa.table({"n": [1], "t": pa.array([never], pa.timestamp("us"))})
    pq.write_table(table, tmp_path / "a.parquet", use_deprecated_int96_timestamps=True)
    files = FileTable(name="f", format="parquet", paths=(str(tmp_path / "a.parquet"),))
    (batch,) = FileRows(FilesRequest("SELECT t FROM f WHERE n = 1", (files,)))
    assert batch.to_pylist() == [{"t": never}]
