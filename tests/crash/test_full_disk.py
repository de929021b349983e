"""Disks that are full or may not be written to: an error that says so, and nothing lost.

Each story happens on a small disk in memory that only its own process sees (`unshare` and `mount` of util-linux).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.workspaces import root
from support.processes.small_disk import run_story

STORY = """
import subprocess
import sys
from pathlib import Path

from support.processes.small_disk import SmallDisk
from odfpy.coordinator.workspace import Workspace

disk, inputs = Path(sys.argv[1]), Path(sys.argv[2])
small = SmallDisk(disk, disk)
small.mount("3m")
odf, fill = small.odf, small.fill

def is_whole():
    reports = list(Workspace.open(disk).verify(all=True, integrity_only=True))
    left = [path for path in (disk / ".odf").rglob("*") if path.name.startswith(".tmp")]
    scratch = disk / ".odf" / "run" / "scratch"
    return all(report.ok for report in reports) and not left and not (scratch.exists() and list(scratch.iterdir()))

def records():
    return Workspace.open(disk).datasets.summary("root").num_records

Workspace.init(disk)
assert odf("add", inputs / "root.yaml")[0] == 0
assert odf("ingest", "root", inputs / "0.ndjson")[0] == 0
"""

FULL = """
number, refused = 1, 0
for room in (0, 4, 8, 16, 32, 64, 128, 256, 512):
    fill(but=room << 10)
    before = records()
    code, out, err = odf("ingest", "root", inputs / f"{number}.ndjson")
    assert code in (0, 1), (room, code, err)
    if code:
        refused += 1
        assert "No space left on device" in err, (room, err)
        assert records() == before
    else:
        assert records() == before + 2000
        number += 1
    (disk / "filling").unlink()
    assert is_whole(), room
assert refused >= 3, refused
assert number > 1, "the last ones had room"
fill(but=0)
assert odf("list")[0] == odf("tail", "root")[0] == odf("verify", "root")[0] == 0
for command in (["add", inputs / "other.yaml"], ["rename", "root", "renamed"], ["repo", "add", "x", inputs]):
    code, _, err = odf(*command)
    assert code == 1 and "No space left on device" in err and str(disk) in err, (command, err)
(useless,) = [folder / "data" for folder in (disk / ".odf" / "datasets").iterdir()]
with (disk / "filling").open("r+b") as file:
    file.truncate((disk / "filling").stat().st_size - 4096)
(useless / ("f1620" + 64 * "0")).write_bytes(bytes(4096))
code, out, err = odf("gc")
assert code == 0 and "freed" in out + err, (out, err)  # that makes room, so it takes none
(disk / "filling").unlink()
assert is_whole()
assert odf("ingest", "root", inputs / f"{number}.ndjson")[0] == 0
"""

READ_ONLY = """
subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
assert odf("list")[0] == odf("tail", "root")[0] == odf("verify", "root")[0] == odf("log", "root")[0] == 0
for command in (
    ["ingest", "root", inputs / "1.ndjson"], ["add", inputs / "other.yaml"], ["rename", "root", "renamed"],
    ["pull", "root"], ["delete", "root", "--yes"], ["config", "set", "engine.idleTimeout", "5"], ["repo", "add", "x", inputs],
):
    code, _, err = odf(*command)
    assert code == 1 and "Read-only file system" in err and str(disk) in err, (command, err)
code, out, err = odf("gc")
assert code == 1 and "Nothing removed" in out + err and "None" not in err, (out, err)
assert records() == 2000
"""


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """Manifests, and files with new rows."""
    folder = tmp_path / "inputs"
    folder.mkdir()
    (folder / "root.yaml").write_text(root("root", "{kind: Ledger, primaryKey: [id]}"))
    (folder / "other.yaml").write_text(root("other"))
    for number in range(9):
        ids = range(2000 * number, 2000 * (number + 1))
        lines = (f'{{"event_time":"2024-01-01T00:00:00Z","id":{id_},"name":"{id_ * 7919 % 99991:x}"}}\n' for id_ in ids)
        (folder / f"{number}.ndjson").write_text("".join(lines))
    return folder


@pytest.mark.parametrize("story", [FULL, READ_ONLY], ids=["full", "read-only"])
def test_disk(story: str, inputs: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    run_story(STORY + story, disk, inputs)
