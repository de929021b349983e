"""The reference web, one for all tests of this folder."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.federation.reference import reference_web

from odfpy.federation.demo.running import RunningWeb


@pytest.fixture(scope="session")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWeb]:
    with reference_web(tmp_path_factory.mktemp("reference") / "web") as found:
        yield found
