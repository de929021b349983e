"""Calls to Java that travel together, and objects of Java that Python has dropped."""

from __future__ import annotations

import gc
import threading
import time
from typing import Any

import pyarrow as pa
import pytest
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.types import LongType, StructField, StructType
from support.engine.spark_jobs import jobs_of

from odfpy.engine.spark.plan.catalyst import Catalyst, column_id, columns, expression_name, items, operator_name
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.spark.process.calls import Calls, calls_of
from odfpy.engine.spark.process.deletions import MAX_COUNT
from odfpy.engine.spark.process.session import change_settings, request_session

pytestmark = pytest.mark.spark

ODD = [
    "plain",
    "",
    " 7 of them ",
    "two\nlines\r\n",
    "\x01\x00",
    "a.`b`",
    "Größe",
    "\U0001f9ea\U0001f468\u200d\U0001f52c",
]


@pytest.fixture
def catalyst(spark: Any) -> Catalyst:
    return Catalyst(request_session(spark))


@pytest.fixture
def calls(spark: Any) -> Calls:
    return calls_of(spark._jvm)


@pytest.fixture
def asked(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What really goes to Java."""
    found: list[str] = []
    send = calls._send

    def sent(command: str, *arguments: Any) -> Any:
        found.append(command)
        return send(command, *arguments)

    monkeypatch.setattr(calls, "_send", sent)
    return found


def bindings(spark: Any) -> set[str]:
    """The objects of Java that Python has, or had."""
    gateway = spark.sparkContext._gateway
    text = gateway.jvm.java.lang.String.join(",", gateway.java_gateway_server.getGateway().getBindings().keySet())
    return set(text.split(","))


def projected(catalyst: Catalyst, times: int) -> Any:
    """So many projections, one over the other."""
    plan = catalyst.one_row()
    for number in range(times):
        plan = catalyst.project([catalyst.alias(catalyst.integer(number), f"c{number}")], plan)
    return plan


# --- Calls ------------------------------------------------------------------------------------------------------------


def test_calls_wait_for_one_whose_answer_is_needed(catalyst, asked):
    columns_before = columns(catalyst.empty(StructType([StructField("n", LongType())])))
    projected(catalyst, 1).output()  # classes are known from now on
    asked.clear()
    made = projected(catalyst, 50).output()
    assert asked == []
    assert [column.name() for column in items(made)] == ["c49"]
    assert len(asked) == 1, "those that waited went with the question"
    assert columns_before[0].name() == "n"


def test_many_calls_go_now_and_then(catalyst, asked):
    plan = catalyst.one_row()
    for _ in range(2_500):
        plan = catalyst.filter(catalyst.boolean(True), plan)
    assert 2 <= len(asked) < 100
    assert operator_name(plan) == "Filter"


def test_an_answer_is_that_of_a_call_that_goes_alone(catalyst):
    fresh = catalyst.alias(catalyst.integer(5), " a\\nb ")
    assert fresh.name() == " a\\nb "
    assert fresh.child().value() == 5
    assert fresh.nullable() is False
    assert fresh.child().dataType().json() == '"integer"'
    assert catalyst.nothing.isDefined() is False
    assert catalyst.java_class("scala.Option").apply("there").get() == "there"


def test_a_call_that_fails_is_told_with_the_next_question(catalyst):
    broken = catalyst.expression("Alias", catalyst.integer(1))  # which has more arguments
    never = catalyst.project([broken], catalyst.one_row())
    with pytest.raises(Py4JError, match=r"Alias.* does not exist"):
        operator_name(never)
    assert operator_name(projected(catalyst, 1)) == "Project", (
        "what waited after it has been given up, and nothing else"
    )


def test_what_never_came_to_be_is_told(catalyst, calls):
    missing = calls._item("odf-nothing", _told("java.lang.Object"))
    with pytest.raises(Exception, match=r"null|does not exist"):
        catalyst.project([missing], catalyst.one_row()).output().size()


def _told(java_class: str) -> Any:
    from odfpy.engine.spark.process.calls import _ItemFacts

    return _ItemFacts(java_class, "", "", "")


@pytest.mark.parametrize("name", ODD)
def test_items_are_told_with_their_names(catalyst, name, asked):
    schema = StructType([StructField(name, LongType(), nullable) for nullable in (True, False)])
    found = columns(catalyst.empty(schema))
    asked.clear()
    assert [column.name() for column in found] == [name, name]
    assert [column.nullable() for column in found] == [True, False]
    assert [expression_name(column) for column in found] == ["AttributeReference"] * 2
    assert asked == []
    assert [column.exprId().id() for column in found] == [column.__dict__["_odf_id"] for column in found]


def test_items_that_are_texts_are_texts(catalyst):
    parts = catalyst.java_class("org.apache.spark.sql.catalyst.analysis.UnresolvedAttribute").parseAttributeName
    assert items(parts("`a.b`.c")) == ["a.b", "c"]
    assert items(catalyst.seq([])) == []


def test_each_thread_has_calls_of_its_own(catalyst, asked):
    plan = catalyst.project([catalyst.alias(catalyst.integer(1), "x")], catalyst.one_row())
    asked.clear()
    heard = []
    other = threading.Thread(target=lambda: heard.append(str(catalyst.spark.version)))
    other.start()
    other.join()
    assert heard
    assert not any("Project" in command for command in asked)
    assert operator_name(plan) == "Project"


# --- Tasks in the thread of the caller --------------------------------------------------------------------------------


def numbers(calls: Calls, frame: DataFrame) -> list[int]:
    """The one column of a frame, as `rows` gives it."""
    schema = pa.schema([pa.field(frame.columns[0], pa.int64())])
    batches = [pa.ipc.read_record_batch(pa.py_buffer(one), schema) for one in calls.rows(frame)]
    return [number for batch in batches for number in batch.column(0).to_pylist()]


def test_one_task_runs_without_a_job(spark, calls):
    before = jobs_of(spark)
    assert numbers(calls, spark.range(0, 25_000, 1, 1).selectExpr("id * 2 AS twice")) == list(range(0, 50_000, 2))
    assert numbers(calls, spark.range(0, 0, 1, 1)) == []
    assert numbers(calls, spark.range(9, 0, -1, 1).sortWithinPartitions("id")) == list(range(1, 10))
    assert jobs_of(spark) == before
    assert not calls.is_running


def test_what_has_several_tasks_is_a_job(spark, calls):
    before = jobs_of(spark)
    assert numbers(calls, spark.range(0, 100, 1, 3)) == list(range(100))
    assert sorted(numbers(calls, spark.range(0, 100, 1, 2).repartition(1))) == list(range(100))
    assert jobs_of(spark) == before + 2


def test_a_task_has_the_settings_of_its_session(catalyst, calls):
    for is_ansi in ("false", "true"):
        change_settings(catalyst.spark, {"spark.sql.ansi.enabled": is_ansi})
        found = catalyst.spark.range(0, 1, 1, 1).selectExpr("element_at(array(id), int(id + 2)) AS none")
        if is_ansi == "true":
            with pytest.raises(Exception, match="INVALID_ARRAY_INDEX"):
                numbers(calls, found)
        else:
            assert numbers(calls, found) == [None]


def test_a_task_that_fails_leaves_nothing(spark, calls):
    for _ in range(3):
        with pytest.raises(Exception, match="DIVIDE_BY_ZERO"):
            numbers(calls, spark.range(0, 10, 1, 1).sortWithinPartitions("id").selectExpr("id div (id - id) AS n"))
        assert not calls.is_running
    assert numbers(calls, spark.range(0, 10, 1, 1)) == list(range(10))


def test_a_task_is_cancelled_from_another_thread(spark, calls):
    endless = spark.range(0, 1 << 60, 1, 1).where("id < 0")
    failures: list[BaseException] = []

    def run() -> None:
        try:
            numbers(calls, endless)
        except Exception as error:  # noqa: BLE001  whatever it is
            failures.append(error)

    waiting = threading.Thread(target=run)
    waiting.start()
    deadline = time.monotonic() + 60
    while not calls.is_running:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    calls.cancel()
    waiting.join(60)
    assert not waiting.is_alive()
    assert len(failures) == 1
    assert "TaskKilled" in str(failures[0])
    assert not calls.is_running


# --- Rows in memory ---------------------------------------------------------------------------------------------------


def test_rows_in_memory_are_computed_once(spark, catalyst, calls):
    before, jobs = jobs_of(spark), calls.jobs(spark)
    frame = spark.range(0, 3000, 1, 1).selectExpr("id", "uuid() AS once", "array(id, null) AS more")
    memory = calls.in_memory(frame)
    assert (calls.jobs(spark), jobs_of(spark)) == (jobs + 1, before)
    assert memory.count == 3000
    relation = memory.relation()
    assert [column.name() for column in columns(relation)] == ["id", "once", "more"]
    assert [column_id(one) for one in columns(relation)] == [column_id(one) for one in columns(catalyst.plan(frame))]
    first, again = (catalyst.dataframe(relation).orderBy("id").collect() for _ in range(2))
    assert first == again
    schema = arrow_schema(frame.schema)
    batches = [pa.ipc.read_record_batch(pa.py_buffer(one), schema) for one in memory.batches()]
    assert pa.Table.from_batches(batches).to_pylist() == [row.asDict() for row in first]


def test_rows_in_memory_are_in_one_partition(catalyst, calls):
    frame = catalyst.spark.range(0, 100, 1, 1).selectExpr("id % 7 AS k", "id")
    rows, others = (catalyst.dataframe(calls.in_memory(frame).relation()) for _ in range(2))
    joined = rows.join(others.toDF("k", "other"), "k").groupBy("k").count()
    assert "Exchange hash" not in str(joined._jdf.queryExecution().executedPlan())
    assert {row["k"]: row["count"] for row in joined.collect()} == {0: 225, 1: 225, **dict.fromkeys(range(2, 7), 196)}


def test_rows_of_a_plan_that_is_joined_with_itself_keep_its_columns(catalyst, calls):
    rows = catalyst.plan(catalyst.spark.range(0, 10, 1, 1))
    plan = catalyst.semi_join(rows, rows, catalyst.expression("EqualTo", columns(rows)[0], columns(rows)[0]))
    relation = calls.in_memory(catalyst.dataframe(plan)).relation()
    assert [column_id(one) for one in columns(relation)] == [column_id(one) for one in columns(plan)]


def test_many_rows_and_those_of_several_tasks_are_not_in_memory(spark, calls):
    assert calls.in_memory(spark.range(0, 100, 1, 2)) is None
    assert calls.in_memory(spark.range(0, 100, 1, 2).repartition(1)) is None
    assert calls.in_memory(spark.range(0, 40, 1, 1).selectExpr("repeat('x', 1000000) AS text")) is None
    assert calls.in_memory(spark.range(0, 20, 1, 1).selectExpr("repeat('x', 1000000) AS text")).count == 20
    assert calls.in_memory(spark.range(0, 0, 1, 1)).count == 0


def test_answers_are_sent_at_once(spark, calls):
    """By itself, TCP waits 40 ms with the last piece of an answer of more than 8 kB."""
    thread = threading.Thread(target=lambda: calls.jobs(spark))  # which gets a connection of its own
    thread.start()
    thread.join()
    server = spark.sparkContext._gateway.java_gateway_server
    field = spark._jvm.java.lang.Class.forName("py4j.GatewayServer").getDeclaredField("connections")
    field.setAccessible(True)
    found = [connection.getSocket().getTcpNoDelay() for connection in field.get(server)]
    assert len(found) >= 1
    assert all(found)


# --- Deletions --------------------------------------------------------------------------------------------------------


def test_deletions_wait_for_the_end_of_a_job(spark, calls):
    objects = [spark._jvm.java.lang.Object() for _ in range(3000)]
    kept, ids = objects[7], {one._target_id for one in objects}
    del objects
    gc.collect()
    assert ids < bindings(spark)
    calls.flush()
    assert ids & bindings(spark) == {kept._target_id}
    assert kept.equals(kept)


def test_what_is_dropped_before_it_came_to_be_is_let_go(spark, catalyst, calls):
    calls.flush()
    dropped = catalyst.project([catalyst.alias(catalyst.integer(1), "x")], catalyst.one_row())
    name = dropped._target_id
    del dropped
    gc.collect()
    calls.flush()
    assert name not in bindings(spark)


def test_not_too_many_deletions_wait(spark, catalyst, calls):
    calls.flush()
    before = len(bindings(spark))
    for _ in range(MAX_COUNT // 2 + 2_000):
        catalyst.integer(1)
        catalyst.nothing.isDefined()
    assert len(bindings(spark)) < before + MAX_COUNT
