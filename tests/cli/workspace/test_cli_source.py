"""`odf source`, and what `odf add` approves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import FOLDER
from support.processes.terminal import terminal
from support.servers.static_server import static_server

from odfpy.coordinator.workspace import Workspace

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME = "com.example.folder"
HARM = FOLDER.replace("read:", "prepare: [{kind: Pipe, command: [sh, -c, 'touch {canary}; cat']}]\n      read:", 1)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    workspace = Workspace.init(tmp_path / "here")
    (workspace.root / "in").mkdir()
    (workspace.root / "in" / "1.csv").write_text("id\n1\n")
    monkeypatch.chdir(workspace.root)
    return workspace.root


def test_manifests_of_strangers_are_approved_by_who_has_seen_them(odf: Odf, here: Path, tmp_path: Path) -> None:
    canary = tmp_path / "harm"
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "harm.yaml").write_text(HARM.replace("{canary}", str(canary)))
    with static_server(tmp_path / "web") as server:
        added = odf("add", f"{server.url}/harm.yaml")
    assert added.code == 0
    assert "note: each pull runs the command sh -c" in added.err
    assert "once you have approved it: odf source trust com.example.folder" in added.err
    refused = odf("pull", NAME)
    assert (refused.code, "E430" in refused.err) == (1, True)
    assert not canary.exists()
    listed = odf("source", "list", "-o", "json").json
    assert [(one["name"], one["approved"]) for one in listed] == [(NAME, False)]
    unasked = odf("source", "trust", NAME)
    assert (unasked.code, "hint: Add --yes." in unasked.err) == (2, True)
    assert odf("source", "trust", NAME, "--yes").code == 0
    assert [one["approved"] for one in odf("source", "list", "-o", "json").json] == [True]


def test_manifests_of_ones_own_need_no_question(odf: Odf, here: Path, tmp_path: Path) -> None:
    Path("folder.yaml").write_text(FOLDER)
    assert odf("add", "folder.yaml").code == 0
    assert odf("pull", NAME).code == 0


def test_whoever_trusts_a_manifest_at_a_url_says_so(odf: Odf, here: Path, tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "folder.yaml").write_text(FOLDER)
    with static_server(tmp_path / "web") as server:
        assert odf("add", "--trust", f"{server.url}/folder.yaml").code == 0
    assert odf("pull", NAME).code == 0
    assert odf("source", "untrust", NAME).err == f"{NAME}: its sources are no longer approved here\n"
    assert odf("source", "untrust", NAME).err == f"{NAME}: no source was approved here\n"
    assert "E430" in odf("pull", NAME).err


@pytest.mark.parametrize(
    ("fetch", "note"),
    [
        ("{kind: Url, url: 'https://a.org/x?key=${{ env.KEY }}'}", "gives the environment variable KEY to a.org"),
        ("{kind: FilesGlob, path: '/etc/pass*'}", "reads the files /etc/pass*, outside of the workspace"),
        ("{kind: Url, url: 'file:///etc/passwd'}", "reads the files /etc/passwd, outside of the workspace"),
        ("{kind: Url, url: 'file:%2e%2e/a.csv'}", "reads the files %2e%2e/a.csv, outside of the workspace"),
        (
            "{kind: Url, url: 'file:in/x%3f/%2E./../../a'}",
            "reads the files in/x%3f/%2E./../../a, outside of the workspace",
        ),
        ("{kind: Container, image: a.org/b, args: [c d]}", "runs the image a.org/b with 'c d'"),
        (
            "{kind: Container, image: b, env: [{name: KEY}, {name: B, value: '${{ env.TOKEN }}'}]}",
            "gives the environment variable KEY, TOKEN to the image",
        ),
    ],
)
def test_what_a_source_reaches_is_said_when_it_is_added(odf: Odf, here: Path, fetch: str, note: str) -> None:
    manifest = FOLDER.replace('{kind: FilesGlob, path: "in/*.csv", order: ByName}', fetch)
    Path("other.yaml").write_text(manifest)
    assert f"note: each pull {note}" in odf("add", "other.yaml").err


def test_what_stays_in_the_workspace_needs_no_word(odf: Odf, here: Path) -> None:
    Path("folder.yaml").write_text(FOLDER)
    assert "note" not in odf("add", "folder.yaml").err


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("n", 1)])
def test_a_pull_at_a_terminal_shows_what_a_source_does_and_asks(
    odf: Odf, here: Path, tmp_path: Path, answer: str, code: int
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / "folder.yaml").write_text(FOLDER)
    with static_server(tmp_path / "web") as server:
        assert odf("add", f"{server.url}/folder.yaml").code == 0
    with terminal("pull", NAME, cwd=here, columns=200) as command:
        shown = command.wait_for("Approve this source in this workspace? [y/N]")
        assert "is not approved in this workspace" in shown
        assert "reads the files in/*.csv, in the workspace" in shown
        command.type(f"{answer}\n")
        assert command.wait() == code
        assert ("updated, 1 record" in command.plain, "E430" in command.plain) == (code == 0, code == 1)
    assert odf("source", "list", "-o", "json").json[0]["approved"] is (code == 0)


def test_bounds_are_settings(odf: Odf, here: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "1.csv").write_text("id\n1\n")
    Path("folder.yaml").write_text(FOLDER.replace("in/*.csv", f"{tmp_path}/elsewhere/*.csv"))
    assert odf("add", "folder.yaml").code == 0
    assert odf("config", "set", "sources.folders", "relative").code == 2
    assert odf("config", "set", "sources.folders", "/srv").code == 0
    refused = odf("pull", NAME)
    assert (refused.code, "E431" in refused.err, "sources.folders does not allow" in refused.err) == (1, True, True)
    assert odf("pull", NAME, "--dry-run").code == 1
    assert odf("config", "set", "sources.folders", f"/srv, {tmp_path}/elsewhere").code == 0
    assert odf("pull", NAME).code == 0
