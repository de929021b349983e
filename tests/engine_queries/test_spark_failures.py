"""What went wrong on the way is said in words: a disk that is full, whoever meets it first."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from odfpy.engine.contract import TransformResponseInternalError
from odfpy.engine.responses import answered
from odfpy.engine.spark.failures import spark_errors
from odfpy.errors import EngineError


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


def test_a_full_disk_below_python_is_told_as_well():
    def write() -> None:  # not by its name, which Arrow would remove after the error
        with Path("/dev/full").open("wb", buffering=0) as full:
            full.write(b"x")

    response = answered(write)
    assert isinstance(response, TransformResponseInternalError)
    assert response.message == f"The engine cannot write or read its files: {os.strerror(errno.ENOSPC)}"
