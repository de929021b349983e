"""Commits and copies with linked objects that are killed at any change of files: no head without its files, no loss."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.linked import BARE, add, commit_with_files, files_workspace, name_of, objects_in
from support.examples import examples
from support.processes.power_loss import PowerLoss
from support.processes.steps import Steps
from support.processes.tally import spread, tally

from odfpy.coordinator.workspace import Workspace

TESTS = str(Path(__file__).resolve().parents[1])
COMMIT = (
    f"[__import__('sys').path.insert(0, {TESTS!r}),"
    " __import__('support.chains.linked', fromlist=['linked']).commit_with_files("
    "workspace, [(number, b'file %d' % number) for number in range(4)])]"
)
COMMANDS = {
    "commit": COMMIT,
    "gc": "list(workspace.maintenance.gc(['files'], may_remove=lambda dataset, names: names))",
    "pull": "[one.error for one in workspace.pull(['files'])]",
    "complete": "[one.error for one in workspace.pull(['files'], files='all')]",
    "repair": "list(workspace.verify(['files'], repair=True))",
}
MAX_COUNT, MAX_COUNT_THOROUGH = 2, 6
"""Kills of one command, besides that at its first step; each is followed by several commands."""


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    process = Steps()
    yield process
    process.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("prepared")
    origin = files_workspace(place / "origin")
    add(origin, (1, b"one"), (2, b"two"))
    url = str(place / "mirror" / "files")
    list(origin.push(["files"], to=url))
    behind, partial = (Workspace.init(place / name) for name in ("behind", "partial"))
    list(behind.pull([url]))
    list(partial.pull([url], files="none"))
    damaged = Workspace.open(shutil.copytree(behind.root, place / "damaged"))
    data = damaged.storage.get("files").layout.data
    data.local_path(name_of(b"one")).write_bytes(b"rot")
    data.delete(name_of(b"two"))
    add(origin, (1, b"another one"), (3, b"three"), day=2)
    list(origin.push(["files"]))
    collectable = Workspace.open(shutil.copytree(origin.root, place / "collectable"))
    collectable.storage.get("files").layout.data.insert(b"stray")
    return {
        "commit": files_workspace(place / "own", extra=BARE).root,
        "gc": collectable.root,
        "pull": behind.root,
        "complete": partial.root,
        "repair": place / "damaged",
    }


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_anywhere_nothing_is_lost_and_it_is_done_the_next_time(
    command: str, steps: Steps, prepared: dict[str, Path], tmp_path: Path
) -> None:
    undisturbed = shutil.copytree(prepared[command], tmp_path / "undisturbed")
    total = steps.count(undisturbed, COMMANDS[command])
    wanted = (Workspace.open(undisturbed).datasets.state("files").num_records, objects_in(Workspace.open(undisturbed)))
    assert total > 1
    for number in spread(total, examples(MAX_COUNT, MAX_COUNT_THOROUGH)):
        folder = shutil.copytree(prepared[command], tmp_path / f"killed-{number}")
        steps.strike(folder, COMMANDS[command], number)
        tally(command)
        workspace = Workspace.open(folder)
        if command != "repair":
            assert [report.findings for report in workspace.verify(["files"])] == [()], f"step {number}"
        if workspace.datasets.state("files").num_records != wanted[0] or command != "commit":
            steps.count(folder, COMMANDS[command])
        assert [report.error for report in workspace.maintenance.gc(["files"])] == [None]
        found = (Workspace.open(folder).datasets.state("files").num_records, objects_in(workspace))
        assert found == wanted, f"step {number}"
        assert [report.findings for report in workspace.verify(["files"])] == [()], f"step {number}"
        shutil.rmtree(folder)


def test_power_loss_at_any_moment_of_a_commit_leaves_no_row_without_its_file(
    prepared: dict[str, Path], tmp_path: Path
) -> None:
    rows = [(number, b"file %d" % number) for number in range(3)]
    undisturbed, folder, images = (tmp_path / name for name in ("undisturbed", "workspace", "images"))
    shutil.copytree(prepared["commit"], undisturbed)
    shutil.copytree(prepared["commit"], folder)
    with PowerLoss(undisturbed, images / "none", set()).watching() as loss:
        commit_with_files(Workspace.open(undisturbed), rows)
    with PowerLoss(folder, images / "some", set(range(0, loss.moments, examples(4, 2)))).watching():
        commit_with_files(Workspace.open(folder), rows)
    for image in sorted((images / "some").iterdir()):
        workspace = Workspace.open(image)
        assert [report.findings for report in workspace.verify(["files"])] == [()], image.name
        if image.name.startswith("end-"):
            assert objects_in(workspace) == {name_of(data) for _, data in rows}, "what was reported as done is there"
