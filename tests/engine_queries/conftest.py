"""A Spark as the engine has it, once for each module that asks for one."""

from __future__ import annotations

import pytest
from support.engine_spark import engine_spark


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    with engine_spark(tmp_path_factory.mktemp("spark")) as session:
        yield session
