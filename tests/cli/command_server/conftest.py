"""Command servers for the tests of a module, and a workspace for each."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.command_servers import CommandServers, command_servers


@pytest.fixture(scope="session", autouse=True)
def _session() -> None:
    """Have a session: where tests run in a container, that of the shell may be outside. And end when it hangs up."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # `nohup` has it ignored, by all children, too
    if os.getsid(0) == 0:
        os.setsid()


@pytest.fixture(scope="module")
def servers(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[CommandServers]:
    """Programs, and a server that runs their commands."""
    with command_servers() as made:
        made.serve(prepared)
        yield made


@pytest.fixture
def own_servers() -> Iterator[CommandServers]:
    """Programs of a test that starts and ends servers itself."""
    with command_servers() as made:
        yield made
