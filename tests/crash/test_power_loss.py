"""A power loss at any moment leaves a workspace that verifies, has what was reported as done, and goes on."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from support.examples import examples
from support.fixtures import KAMU
from support.processes.power_loss import PowerLoss

from odfpy.coordinator.workspace import Workspace
from odfpy.repository import objects

MANIFESTS = ["ledger.yaml", "snapshot.yaml", "big-trades.yaml", "large-cities.yaml"]
MOMENTS, MOMENTS_THOROUGH = 2, 6

Work = Callable[[Workspace], None]


def from_sources(folder: Path) -> Work:
    """A workspace of root and derivative datasets that have nothing yet; all are pulled."""
    workspace = Workspace.init(folder)
    for name in ("ledger", "snapshot"):
        shutil.copytree(KAMU / "input" / name, folder / "in" / name)
    workspace.add(workspace.load([KAMU / "manifests" / name for name in MANIFESTS]))
    return pull


def from_a_repository(folder: Path) -> Work:
    """An empty workspace; a dataset is pulled from elsewhere."""
    Workspace.init(folder)
    return lambda workspace: pull(workspace, str(KAMU / "stock"))


def pull(workspace: Workspace, *refs: str) -> None:
    assert [result.error for result in workspace.pull(list(refs), all=not refs) if result.error] == []


def contents(workspace: Workspace) -> dict[str, list[dict[str, object]]]:
    """Every row of every dataset, without the times that differ from run to run."""
    return {
        str(summary.handle): workspace.tail(str(summary.handle), 1000).drop_columns(["system_time"]).to_pylist()
        for summary in workspace.datasets.all()
    }


def findings(workspace: Workspace) -> list[object]:
    return [finding for report in workspace.verify(all=True) for finding in report.findings]


@pytest.mark.parametrize("story", [from_sources, from_a_repository])
def test_power_loss_at_any_moment(story: Callable[[Path], Work], tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    count = examples(MOMENTS, MOMENTS_THOROUGH)
    monkeypatch.setattr(objects, "MAX_PARALLEL", 1)  # so that nobody writes while an image is made
    undisturbed, folder, images = (tmp_path / name for name in ("undisturbed", "workspace", "images"))
    work = story(undisturbed)
    with PowerLoss(undisturbed, images / "none", set()).watching() as loss:
        work(Workspace.open(undisturbed))
    assert loss.moments > 2 * MOMENTS_THOROUGH
    wanted = contents(Workspace.open(undisturbed))
    assert wanted

    work = story(folder)
    chosen = set(random.Random(6).sample(range(loss.moments), count))
    with PowerLoss(folder, images / "some", chosen).watching():
        work(Workspace.open(folder))
    found = sorted((images / "some").iterdir())
    assert len(found) == 2 * (count + 1)
    for image in found:
        workspace = Workspace.open(image)
        assert findings(workspace) == [], image.name
        if image.name.startswith("end-"):
            assert contents(workspace) == wanted, "what was reported as done is there"
        work(workspace)
        assert contents(workspace) == wanted, image.name
        assert findings(workspace) == [], image.name
