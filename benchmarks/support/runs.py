"""A workspace that has run for long: many rows in the dataset of its runs."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from odfpy import Workspace
from odfpy.automation.runs import RUNS

_BATCH = 100_000


def many_runs(workspace: Workspace, count: int) -> None:
    """Record runs of a hundred datasets, one a second from the begin of 2026; one of a thousand has failed.

    Args:
        workspace: the workspace.
        count: how many.
    """
    incoming = workspace.storage.odf / RUNS.folder
    incoming.mkdir(parents=True)
    start = datetime(2026, 1, 1, tzinfo=timezone.utc)
    for first in range(0, count, _BATCH):
        with (incoming / f"{first}.ndjson").open("wb") as file:
            for number in range(first, min(first + _BATCH, count)):
                at = (start + timedelta(seconds=number)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
                outcome = "failed" if number % 1000 == 0 else "up to date"
                times = {"at": at, "due_at": at, "started_at": at, "seconds": 0.5}
                row = {"id": f"run-{number}", "dataset": f"n{number % 100}", "dataset_id": f"did:odf:f{number % 100}"}
                file.write(
                    RUNS.line_of(
                        {**row, **times, "job": "pull", "reason": "schedule", "attempt": 1, "outcome": outcome}
                    )
                )
        RUNS.ingest(workspace)
