"""Pulls from a web server: what was fetched is kept until it is committed, and fetched again only when there is a reason."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.chains.workspaces import rows, workspace_with
from support.servers.static_server import StaticServer, cut_after, send, static_server

from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: polled
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {{kind: Url, url: "{url}/a.csv"}}
      read:
        kind: Csv
        header: true
        separator: "{separator}"
        schema: {{fields: [{{name: event_time, type: Timestamp}}, {{name: id, type: Int64}}, {{name: name, type: String}}]}}
      merge: {{kind: Ledger, primaryKey: [id]}}
"""
FIRST = b"event_time,id,name\n2024-01-01,1,a\n"
SECOND = FIRST + b"2024-01-02,2,b\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    (tmp_path / "site").mkdir()
    with static_server(tmp_path / "site") as site:
        yield site


def manifest(server: StaticServer, separator: str = ",") -> str:
    return MANIFEST.format(url=server.url, separator=separator)


def kept(workspace: Workspace) -> list[str]:
    return sorted(path.name for path in (workspace.root / ".odf" / "cache").glob("*/fetched/*"))


def pull(workspace: Workspace, **options: bool) -> PullResult:
    (result,) = workspace.pull(["polled"], **options)
    return result


def versioned(body: bytes, etag: str, sent: list[str]) -> Callable:
    """Notes which bodies it had to send."""

    def answer(handler) -> None:
        if handler.headers["If-None-Match"] == etag:
            send(handler, b"", status=304)
        else:
            sent.append(etag)
            send(handler, body, ETag=etag)

    return answer


def test_file_that_could_not_be_read_is_not_fetched_again_for_a_corrected_manifest(
    tmp_path: Path, server: StaticServer
) -> None:
    sent: list[str] = []
    server.special["/a.csv"] = versioned(FIRST, '"v1"', sent)
    workspace = workspace_with(tmp_path / "w", manifest(server, separator=";"))
    assert pull(workspace).outcome is PullOutcome.FAILED
    assert kept(workspace) == ["input", "input.json"]
    (tmp_path / "better.yaml").write_text(manifest(server))
    list(workspace.add(workspace.load([tmp_path / "better.yaml"]), replace=True))
    assert pull(workspace).outcome is PullOutcome.UPDATED
    assert sent == ['"v1"']
    assert rows(workspace, "polled") == ["+A 1 a"]
    assert kept(workspace) == [], "it is removed after the commit"


def test_file_that_has_changed_since_it_failed_is_fetched_again(tmp_path: Path, server: StaticServer) -> None:
    sent: list[str] = []
    server.special["/a.csv"] = versioned(b"event_time,id,name\n2024-01-01,x,a\n", '"v1"', sent)
    workspace = workspace_with(tmp_path / "w", manifest(server))
    assert "'x'" in str(pull(workspace).error)
    server.special["/a.csv"] = versioned(SECOND, '"v2"', sent)
    assert pull(workspace).num_records == 2
    assert sent == ['"v1"', '"v2"']
    assert pull(workspace).outcome is PullOutcome.UP_TO_DATE


KILLED = """
import os, signal, sys
from odfpy.coordinator.workspace import Workspace

def progress(event):
    if event.action != "fetching":
        os.kill(os.getpid(), signal.SIGKILL)

list(Workspace.open(sys.argv[1]).pull(["polled"], progress=progress))
"""


def test_file_that_was_fetched_by_a_killed_pull_is_used(tmp_path: Path, server: StaticServer) -> None:
    sent: list[str] = []
    server.special["/a.csv"] = versioned(FIRST, '"v1"', sent)
    workspace = workspace_with(tmp_path / "w", manifest(server))
    killed = subprocess.run([sys.executable, "-c", KILLED, str(workspace.root)], check=False, timeout=300)
    assert killed.returncode == -9
    assert kept(workspace) == ["input", "input.json"]
    assert pull(Workspace.open(workspace.root)).num_records == 1
    assert sent == ['"v1"']
    assert kept(workspace) == []


def test_broken_download_is_an_error_and_nothing_is_committed(tmp_path: Path, server: StaticServer) -> None:
    server.special["/a.csv"] = cut_after(SECOND, 20)
    workspace = workspace_with(tmp_path / "w", manifest(server))
    workspace.config.set("fetch.retries", "0")
    head = workspace.datasets.state("polled").head
    result = pull(workspace)
    assert (result.outcome, workspace.datasets.state("polled").head) == (PullOutcome.FAILED, head)
    assert "interrupted after 20 of" in str(result.error)
    server.special["/a.csv"] = lambda handler: send(handler, SECOND)
    assert pull(workspace).num_records == 2


def test_source_without_versions_is_fetched_again_on_demand_only(tmp_path: Path, server: StaticServer) -> None:
    server.special["/a.csv"] = lambda handler: send(handler, FIRST)
    workspace = workspace_with(tmp_path / "w", manifest(server))
    assert pull(workspace).num_records == 1
    server.special["/a.csv"] = lambda handler: send(handler, SECOND)
    result = pull(workspace)
    assert result.outcome is PullOutcome.UP_TO_DATE
    assert "--fetch-uncacheable" in result.notes[0]
    result = pull(workspace, fetch_uncacheable=True)
    assert (result.outcome, result.num_records, result.notes) == (PullOutcome.UPDATED, 1, ())
    assert rows(workspace, "polled") == ["+A 1 a", "+A 2 b"]


def test_kept_file_without_a_version_is_spoken_of(tmp_path: Path, server: StaticServer) -> None:
    server.special["/a.csv"] = lambda handler: send(handler, FIRST)
    workspace = workspace_with(tmp_path / "w", manifest(server, separator=";"))
    assert pull(workspace).outcome is PullOutcome.FAILED
    (tmp_path / "better.yaml").write_text(manifest(server))
    list(workspace.add(workspace.load([tmp_path / "better.yaml"]), replace=True))
    server.special["/a.csv"] = lambda handler: send(handler, SECOND)
    result = pull(workspace)
    assert result.num_records == 1
    assert result.notes[0].startswith("read the uncommitted download of ")


def test_fetch_uncacheable_changes_nothing_for_sources_with_versions(tmp_path: Path, server: StaticServer) -> None:
    sent: list[str] = []
    server.special["/a.csv"] = versioned(FIRST, '"v1"', sent)
    workspace = workspace_with(tmp_path / "w", manifest(server))
    pull(workspace)
    assert pull(workspace, fetch_uncacheable=True).outcome is PullOutcome.UP_TO_DATE
    assert sent == ['"v1"']
