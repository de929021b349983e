"""A node that is killed before any change of files, while somebody pushes to it, is whole; the next push brings the rest."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from signal import SIGKILL, SIGTERM

import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.examples import examples
from support.processes.forking import ForkingProcess
from support.processes.tally import spread, tally
from support.servers.serving import wait_until

from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError
from odfpy.serving.callers.tokens import Scope, Tokens

NEVER = 1_000_000
MAX_COUNT, MAX_COUNT_THOROUGH = 0, 1
"""Kills besides that at the first step; with 0 it is only one, in the middle."""

_PROGRAM = """
import json
import odfpy.coordinator.storage.storage, odfpy.coordinator.storage.signing
from pathlib import Path
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.server import DatasetServer, listen
from odfpy.serving.settings import ServeSettings

def run(line):
    root, told, last = json.loads(line)
    with listen("127.0.0.1", 0) as listener:
        server = DatasetServer([Workspace.open(root)], listener, settings=ServeSettings(grace=10))
        Path(told, "url").write_text(server.url)
        Path(told, "url").rename(Path(told, "is-listening"))
        steps = die_at(last, [])
        server.run([listener])
    return steps, 0
"""


class Node(ForkingProcess):
    """A server in a process that can be killed at a step."""

    def __init__(self, folder: Path) -> None:
        super().__init__(_PROGRAM)
        self._told = folder / "is-listening"
        self._child = 0

    def begin(self, workspace: Path, at: int = NEVER) -> str:
        """Serve a workspace; gives the URL of the server."""
        self._child = self._start(json.dumps([str(workspace), str(self._told.parent), at]))
        wait_until(self._told.exists)
        url = self._told.read_text()
        self._told.unlink()
        return f"odf+{url}"

    def end(self) -> tuple[int, int]:
        """Stop it, if it is still there; gives its status and the changes that it made."""
        with suppress(ProcessLookupError):
            os.kill(self._child, SIGTERM)
        return self._outcome()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    process = Node(tmp_path)
    yield process
    process.close()


def pushed(here: Workspace, url: str) -> list[OdfError]:
    """Push all there is; gives what went wrong."""
    results = here.push(["rates"], to=f"{url}/rates", branches=["staging"], tags=["v1"])
    return [result.error for result in results if result.error is not None]


def findings(folder: Path) -> list[object]:
    return [finding for report in Workspace.open(folder).verify(all=True) for finding in report.findings]


def test_a_node_that_is_killed_while_somebody_pushes(
    node: Node, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = workspace_with(tmp_path / "here", root("rates", merge="{kind: Append}"))
    feed(here, "rates", "1 a")
    there = Workspace.init(tmp_path / "there")
    monkeypatch.setenv("ODF_TOKEN", Tokens(there.odf).new("writer", Scope.WRITE))
    assert pushed(workspace_with_staged(here), node.begin(shutil.copytree(there.root, tmp_path / "undisturbed"))) == []
    status, total = node.end()
    assert (status, total > 20) == (0, True)
    wanted = refs(here.root)

    for number in spread(total, examples(MAX_COUNT, MAX_COUNT_THOROUGH)):
        folder = shutil.copytree(there.root, tmp_path / f"killed-{number}")
        told = pushed(here, node.begin(folder, number))
        status, _ = node.end()
        assert status in (SIGKILL, 0), "it was killed, or had fewer steps this time"
        if status == SIGKILL:
            tally("server of a push")
            assert told, f"step {number}: whoever pushes is told"
        assert findings(folder) == [], f"step {number}"
        assert pushed(here, node.begin(folder)) == [], f"step {number}"
        assert node.end()[0] == 0
        assert findings(folder) == [], f"step {number}"
        assert refs(folder) == wanted
        (report,) = Workspace.open(folder).verify(["rates"], integrity_only=True)
        assert report.signatures is not None
        assert report.signatures.unsigned == 0, f"step {number}"
        shutil.rmtree(folder)


def workspace_with_staged(workspace: Workspace) -> Workspace:
    """The same with another slice on a branch, and a tag."""
    file = workspace.root / "staged.ndjson"
    file.write_text('{"event_time":"2024-01-02T00:00:00Z","id":2,"name":"b"}\n')
    (result,) = workspace.ingest("rates", [file], branch="staging")
    assert result.error is None
    workspace.branches.create("rates", ReferenceKind.TAG, "v1")
    return workspace


def refs(folder: Path) -> dict[str, str]:
    layout = Workspace.open(folder).storage.get("rates").layout
    return {name: str(layout.refs.get(name)) for name in layout.refs.names()}
