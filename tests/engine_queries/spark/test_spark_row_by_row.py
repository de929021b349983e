"""Queries row by row on Spark: which rows come out, with which operation types, in which order."""

from __future__ import annotations

import math
from datetime import date, datetime, timezone
from datetime import time as clock
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.engine.requests import (
    Source,
    recorded_transforms,
    required,
    rows_of,
    state,
    success,
    table_of,
    time,
    transform_request,
)
from support.queries.grown import data_of, expected, grown

from odfpy.chain.slices import slice_paths, slices_of
from odfpy.coordinator.transform.slices import schema_file
from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.contract import (
    SqlRequest,
    SqlResponseSuccess,
    SqlTable,
    TransformResponseInternalError,
    TransformResponseInvalidQuery,
)
from odfpy.engine.spark.execution import operations
from odfpy.engine.spark.process.session import version_of

pytestmark = pytest.mark.spark

COLUMNS = (required("id", pa.int64()), pa.field("v", pa.int32()))


@pytest.fixture
def run(spark, tmp_path):
    def transform(query, *inputs, rows_in_one_task=None, **options):
        request = transform_request(tmp_path, query, *inputs, **options)
        more = {} if rows_in_one_task is None else {"rows_in_one_task": rows_in_one_task}
        return operations.transform(spark, request, **more)

    return transform


@pytest.fixture
def a(tmp_path):
    return Source(tmp_path, "a", COLUMNS)


@pytest.fixture
def b(tmp_path):
    return Source(tmp_path, "b", COLUMNS)


def appended(count, start=0):
    return [("+A", f"2024-01-{1 + n % 28:02}", start + n, n % 5) for n in range(count)]


# --- Rows and their order --------------------------------------------------------------------------------------------


def test_a_slice_has_the_rows_and_the_system_columns(run, a, spark):
    a.add([("+A", "2024-01-01", 1, 5), ("-R", "2024-01-02", 2, None), ("+A", "2024-01-03", 3, 7)])
    made = run("select v + 1 as w, event_time, id from a where id <> 3", a.input(watermark="2024-01-02"), next_offset=7)
    table = table_of(made)
    assert table.column_names == ["offset", "op", "system_time", "event_time", "w", "id"]
    assert table.column("offset").to_pylist() == [7, 8]
    assert table.column("system_time")[0].as_py() == datetime(2025, 1, 1, 0, 0, 0, 123000, timezone.utc)
    assert rows_of(made) == [("+A", time("2024-01-01"), 6, 1), ("-R", time("2024-01-02"), None, 2)]
    assert [field.nullable for field in table.schema] == [False, False, False, False, True, False]
    response = success(made)
    assert (response.new_offset_interval.start, response.new_offset_interval.end) == (7, 8)
    assert str(response.new_watermark) == "2024-01-02T00:00:00Z"
    assert response.engine_version == version_of(spark)
    assert response.output_schema.names == tuple(table.column_names)


def test_only_the_interval_is_read(run, a):
    a.add(appended(10)).add(appended(10, 10)).add(appended(10, 20))
    made = run("select event_time, id from a", a.input(8, 21))
    assert [row[1] for row in rows_of(made, "id")] == list(range(8, 21))


def test_rows_come_by_input_then_offset_whatever_the_query_says_first(run, a, b):
    a.add(appended(3)).add(appended(3, 3))
    b.add(appended(3, 100))
    made = run("select event_time, id from b union all select event_time, id from a", a.input(), b.input())
    assert [row[1] for row in rows_of(made, "id")] == [0, 1, 2, 3, 4, 5, 100, 101, 102]


def test_branches_over_one_input_come_one_after_the_other(run, a):
    a.add(appended(2)).add(appended(2, 2))
    query = """
        with x as (select event_time, id from a where id > 0)
        select event_time, id + 10 as id from x union all select event_time, -id from x union all select event_time, id from a
    """
    assert [row[1] for row in rows_of(run(query, a.input()), "id")] == [11, 12, 13, -1, -2, -3, 0, 1, 2, 3]


