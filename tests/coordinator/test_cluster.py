"""A workspace whose engine runs its tasks on a cluster: the same results as anywhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.spark_cluster import spark_cluster
from support.workspaces import derivative, root, workspace_with

from odfpy.coordinator.workspace import Workspace

pytestmark = pytest.mark.spark

MANIFESTS = (
    root("readings", "{kind: Ledger, primaryKey: [id]}"),
    derivative("loud", "readings", engine="spark"),
)
INPUT = "".join(
    f'{{"event_time":"2024-01-{1 + id_ % 28:02d}T00:00:00Z","id":{id_},"name":"n{id_ % 7}"}}\n' for id_ in range(5000)
)


def test_ingest_and_transform_on_a_cluster(tmp_path: Path) -> None:
    (tmp_path / "input.ndjson").write_text(INPUT)
    with spark_cluster(tmp_path / "cluster") as address:
        (tmp_path / "there").mkdir()
        there = workspace_with(tmp_path / "there", *MANIFESTS)
        there.config.set("engine.master", address)
        there = Workspace.open(there.root)
        try:
            (ingested,) = there.ingest("readings", [tmp_path / "input.ndjson"])
            assert ingested.num_records == 5000
            (pulled,) = there.pull(["loud"])
            assert (pulled.error, pulled.num_records) == (None, 4998)
            assert all(report.ok for report in there.verify(all=True))
        finally:
            there.engine_stop(force=True)
    rows = there.tail("loud", 5000).drop_columns(["system_time"])
    (tmp_path / "here").mkdir()
    here = workspace_with(tmp_path / "here", *MANIFESTS)
    try:
        list(here.ingest("readings", [tmp_path / "input.ndjson"]))
        (pulled,) = here.pull(["loud"])
        assert (pulled.error, pulled.num_records) == (None, 4998)
        assert here.tail("loud", 5000).drop_columns(["system_time"]).equals(rows)
    finally:
        here.engine_stop(force=True)
