"""The source of a row is the one that was in force when it came."""

from __future__ import annotations

from pathlib import Path

from support.chains.workspaces import feed, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.provenance.row_origins import origins_of

MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: root
  kind: Root
  metadata:
    - {source}
      read: {{kind: NdJson, ddlSchema: ["id INT", "name STRING"]}}
      merge: {{kind: Ledger, primaryKey: [{key}]}}
"""
POLLED = 'kind: SetPollingSource\n      fetch: {kind: Url, url: "file:in.json"}'


def test_sources_that_follow_each_other_are_told_apart(tmp_path: Path):
    workspace = workspace_with(tmp_path / "workspace", MANIFEST.format(source=POLLED, key="id"))
    (workspace.root / "in.json").write_text('{"id": 1, "name": "a"}\n')
    list(workspace.pull(["root"]))
    for number, (name, key) in enumerate([("first", "id"), ("first", "name"), ("second", "id")], 2):
        pushed = MANIFEST.format(source=f"kind: AddPushSource\n      sourceName: {name}", key=key)
        workspace.add(load_snapshots(pushed, "manifest"), replace=True)
        feed(workspace, "root", f"{number} {number}")
    found = origins_of(workspace.storage.get("root"), [3, 0, 1, 2, 1])
    assert [found[offset].source for offset in range(4)] == ["file:in.json", "first", "first", "second"]