def test_rows_that_fan_out_stay_where_they_were_made(run, a):
    a.add(appended(3)).add(appended(3, 3))
    query = """
        select event_time, id * 100 + p * 10 + q as k from a
        lateral view posexplode(sequence(1, id)) x as p, item lateral view outer explode(array(2, 1)) y as q where id > 0
    """
    keys = [row[1] for row in rows_of(run(query, a.input()), "k")]
    assert keys == [n * 100 + p * 10 + q for n in range(1, 6) for p in range(n) for q in (2, 1)]


@pytest.mark.parametrize(
    ("rows", "query"),
    [
        (60, "select event_time, id, v from a where v <> 2"),
        (720, """select event_time, id, e as v from b lateral view explode(sequence(1, v)) as e where v > 0
           union all select event_time, -id, v from a union all select event_time, id, v from b"""),
    ],
)  # fmt: skip
def test_neither_partitions_nor_row_groups_nor_files_change_the_hash(run, tmp_path, rows, query):
    hashes = set()
    whole, parts = (60,), (1, 20, 24, 60)
    for form, (row_group, cuts, tasks) in enumerate([(None, whole, 1), (3, whole, 7), (7, parts, 2), (None, parts, 1)]):
        folder = tmp_path / str(form)
        folder.mkdir()
        inputs = []
        for alias in "ab":
            source = Source(folder, alias, COLUMNS, row_group=row_group)
            for start, stop in zip((0, *cuts), cuts, strict=False):
                source.add(appended(60)[start:stop])
            inputs.append(source.input())
        made = success(run(query, *inputs, rows_in_one_task=-(-rows // tasks)))
        hashes.add(made.slices[0].logical_hash)
    assert len(hashes) == 1


def test_steps_see_the_steps_before_them(run, a):
    a.add([("+A", "2024-01-01", 1, 5), ("-C", "2024-01-02", 2, 6), ("+C", "2024-01-02", 2, 7)])
    steps = [
        ("First.Step", "select * from a"),
        ("w", "select event_time t, id, v * 2 as w from `First.Step`"),
        (None, "select t as event_time, w from w where id > 1"),
    ]
    assert rows_of(run(steps, a.input()), "w") == [("-C", 12), ("+C", 14)]


def test_an_input_may_have_dots_in_its_name(run, tmp_path):
    source = Source(tmp_path, "org.example.a-b", COLUMNS).add(appended(2))
    assert len(rows_of(run("select event_time, id from `org.example.a-b`", source.input()))) == 2
    source = Source(tmp_path, "org.example.ab", COLUMNS).add(appended(2))
    assert len(rows_of(run("select x.event_time, x.id from org.example.ab as x", source.input()))) == 2


def test_a_vocabulary_of_ones_own_on_both_sides(run, tmp_path):
    theirs = DatasetVocabulary("o", "k", "s", "t")
    ours = DatasetVocabulary("n", "kind", "made", "at")
    source = Source(tmp_path, "a", COLUMNS, vocab=theirs).add([("-C", "2024-01-01", 1, 5), ("+C", "2024-01-02", 1, 6)])
    made = run(
        "select t as at, k as kind, id, o as source_offset from a", source.input(watermark="2024-01-01"), vocab=ours
    )
    assert table_of(made, ours).column_names == ["n", "kind", "made", "at", "id", "source_offset"]
    assert rows_of(made, "source_offset", vocab=ours) == [("-C", 0), ("+C", 1)]
    assert str(made.new_watermark) == "2024-01-01T00:00:00Z"


def test_no_new_rows_and_no_watermark_is_success_with_nothing(run, a, tmp_path):
    a.add(appended(2))
    for made in (
        run("select event_time, id from a", a.input(0, 0)),
        run("select event_time from a where id > 9", a.input()),
    ):
        response = success(made)
        assert (response.new_offset_interval, response.new_watermark, response.slices) == (None, None, ())
        assert response.output_schema is not None
    assert list((tmp_path / "out").iterdir()) == [], "nothing is left, no scratch either"


# --- Operation types -------------------------------------------------------------------------------------------------

HISTORY = [
    ("+A", "2024-01-01", 1, 1),
    ("-C", "2024-01-01", 1, 1), ("+C", "2024-01-01", 1, 9),
    ("-C", "2024-01-01", 1, 9), ("+C", "2024-01-01", 1, 2),
    ("-R", "2024-01-01", 1, 2),
]  # fmt: skip


def test_operation_types_pass_through_whether_selected_or_not(run, a):
    a.add(HISTORY)
    for query in ("select event_time, v from a", "select op, event_time, v from a", "select event_time, v, op from a"):
        assert [row[0] for row in rows_of(run(query, a.input()))] == [row[0] for row in HISTORY]


def test_a_filter_that_takes_one_half_of_a_pair_makes_the_other_a_row_of_its_own(run, a):
    a.add(HISTORY)
    assert rows_of(run("select event_time, v from a where v < 5", a.input()), "v") == [
        ("+A", 1), ("-R", 1), ("+A", 2), ("-R", 2)
    ]  # fmt: skip
    assert rows_of(run("select event_time, v from a where op in (0, 3)", a.input()), "v") == [
        ("+A", 1),
        ("+A", 9),
        ("+A", 2),
    ]


def test_a_function_of_a_star_runs_until_something_is_taken_back(run, a):
    """It is refused when it is added; chains that have it already hold what it has made of appended rows."""
    query = "select event_time, v, struct(*).offset as o from a"
    a.add([("+A", "2024-01-01", 1, 5)])
    assert rows_of(run(query, a.input()), "o") == [("+A", 0)]
    a.add([("-C", "2024-01-01", 1, 5), ("+C", "2024-01-01", 1, 6)])
    refused = run(query, a.input())
    assert "A star brings `offset`, `op` and `system_time` of an input into a function" in refused.message
    assert "`struct(*)` (line 1, column 23)" in refused.message
    assert "* EXCEPT (offset, op, system_time)" in refused.hint
    only_data = "select event_time, v, struct(* except (offset, op, system_time)).v as o from a"
    assert rows_of(run(only_data, a.input()), "o") == [("+A", 5), ("-C", 5), ("+C", 6)]


def test_rows_that_fan_out_make_no_pairs(run, a):
    a.add([("-C", "2024-01-01", 1, 1), ("+C", "2024-01-01", 1, 2)])
    made = run("select event_time, explode(sequence(1, v)) as e from a", a.input())
    assert rows_of(made, "e") == [("-R", 1), ("+A", 1), ("+A", 2)]


def test_branches_make_pairs_of_their_own(run, a):
    a.add(HISTORY[1:3])
    made = run("select event_time, v from a union all select event_time, -v from a where v > 5", a.input())
    assert rows_of(made, "v") == [("-C", 1), ("+C", 9), ("+A", -9)]


TIMES = st.sampled_from(["2024-01-01", "2024-01-02", "2024-01-03"])
ROWS = st.tuples(TIMES, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 4)))


@st.composite
def changelogs(draw):
    rows = []
    for kind in draw(st.lists(st.sampled_from(["+A", "+A", "-R", "pair"]), max_size=14)):
        if kind == "pair":
            rows += [("-C", *draw(ROWS)), ("+C", *draw(ROWS))]
        else:
            rows.append((kind, *draw(ROWS)))
    return rows


def model_filter(a, b):
    return [(t, k, v * 10) for t, k, v in a if v is not None and v > 1]


def model_union(a, b):
    return (
        [(t, k, 1) for t, k, v in a if k != 2] + [(t, -k, 2) for t, k, v in b] + [(t, k, v) for t, k, v in a if v == 3]
    )


def model_explode(a, b):
    return [(t, k, n) for t, k, v in a for n in range(1, (v or 0) + 1) if n != 2] + [(t, k, v) for t, k, v in b]


QUERIES = [
    ("select event_time, id as k, v * 10 as x from a where v > 1", model_filter),
    (
        [
            ("mine", "with x as (select * from a) select event_time, id, 1 as x from x where id <> 2"),
            (None, """select event_time, id, x from mine union all select event_time, -id, 2 from b
                      union all select event_time, id, v from a where v = 3"""),
        ],
        model_union,
    ),
    (
        """select event_time, id, n from a lateral view explode(sequence(1, v)) s as n where v > 0 and n <> 2
           union all select event_time, id, v from b""",
        model_explode,
    ),
]  # fmt: skip


def query_over_state(model, a, b):
    """What the query gives over the current state of its inputs, with negative counts for the missing."""
    total = []
    for row, count in (
        *((("a", row), n) for row, n in state(a).items()),
        *((("b", row), n) for row, n in state(b).items()),
    ):
        source, values = row
        out = model([values] if source == "a" else [], [values] if source == "b" else [])
        total += [("+A" if count > 0 else "-R", *one) for one in out] * abs(count)
    return state(total)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("query", "model"), QUERIES, ids=["filter", "union", "explode"])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(a=changelogs(), b=changelogs(), data=st.data())
