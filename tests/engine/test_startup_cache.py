"""The cache of loaded classes: made once, used when it fits, dropped when it does not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.engine.session import MEMORY

from odfpy.engine.contract import SqlRequest, SqlResponseSuccess
from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.startup_cache import CACHE_SINCE, StartupCache
from odfpy.engine.worker.admin import engine_status, stop_engine
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.messages import Status

JAVA = find_java({})
USER = dict(os.environ)
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def cache(tmp_path: Path) -> StartupCache:
    cache = StartupCache.of(JAVA, spark_home(), {"XDG_CACHE_HOME": str(tmp_path)}, MEMORY)
    assert cache is not None
    return cache


def test_a_java_that_cannot_have_a_cache_goes_without(tmp_path: Path):
    old = replace(JAVA, version=str(CACHE_SINCE - 1))
    assert StartupCache.of(old, spark_home(), {"HOME": str(tmp_path)}) is None


def test_nobody_without_a_home_gets_a_cache():
    assert StartupCache.of(JAVA, spark_home(), {}) is None


def test_it_is_kept_in_the_cache_folder_of_the_user(tmp_path: Path):
    by_home = StartupCache.of(JAVA, spark_home(), {"HOME": str(tmp_path)})
    assert by_home is not None
    assert by_home.path.parent == tmp_path / ".cache" / "odfpy" / "engine"


def test_each_installation_has_its_own(tmp_path: Path, cache: StartupCache):
    environment = {"XDG_CACHE_HOME": str(tmp_path)}
    assert StartupCache.of(JAVA, spark_home(), environment, MEMORY) == cache
    assert StartupCache.of(replace(JAVA, version="25.0.99"), spark_home(), environment, MEMORY) != cache
    assert StartupCache.of(JAVA, spark_home(), environment, "40g") != cache


def test_it_is_wanted_until_it_is_there(cache: StartupCache):
    assert cache.options == ()
    assert cache.is_wanted
    cache.path.write_text("")
    assert not cache.is_wanted
    assert f"-XX:AOTCache={cache.path}" in cache.options


def test_two_attempts_do_not_meet(cache: StartupCache):
    assert cache.is_wanted
    with cache.attempt() as mine, cache.attempt() as theirs:
        assert mine is not None
        assert theirs is None


def test_a_failed_attempt_leaves_nothing_and_is_not_repeated_at_once(cache: StartupCache):
    assert cache.is_wanted
    with cache.attempt() as draft:
        assert draft is not None
        draft.write_text("half")
    assert not draft.exists()
    assert not cache.is_wanted
    failed = next(cache.path.parent.glob("*.failed"))
    os.utime(failed, (0, time.time() - 7200))
    assert cache.is_wanted


def test_a_draft_that_java_cannot_use_is_not_accepted(cache: StartupCache):
    assert cache.is_wanted
    with cache.attempt() as draft:
        assert draft is not None
        draft.write_bytes(b"no cache" * 1000)
        assert not cache.accept(draft, JAVA, spark_home())
    assert not cache.path.exists()


def status_once_used(tmp_path: Path) -> Status:
    """How a fresh engine is, in its sandbox, after a query."""
    engine = SparkEngine(tmp_path / "run", EngineSettings(memory=MEMORY, master="local[2]"))
    try:
        assert engine.sql(SqlRequest("SELECT 1", (), str(tmp_path / "result"))) == SqlResponseSuccess(1)
        status = engine_status(engine.run.path)
        assert status is not None
        return status
    finally:
        stop_engine(engine.run.path, force=True)


@pytest.mark.spark
def test_a_cache_that_does_not_fit_is_dropped_and_spark_starts_without_it(
    tmp_path: Path, cache: StartupCache, monkeypatch: pytest.MonkeyPatch
):
    assert cache.is_wanted
    cache.path.write_bytes(b"no cache" * 1000)
    cache.path.with_suffix(".failed").touch()  # so that no other one is made at once
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert not status_once_used(tmp_path).startup_cache
    assert not cache.path.exists()


def trained(cache: StartupCache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *command: str) -> list[str]:
    """Make the cache, and start an engine from it; return the kinds of answers that the training run has got."""
    assert cache.is_wanted
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    arguments = [sys.executable, *command, cache.path, MEMORY]
    run = subprocess.run(arguments, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert {path.suffix for path in cache.path.parent.iterdir()} == {".aot", ".lock"}
    assert status_once_used(tmp_path).startup_cache
    assert cache.path.exists()
    return [line.partition("(")[0] for line in run.stdout.splitlines() if "Response" in line]


WHOLE = ("-m", "odfpy.engine.worker.training")
START_ALONE = (
    "-c",
    """if True:
        import sys
        from odfpy.engine.worker import training
        training.training_jobs = lambda _: []
        sys.exit(training.main(sys.argv[1:]))
    """,
)
ANSWERS = ["AnalyzeResponseSuccess", "TransformResponseSuccess", "SqlResponseSuccess"] * 2


@pytest.mark.spark
def test_a_training_run_makes_a_cache_that_java_runs_from(
    tmp_path: Path, cache: StartupCache, monkeypatch: pytest.MonkeyPatch
):
    """A whole run only if the engines of the other tests need one: it takes as long as many of these."""
    theirs = StartupCache.of(JAVA, spark_home(), USER, MEMORY)
    is_needed = theirs is not None and theirs.is_wanted
    answers = trained(cache, tmp_path, monkeypatch, *(WHOLE if is_needed else START_ALONE))
    assert answers == (ANSWERS if is_needed else [])
    if is_needed:
        offer(cache)


@pytest.mark.slow
@pytest.mark.spark
def test_a_whole_training_run_has_requests_of_every_kind(
    tmp_path: Path, cache: StartupCache, monkeypatch: pytest.MonkeyPatch
):
    assert trained(cache, tmp_path, monkeypatch, *WHOLE) == ANSWERS


def offer(cache: StartupCache) -> None:
    """Let the engines of the other tests start from it, unless they have one, which is for the same installation."""
    theirs = StartupCache.of(JAVA, spark_home(), USER, MEMORY)
    if theirs is not None and theirs.is_wanted:
        with theirs.attempt() as draft:
            if draft is not None:
                shutil.copyfile(cache.path, draft)
                theirs.accept(draft, JAVA, spark_home())
