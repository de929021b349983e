"""The in-process engine: what it takes, what it refuses, and in which order rows come."""

from __future__ import annotations

import pyarrow as pa
import pytest
from datafusion import SessionConfig, SessionContext
from support.engine.requests import (
    Source,
    analyze_request,
    queries,
    required,
    rows_of,
    success,
    table_of,
    time,
    transform_request,
)

from odfpy.data.vocabulary import DatasetVocabulary
from odfpy.engine.contract import AnalyzeResponseSuccess, SqlRequest, SqlResponseSuccess, TransformResponseInvalidQuery
from odfpy.engine.datafusion import transform as module
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.datafusion.failures import REFUSED
from odfpy.errors import InvalidQuery

ENGINE = DataFusionEngine()
COLUMNS = (required("id", pa.int64()), pa.field("name", pa.string()))


@pytest.fixture
def a(tmp_path):
    return Source(tmp_path, "a", COLUMNS).add([("+A", f"2024-01-0{n}", n, f"a{n}") for n in range(1, 4)])


@pytest.fixture
def b(tmp_path):
    return Source(tmp_path, "b", COLUMNS).add([("+A", f"2023-01-0{n}", n, f"b{n}") for n in range(1, 4)])


# --- Transforms ------------------------------------------------------------------------------------------------------


def test_a_union_has_the_rows_in_the_declared_order_of_inputs(tmp_path, a, b):
    query = "select event_time, name from b union all select event_time, upper(name) from a"
    made = ENGINE.transform(transform_request(tmp_path, query, a.input(), b.input(), engine="datafusion"))
    assert [row[1] for row in rows_of(made, "name")] == ["A1", "A2", "A3", "b1", "b2", "b3"]


def test_an_input_that_is_read_twice_comes_once_for_each_reading(tmp_path, a, monkeypatch):
    query = "select event_time, name from a union all select event_time, upper(name) from a"
    for rows_at_once in (1, 1000):
        monkeypatch.setattr(module, "_ROWS_AT_ONCE", rows_at_once)
        made = ENGINE.transform(transform_request(tmp_path, query, a.input(), engine="datafusion"))
        assert [row[1] for row in rows_of(made, "name")] == ["a1", "a2", "a3", "A1", "A2", "A3"]


def test_only_the_interval_is_read(tmp_path, a):
    a.add([("+A", "2024-02-01", 4, None)])
    made = ENGINE.transform(
        transform_request(tmp_path, "select event_time, id from a", a.input(2, 4), next_offset=9, engine="datafusion")
    )
    assert table_of(made).column("offset").to_pylist() == [9, 10]
    assert table_of(made).column("id").to_pylist() == [3, 4]


def test_the_operation_type_is_what_the_query_selects_else_all_is_appended(tmp_path):
    source = Source(tmp_path, "a", COLUMNS).add(
        [("+A", "2024-01-01", 1, "x"), ("-C", "2024-01-01", 1, "x"), ("+C", "2024-01-01", 1, "y")]
    )

    def symbols(query):
        made = ENGINE.transform(transform_request(tmp_path, query, source.input(), engine="datafusion"))
        return [row[0] for row in rows_of(made)]

    assert symbols("select op, event_time, id from a") == ["+A", "-C", "+C"]
    assert symbols("select event_time, id from a") == ["+A", "+A", "+A"]
    assert symbols("select event_time, id from a where op in (0, 3)") == ["+A", "+A"]


def test_operation_types_that_do_not_exist_are_refused(tmp_path, a):
    made = ENGINE.transform(
        transform_request(tmp_path, "select 7 as op, event_time from a", a.input(), engine="datafusion")
    )
    assert isinstance(made, TransformResponseInvalidQuery)
    assert "0, 1, 2 and 3" in made.message