def test_the_state_of_the_output_is_the_query_over_the_state_of_the_inputs(
    spark, tmp_path_factory, query, model, a, b, data
):
    """However the inputs are cut into pulls, even through pairs of corrections."""
    folder = tmp_path_factory.mktemp("law")
    sources = []
    for alias, rows in (("a", a), ("b", b)):
        source = Source(folder, alias, COLUMNS)
        cut = data.draw(st.integers(0, len(rows)))
        for part in (rows[:cut], rows[cut:]):
            if part:
                source.add(part)
        sources.append(source)
    ends = [0, 0]
    rows = []
    for _ in range(data.draw(st.integers(0, 2))):
        rows += pull(
            spark,
            folder,
            query,
            sources,
            ends,
            [data.draw(st.integers(at, s.end)) for at, s in zip(ends, sources, strict=True)],
        )
    rows += pull(spark, folder, query, sources, ends, [s.end for s in sources])
    typed = [(symbol, str(t.date()), k, x) for symbol, t, k, x in rows]
    assert state(typed) == query_over_state(model, a, b)
    for at, row in enumerate(rows):
        if row[0] == "-C":
            assert rows[at + 1][0] == "+C", "a pair stands together"


def pull(spark, folder, query, sources, ends, stops):
    inputs = [source.input(start, stop) for source, start, stop in zip(sources, ends, stops, strict=True)]
    ends[:] = stops
    return rows_of(operations.transform(spark, transform_request(folder, query, *inputs)))


