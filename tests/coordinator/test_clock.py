"""A clock that goes back: what is recorded never does (ODF specification, "Metadata Chain")."""

from __future__ import annotations

import time
from itertools import pairwise
from pathlib import Path

import pytest
from support.workspaces import derivative, feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.data.timestamp import Timestamp

HOUR = 3_600 * 10**9


def test_system_times_never_go_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = workspace_with(tmp_path, root(), derivative())
    really_now = time.time_ns

    def turn_back(hours: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: really_now() - hours * HOUR)

    feed(workspace, "root", "1 a", "2 b")
    list(workspace.pull(["derived"]))
    for hours, rows in ((1, ("2 B", "3 c")), (48, ("3 c", "4 d"))):
        turn_back(hours)
        feed(workspace, "root", *rows)
        list(workspace.pull(["derived"]))
        (changed,) = load_snapshots(root() + f"    - {{kind: SetInfo, description: changed {hours}}}\n", "manifest")
        workspace.add([changed], replace=True)
    workspace.set_watermark("root", Timestamp.parse("2024-02-01T00:00:00Z"))
    for name in ("root", "derived"):
        times = [hashed.block.system_time for hashed in workspace.log(name)]  # newest first
        assert all(newer >= older for newer, older in pairwise(times))
        recorded = workspace.tail(name, 1000).column("system_time").to_pylist()
        assert recorded == sorted(recorded)
    assert all(report.ok for report in workspace.verify(all=True))
