"""What the tests of datasets with state share: the engine, in the process of a test."""

from __future__ import annotations

import pytest
from support.engine.spark_here import SparkHere, in_place


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, spark: object) -> SparkHere:
    return in_place(monkeypatch, spark)
