"""`odf+http://`: pushing to a node, and pulling from it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.workspaces import feed, root, workspace_with
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A node without datasets, and a workspace `here` with one; the person has a token for writing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    there = Workspace.init(tmp_path / "there")
    monkeypatch.setenv("ODF_TOKEN", Tokens(there.odf).new("writer", Scope.WRITE))
    feed(workspace_with(tmp_path / "here", root("rates")), "rates", "1 a", "2 b")
    with serving(there) as server:
        yield f"odf+{server.url}"


def test_datasets_go_to_a_node_and_come_from_it(odf, node: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert odf("-w", "here", "repo", "add", "node", node).code == 0
    pushed = odf("-w", "here", "push", "rates", "--to", "node", "--public", "-o", "json")
    assert (pushed.code, pushed.json[0]["outcome"]) == (0, "updated")
    assert "up to date" in odf("-w", "here", "push", "rates").err, "it knows where it went"
    monkeypatch.delenv("ODF_TOKEN")
    assert odf("clone", f"{node}/rates", "copy").code == 0
    assert odf("-w", "copy", "verify", "rates").code == 0
    assert "up to date" in odf("-w", "copy", "pull", "rates").err


def test_other_copies_are_told_apart(odf, node: str) -> None:
    assert odf("-w", "here", "push", "rates", "--to", f"{node}/rates").code == 0
    again = odf("-w", "here", "push", "rates", "--to", f"{node}/other")
    assert (again.code, "E623" in again.err) == (1, True)
    feed(workspace_with(Path("another"), root("rates")), "rates", "1 a")
    foreign = odf("-w", "another", "push", "rates", "--to", f"{node}/rates", "--force")
    assert (foreign.code, "E602" in foreign.err) == (1, True)


@pytest.mark.parametrize("url", ["odf+http://", "odf+http://h/x?y", "odf+ftp://h/x", "odf+https:///x"])
def test_wrong_addresses_are_wrong_usage(odf, node: str, url: str) -> None:
    assert odf("-w", "here", "push", "rates", "--to", url).code in (1, 2)
    done = odf("-w", "here", "repo", "add", "name", url)
    assert (done.code, "Traceback" in done.err) == (2, False)


def test_node_that_is_not_there_is_a_clear_error(odf, node: str) -> None:
    done = odf("-w", "here", "push", "rates", "--to", "odf+http://127.0.0.1:9/rates")
    assert (done.code, "Connection refused" in done.err) == (1, True)
