"""Rows of queries while they are made."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.row_stream import Spooled
from odfpy.errors import EngineError, InvalidQuery, QueryCancelled

SCHEMA = pa.schema([("n", pa.int64())])
PATIENCE = 300


def batch(*numbers: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(numbers, pa.int64())], schema=SCHEMA)


def writing(path: Path, *steps: pa.RecordBatch | Callable[[], object]) -> Callable[[], None]:
    """Writes a stream in steps: batches, and what happens in between."""

    def write() -> None:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, SCHEMA) as writer:
            for step in steps:
                writer.write_batch(step) if isinstance(step, pa.RecordBatch) else step()

    return write


def test_a_file_is_read_while_it_is_written(tmp_path: Path) -> None:
    read = threading.Event()
    path = tmp_path / "result"
    rows = Spooled(
        path, writing(path, batch(), batch(1, 2), lambda: read.wait(PATIENCE), batch(3)), CancellationToken()
    )
    batches = iter(rows)
    assert rows.schema == SCHEMA
    assert next(batches) == batch(1, 2)
    read.set()
    assert list(batches) == [batch(3)]
    rows.close()


def test_what_goes_wrong_is_told_as_the_writer_tells_it(tmp_path: Path) -> None:
    def fail() -> None:
        path.unlink()
        raise InvalidQuery("division by zero")

    path = tmp_path / "result"
    with pytest.raises(InvalidQuery, match="by zero"):
        list(Spooled(path, writing(path, batch(1), fail), CancellationToken()))
    with pytest.raises(InvalidQuery, match="by zero"):
        Spooled(path, writing(path, fail), CancellationToken())


def test_whoever_waits_can_be_stopped(tmp_path: Path) -> None:
    control, stopped = CancellationToken(), threading.Event()
    control.on_stop(stopped.set)
    path = tmp_path / "result"
    rows = Spooled(path, writing(path, batch(1), lambda: stopped.wait(PATIENCE)), control)
    batches = iter(rows)
    next(batches)
    control.cancel()
    with pytest.raises(QueryCancelled):
        next(batches)
    rows.close()


@pytest.mark.parametrize("kind", ["link", "folder"])
def test_an_engine_may_leave_nothing_but_a_file(tmp_path: Path, kind: str) -> None:
    secret, path = tmp_path / "secret", tmp_path / "result"
    writing(secret, batch(1))()
    with pytest.raises(EngineError, match="not a file"):
        Spooled(path, lambda: path.symlink_to(secret) if kind == "link" else path.mkdir(), CancellationToken())
