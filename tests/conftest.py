"""Shared test configuration."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).resolve().parent))

# The machine may be busy with other tests: how long an example takes says nothing.
settings.register_profile("odfpy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("odfpy")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A Spark as the engine has it, one for all tests that ask for it: its first queries take the longest."""
    from support.engine_spark import engine_spark

    with engine_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
