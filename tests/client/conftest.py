"""A small workspace, and the three ways to it: the folder, a server over REST, the same over Flight."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.chains.connecting import connected_workspace
from support.servers.flight import serving_flight
from support.servers.serving import serving

import odfpy
from odfpy.client.connection import Connection
from odfpy.coordinator.workspace import Workspace


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return connected_workspace(tmp_path_factory.mktemp("connect"))


@pytest.fixture(scope="session")
def urls(workspace: Workspace) -> Iterator[dict[str, str]]:
    """Places with these datasets."""
    with ExitStack() as stack:
        yield {
            "workspace": str(workspace.root),
            "rest": stack.enter_context(serving(workspace)).url,
            "flight": stack.enter_context(serving_flight(workspace)).url,
        }


@pytest.fixture(scope="session", params=["workspace", "rest", "flight"])
def place(request: pytest.FixtureRequest, urls: dict[str, str]) -> str:
    return urls[request.param]


@pytest.fixture(scope="session")
def connection(place: str) -> Iterator[Connection]:
    """To each of the places."""
    with odfpy.connect(place, engine="datafusion") as found:
        yield found


@pytest.fixture(scope="session")
def here(workspace: Workspace) -> Connection:
    """To the workspace."""
    return odfpy.connect(workspace, engine="datafusion")
