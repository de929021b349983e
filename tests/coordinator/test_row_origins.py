"""The source of a row is the one that was in force when it came."""

from __future__ import annotations

from pathlib import Path

from support.chains.workspaces import feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.provenance.row_origins import origins_of

PUSHED = "kind: AddPushSource\n      sourceName: default"
POLLED = 'kind: SetPollingSource\n      fetch: {kind: Url, url: "file:in.json"}'


def manifest(source: str, key: str = "id") -> str:
    return root(merge=f"{{kind: Ledger, primaryKey: [{key}]}}").replace(PUSHED, source)


def test_sources_that_follow_each_other_are_told_apart(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", manifest(POLLED))
    (workspace.root / "in.json").write_text('{"event_time": "2024-01-01T00:00:00Z", "id": 1, "name": "a"}\n')
    list(workspace.pull(["root"]))
    for number, (name, key) in enumerate([("first", "id"), ("first", "name"), ("second", "id")], 2):
        pushed = manifest(PUSHED.replace("default", name), key)
        workspace.add(load_snapshots(pushed, "manifest"), replace=True)
        feed(workspace, "root", f"{number} {number}")
    found = origins_of(workspace.storage.get("root"), [3, 0, 1, 2, 1])
    assert [found[offset].source for offset in range(4)] == ["file:in.json", "first", "first", "second"]
