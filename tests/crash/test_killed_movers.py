"""What moves data is killed before any change of files: what was there is whole, and the same command brings the rest."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.small_datasets import contents
from support.chains.workspaces import derivative, feed, root, rows, workspace_with
from support.examples import examples
from support.processes.steps import Steps
from support.processes.tally import spread, tally

from odfpy.chain.layout import DatasetLayout
from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash
from odfpy.errors import DatasetNotFound, SchemaError
from odfpy.repository.transfer.simple import transfer

COMMANDS = {
    "ingest": "list(workspace.ingest('root', [workspace.root / 'new.ndjson']))",
    "transform": "list(workspace.pull(['derived']))",
    "push": "list(workspace.push(['root'], to=str(workspace.root / 'there' / 'root')))",
    "push of a branch": "list(workspace.push(['root'], to=str(workspace.root / 'there' / 'root'), branches=['staging']))",
    "pull of a copy": "list(workspace.pull([str(workspace.root / 'elsewhere' / 'copied')]))",
    "gc of a repository": "list(workspace.maintenance.gc_repository(str(workspace.root / 'elsewhere'), older_than=__import__('odfpy.data.duration', fromlist=['ZERO']).ZERO))",
}
MAX_COUNT, MAX_COUNT_THOROUGH = 0, 1
"""Kills of one command, besides that at its first step; with 0 it is only one, in the middle."""


@pytest.fixture(scope="module")
def steps() -> Iterator[Steps]:
    process = Steps()
    yield process
    process.close()


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with something to do for each command."""
    workspace = workspace_with(
        tmp_path_factory.mktemp("prepared"), root(merge="{kind: Ledger, primaryKey: [id]}"), derivative()
    )
    feed(workspace, "root", "1 a", "2 b")
    elsewhere = workspace.root / "elsewhere" / "copied"
    assert [one.error for one in workspace.push(["root"], to=str(elsewhere))] == [None]
    for part in ("data", "blocks"):
        (elsewhere / part / str(Multihash.of(part.encode()))).write_text(part)
    feed(workspace, "root", "3 c", day=2)
    (workspace.root / "input.ndjson").rename(workspace.root / "staged.ndjson")
    (done,) = workspace.ingest("root", [workspace.root / "staged.ndjson"], branch="staging")
    assert done.error is None
    feed(workspace, "root", "4 d", day=3)
    (workspace.root / "new.ndjson").write_text('{"event_time":"2024-01-04T00:00:00Z","id":5,"name":"e"}\n')
    return workspace.root


def seen(folder: Path) -> Any:
    """Rows of the datasets here; what is in the places, and nothing where nothing is."""
    workspace = Workspace.open(folder)
    found: dict[str, Any] = {}
    for name in ("root", "derived", "copied"):
        try:
            found[name] = rows(workspace, name)
        except (DatasetNotFound, SchemaError):  # not here, or without data
            found[name] = None
    for place in ("there/root", "elsewhere/copied"):
        layout, copy = DatasetLayout.local(folder / place), DatasetLayout.in_memory()
        if layout.refs.get("head") is not None:
            transfer(layout, copy)
        found[place] = contents(copy.data), [(name, layout.refs.get(name)) for name in layout.refs.names()]
    return found


@pytest.mark.parametrize("command", COMMANDS)
def test_killed_anywhere_all_is_whole_and_the_next_time_it_is_done(
    command: str, steps: Steps, prepared: Path, tmp_path: Path
) -> None:
    undisturbed = shutil.copytree(prepared, tmp_path / "undisturbed")
    total = steps.count(undisturbed, COMMANDS[command])
    wanted = seen(undisturbed)
    assert total > 1
    for number in spread(total, examples(MAX_COUNT, MAX_COUNT_THOROUGH)):
        folder = shutil.copytree(prepared, tmp_path / f"killed-{number}")
        if steps.strike(folder, COMMANDS[command], number):
            tally(command)
        seen(folder)
        workspace = Workspace.open(folder)
        reports = list(workspace.verify(all=True))
        assert [finding for report in reports for finding in report.findings] == [], f"step {number}"
        steps.count(folder, COMMANDS[command])
        assert seen(folder) == wanted, f"step {number}"
        assert all(report.ok for report in workspace.verify(all=True, integrity_only=True))
        shutil.rmtree(folder)
