"""Shared test configuration."""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

# The machine may be busy with other tests: the duration of an example is irrelevant.
settings.register_profile("thorough", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("odfpy", settings.get_profile("thorough"), max_examples=50)
settings.register_profile("quick", settings.get_profile("odfpy"), max_examples=5)
settings.load_profile("odfpy")

# Tests with their own home need no start-up cache, whose creation takes longer than they do.
os.environ.setdefault("XDG_CACHE_HOME", str(Path.home() / ".cache"))

# A shell makes background processes ignore these signals, and children of tests would inherit this and wait forever.
for ignored, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
    if signal.getsignal(ignored) is signal.SIG_IGN:
        signal.signal(ignored, usual)

# Tests must not use the settings, keys and passwords of the user who runs them.
_CONFIGURATION = tempfile.TemporaryDirectory(prefix="odfpy-tests-")
os.environ["XDG_CONFIG_HOME"] = _CONFIGURATION.name


def _do_not_wait(file: Any) -> None:
    os.fstat(file if isinstance(file, int) else file.fileno())


# To wait for the disk takes an eighth of the time of tests that write. No test sees what is on it already: those of power
# losses note the calls instead.
os.fsync = _do_not_wait

IN_THIS_PROCESS = (
    "tests/engine_queries/",
    "tests/coordinator/maintenance/test_verify_against_batch.py",
    "tests/federation/reference/test_reference_spark.py",
    "tests/federation/spark/test_frames.py",
    "tests/federation/sql/test_sketches_in_spark.py",
    "tests/security/test_spark_reach.py",
    "tests/flight/test_spark.py",
    "tests/ingest/lanes/test_lanes_agree.py",
    "tests/ingest/merge/test_merge_on_spark.py",
    "tests/serving/reading/test_rest_of_spark.py",
    "tests/test_docs.py",
    "tests/test_examples.py",
)
"""Tests that may use `spark`: if several processes run the tests, one of them runs all of these."""

STARTS_PROCESSES = ("support.browser", "support.processes", "support.servers")
"""Tests that import something of these start browsers or servers, or kill processes, and have the marker `processes`."""

MAKES_STARTUP_CACHE = "tests/engine/test_startup_cache.py"
"""The test that creates the start-up cache, with which engines start in half the time."""


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Open a Spark session like the engine's, shared by all tests: its first queries are the slowest."""
    from support.engine.session import engine_spark

    with engine_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what `make quick` deselects altogether: to import servers takes half of its collection."""
    if collection_path.suffix != ".py" or "not processes" not in config.getoption("markexpr"):
        return None
    homes = "|".join(map(re.escape, STARTS_PROCESSES))
    text = collection_path.read_text(encoding="utf-8")
    return True if re.search(rf"^from ({homes})\b", text, re.MULTILINE) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark tests that start processes by their imports, so that no mark is forgotten; keep `make quick` quick."""
    if not isinstance(item, pytest.Function):
        return
    for mark in item.iter_markers("slow_after"):
        if max(item.callspec.indices.values()) >= mark.args[0]:
            item.add_marker("slow")
    if _starts_processes(item.module):
        item.add_marker("processes")
    own = getattr(item.function, "_hypothesis_internal_use_settings", None)
    if own is not None and item.config.getoption("--hypothesis-profile") == "quick":  # also if it sets its number
        examples = min(own.max_examples, settings.get_profile("quick").max_examples)
        item.function._hypothesis_internal_use_settings = settings(own, max_examples=examples)


def pytest_collection_finish() -> None:
    """Hide the tests from the garbage collector: a million objects, which each full collection would look at."""
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Show them again, or modules of C would report what they hold as leaks."""
    gc.unfreeze()


@cache
def _starts_processes(module: ModuleType) -> bool:
    homes = (
        value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        for value in vars(module).values()
    )
    return any(isinstance(home, str) and home.startswith(STARTS_PROCESSES) for home in homes)


# --- Several processes (`pytest --numprocesses`) ---------------------------------------------------------------------


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the longest tests first, so that none delays the end."""
    if hasattr(config, "workerinput"):
        engines = {item.path for item in items if item.get_closest_marker("spark")}
        items.sort(
            key=lambda item: (
                _scope(item.nodeid) != "spark",
                not item.nodeid.startswith(MAKES_STARTUP_CACHE),
                item.path not in engines,
            )
        )


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Distribute whole files to processes, in this order."""
    from xdist.scheduler import LoadScopeScheduling

    class Files(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return _scope(nodeid)

    config.option.loadscopereorder = False  # not by numbers of tests
    return Files(config, log)


def _scope(nodeid: str) -> str:
    return "spark" if nodeid.startswith(IN_THIS_PROCESS) else nodeid.partition("::")[0]
