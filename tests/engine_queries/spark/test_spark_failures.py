"""What went wrong on the way is said in words: a disk that is full, whoever meets it first."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pyspark.sql import types

from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.responses import respond
from odfpy.engine.spark.plan.failures import _without_settings, spark_errors
from odfpy.engine.spark.plan.types import arrow_schema
from odfpy.engine.sql.source_text import SourceText
from odfpy.errors import EngineError, InvalidQuery, UnsupportedQuery


@pytest.mark.spark
def test_a_full_disk_below_other_exceptions_of_java_is_found(spark):
    java = spark._jvm.java.lang
    inner = spark._jvm.java.io.IOException("No space left on device")
    thrown = java.RuntimeException("Exception thrown in awaitResult:", java.IllegalStateException("x", inner))
    promise = spark._jvm.java.util.concurrent.CompletableFuture()
    promise.completeExceptionally(thrown)
    with pytest.raises(EngineError) as caught, spark_errors([]):
        promise.get()
    assert caught.value.message == "The engine cannot write its files: No space left on device"


@pytest.mark.spark
def test_a_full_heap_is_told_as_such(spark):
    thrown = spark._jvm.java.lang.OutOfMemoryError("Java heap space")
    promise = spark._jvm.java.util.concurrent.CompletableFuture()
    promise.completeExceptionally(spark._jvm.java.lang.RuntimeException("Job aborted", thrown))
    with pytest.raises(EngineError) as caught, spark_errors([]):
        promise.get()
    assert caught.value.message == "The engine's Java ran out of memory: Java heap space"
    assert "engine.memory" in (caught.value.hint or "")


@pytest.mark.spark
def test_columns_that_the_engine_has_named_are_told_as_its_own_fault(spark):
    query = "SELECT DISTINCT map(1, 2) AS {}"
    with pytest.raises(EngineError, match=r"a plan that the engine has made: .*`k0`") as caught, spark_errors([]):
        spark.sql(query.format("k0"))
    assert "report" in (caught.value.hint or "")
    with pytest.raises(InvalidQuery), spark_errors([SourceText(query.format("k0"))]):
        spark.sql(query.format("k0"))
    with pytest.raises(InvalidQuery), spark_errors([SourceText("SELECT DISTINCT * FROM a")]):
        spark.sql(query.format("c1"))


_ONE = "SELECT 1 AS id, 2 AS amount, 3 AS `my col`, 4 AS __odf_own"


@pytest.mark.spark
@pytest.mark.parametrize(
    ("query", "hint"),
    [
        (f"SELECT zzz FROM ({_ONE}) WHERE id > 1", "There are id, amount, `my col`. "),
        (f"SELECT id FROM ({_ONE}) t WHERE zzz > 1", "There are id, amount, `my col`. "),
        (f"SELECT max(zzz) FROM ({_ONE}) GROUP BY id", "There are id, amount, `my col`. "),
        (f"SELECT amout FROM ({_ONE})", "Did you mean amount?"),
        (
            f"SELECT t.zzz FROM ({_ONE}) t JOIN ({_ONE}) u ON t.id = u.id",
            "There are t.id, t.amount, t.`my col`, u.id, u.amount, u.`my col`. ",
        ),
    ],
)
def test_an_unknown_column_lists_those_that_there_are(spark, query, hint):
    with pytest.raises(InvalidQuery) as caught, spark_errors([SourceText(query)]):
        spark.sql(query)
    assert (caught.value.hint or "").startswith(hint)


def test_a_full_disk_below_python_is_told_as_well():
    def write() -> None:  # not by its name, which Arrow would remove after the error
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")

    response = respond(write)
    assert isinstance(response, TransformResponseInternalError)
    assert response.message == f"The engine cannot write or read its files: {os.strerror(errno.ENOSPC)}"


@pytest.mark.parametrize(
    ("sentence", "kept"),
    [
        ("It overflows. Set spark.sql.ansi.enabled to false", "It overflows."),
        ("It overflows, if `x`, set spark.sql.ansi.enabled to false", "It overflows, if `x`"),
        ("Nothing of the kind" + " " * 100_000, "Nothing of the kind" + " " * 100_000),
        ("x" * 1_000_000, "x" * 1_000_000),
        (f"{'.' * 50_000} spark.sql.x.y", "." * 50_000),
    ],
    ids=["a sentence", "a quote", "spaces", "a long word", "dots"],
)
def test_advice_on_settings_is_left_out_however_long_a_value_is(sentence: str, kept: str) -> None:
    """Whoever reads the message holds the engine up for everybody else."""
    assert _without_settings(sentence) == kept


def test_types_that_come_as_bytes_are_found_within_all_others() -> None:
    odd = types.VariantType()
    for kind in (
        types.MapType(types.StringType(), odd),
        types.ArrayType(odd),
        types.ArrayType(types.MapType(odd, odd)),
    ):
        with pytest.raises(UnsupportedQuery):
            arrow_schema(types.StructType([types.StructField("v", kind)]))


@pytest.mark.spark
@pytest.mark.parametrize("value", [" " * 5_000, "x" * 1_000_000], ids=["spaces", "a million letters"])
def test_a_message_has_the_beginning_of_a_long_value_and_says_what_is_wrong_with_it(spark, value):
    with pytest.raises(InvalidQuery) as caught, spark_errors([]):
        spark.createDataFrame([(value,)], "v string").selectExpr("cast(v as int)").collect()
    assert len(caught.value.message) < 1_000
    assert "..." in caught.value.message
    assert "cannot be cast" in caught.value.message
