"""Verification finds what has been changed, and says where."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

import pyarrow as pa
import pytest
from support.chains.workspaces import copied, derivative, feed, root, workspace_with
from support.engine.reference_datafusion import ReferenceDataFusion
from support.fixtures import KAMU

from odfpy.chain.encoding import load_snapshots
from odfpy.chain.slices import slices_of
from odfpy.coordinator.maintenance.report import Finding, Severity
from odfpy.coordinator.transform.run import transform_dataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import OperationType
from odfpy.engine.contract import TransformRequest, TransformResponse, TransformResponseSuccess
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.engine.registry import EngineRegistry
from odfpy.errors import ReplayMismatch


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    workspace = workspace_with(tmp_path_factory.mktemp("prepared"), root(), derivative())
    feed(workspace, "root", "1 a", "2 b", "3 c")
    assert [result.error for result in workspace.pull(all=True)] == [None, None]
    feed(workspace, "root", "2 B", "3 c", day=2)
    assert [result.error for result in workspace.pull(all=True)] == [None, None]
    return workspace


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    return copied(prepared, tmp_path)


def findings(workspace: Workspace, name: str, *, integrity_only: bool = False) -> list[Finding]:
    (report,) = workspace.verify([name], integrity_only=integrity_only)
    assert report.ok == (not report.findings)
    return list(report.findings)


def files(workspace: Workspace, name: str, kind: str) -> list[Path]:
    return sorted((workspace.storage.get(name).folder / kind).iterdir())


def flip(file: Path, at: int = -20) -> None:
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(bytes(data))


def test_untouched_datasets_verify_and_every_transform_is_replayed(workspace: Workspace) -> None:
    reports = {str(report.handle): report for report in workspace.verify(all=True)}
    assert all(report.ok for report in reports.values())
    assert reports["derived"].transforms_replayed == 2
    assert reports["root"].slices == 2


@pytest.mark.parametrize("name", ["root", "derived"])
def test_one_flipped_byte_of_a_slice_is_found_with_block_and_file(workspace: Workspace, name: str) -> None:
    for file in files(workspace, name, "data"):
        original = file.read_bytes()
        flip(file)
        (finding,) = findings(workspace, name)
        assert finding.check == "slice"
        assert finding.file == str(file)
        assert finding.block is not None
        file.write_bytes(original)
    assert findings(workspace, name) == []


def test_a_missing_slice_is_found(workspace: Workspace) -> None:
    file = files(workspace, "root", "data")[0]
    file.unlink()
    (finding,) = findings(workspace, "root")
    assert (finding.message, finding.file) == ("Missing slice", str(file))


def test_every_damaged_block_is_found(workspace: Workspace) -> None:
    for file in files(workspace, "derived", "blocks"):
        original = file.read_bytes()
        flip(file)
        (finding,) = findings(workspace, "derived")
        assert finding.check == "block"
        assert str(file) in finding.message
        file.write_bytes(original)


def test_a_damaged_head_is_found(workspace: Workspace) -> None:
    head = workspace.storage.get("root").folder / "refs" / "head"
    head.write_text("nonsense")
    (finding,) = findings(workspace, "root")
    assert str(head) in finding.message


def test_a_truncated_slice_is_found_by_its_size(workspace: Workspace) -> None:
    file = files(workspace, "root", "data")[0]
    file.write_bytes(file.read_bytes()[:-1])
    (finding,) = findings(workspace, "root")
    assert "bytes" in finding.message


def test_recursive_verification_takes_inputs_first(workspace: Workspace) -> None:
    reports = list(workspace.verify(["derived"], recursive=True))
    assert [str(report.handle) for report in reports] == ["root", "derived"]


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """All datasets of the reference."""
    workspace = Workspace.init(tmp_path_factory.mktemp("pulled"))
    names = sorted(path.name for path in KAMU.iterdir() if (path / "refs").is_dir())
    results = list(workspace.pull([str(KAMU / name) for name in names]))
    assert [result.error for result in results] == [None] * len(names)
    return workspace


@pytest.fixture
def reference(pulled: Workspace, tmp_path: Path) -> Workspace:
    return copied(pulled, tmp_path / "reference")


def test_datasets_of_the_reference_verify_by_replay(reference: Workspace) -> None:
    reports = {str(report.handle): report for report in reference.verify(all=True)}
    assert {name for name, report in reports.items() if not report.ok} == {"activity"}
    assert reports["big-trades"].transforms_replayed == 2
    assert reports["large-cities"].transforms_replayed == 2


def test_a_race_in_the_reference_is_not_reproducible_but_has_the_same_rows(reference: Workspace) -> None:
    for finding in findings(reference, "activity"):
        assert finding.message.startswith("Not reproducible")
        assert finding.message.endswith("the rows are the same in another order")


def test_the_reference_s_hash_of_nested_nulls_gives_a_warning_that_names_the_columns(reference: Workspace) -> None:
    (report,) = reference.verify(["nested-nulls"])
    assert report.ok
    (finding,) = report.findings
    assert finding.severity is Severity.WARNING
    assert "s.x, s.y" in finding.message


def test_a_replay_without_its_input_says_what_is_missing(reference: Workspace) -> None:
    reference.datasets.delete(["trades"], force=True)
    (finding,) = findings(reference, "big-trades")
    assert "Cannot be replayed" in finding.message
    assert findings(reference, "big-trades", integrity_only=True) == []


@pytest.fixture
def cities(tmp_path: Path) -> Workspace:
    """A workspace with a dataset of the reference, whose four slices have names in another order than their rows."""
    workspace = Workspace.init(tmp_path / "cities")
    assert [result.error for result in workspace.pull([str(KAMU / "cities")])] == [None]
    slices = slices_of(reversed(list(workspace.storage.get("cities").chain.iter_blocks())))
    names = [str(item.data.physical_hash) for item in slices]
    assert len(names) == 4
    assert names != sorted(names)
    return workspace


def derive(workspace: Workspace, query: str, engine: object) -> None:
    """Derive a dataset from all slices at once."""
    workspace.add(list(load_snapshots(derivative(source="cities", query=query), "manifest")))
    transform_dataset(workspace.storage, workspace.storage.get("derived"), lambda _: engine)


def test_slices_that_the_reference_read_in_the_order_of_their_names_are_verified_with_a_remark(
    cities: Workspace,
) -> None:
    derive(cities, "select op, event_time, id, city from source where id < 10", ReferenceDataFusion())
    assert not is_changelog(cities.tail("derived", 1000)), "a correction stands before its row"
    (report,) = cities.verify(["derived"])
    assert report.ok
    assert report.transforms_replayed == 1
    (finding,) = report.findings
    assert (finding.check, finding.severity) == ("replay", Severity.WARNING)
    assert finding.block == cities.storage.get("derived").state.head
    assert "with the slices of `source` in the order of their names" in finding.message


def is_changelog(table: pa.Table) -> bool:
    """Whether all rows that are taken away have come before."""
    there: Counter[tuple[object, ...]] = Counter()
    for row in table.select(["op", "event_time", "id", "city"]).to_pylist():
        op, *values = row.values()
        there[tuple(values)] += OperationType(op).weight
        if min(there.values()) < 0:
            return False
    return True


def test_the_same_rows_in_no_order_that_anybody_can_repeat_are_still_an_error(cities: Workspace) -> None:
    class Backwards(ReferenceDataFusion):
        backwards = True

    derive(cities, "select op, event_time, id, city from source where id < 10", Backwards())
    (finding,) = findings(cities, "derived")
    assert finding.message.startswith("Not reproducible")
    assert finding.message.endswith("the rows are the same in another order")


def test_an_engine_of_our_own_is_not_excused_for_the_order_of_names(cities: Workspace) -> None:
    class Ours(ReferenceDataFusion):
        version = DataFusionEngine().version

    derive(cities, "select op, event_time, id, city from source where id < 10", Ours())
    (finding,) = findings(cities, "derived")
    assert finding.message.startswith("Not reproducible")


def test_what_odfpy_derives_itself_is_a_changelog(cities: Workspace) -> None:
    derive(cities, "select op, event_time, id, city from source where id < 10", DataFusionEngine())
    assert is_changelog(cities.tail("derived", 1000))
    assert findings(cities, "derived") == []


@dataclass(frozen=True)
class Marking(DataFusionEngine):
    """An engine that lets no watermark through, or gives the one that it is told."""

    told: list[Timestamp] = field(default_factory=list)
    said: str | None = None

    @property
    def version(self) -> str:
        return self.said or super().version

    def transform(self, request: TransformRequest) -> TransformResponse:
        response = super().transform(request)
        assert isinstance(response, TransformResponseSuccess)
        return replace(response, new_watermark=self.told.pop() if self.told else None)


@pytest.mark.parametrize(("version", "num_found"), [(None, 1), ("46.0", 0)])
def test_a_watermark_is_compared_also_where_our_engine_gives_none(
    version: str | None, num_found: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Marking(said=version)
    monkeypatch.setattr(EngineRegistry, "standard", lambda *_, **__: EngineRegistry({"datafusion": lambda: engine}))
    workspace = workspace_with(tmp_path, root(), derivative())
    engine.told.append(Timestamp.parse("2030-01-01T00:00:00Z"))
    for names in ("ab", "ac"):  # the second run leaves the watermark where the first has put it
        feed(workspace, "root", f"1 {names[0]}", f"2 {names[1]}")
        assert [result.error for result in workspace.pull(["derived"])] == [None]
    found = findings(workspace, "derived")
    assert [finding.code for finding in found] == [ReplayMismatch.code] * num_found
    for finding in found:
        assert finding.message == "The replay gives no watermark, the block says 2030-01-01T00:00:00Z"
