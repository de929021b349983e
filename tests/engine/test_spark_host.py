"""What a job leaves over is let go once it has its answer; Spark itself has tests of its own."""

from __future__ import annotations

import gc
import os
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import JavaRuntime
from odfpy.engine.worker.confined_host import _keep_short
from odfpy.engine.worker.spark_host import SparkHost


class Node:
    """Something that holds itself, as plans do that know what they are part of."""

    def __init__(self) -> None:
        self.myself = self


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SparkHost]:
    host = SparkHost(EngineSettings(), JavaRuntime(Path("/nowhere"), "25", "a test"), tmp_path, 1)
    gc.disable()  # only the host collects
    host.clean_up()  # after the first job, it keeps what there is
    yield host
    gc.unfreeze()
    gc.enable()


def test_what_a_job_has_made_is_let_go_at_once(host: SparkHost) -> None:
    left_over = weakref.ref(Node())
    host.clean_up()
    assert left_over() is None


def test_what_was_kept_for_some_jobs_is_let_go_in_the_end(host: SparkHost) -> None:
    kept = Node()
    for _ in range(3):
        host.clean_up()  # it is old now
    dropped = weakref.ref(kept)
    del kept
    for _ in range(64):
        host.clean_up()
    assert dropped() is None


def test_a_log_that_has_become_long_begins_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One query that fails can fill it: that ended the engine for everybody."""
    monkeypatch.setattr("odfpy.engine.worker.confined_host._MAX_LOG_LENGTH", 100)
    for flags, is_cut in ((os.O_APPEND, True), (0, False)):
        path = tmp_path / str(flags)
        log = os.open(path, os.O_CREAT | os.O_WRONLY | flags)
        os.write(log, b"x" * 100)
        _keep_short(log)
        assert path.stat().st_size == 100
        os.write(log, b"x")
        _keep_short(log)
        os.write(log, b"more")
        os.close(log)
        assert path.read_bytes().startswith(b"(The log") == is_cut
        assert path.read_bytes().endswith(b"more")
