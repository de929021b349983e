"""The start-up cache, made before an engine starts."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from odfpy.engine.settings import EngineSettings
from odfpy.engine.spark.process import startup_cache
from odfpy.engine.spark.process.java import find_java
from odfpy.engine.spark.process.jvm import spark_home
from odfpy.engine.spark.process.startup_cache import StartupCache
from odfpy.engine.worker import preparation
from odfpy.engine.worker.preparation import prepare_engine
from odfpy.errors import EngineUnavailable, UsageError

SETTINGS = EngineSettings(memory="1g")
MAKES = "open(path, 'w').close()"
FAILS = "sys.exit('no luck')"
IS_SECOND = f"other = path + '.other'; {MAKES} if os.path.exists(other) else open(other, 'w').close()"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StartupCache:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(preparation, "_POLL_SECONDS", 0)
    cache = StartupCache.of(find_java(), spark_home(), {"XDG_CACHE_HOME": str(tmp_path / "cache")}, "1g")
    assert cache is not None
    return cache


def let_training(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have this code run in the place of a training, with the path of the cache."""

    def command(_module: str, path: str, *_more: str) -> list[str]:
        return [sys.executable, "-c", f"import os, sys; path = sys.argv[1]; {code}", path]

    monkeypatch.setattr(startup_cache, "python_command", command)


def test_it_is_made_once(cache, monkeypatch):
    let_training(monkeypatch, MAKES)
    assert prepare_engine(SETTINGS) == (cache.path, True)
    let_training(monkeypatch, FAILS)
    assert prepare_engine(SETTINGS) == (cache.path, False)


def test_a_failure_of_late_does_not_count(cache, monkeypatch):
    cache.path.parent.mkdir(parents=True)
    cache.path.with_suffix(".failed").touch()
    let_training(monkeypatch, MAKES)
    assert prepare_engine(SETTINGS) == (cache.path, True)


def test_it_waits_for_another_process_that_makes_it(cache, monkeypatch):
    let_training(monkeypatch, IS_SECOND)
    assert prepare_engine(SETTINGS) == (cache.path, True)
    assert Path(f"{cache.path}.other").exists()


def test_a_failure_names_the_log(cache, monkeypatch):
    let_training(monkeypatch, FAILS)
    with pytest.raises(EngineUnavailable, match="could not be created") as caught:
        prepare_engine(SETTINGS)
    assert str(cache.log) in str(caught.value.hint)
    assert cache.log.read_text() == "no luck\n"


def test_when_it_is_interrupted_the_training_ends_in_order(cache, monkeypatch, tmp_path):
    ended, started = tmp_path / "ended", tmp_path / "started"
    let_training(
        monkeypatch,
        f"import time\ntry:\n    open({str(started)!r}, 'w').close(); time.sleep(600)\nfinally: open({str(ended)!r}, 'w')",
    )
    start = StartupCache.start_training
    trainings: list[subprocess.Popen[bytes]] = []

    class Interrupted:
        """A training; whoever waits for it is interrupted when it is under way."""

        def __init__(self, training: subprocess.Popen[bytes]) -> None:
            self._training = training
            self._waits = 0

        def wait(self, seconds: float | None = None) -> int:
            self._waits += 1
            if self._waits == 1:
                while not started.exists():
                    assert self._training.poll() is None
                raise KeyboardInterrupt
            return self._training.wait(seconds)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._training, name)

    def started_training(self: StartupCache, memory: str | None, priority: int) -> Any:
        trainings.append(start(self, memory, priority))
        return Interrupted(trainings[-1])

    monkeypatch.setattr(StartupCache, "start_training", started_training)
    with pytest.raises(KeyboardInterrupt):
        prepare_engine(SETTINGS)
    assert trainings[0].poll() is not None
    assert ended.exists()


@pytest.mark.parametrize("settings", [replace(SETTINGS, startup_cache=False), replace(SETTINGS, master="spark://here")])
def test_engines_that_use_none_need_none(settings):
    with pytest.raises(UsageError, match="does not use"):
        prepare_engine(settings)


def test_without_a_folder_there_is_none(monkeypatch):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("HOME")
    with pytest.raises(EngineUnavailable, match="no folder"):
        prepare_engine(SETTINGS)


def test_a_folder_that_cannot_be_made_is_told(cache):
    cache.path.parents[2].touch()
    with pytest.raises(EngineUnavailable, match="cannot be used: Not a directory") as caught:
        prepare_engine(SETTINGS)
    assert "XDG_CACHE_HOME" in str(caught.value.hint)


def test_it_needs_room(cache, monkeypatch):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(10, 9, 1))
    with pytest.raises(EngineUnavailable, match="needs 2 GB of free space"):
        prepare_engine(SETTINGS)


def test_an_older_java_makes_none(monkeypatch):
    monkeypatch.setattr(preparation, "find_java", lambda: replace(find_java({}), version="21.0.1"))
    with pytest.raises(EngineUnavailable, match="needs Java 25"):
        prepare_engine(SETTINGS)


def test_the_command_says_where_it_is(tmp_path, cache):
    def odf(*arguments: str) -> str:
        command = [sys.executable, "-m", "odfpy", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stderr

    odf("init")
    odf("config", "set", "engine.memory", "1g")
    cache.path.parent.mkdir(parents=True)
    cache.path.touch()
    assert odf("engine", "prepare") == f"The start-up cache exists: {cache.path}\n"
