"""Rows of queries for DataFusion are traced to the rows that they stand for, whatever the query does with these.

The oracle runs the query over each row of the inputs alone: what comes out then is what stands for that row.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.engine.requests import Query, Source, required, rows_of, success, transform_request

from odfpy.data.offset_interval import OffsetInterval
from odfpy.engine.contract import TransformRequestInput, TransformResponseInvalidQuery
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.trace import _Carrier
from odfpy.engine.ipc import map_stream
from odfpy.engine.tracing import (
    BRANCH,
    INPUT,
    OFFSET,
    WANTED,
    WAY,
    WEIGHT,
    ColumnOrigin,
    TraceRequest,
    TraceResponse,
    TraceResponseSuccess,
)

ENGINE = DataFusionEngine()
PAIR = pa.struct([("x", pa.int32()), ("Y", pa.string())])
COLUMNS = (
    required("id", pa.int64()),
    pa.field("Größe a.b", pa.string()),
    pa.field("list", pa.list_(pa.int32())),
    pa.field("lists", pa.list_(pa.list_(pa.int32()))),
    pa.field("pair", PAIR),
    pa.field("price", pa.decimal128(10, 2)),
    pa.field("f", pa.float64()),
)
QUERIES: dict[str, Query] = {
    "all": "select * except(offset, system_time) from a",
    "columns": 'select event_time, op, "Größe a.b" as g, price from a where id > 1',
    "no op": "select event_time, price, -f as f from a",
    "the same for all": "select event_time, 1 as one from a where price is not null or id = 0",
    "two inputs": 'select op, event_time, id from "b.c" union all select op, event_time, id + 1 from a Q',
    "an input three times": (
        "select event_time, op, id from a union all select event_time, op, id from a where id < 2 union all "
        '(select event_time, op, 1 from "b.c" union all select event_time, op, 1 from a)'
    ),
    "unnest": "select op, event_time, unnest(list) as e, unnest(lists) as l from a",
    "unnest twice": "select op, event_time, unnest(unnest(lists)) as e, unnest(lists) as l from a where f < 2",
    "unnest of a struct": "select event_time, op, unnest(pair), unnest(list) + id as n, unnest([1, 1]) as s from a",
    "unnest and union": 'select event_time, unnest(list) as e from a union all select event_time, id from "b.c"',
    "steps": (
        ("first", "with t as (select *, upper(\"Größe a.b\") as g from a) select * from t where g <> 'B' or f = 0"),
        ("Second.One", "select u.op, u.event_time, u.g, u.e from (select op, event_time, g, unnest(list) as e from first) u"),
        (None, 'select op, event_time, g, e from "Second.One" "Ü.x" where e > 0 union all select op, event_time, g, 7 from first'),
    ),
}  # fmt: skip

some = st.sampled_from
ROW = st.tuples(
    some(["+A", "-R", "-C", "+C"]),
    some(["2024-01-01", "2024-01-02"]),
    st.integers(0, 2),
    some(["a", "B", None]),
    some([None, [], [1], [1, 1], [None, 2]]),
    some([None, [], [[1], [1, 2]], [[], [3]]]),
    some([None, {"x": 1, "Y": "b"}, {"x": None, "Y": None}]),
    some([None, Decimal("1.50"), Decimal("-3.00")]),
    some([None, 0.0, -0.0, float("nan"), 2.5]),
)
SLICES = st.lists(st.lists(ROW, min_size=1, max_size=3), min_size=1, max_size=2)
ONE_SLICE = st.lists(st.lists(ROW, min_size=1, max_size=2), min_size=1, max_size=1)
EXAMPLES = int(os.environ.get("ODF_LAWS", "3"))


class Traced:
    """A query over two inputs, each of several slices.

    Attributes:
        lines: the rows of its output; of operation types it counts whether they add.
        ways: of each row, the rows that it may stand for: number of the input, offset, branch.
        origins: of its columns.
    """

    def __init__(self, folder: Path, query: Query, of_a: Sequence[Any], of_b: Sequence[Any]) -> None:
        self.folder = folder
        self.query = query
        self.sources = (Source(folder, "a", COLUMNS), Source(folder, "b.c", COLUMNS))
        for source, slices in zip(self.sources, (of_a, of_b), strict=True):
            for rows in slices:
                source.add(rows)
        self.lines = self.result(*(source.input() for source in self.sources))
        answer = self.asked()
        assert isinstance(answer, TraceResponseSuccess), answer
        self.origins = answer.origins
        self.ways = self._ways()

    def result(self, *inputs: TransformRequestInput) -> list[str]:
        made = success(ENGINE.transform(transform_request(self.folder, self.query, *inputs, engine="datafusion")))
        self.slices = [pq.read_table(one.path) for one in made.slices]
        return [repr((symbol in ("+A", "+C"), *values)) for symbol, *values in rows_of(made)]

    def asked(self) -> TraceResponse:
        """Asks for all rows of the output."""
        table = pa.concat_tables(self.slices) if self.slices else pa.table({"op": pa.array([], pa.int32())})
        weights = pa.array([1 if op in (0, 3) else -1 for op in table.column("op").to_pylist()], pa.int32())
        numbers = pa.array(range(table.num_rows), pa.int64())
        pq.write_table(table.append_column(WANTED, numbers).append_column(WEIGHT, weights), self.folder / "wanted")
        inputs = tuple(source.input() for source in self.sources)
        request = transform_request(self.folder, self.query, *inputs, engine="datafusion")
        return ENGINE.trace(
            TraceRequest(
                transform=request.transform,
                vocab=request.vocab,
                query_inputs=inputs,
                wanted_path=str(self.folder / "wanted"),
                output_path=str(self.folder / "answer"),
            )
        )

    def _ways(self) -> list[list[tuple[int, int, int]]]:
        found: defaultdict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for row in map_stream(str(self.folder / "answer")).to_pylist():
            assert row[WAY] == len(found[row[WANTED]])
            found[row[WANTED]].append((row[INPUT], row[OFFSET], row[BRANCH]))
        return [found[at] for at in range(len(self.lines))]

    def alone(self) -> Iterator[tuple[tuple[int, int], list[str]]]:
        """Each row of the inputs, with what the query makes of it alone."""
        wholes = [source.input() for source in self.sources]
        for number, whole in enumerate(wholes):
            for offset in range(self.sources[number].end):
                only = replace(whole, offset_interval=OffsetInterval(offset, offset))
                rest = [replace(one, offset_interval=None) for one in wholes]
                rest[number] = only
                yield (number, offset), self.result(*rest)


@pytest.mark.parametrize("name", QUERIES)
@settings(max_examples=EXAMPLES)
@given(of_a=SLICES, of_b=ONE_SLICE)
def test_each_row_stands_for_a_row_that_alone_makes_it(name: str, of_a: Any, of_b: Any) -> None:
    with TemporaryDirectory() as folder:
        traced = Traced(Path(folder), QUERIES[name], of_a, of_b)
        expected: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        for source, made in traced.alone():
            for line in made:
                expected[line].append(source)
        for line, ways in zip(traced.lines, traced.ways, strict=True):
            assert sorted((number, offset) for number, offset, _ in ways) == expected[line], line


@settings(max_examples=2 * EXAMPLES)
@given(of_a=SLICES, of_b=ONE_SLICE)
def test_of_rows_that_are_the_same_the_first_stands_for_the_first_way(of_a: Any, of_b: Any) -> None:
    """The ways are in the order of the rows: inputs as declared, readings as written, then offsets."""
    with TemporaryDirectory() as folder:
        traced = Traced(Path(folder), QUERIES["an input three times"], of_a, of_b)
        place: defaultdict[str, int] = defaultdict(int)
        stands_for = []
        for line, ways in zip(traced.lines, traced.ways, strict=True):
            stands_for.append(ways[place[line]])
            place[line] += 1
        by_order = [(number, branch, offset) for number, offset, branch in stands_for]
        assert by_order == sorted(by_order)


def test_of_columns_it_is_told_where_they_come_from_by_each_branch(tmp_path: Path) -> None:
    query = (
        ("s", 'select *, coalesce("Größe a.b", \'none\') as g from "b.c"'),
        (None, ('select event_time, id, "Größe a.b" as g, unnest(list) as e, 1 as one from a union all '
               "select event_time, id * 2, g, pair['x'], null from s where f > 0")),
    )  # fmt: skip
    row = ("+A", "2024-01-01", 1, "a", [1], None, None, None, 1.0)
    traced = Traced(tmp_path, query, [[row]], [[row]])
    assert [
        (one.column, one.input, one.source, one.is_copy, one.branch) for one in traced.origins if one.is_one_of
    ] == [
        ("event_time", 0, "event_time", True, 0),
        ("event_time", 1, "event_time", True, 1),
        ("id", 0, "id", True, 0),
        ("id", 1, "id", False, 1),
        ("g", 0, "Größe a.b", True, 0),
        ("g", 1, "Größe a.b", False, 1),
        ("e", 0, "list", False, 0),
        ("e", 1, "pair", False, 1),
    ]
    assert {one.is_one_of for one in traced.origins} == {True}
    assert [one.through for one in traced.origins if (one.column, one.branch) == ("id", 1)] == [("s.id * 2",)]
    [of_g] = [one.through for one in traced.origins if (one.column, one.branch) == ("g", 1)]
    assert "'none'" in of_g[-1], "literals are those of SQL"
    assert ColumnOrigin("e", 0, "list", False, ("unnest(a.list)",), True, 0) in traced.origins


def test_what_is_wrong_with_a_query_is_told_as_elsewhere(tmp_path: Path) -> None:
    row = ("+A", "2024-01-01", 1, "a", [1], None, None, None, 1.0)
    traced = Traced(tmp_path, QUERIES["columns"], [[row]], [])
    traced.query = "select event_time, count(*) from a group by 1"
    answer = traced.asked()
    assert isinstance(answer, TransformResponseInvalidQuery)
    assert "a keyed aggregate" in answer.message


def test_plans_are_built_once_more_as_they_are(tmp_path: Path) -> None:
    """All that DataFusion itself takes as row by row; a plan that came out different would be refused."""
    from datafusion import SessionContext

    context = SessionContext()
    context.register_record_batches("a", [[pa.RecordBatch.from_pylist([{"offset": 0, "l": [1], "s": {"x": 1}}])]])
    for query in (
        'select l, s as "S" from a "A.b" where l is not null',
        "select unnest(l), unnest(s), unnest(l) + 1 as m from a",
        "select * from (select unnest(l) as e from (select l from a)) as u(e) where e between 1 and 2 or e in (3, 4)",
        "select case when l[1] > 0 then unnest(l) end as c from a union all select null from a union all select 1 from a",
    ):
        plan = context.sql(query).logical_plan()
        assert _Carrier(context, {"a": "offset"}).carried(plan).logical_plan().inputs()
