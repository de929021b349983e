"""A pull that is killed at any moment leaves a workspace that verifies, and that the next pull brings up to date."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.examples import examples
from support.fixtures import KAMU
from support.processes.tally import KILLS as MORE
from support.processes.tally import tally
from support.processes.zygote import Zygote

from odfpy.coordinator.workspace import Workspace

KILLS, KILLS_THOROUGH = 8, 25
MANIFESTS = ["ledger.yaml", "snapshot.yaml", "big-trades.yaml", "large-cities.yaml", "activity.yaml"]


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    process = Zygote()
    yield process
    process.close()


def make(folder: Path) -> Path:
    """A workspace with root and derivative datasets that have nothing pulled yet."""
    workspace = Workspace.init(folder)
    shutil.copytree(KAMU / "input" / "ledger", folder / "in" / "ledger")
    shutil.copytree(KAMU / "input" / "snapshot", folder / "in" / "snapshot")
    workspace.add(workspace.load([KAMU / "manifests" / name for name in MANIFESTS]))
    return folder


def contents(folder: Path) -> dict[str, list[dict[str, object]]]:
    """Every row of every dataset, without the times that differ from run to run."""
    workspace = Workspace.open(folder)
    return {
        str(summary.handle): workspace.tail(str(summary.handle), 1000).drop_columns(["system_time"]).to_pylist()
        for summary in workspace.datasets.all()
    }


def test_killed_pulls_leave_a_workspace_that_verifies_and_pulls_on(zygote: Zygote, tmp_path: Path) -> None:
    nothing_pulled = make(tmp_path / "nothing pulled")
    undisturbed = shutil.copytree(nothing_pulled, tmp_path / "undisturbed")
    status, seconds = zygote.pull(undisturbed)
    assert status == 0
    wanted = contents(undisturbed)
    kills = max(examples(KILLS, KILLS_THOROUGH), 10 * MORE)
    chance = random.Random(4)
    killed = 0
    round_ = 0
    while killed < kills:
        round_ += 1
        folder = shutil.copytree(nothing_pulled, tmp_path / f"workspace-{round_}")
        while killed < kills:
            status, _ = zygote.pull(folder, kill_after=chance.uniform(0, seconds))
            if status == 0:
                break  # it was done before the kill came: begin anew with an empty workspace
            killed += 1
            tally("pull --all")
            reports = list(Workspace.open(folder).verify(all=True, integrity_only=True))
            assert [finding for report in reports for finding in report.findings] == []
        assert zygote.pull(folder)[0] == 0
        assert contents(folder) == wanted
        reports = list(Workspace.open(folder).verify(all=True))
        assert all(report.ok for report in reports)
        leftovers = list((folder / ".odf" / "datasets").rglob(".tmp-*"))
        assert leftovers == [], "the next writer removes what a killed one left"
        shutil.rmtree(folder)
