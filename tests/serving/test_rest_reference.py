"""The recorded answers of the reference's node, field by field: the server has the same datasets and the same key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.fixtures import FIXTURES, KAMU
from support.servers.serving import Answer, ask, serving, workspace_at

from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

RECORDED = sorted(path.stem for path in (FIXTURES / "rest").glob("*.json"))


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DatasetServer]:
    """A node with the datasets and the key of the one that was recorded."""
    workspace = workspace_at(tmp_path_factory.mktemp("node"))
    for name in ("trades", "types"):
        (result,) = workspace.pull([str(KAMU / name)], as_name=f"org.example.{name}")
        assert result.error is None, result.error
        set_visibility(workspace.storage.get(f"org.example.{name}").folder, Visibility.PUBLIC)
    key = workspace.odf / "node-key"
    key.write_text("7b" * 32)
    key.chmod(0o600)
    workspace.config.set("proofs.key", ".odf/node-key")
    with serving(workspace) as server:
        yield server


def recorded(name: str) -> Any:
    return json.loads((FIXTURES / "rest" / f"{name}.json").read_text())


def send(node: DatasetServer, request: Any) -> Answer:
    body = json.dumps(request["body"]).encode() if "body" in request else None
    return ask(f"{node.url}{request['path']}", method=request["method"], body=body, content_type="application/json")


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_answers(node: DatasetServer, name: str) -> None:
    document = recorded(name)
    answer = send(node, document["request"])
    assert answer.status == document["status"], answer.body
    found, wanted = answer.json, document["response"]
    if name in ("bad-sql", "unknown-table"):  # texts of errors are each engine's own
        assert found.keys() == wanted.keys()
    else:
        assert found == wanted
