"""A result that is wrong in the same way each time: a replay finds nothing, the query run once does."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.session import MEMORY
from support.engine.spark_here import SparkHere, in_place
from support.queries.cases import QUICK, Tuned

from odfpy.chain.encoding import load_snapshots
from odfpy.cli.app import run
from odfpy.codec.tree import from_tree, to_tree
from odfpy.coordinator.maintenance.batch import BatchVerifier
from odfpy.coordinator.maintenance.report import Severity
from odfpy.coordinator.maintenance.verify import verify
from odfpy.coordinator.workspace import Workspace
from odfpy.data.slices.writer import SliceWriter
from odfpy.engine.contract import SliceDescription, TransformRequest, TransformResponse, TransformResponseSuccess
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.spark.batch.job import compare_output
from odfpy.engine.spark.batch.request import JOB, BatchRequest
from odfpy.engine.worker.client import SparkEngine
from odfpy.engine.worker.run_folder import RunFolder
from odfpy.errors import UsageError

pytestmark = pytest.mark.spark

DAILY = "SELECT window.start AS event_time, name, count(*) AS n FROM source GROUP BY window(event_time, '1 day'), name"


@dataclass
class Spoiling(SparkHere):
    """An engine that makes the same mistake each time: in the dataset `wrong`, `x` counts once more."""

    def transform(self, request: TransformRequest) -> TransformResponse:
        response = super().transform(request)
        if request.dataset_alias != "wrong" or not isinstance(response, TransformResponseSuccess):
            return response
        return replace(response, slices=tuple(_spoiled(one, request) for one in response.slices))


def _spoiled(described: SliceDescription, request: TransformRequest) -> SliceDescription:
    table = pq.read_table(described.path)
    rows = [row | {"n": row["n"] + (row["name"] == "x")} for row in table.to_pylist()]
    with SliceWriter(described.path, table.schema, request.vocab) as writer:
        writer.write(pa.Table.from_pylist(rows, schema=table.schema))
        info = writer.finish()
    return replace(described, size=info.size, physical_hash=info.physical_hash, logical_hash=info.logical_hash)


@pytest.fixture(scope="module")
def pulled(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a workspace: a root, derivatives that are right and wrong, with three transforms each."""
    with pytest.MonkeyPatch.context() as patch:
        spoil(patch, spark)
        made = workspace_with(
            tmp_path_factory.mktemp("pulled") / "w",
            root(merge="{kind: Ledger, primaryKey: [id]}"),
            derivative("right", query=DAILY, engine="spark"),
            derivative("wrong", query=DAILY, engine="spark"),
            derivative("other", query="SELECT event_time, id, op AS what FROM source", engine="spark"),
        )
        for day, rows in enumerate((["1 x", "2 y"], ["3 x", "4 x"], ["5 z"]), start=1):
            feed(made, "root", *rows, day=day)
            assert [result.error for result in made.pull(["right", "wrong", "other"])] == [None] * 3
    return made.root


