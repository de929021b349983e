"""Housekeeping that is killed before any change of files leaves a workspace that verifies, and can be done again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, rows, workspace_with
from support.examples import examples
from support.processes.power_loss import PowerLoss
from support.processes.steps import Steps
from support.processes.tally import spread, tally

from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetNotFound

COMMANDS = {
    "compact": "workspace.maintenance.compact('root')",
    "reset": "workspace.maintenance.reset('root', '3')",
    "gc": "list(workspace.maintenance.gc())",
    "made again": "[one.error for one in workspace.pull(['derived'], reset_derivatives=True)]",
    "repair": "list(workspace.verify(['root'], repair=True, integrity_only=True))",
    "rename": "workspace.datasets.rename('root', 'renamed')",
    "delete": "workspace.datasets.delete(['derived'])",
}
MAX_COUNT, MAX_COUNT_THOROUGH = 2, 5
"""Kills of one command, besides that at its first step; each is followed by several commands."""


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    process = Steps()
    yield process
    process.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A workspace for each command, in which there is something to do."""
    place = tmp_path_factory.mktemp("prepared")
    made = workspace_with(place / "plain", root(merge="{kind: Append}"), derivative())
    for day in range(1, 4):
        feed(made, "root", f"{day} a", f"{day + 1} b", day=day)
    assert [result.error for result in made.pull(all=True)] == [None] * 2
    assert [result.error for result in made.push(["root"], to=str(place / "mirror"))] == [None]
    compacted = Workspace.open(shutil.copytree(made.root, place / "compacted"))
    compacted.maintenance.compact("root")
    collectable = Workspace.open(shutil.copytree(compacted.root, place / "collectable"))
    assert [one.error for one in collectable.pull(["derived"], reset_derivatives=True)] == [None]
    damaged = Workspace.open(shutil.copytree(made.root, place / "damaged")).storage.get("root")
    min((damaged.folder / "data").iterdir()).write_bytes(b"rot")
    max((damaged.folder / "data").iterdir()).unlink()
    min((damaged.folder / "blocks").iterdir()).unlink()
    plain = made.root
    return {
        **dict.fromkeys(COMMANDS, plain),
        "gc": collectable.root,
        "made again": compacted.root,
        "repair": place / "damaged",
    }


def contents(folder: Path) -> Any:
    """Every row of every dataset with its columns, and the heads of the roots; None for a dataset that is gone."""
    workspace = Workspace.open(folder)
    found = {}
    for name in ("root", "renamed", "derived"):
        try:
            found[name] = (rows(workspace, name), name == "derived" or workspace.datasets.state(name).head)
        except DatasetNotFound:
            found[name] = None
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_anywhere_it_verifies_and_is_done_the_next_time(
    command: str, steps: Steps, prepared: dict[str, Path], tmp_path: Path
) -> None:
    before = None if command == "repair" else contents(prepared[command])
    undisturbed = shutil.copytree(prepared[command], tmp_path / "undisturbed")
    total = steps.count(undisturbed, COMMANDS[command])
    wanted = contents(undisturbed)
    assert total > 1
    for number in spread(total, examples(MAX_COUNT, MAX_COUNT_THOROUGH)):
        folder = shutil.copytree(prepared[command], tmp_path / f"killed-{number}")
        steps.kill(folder, COMMANDS[command], number)
        tally(command)
        workspace = Workspace.open(folder)
        if command != "repair":
            assert contents(folder) in (before, wanted), f"step {number}: all or nothing"
            reports = list(workspace.verify(all=True))
            found = [finding for report in reports for finding in report.findings]
            # A derivative may be made of blocks that its input has in another history now: then there is a warning.
            assert [finding for finding in found if finding.check != "lineage"] == [], f"step {number}"
        if command not in ("rename", "delete") or contents(folder) == before:  # these cannot be done twice
            steps.count(folder, COMMANDS[command])
        assert contents(folder) == wanted, f"step {number}"
        for left in (folder / ".odf" / "datasets").rglob("info/.tmp-*"):  # for a minute, a writer may be at work
            os.utime(left, (0, 0))
        list(workspace.maintenance.gc())
        assert [report.findings for report in workspace.verify(all=True, integrity_only=True)] == [()] * (
            1 if command == "delete" else 2
        )
        assert list((folder / ".odf" / "datasets").rglob(".tmp-*")) == []
        shutil.rmtree(folder)


def test_power_loss_at_any_moment_of_a_compaction(prepared: dict[str, Path], tmp_path: Path) -> None:
    def work(workspace: Workspace) -> None:
        workspace.maintenance.compact("root")
        assert [report.error for report in workspace.maintenance.gc(["root"])] == [None]

    undisturbed, folder, images = (tmp_path / name for name in ("undisturbed", "workspace", "images"))
    shutil.copytree(prepared["compact"], undisturbed)
    shutil.copytree(prepared["compact"], folder)
    with PowerLoss(undisturbed, images / "none", set()).watching() as loss:
        work(Workspace.open(undisturbed))
    wanted = contents(undisturbed)
    with PowerLoss(folder, images / "some", set(range(0, loss.moments, examples(8, 4)))).watching():
        work(Workspace.open(folder))
    for image in sorted((images / "some").iterdir()):
        workspace = Workspace.open(image)
        assert [report.findings for report in workspace.verify(["root"])] == [()], image.name
        work(workspace)
        assert contents(image) == wanted, image.name
        assert [report.findings for report in workspace.verify(["root"])] == [()], image.name