# --- Watermark -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "watermark"),
    [
        ("select event_time, id from a union all select event_time, id from b", "2024-02-10T12:00:00Z"),
        ("select event_time, id from b", "2024-02-10T12:00:00Z"),
        ("select x as event_time from (select event_time as x from b)", "2024-02-10T12:00:00Z"),
        ("select cast(event_time as date) as event_time from a", "2024-02-10T12:00:00Z"),
        ("select cast(event_time as date) as event_time from b", "2024-02-09T23:59:59.999Z"),
        ("select date_trunc('month', event_time) as event_time from b", "2024-01-31T23:59:59.999Z"),
        ("select event_time - interval 2 hours as event_time from b", "2024-02-10T09:59:59.999Z"),
        (
            [("d", "select date_trunc('day', event_time) as t from b union all select event_time from a"),
             (None, "select t + interval 1 day as event_time from d")],
            "2024-02-10T23:59:59.999Z",
        ),
        ("select timestamp_seconds(id) as event_time from b", None),
    ],
)  # fmt: skip
def test_the_watermark_passes_through_as_the_event_time_does(run, a, b, query, watermark):
    a.add(appended(1))
    b.add(appended(1))
    made = run(query, a.input(watermark="2024-03-01"), b.input(watermark="2024-02-10T12:00:00Z"))
    found = success(made).new_watermark
    assert (None if found is None else str(found)) == watermark