@pytest.fixture
def workspace(pulled: Path, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A copy of it, whose engine is here."""
    spoil(monkeypatch, spark)
    return Workspace.open(shutil.copytree(pulled, tmp_path / "w"))


def spoil(patch: pytest.MonkeyPatch, spark: Any) -> None:
    """Let workspaces use the engine that makes mistakes."""
    in_place(patch, spark)
    here = Spoiling(Tuned(spark, **QUICK), [])
    patch.setattr(EngineRegistry, "standard", lambda *_, **__: EngineRegistry({"spark": lambda: here}))


@pytest.fixture
def batch_here(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch in this process, too: what its own process is like is another test's matter."""

    def run_job(_: SparkEngine, function: str, arguments: str, folder: Path, reads: Iterable[str]) -> str:
        assert function == JOB
        assert all(Path(path).is_file() for path in reads)
        assert folder.is_dir()
        request: BatchRequest = from_tree(BatchRequest, json.loads(arguments))
        return json.dumps(to_tree(compare_output(Tuned(spark, **QUICK), request)))

    monkeypatch.setattr(SparkEngine, "run_job", run_job)


@pytest.mark.usefixtures("batch_here")
def test_a_mistake_that_is_replayed_is_found_by_the_batch(
    workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    (report,) = workspace.verify(["wrong"])
    assert report.ok, "the replay makes the same mistake"
    assert run(["-w", str(workspace.root), "verify", "right", "wrong", "--against-batch"]) == 1
    said = capfd.readouterr().out
    assert "right: verified" in said
    assert "3 rows equal to the batch result" in said
    assert (
        "error: The state of the dataset differs from the result of its query, run once: 2 rows with different values"
        in said
    )
    assert "(E224)" in said
    assert 'differs:  {"event_time": "2024-01-01T00:00:00Z", "name": "x"} n is 2, not 1' in said


@pytest.mark.usefixtures("batch_here")
def test_programs_get_every_difference_after_each_transform(
    workspace: Workspace, capfd: pytest.CaptureFixture[str]
) -> None:
    options = ["--against-batch", "--each-transform", "-o", "ndjson"]
    assert run(["-w", str(workspace.root), "verify", "wrong", "other", *options]) == 1
    wrong, other = (json.loads(line) for line in capfd.readouterr().out.splitlines())
    counts = [(one["rows"], one["expectedRows"], one["differing"]) for one in wrong["againstBatch"]]
    assert counts == [(0, 0, 0), (2, 2, 1), (3, 3, 2)]
    first, second = wrong["againstBatch"][-1]["differences"]
    assert (first["kind"], first["key"]["name"], first["columns"], first["count"]) == ("differs", "x", ["n"], 1)
    assert (second["expected"]["n"], second["found"]["n"]) == (2, 3)
    assert {finding["check"] for finding in wrong["findings"]} == {"batch"}
    assert [one["compared"] for one in other["againstBatch"]] == [False] * 3
    assert other["ok"], "what cannot be compared is not an error"
    assert "Not compared with the batch result: it shows `op`" in other["findings"][0]["message"]


@pytest.mark.usefixtures("batch_here")
def test_the_query_that_holds_is_compared_also_after_another_one(workspace: Workspace) -> None:
    counted = derivative("right", query=DAILY.replace("count(*)", "10 * count(*)"), engine="spark")
    rows = derivative("other", query="SELECT event_time, id, 7 AS what FROM source", engine="spark")
    workspace.add([one for text in (counted, rows) for one in load_snapshots(text, "other")], replace=True)
    feed(workspace, "root", "6 z", day=4)
    assert [result.error for result in workspace.pull(["right", "other"])] == [None] * 2
    with_state, row_by_row = workspace.verify(["right", "other"], against_batch=True)
    assert with_state.ok
    assert [one.answer.is_equal for one in with_state.against_batch] == [True]
    (finding,) = [one for one in row_by_row.findings if one.check == "batch"]
    assert finding.severity is Severity.WARNING
    assert "rows of another query, which it had before, stay" in finding.message


def test_what_makes_no_sense_together_is_refused(workspace: Workspace) -> None:
    with pytest.raises(UsageError, match="runs no queries"):
        workspace.verify(["right"], integrity_only=True, against_batch=True)
    with pytest.raises(UsageError, match="--each-transform"):
        workspace.verify(["right"], each_transform=True)


def test_the_batch_has_a_process_of_its_own_that_ends_with_it(workspace: Workspace) -> None:
    workspace.config.set("engine.memory", MEMORY)
    storage, batch = workspace.storage, BatchVerifier(workspace.storage, workspace.config)
    try:
        reports = [verify(storage, storage.get(name), batch=batch) for name in ("right", "wrong")]
        assert RunFolder(storage.batch_run).holder()
    finally:
        batch.close()
    assert RunFolder(storage.batch_run).holder() is None
    assert [report.ok for report in reports] == [True, False]
    assert [[one.answer.differing for one in report.against_batch] for report in reports] == [[0], [2]]