def test_the_watermark_is_the_least_of_the_inputs(tmp_path, a, b):
    query = "select event_time, id from a union all select event_time, id from b"

    def watermark(*inputs):
        made = success(ENGINE.transform(transform_request(tmp_path, query, *inputs, engine="datafusion")))
        return None if made.new_watermark is None else str(made.new_watermark)

    assert watermark(a.input(watermark="2024-03-01"), b.input(watermark="2024-02-01")) == "2024-02-01T00:00:00Z"
    assert watermark(a.input(watermark="2024-03-01"), b.input()) is None


def test_no_new_rows_and_no_watermark_is_success_with_nothing(tmp_path, a):
    made = success(
        ENGINE.transform(transform_request(tmp_path, "select event_time from a", a.input(0, 0), engine="datafusion"))
    )
    assert (made.new_offset_interval, made.new_watermark, made.slices) == (None, None, ())
    assert made.output_schema is not None


def test_a_vocabulary_of_ones_own(tmp_path):
    vocab = DatasetVocabulary("o", "k", "s", "t")
    source = Source(tmp_path, "a", COLUMNS, vocab=vocab).add([("-R", "2024-01-01", 1, "x")])
    made = ENGINE.transform(
        transform_request(tmp_path, "select k, t, id from a", source.input(), vocab=vocab, engine="datafusion")
    )
    assert rows_of(made, vocab=vocab) == [("-R", time("2024-01-01"), 1)]


# --- Analysis --------------------------------------------------------------------------------------------------------


def test_an_analysis_names_the_class_and_the_columns_and_warns_when_corrections_are_lost(a):
    found = ENGINE.analyze(analyze_request([("x", "select * from a"), (None, "select event_time, id from x")], a))
    assert isinstance(found, AnalyzeResponseSuccess)
    assert [(step.alias, step.query_class) for step in found.steps] == [("x", "row-by-row"), (None, "row-by-row")]
    assert found.output_columns == ("offset", "op", "system_time", "event_time", "id")
    assert "corrections and retractions of an input are lost" in found.notes[0]


@pytest.mark.parametrize(
    ("query", "kind", "words"),
    [
        ("select event_time, now() from a", "nondeterministic", "`now` reads the clock (line 1, column 20)"),
        ("select event_time, current_date from a", "nondeterministic", "`current_date` reads the clock"),
        ("select event_time, random() from a", "nondeterministic", "`random` is random"),
        ("select event_time, uuid() from a", "nondeterministic", "`uuid` is random"),
        ("select event_time, version() v from a", "nondeterministic", "depends on the environment"),
        ("select event_time from a limit 3", "nondeterministic", "LIMIT without a total order"),
        ("select event_time from a order by 1 limit 3", "unsupported", "top-N"),
        ("select event_time from a order by 1", "unsupported", "ORDER BY"),
        ("select event_time, count(*) from a group by 1", "unsupported", "a keyed aggregate"),
        ("select distinct event_time from a", "unsupported", "DISTINCT"),
        ("select event_time from a union select event_time from a", "unsupported", "DISTINCT"),
        ("select event_time from a except select event_time from a", "unsupported", "EXCEPT"),
        ("select x.event_time from a x join a y on x.id = y.id", "unsupported", "a join"),
        ("select event_time, row_number() over () from a", "unsupported", "a window function"),
        ("select event_time from a where id in (select id from a)", "unsupported", "a subquery"),
        ("select event_time, (select max(id) from a) from a", "unsupported", "a subquery"),
        ("select timestamp '2024-01-01' as event_time", "unsupported", "rows that come from no input"),
        ("select * from (values (1)) v(x)", "unsupported", "rows that come from no input"),
        ("select value from generate_series(1, 3)", "unsupported", "rows that come from no input"),
        ("selec 1", "invalid", "(line 1, column 1)"),
        ("select nosuch from a", "invalid", "No field named nosuch"),
        ("select event_time from nosuch", "invalid", "nosuch"),
        ("select event_time from 'a.parquet'", "invalid", "not found"),
        ("select 1; select 2", "invalid", "single SQL statement"),
        ("create table x as select 1", "invalid", "DDL not supported"),
        ("insert into a select * from a", "invalid", "DML not supported"),
        ("set x = 1", "invalid", "Statement not supported"),
        ("explain select event_time from a", "invalid", "allowed, not Explain"),
        ("select id from a", "invalid", "no event time"),
        ("select * from a", "invalid", "`offset`"),
    ],
)
def test_what_is_refused_and_why(a, query, kind, words):
    found = ENGINE.analyze(analyze_request(query, a))
    assert isinstance(found, TransformResponseInvalidQuery)
    assert (found.fault, words in found.message) == (kind, True), found.message