def test_the_watermark_waits_for_every_input_and_needs_no_rows(run, a, b):
    a.add(appended(1))
    query = "select event_time, id from a union all select event_time, id from b"
    assert success(run(query, a.input(watermark="2024-03-01"), b.input())).new_watermark is None
    made = success(run(query, a.input(1, 1, watermark="2024-03-01"), b.input(watermark="2024-02-01")))
    assert (str(made.new_watermark), made.slices) == ("2024-02-01T00:00:00Z", ())


# --- Values ----------------------------------------------------------------------------------------------------------


def test_values_of_every_type_come_through(run, tmp_path):
    values = {
        "bool": (pa.bool_(), [True, None]),
        "i8": (pa.int8(), [-128, None]),
        "u8": (pa.uint8(), [255, None]),
        "u16": (pa.uint16(), [65_535, None]),
        "u32": (pa.uint32(), [2**32 - 1, None]),
        "u64": (pa.uint64(), [2**64 - 1, None]),
        "f16": (pa.float16(), [1.5, None]),
        "f32": (pa.float32(), [1.5, None]),
        "dec": (pa.decimal128(10, 2), [Decimal("-1.25"), None]),
        "day": (pa.date32(), [date(1500, 1, 1), None]),
        "ms": (pa.timestamp("ms", "UTC"), [time("1500-01-01T00:00:00.001Z"), None]),
        "ns": (pa.timestamp("ns", "UTC"), [time("1969-12-31T23:59:59.9995Z"), None]),
        "local": (pa.timestamp("us"), [datetime.fromisoformat("2024-01-01T01:02:03.004567"), None]),
        "clock": (pa.time32("ms"), [clock(1, 2, 3), None]),
        "text": (pa.string_view(), ["a\u00e9\U0001f600", None]),
        "bytes": (pa.binary(2), [b"\x00\xff", None]),
        "list": (pa.list_(pa.field("element", pa.uint32())), [[1, None], None]),
        "struct": (pa.struct([("x", pa.float64()), ("y", pa.string())]), [{"x": 1.5, "y": None}, None]),
    }
    columns = [pa.field(name, arrow) for name, (arrow, _) in values.items()]
    lists = [rows for _, rows in values.values()]
    source = Source(tmp_path, "a", columns).add(
        [("+A", "2024-01-01", *(rows[at] for rows in lists)) for at in range(2)]
    )
    made = run("select * except (offset, system_time) from a", source.input())
    first, second = table_of(made).drop_columns(["offset", "op", "system_time", "event_time"]).to_pylist()
    expected = {name: rows[0] for name, (_, rows) in values.items()}
    expected["u64"] = Decimal(2**64 - 1)
    expected["ns"] = time("1969-12-31T23:59:59.999Z")
    expected["local"] = time("2024-01-01T01:02:03.004Z")
    assert first == expected
    assert set(second.values()) == {None}


def test_slices_of_older_schemas_and_other_writers_are_read(run, tmp_path):
    """A column that came later, unsigned offsets and operation types, views."""
    source = Source(tmp_path, "a", COLUMNS).add(appended(2))
    old = pa.table(
        {
            "offset": pa.array([2, 3], pa.uint64()),
            "op": pa.array([0, 1], pa.uint8()),
            "system_time": pa.array([0, 0], pa.timestamp("us", "UTC")),
            "event_time": pa.array([0, 86_400_000], pa.timestamp("ms", "UTC")),
            "id": pa.array([2, 3], pa.int64()),
        }
    )
    path = tmp_path / "old"
    pq.write_table(old, path)
    source.slices.append((str(path), 2, 3))
    made = run("select event_time, id, v from a", source.input(1, 4))
    assert rows_of(made, "id", "v") == [("+A", 1, 1), ("+A", 2, None), ("-R", 3, None)]


