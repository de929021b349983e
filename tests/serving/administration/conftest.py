"""A served workspace, and one caller of each kind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support.servers.administered import Administered, administered


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administered]:
    """Return a workspace that shares a dataset: acme sees countries and totals of Germany, by a group."""
    with administered(tmp_path_factory.mktemp("administered")) as found:
        yield found
