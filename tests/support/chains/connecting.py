"""The datasets of the tests of `odfpy.connect`."""

from __future__ import annotations

from pathlib import Path

from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.visibility import Visibility, set_visibility

RATES, SCREAMED = "com.example.rates", "com.example.screamed"
_INGESTS = ((1, ("1 EUR 10", "2 <b>&amp;")), (5, ("1 EUR 12",)), (9, ("3 USD 5",)))


def connected_workspace(folder: Path) -> Workspace:
    """Create rates with a key, of which one was corrected, and a dataset derived from them; both public."""
    workspace = workspace_with(
        folder, root(RATES, "{kind: UpsertStream, primaryKey: [id]}"), derivative(SCREAMED, RATES)
    )
    for day, rows in _INGESTS:
        feed(workspace, RATES, *rows, day=day)
    (result,) = workspace.pull([SCREAMED])
    assert result.error is None, result.error
    for name in (RATES, SCREAMED):
        set_visibility(workspace.storage.get(name).folder, Visibility.PUBLIC)
    return workspace