def test_floating_point_numbers_have_one_form(run, tmp_path):
    columns = [pa.field("x", pa.float64()), pa.field("xs", pa.list_(pa.float32()))]
    source = Source(tmp_path, "a", columns).add(
        [("+A", "2024-01-01", -0.0, [-0.0, math.nan]), ("+A", "2024-01-01", math.nan, None)]
    )
    made = run("select event_time, x, xs, -abs(x) as y from a", source.input())
    assert repr(rows_of(made, "x", "xs", "y")) == "[('+A', 0.0, [0.0, nan], 0.0), ('+A', nan, None, nan)]"


def test_the_event_time_may_be_a_date(run, a):
    a.add(appended(1))
    made = run("select cast(event_time as date) as event_time, id from a", a.input())
    assert table_of(made).schema.field("event_time") == required("event_time", pa.date32())


def test_old_dates_and_local_times_do_not_depend_on_the_machine(run, a):
    a.add([("+A", "0300-02-28T00:00:00.001Z", 1, 1)])
    made = run(
        "select event_time, year(event_time) y, date_format(event_time, 'yyyy-MM-dd HH:mm:ss.SSS EEEE') as f, "
        "to_timestamp('2024-07-01 12:00:00') as n, cast(1.0e23 as string) as d from a",
        a.input(),
    )
    (row,) = rows_of(made)
    assert row[1:4] == (time("0300-02-28T00:00:00.001Z"), 300, "0300-02-28 00:00:00.001 Wednesday")
    assert row[4] == time("2024-07-01T12:00:00Z")


# --- What goes wrong -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words", "hint"),
    [
        ("select event_time, [id / (id - 1)] as x from a", "Division by zero", "try_divide"),
        ("select event_time, [cast('x' || id as int)] as x from a", "cannot be cast to", "try_cast"),
        ("select event_time, [cast(id * 100000 as tinyint)] as x from a", "due to an overflow", "try_cast"),
        ("select event_time, [array(1)[id]] as x from a", "out of bounds", None),
        ("select event_time, [coalesce(raise_error('no ' || id), id)] as x from a", "no 1", None),
        (
            "select nullif(event_time, event_time) as event_time from a",
            "`event_time` of a row is null; it comes from offset 0 of `a`",
            "Filter",
        ),
    ],
)
def test_data_that_does_not_fit_the_query(run, a, tmp_path, query, words, hint):
    a.add([("+A", "2024-01-01", 1, 1)])
    made = run(query.replace("array(1)[id]", "element_at(array(1), 2)").replace("[", "").replace("]", ""), a.input())
    assert isinstance(made, TransformResponseInvalidQuery), made
    assert words in made.message
    assert hint is None or hint in made.hint
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ("select event_time, rand() as r from a", "nondeterministic"),
        ("select event_time, id from a order by id", "unsupported"),
        ("select event_time, _metadata.file_path as p from a", "invalid"),
        ("select event_time, __odf_offset as o from a", "invalid"),
    ],
)
def test_a_run_does_not_rely_on_an_earlier_analysis(run, a, query, kind):
    a.add(appended(1))
    made = run(query, a.input())
    assert isinstance(made, TransformResponseInvalidQuery), made
    assert made.fault == kind


def test_a_damaged_slice_is_no_fault_of_the_query(run, a):
    a.add(appended(3))
    path = Path(a.slices[0][0])
    path.write_bytes(path.read_bytes()[:-9])
    made = run("select event_time, id from a", a.input())
    assert isinstance(made, TransformResponseInternalError)
    assert str(path) in made.message


