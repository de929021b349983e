"""The history of a dataset over REST: its blocks page by page, what each day brought, its manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import Answer, ask, serving

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer

NAME = "com.example.rates"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    found = workspace_with(tmp_path / "workspace", root(NAME), derivative("com.example.derived", NAME))
    for number in range(4):
        feed(found, NAME, f"{number} a", f"{number + 10} b", day=number + 1)
    return found


@pytest.fixture
def server(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        server.app.state.reader = Tokens(workspace.odf).new("reader", Scope.READ)
        yield server


def get(server: DatasetServer, path: str, **headers: str) -> Answer:
    return ask(f"{server.url}/{NAME}/{path}", token=server.app.state.reader, **headers)


def pages(server: DatasetServer, path: str) -> Iterator[list[Any]]:
    while path:
        answer = get(server, path)
        assert answer.status == 200, answer.body
        yield answer.json
        found = re.match(r'<(.*)>; rel="next"', answer.headers.get("link", ""))
        path = found[1] if found else ""


def test_the_blocks_are_those_of_the_chain_page_by_page(server: DatasetServer, workspace: Workspace) -> None:
    blocks = [block for page in pages(server, "log?limit=3") for block in page]
    assert [one["blockHash"] for one in blocks] == [str(one.hash) for one in workspace.datasets.log(NAME)]
    assert [one["content"]["sequenceNumber"] for one in blocks] == list(range(len(blocks) - 1, -1, -1))
    assert all(one["signatures"][0]["signer"].startswith("did:key:") for one in blocks)
    assert blocks[-1]["content"]["event"]["kind"] == "Seed"


def test_a_log_begins_at_any_block_of_the_dataset(server: DatasetServer, workspace: Workspace) -> None:
    second = [str(one.hash) for one in workspace.datasets.log(NAME)][1]
    assert get(server, f"log?limit=1&asOfBlockHash={second}").json[0]["blockHash"] == second
    unknown = "f1620" + "0" * 64
    assert get(server, f"log?asOfBlockHash={unknown}").status == 404
    assert get(server, "log?asOfBlockHash=x").status == 400
    assert get(server, "log?limit=0").status == 422
    assert ask(f"{server.url}/{NAME}/log").status == 401


def test_days_sum_up_to_the_dataset(server: DatasetServer, workspace: Workspace) -> None:
    answer = get(server, "activity")
    days, summary = answer.json, workspace.datasets.summary(NAME)
    assert sum(one["numRecords"] for one in days) == summary.num_records
    assert sum(one["dataSize"] for one in days) == summary.data_bytes
    assert sum(one["numCommits"] for one in days) == 4
    assert days[-1]["watermark"] == str(summary.watermark)
    assert days[-1]["lagSeconds"] > 0
    assert get(server, "activity", if_none_match=answer.headers["etag"]).status == 304
    assert len(get(server, "activity?days=1").json) == 1


@pytest.mark.parametrize("name", [NAME, "com.example.derived"])
def test_the_manifest_makes_a_dataset_like_this_one(
    server: DatasetServer, workspace: Workspace, tmp_path: Path, name: str
) -> None:
    answer = ask(f"{server.url}/{name}/manifest", token=server.app.state.reader).json
    [snapshot] = load_snapshots(answer["yaml"], "answer")
    assert snapshot == workspace.datasets.snapshot(name)
    assert answer["manifest"]["content"]["name"] == name
