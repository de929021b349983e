"""A Spark as the engine has it, one for all modules of this folder: its first queries take the longest."""

from __future__ import annotations

import pytest
from support.engine_spark import engine_spark


@pytest.fixture(scope="package")
def spark(tmp_path_factory):
    with engine_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