def test_paths_are_taken_literally(run, tmp_path):
    folder = tmp_path / "a[b]*{c} %20 é=1"
    folder.mkdir()
    source = Source(folder, "a", COLUMNS).add(appended(2))
    assert len(rows_of(run("select event_time, id from a", source.input()))) == 2


# --- Like the reference ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dataset", ["big-trades", "large-cities"])
def test_the_same_query_on_spark_gives_the_hash_that_the_reference_recorded(spark, tmp_path, dataset):
    for recorded in recorded_transforms(dataset, tmp_path, engine="spark"):
        made = success(operations.transform(spark, recorded.request))
        assert str(made.slices[0].logical_hash) == recorded.logical_hash
        assert made.new_watermark == recorded.watermark


# --- Ad hoc ----------------------------------------------------------------------------------------------------------


def test_ad_hoc_queries_of_any_class_over_whole_datasets(spark, a, b, tmp_path):
    a.add(appended(3)).add(appended(3, 3))
    b.add([("+A", "2024-01-01", 4, None), ("+A", "2024-01-01", 5, None)])
    out = tmp_path / "result"

    def ask(query, limit=None):
        return operations.sql(spark, SqlRequest(query, (a.table(), b.table()), str(out), limit))

    query = "select a.id, count(*) as n from a join b on a.id = b.id group by 1 order by 1 desc"
    assert ask(query) == SqlResponseSuccess(2)
    assert pa.ipc.open_stream(out.read_bytes()).read_all().to_pydict() == {"id": [5, 4], "n": [1, 1]}
    assert ask("select now() as n, * from a order by id", limit=4) == SqlResponseSuccess(4)
    for most in (2**31 - 1, 2**31, 2**63 - 1):  # Spark itself has room for the first of them
        assert ask("select id from a", limit=most) == SqlResponseSuccess(6)
        request = SqlRequest("select id from a", (a.table(),), str(out), most, skip=2)
        assert operations.sql(spark, request) == SqlResponseSuccess(4)
        request = SqlRequest("select id from a", (a.table(),), str(out), 3, skip=most)
        assert operations.sql(spark, request) == SqlResponseSuccess(0)
    assert ask("select id from a where id > 99") == SqlResponseSuccess(0)
    assert pa.ipc.open_stream(out.read_bytes()).read_all().schema.names == ["id"]


@pytest.mark.parametrize(
    "query",
    ["drop view a", "select * from parquet.`/etc`", "set a = 1", "select transform(id) using 'cat' from a", "selec", "select 1 / 0",
     "select reflect('java.lang.System', 'getenv', 'HOME')", "select id from a where id in (select java_method('a', 'b') from a)"],
)  # fmt: skip
def test_ad_hoc_queries_only_read(spark, a, tmp_path, query):
    a.add(appended(1))
    out = tmp_path / "result"
    found = operations.sql(spark, SqlRequest(query, (a.table(),), str(out)))
    assert isinstance(found, TransformResponseInvalidQuery), found
    assert not out.exists()


def test_a_dataset_whose_schema_has_grown_shows_what_went_in(spark, tmp_path):
    workspace = grown(tmp_path / "workspace")
    dataset = workspace.storage.get("grown")
    paths = slice_paths(dataset.layout.data, slices_of(dataset.chain.in_order()))
    schema = str(schema_file(workspace.storage, dataset.state.schema))
    table = SqlTable("grown", schema, tuple(map(str, paths)), dataset.state.vocab)
    out = tmp_path / "result"
    answer = operations.sql(spark, SqlRequest("select * from grown order by at", (table,), str(out)))
    assert answer == SqlResponseSuccess(2)
    with pa.OSFile(str(out)) as file, pa.ipc.open_stream(file) as reader:
        assert data_of(reader.read_all()) == expected()