def test_the_functions_that_are_left_out_are_those_that_datafusion_calls_volatile():
    context = SessionContext(SessionConfig().with_information_schema(enabled=True))
    query = "select distinct routine_name from information_schema.routines where not is_deterministic"
    volatile = {row["routine_name"] for row in context.sql(query).to_pylist()}
    tables = {"range", "generate_series"}
    assert volatile - tables <= REFUSED.keys()


# --- Preprocessing ---------------------------------------------------------------------------------------------------

TABLE = pa.table(
    {"id": [3, 1, 2], "Name": ["c", None, "a"]},
    schema=pa.schema([required("id", pa.int64()), pa.field("Name", pa.string())]),
)


def preprocessed(query):
    return ENGINE.preprocess(queries(query, "datafusion"), {"input": TABLE})


def test_preprocessing_keeps_order_and_nullability():
    done = preprocessed('select id * 10 as id, coalesce("Name", \'none\') as name, "Name" from input where id < 3')
    assert done.to_pydict() == {"id": [10, 20], "name": ["none", "a"], "Name": [None, "a"]}
    assert [(field.name, field.nullable) for field in done.schema] == [("id", False), ("name", False), ("Name", True)]
    assert done.schema.field("name").type == pa.string()


def test_names_are_what_is_written_as_in_the_reference():
    assert preprocessed("select id as Id, Name as NAME from input").column_names == ["Id", "NAME"]
    for query, words in (("select name from input", "No field named name"), ("select id from INPUT", "INPUT")):
        with pytest.raises(InvalidQuery, match=words) as caught:
            preprocessed(query)
        assert "configuration" not in caught.value.message


def test_preprocessing_in_steps_of_any_class():
    done = preprocessed([("First.Step", "select id from input"), (None, 'select max(id) as m from "First.Step"')])
    assert done.to_pydict() == {"m": [3]}


def test_preprocessing_of_nothing_has_the_schema_of_the_result():
    done = ENGINE.preprocess(queries("select id from input", "datafusion"), {"input": TABLE.slice(0, 0)})
    assert done.schema == pa.schema([required("id", pa.int64())])


@pytest.mark.parametrize(
    "query", ["create view x as select 1", "insert into input values (1, 'x')", "set a = 1", "drop table input"]
)
def test_preprocessing_changes_nothing(query):
    with pytest.raises(InvalidQuery):
        preprocessed(query)


def test_a_value_that_does_not_fit_is_an_invalid_query():
    with pytest.raises(InvalidQuery, match="Cannot cast string 'c' to value of Int32"):
        preprocessed('select cast("Name" as int) from input')


# --- Ad hoc ----------------------------------------------------------------------------------------------------------


def test_ad_hoc_queries_see_whole_datasets(tmp_path, a):
    out = tmp_path / "result"
    a.add([("+A", "2024-02-01", 4, None)])
    done = ENGINE.sql(SqlRequest("select id, name from a where id > 1", (a.table(),), str(out), 2))
    assert done == SqlResponseSuccess(2)
    assert pa.ipc.open_stream(out.read_bytes()).read_all().to_pydict() == {"id": [2, 3], "name": ["a2", "a3"]}


@pytest.mark.parametrize("query", ["drop table a", "select * from '/etc/passwd'", "describe a", "selec"])
def test_ad_hoc_queries_only_read(tmp_path, a, query):
    out = tmp_path / "result"
    assert isinstance(ENGINE.sql(SqlRequest(query, (a.table(),), str(out))), TransformResponseInvalidQuery)
    assert not out.exists()
