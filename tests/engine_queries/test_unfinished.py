"""What a pull has found before it turns out to need history is of use to the very same pull, and to no other."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql.types import StructType
from support.engine.requests import Source, transform_request

from odfpy.engine.spark.incremental.state.attempt import Attempt

SCHEMA = StructType()


@pytest.fixture
def request_of(tmp_path):
    """Makes the request of a pull, with or without history."""
    rates = Source(tmp_path, "rates", [pa.field("rate", pa.int32())])
    rates.add([("+A", "2024-01-01T00:00:00Z", 1)]).add([("-C", "2024-01-01T00:00:00Z", 1)], "2024-01-02T00:00:00Z")
    return lambda history: transform_request(tmp_path, "SELECT * FROM rates", rates.input(1, history=history))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "block"
    path.write_bytes(b"rows")
    return path


def test_the_same_request_with_history_goes_on_from_what_was_done(request_of, file):
    first = Attempt.begun(request_of(history=False))
    first.add(2, file, SCHEMA, 5)
    first.add(3, file.with_name("none"), SCHEMA, 0)
    first.interrupt()
    again = Attempt.begun(request_of(history=True))
    assert {source: (done.content, done.count) for source, done in again.done.items()} == {2: (b"rows", 5), 3: (b"", 0)}
    assert Attempt.begun(request_of(history=True)).done == {}, "only once"


def test_any_other_request_begins_anew(request_of, file):
    first = Attempt.begun(request_of(history=False))
    first.add(2, file, SCHEMA, 5)
    first.interrupt()
    assert Attempt.begun(replace(request_of(history=True), next_offset=7)).done == {}
    assert Attempt.begun(request_of(history=True)).done == {}, "the first one was given up"


def test_a_pull_that_was_not_interrupted_leaves_nothing(request_of, file):
    Attempt.begun(request_of(history=False)).add(2, file, SCHEMA, 5)
    assert Attempt.begun(request_of(history=True)).done == {}


def test_large_results_are_not_held_in_memory(request_of, file):
    file.write_bytes(bytes(1 << 21))
    pull = Attempt.begun(request_of(history=False))
    pull.add(2, file, SCHEMA, 100_000)
    assert pull.done == {}
