"""A workspace whose engine runs its tasks on a cluster: the same results as anywhere else."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root
from support.engine.cluster import CLUSTER_JAVA, spark_cluster
from support.engine.session import MEMORY
from support.processes.sandbox_probe import namespaces_work
from support.queries.cases import Case, Runner, corpus, locked

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.contract import TransformRequest, TransformResponse
from odfpy.engine.registry import Engine
from odfpy.engine.worker.client import SparkEngine

pytestmark = [pytest.mark.spark, pytest.mark.slow]

CASES = ("session-window", "doubles", "top-n", "interval-left-join")
DAILY = "SELECT window.start AS event_time, name, count(*) AS readings FROM source GROUP BY window(event_time, '1 day'), name"
MANIFESTS = (
    root("readings", "{kind: Ledger, primaryKey: [id]}"),
    derivative("loud", "readings", engine="spark"),
    derivative("daily", "readings", DAILY, engine="spark"),
    derivative("broken", "readings", "SELECT event_time, 1 / (id - 3000) AS x FROM source", engine="spark"),
)
COUNTED = (
    "SELECT max(event_time) AS event_time, name, count(*) AS readings FROM source GROUP BY name HAVING count(*) > 1"
)
ROWS = 3001
DERIVED = ["loud", "daily"]


def line(day: int, id_: int, name: str) -> str:
    return f'{{"event_time":"2024-01-{day:02d}T00:00:00Z","id":{id_},"name":"{name}"}}\n'


PROPERTIES = f"""
spark.executor.memory 512m
spark.sql.shuffle.partitions 3
spark.executor.extraJavaOptions {" ".join(CLUSTER_JAVA)}
"""


@dataclass(frozen=True)
class RunningCluster:
    """A cluster.

    Attributes:
        address: of its master.
        elsewhere: a folder that its workers do not see.
        hides: whether that is so. Where the system forbids namespaces, they see everything.
    """

    address: str
    elsewhere: Path
    hides: bool

    def workspace(self, folder: Path, *manifests: str, executors: int = 1, storage: Path | None = None) -> Workspace:
        """A new workspace whose engine runs its tasks there, in executors of one core each on workers of their own."""
        new = Workspace.init(folder)
        (folder / "cluster.properties").write_text(f"{PROPERTIES}spark.cores.max {executors}\n")
        new.config.set("engine.master", self.address)
        new.config.set("engine.properties", "cluster.properties")
        new.config.set("engine.storage", None if storage is None else storage.as_uri())
        new.config.set("engine.startTimeout", "600")
        new.config.set("engine.memory", MEMORY)
        new = Workspace.open(folder)
        new.add([snapshot for text in manifests for snapshot in load_snapshots(text, "manifest")])
        return new


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    hides = namespaces_work(tmp_path_factory.mktemp("namespaces"))
    with spark_cluster(tmp_path_factory.mktemp("cluster"), elsewhere if hides else None) as address:
        yield RunningCluster(address, elsewhere, hides)


@pytest.fixture(scope="module")
def workspace(cluster: RunningCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    made = cluster.workspace(tmp_path_factory.mktemp("workspace"), *MANIFESTS, executors=2)
    yield made
    made.engines.stop(force=True)


def odf(workspace: Workspace, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "odfpy", *arguments], cwd=workspace.root, capture_output=True, text=True, check=False
    )


def test_what_a_cluster_makes_is_verified_there_and_here(workspace: Workspace, tmp_path: Path) -> None:
    readings = tmp_path / "readings"
    for rows in (range(2000), range(1000, ROWS)):
        readings.write_text("".join(line(1 + row * 28 // ROWS, row, f"n{row % 7}") for row in rows))
        list(workspace.ingest("readings", [readings]))
        pulled = odf(workspace, "pull", *DERIVED)
        assert pulled.returncode == 0, pulled.stderr
    assert [workspace.datasets.state(name).num_records for name in ("readings", "loud")] == [ROWS, ROWS - 2]
    assert all(workspace.datasets.state(name).num_records > 100 for name in DERIVED)
    (report,) = workspace.verify(["daily"])
    assert report.findings == ()
    here = tmp_path / "here"
    shutil.copytree(workspace.root, here, ignore=shutil.ignore_patterns("run"))
    on_one_machine = Workspace.open(here)
    on_one_machine.config.set("engine.master", "local[2]")
    on_one_machine = Workspace.open(here)
    try:
        assert all(report.ok for report in on_one_machine.verify(DERIVED))
    finally:
        on_one_machine.engines.stop(force=True)


def test_an_error_of_a_row_is_told_as_anywhere(workspace: Workspace) -> None:
    (broken,) = workspace.pull(["broken"])
    assert broken.error is not None
    assert "Division by zero" in broken.error.message
    assert "try_divide" in str(broken.error.hint)


class OnCluster(Runner):
    """Sends requests to an engine."""

    engine: Engine

    def respond(self, request: TransformRequest) -> TransformResponse:
        return self.engine.transform(request)


@pytest.mark.parametrize("case", [case for case in corpus() if case.name in CASES], ids=lambda case: case.name)
def test_queries_with_state_have_the_hashes_of_one_machine(workspace: Workspace, case: Case) -> None:
    folder = workspace.root / case.name
    folder.mkdir()
    runner = OnCluster(None, case, folder)
    runner.engine = workspace.engines.registry.get("spark")
    assert isinstance(runner.engine, SparkEngine)
    assert [runner.pull(pull).logical_hash or "none" for pull in case.pulls] == locked()[case.name]


def test_a_storage_is_enough_and_without_it_is_told_what_is_missing(cluster: RunningCluster, tmp_path: Path) -> None:
    manifests = (
        root("readings"),
        derivative("loud", "readings", engine="spark"),
        derivative("counted", "readings", COUNTED, engine="spark"),
    )
    workspace = cluster.workspace(cluster.elsewhere / "workspace", *manifests, storage=tmp_path / "storage")
    try:
        check_storage(workspace, tmp_path / "storage")
        if cluster.hides:
            check_message(workspace)
    finally:
        workspace.engines.stop(force=True)


def check_storage(workspace: Workspace, storage: Path) -> None:
    for names, rows in ((["loud", "counted"], ["1 a", "2 b", "3 b"]), (["counted"], ["1 a", "2 b", "3 a", "4 c"])):
        feed(workspace, "readings", *rows)  # in the process of the command, since tasks would not see it
        assert [result.error for result in workspace.pull(names)] == [None] * len(names)
    assert workspace.datasets.state("loud").num_records > 0
    assert workspace.datasets.state("counted").num_records > 1
    assert all(report.ok for report in workspace.verify(["loud", "counted"]))
    assert not list((storage / "scratch").glob("*/*")), "what was of use for one request is removed"
    assert list((storage / "slices").glob("f*"))
    feed(workspace, "readings", "1 z")


def check_message(workspace: Workspace) -> None:
    workspace.config.set("engine.storage", None)
    (pulled,) = Workspace.open(workspace.root).pull(["loud"])
    assert pulled.error is not None
    assert "does not share the folder of the workspace" in pulled.error.message
    assert "it does not see it" in pulled.error.message
    assert "engine.storage" in str(pulled.error.hint)
