"""Which lane an ingest takes, and that both bring a dataset to the same state."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.workspaces import feed, root, rows, workspace_with
from support.engine.session import MEMORY

from odfpy.chain.events import AddPushSource
from odfpy.chain.read_steps import ReadParquet
from odfpy.chain.sources import MergeAppend, MergeSnapshot
from odfpy.coordinator.ingest.lanes import choose_lane
from odfpy.coordinator.storage.config import Config
from odfpy.coordinator.workspace import Workspace
from odfpy.dataset.transform import TransformSql
from odfpy.errors import BadValue, UsageError
from odfpy.stages import profiling


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_with(tmp_path, root())


def lane(workspace: Workspace, source: AddPushSource, size: int = 1_000, state_bytes: int = 0) -> str:
    """The lane for a file of a size; the settings are those of the workspace."""
    file = workspace.root / "input"
    with file.open("wb") as stream:
        stream.truncate(size)
    state = replace(workspace.datasets.state("root"), data_bytes=state_bytes)
    return str(choose_lane(Config.load(workspace.root), state, source, file))


@pytest.fixture
def source(workspace: Workspace) -> AddPushSource:
    (found,) = workspace.datasets.state("root").push_sources
    return replace(found, merge=MergeAppend())


def test_a_small_input_is_taken_in_here(workspace: Workspace, source: AddPushSource) -> None:
    assert lane(workspace, source) == "local: input and state may take 3.9 KiB, within ingest.memory (2g)"


def test_what_may_not_fit_into_memory_goes_to_spark(workspace: Workspace, source: AddPushSource) -> None:
    assert lane(workspace, source, 600 << 20).startswith("spark: input and state may take 2.3 GiB, more than")
    assert lane(workspace, source, 500 << 20).startswith("local")
    assert lane(workspace, replace(source, read=ReadParquet()), 300 << 20).startswith("spark")
    workspace.config.set("ingest.memory", "4g")
    assert lane(workspace, source, 600 << 20).startswith("local")


def test_a_snapshot_is_compared_with_all_of_the_state(workspace: Workspace, source: AddPushSource) -> None:
    snapshot = replace(source, merge=MergeSnapshot(("id",)))
    assert lane(workspace, snapshot, state_bytes=300 << 20).startswith("spark")
    assert lane(workspace, source, state_bytes=300 << 20).startswith("local")


def test_what_preprocesses_a_small_input_makes_no_difference(workspace: Workspace, source: AddPushSource) -> None:
    for engine in ("spark", "flink", "datafusion"):
        query = TransformSql(engine=engine, query="select * from input")
        assert lane(workspace, replace(source, preprocess=query)).startswith("local: ")
        assert lane(workspace, replace(source, preprocess=query), 600 << 20).startswith("spark: input and state")


def test_a_cluster_is_used(workspace: Workspace, source: AddPushSource) -> None:
    workspace.config.set("engine.master", "spark://host:7077")
    assert lane(workspace, source) == "spark: the engine's master is spark://host:7077"


def test_a_person_decides(workspace: Workspace, source: AddPushSource) -> None:
    workspace.config.set("ingest.lane", "local")
    assert lane(workspace, source, 10 << 30) == "local: ingest.lane is local"
    workspace.config.set("ingest.lane", "spark")
    assert lane(workspace, source) == "spark: ingest.lane is spark"
    with pytest.raises(UsageError, match=r"ingest\.lane is auto, local or spark"):
        workspace.config.set("ingest.lane", "fast")


def test_rows_to_preprocess_stay_in_the_workspace_which_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = "      preprocess: {kind: Sql, engine: datafusion, query: select * from input}\n      merge:"
    workspace = workspace_with(tmp_path / "w", root().replace("      merge:", query))
    feed(workspace, "root", "1 x")  # what the engine's process needs is there
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "absent"))
    assert feed(workspace, "root", "1 x", "2 y").error is None
    assert rows(workspace, "root") == ["+A 1 x", "+A 2 y"]


@pytest.mark.spark
def test_ingests_may_change_lanes(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root())
    workspace.config.set("engine.memory", MEMORY)
    workspace = Workspace.open(workspace.root)  # engines are set up once
    try:
        feed(workspace, "root", "1 a", "2 b")
        workspace.config.set("ingest.lane", "spark")
        workspace.settings_of("root").set("watermark.lag", "12h")
        with profiling("test") as profile:
            second = feed(workspace, "root", "1 A", "3 c", day=2)
        assert second.lane == "spark: ingest.lane is spark"
        job = profile.at("root", "Spark", "job")
        assert job is not None
        assert {"read", "merge", "write"} <= job.parts.keys()
        assert job.parts["write"].all_jobs > 0
        assert second.counts == {**second.counts, "read": 2, "appended": 1, "corrected": 1, "retracted": 1}
        assert str(second.watermark) == "2024-01-01T12:00:00Z"
        file = workspace.root / "wrong.ndjson"
        file.write_text('{"event_time":"2024-01-03T00:00:00Z","id":"x","name":"d"}\n', encoding="utf-8")
        with pytest.raises(BadValue, match=r"wrong\.ndjson, line 1: column 'id' has 'x', which is not a valid Int64"):
            list(workspace.ingest("root", [file]))
        workspace.config.set("ingest.lane", "local")
        third = feed(workspace, "root", "1 A", "3 C", day=3)
        assert third.lane == "local: ingest.lane is local"
        wanted = ["+A 1 a", "+A 2 b", "-C 1 a", "+C 1 A", "-R 2 b", "+A 3 c", "-C 3 c", "+C 3 C"]
        assert rows(workspace, "root") == wanted
        (report,) = workspace.verify(["root"])
        assert report.findings == ()
        assert list((workspace.root / ".odf" / "run" / "scratch").iterdir()) == [], "nothing is left"
    finally:
        workspace.engines.stop(force=True)
