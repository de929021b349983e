"""A workspace with datasets that are derived from each other: everything else in it works, and the circle is named."""

from __future__ import annotations

import inspect
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.chains.circles import chained, rederive
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.client.lineage import Lineage as ShownLineage
from odfpy.coordinator.dry_run import Expectation
from odfpy.coordinator.lineage.graph import DependencyCycle
from odfpy.coordinator.lineage.lineage_graph import lineage_graph
from odfpy.coordinator.storage.results import AddOutcome, PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.engine.contract import AnalyzeRequest, AnalyzeResponse
from odfpy.engine.datafusion.engine import DataFusionEngine
from odfpy.errors import AlreadyExists
from odfpy.provenance.graph import dot

Names = tuple[str, ...]
Ways = dict[str, str]
QUERY = "select op, event_time, id, name from source"
CIRCLES = {
    "itself": (("a",), {"a": "a -> a"}),
    "itself and another": (("r", "a"), {"a": "a -> a"}),
    "two": (("b",), {"a": "a -> b -> a", "b": "b -> a -> b"}),
    "three, and a root": (("r", "c"), {"a": "a -> c -> b -> a", "b": "b -> a -> c -> b", "c": "c -> b -> a -> c"}),
}
"""New inputs of `a`, and the way round from each dataset of the circle."""

every_circle = pytest.mark.parametrize(("inputs", "ways"), CIRCLES.values(), ids=CIRCLES)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root `r`, a chain `a`, `b`, `c`, `d` behind it, and datasets that have to do with none of these."""
    chain = [derivative(name, source, QUERY) for name, source in zip("abcd", "rabc", strict=True)]
    made = workspace_with(
        tmp_path_factory.mktemp("prepared") / "workspace", root("r"), *chain, derivative("e", "r", QUERY), root("s")
    )
    feed(made, "r", "1 x", "2 y")
    assert {result.outcome for result in made.pull(["a", "b", "c", "d"])} == {PullOutcome.UPDATED}
    return made.root


@pytest.fixture
def workspace(prepared: Path, tmp_path: Path) -> Workspace:
    shutil.copytree(prepared, tmp_path / "workspace")
    return Workspace.open(tmp_path / "workspace")


def told(results: list[PullResult]) -> dict[str, str]:
    """What failed, and why."""
    return {result.name: result.error.message for result in results if result.error is not None}


def manifest(name: str, *inputs: str) -> str:
    refs = ", ".join(f"{{datasetRef: '{ref}', alias: i{at}}}" for at, ref in enumerate(inputs))
    text = derivative(name, "r", QUERY.replace("source", "i0"))
    return text.replace("{datasetRef: r, alias: source}", refs)


def replaced(workspace: Workspace, *manifests: str, dry_run: bool = False) -> list[AddOutcome]:
    snapshots = [snapshot for text in manifests for snapshot in load_snapshots(text, "manifest")]
    return [result.outcome for result in workspace.add(snapshots, replace=True, dry_run=dry_run)]


# --- None is made ----------------------------------------------------------------------------------------------------


@every_circle
@pytest.mark.parametrize("by_id", [False, True], ids=["by name", "by id"])
@pytest.mark.parametrize("dry_run", [False, True], ids=["", "dry run"])
def test_add_replace_refuses_a_circle(workspace: Workspace, inputs: Names, ways: Ways, by_id: bool, dry_run: bool):
    refs = [str(workspace.datasets.handle(name).id) if by_id else name for name in inputs]
    head = workspace.datasets.state("a").head
    with pytest.raises(DependencyCycle, match=f"Circular dependency: {ways['a']}$"):
        replaced(workspace, manifest("a", *refs), dry_run=dry_run)
    assert workspace.datasets.state("a").head == head


def test_also_one_by_way_of_a_manifest_and_a_dataset_that_stays(workspace: Workspace):
    with pytest.raises(DependencyCycle, match="a -> d -> b -> a"):
        replaced(workspace, manifest("a", "d"), manifest("d", str(workspace.datasets.handle("b").id)))


def test_manifests_that_together_make_none_are_taken(workspace: Workspace):
    outcomes = replaced(workspace, manifest("a", "d"), manifest("d", "c"), manifest("c", "r"))
    assert outcomes == [AddOutcome.UPDATED] * 3
    assert ShownLineage(workspace.lineage("b")).names() == ["b", "a", "d", "c", "r"]


def test_without_replace_the_name_is_taken(workspace: Workspace):
    with pytest.raises(AlreadyExists):
        workspace.add(load_snapshots(manifest("a", "b"), "manifest"))


def test_reset_refuses_to_go_back_into_a_circle(workspace: Workspace):
    before = workspace.datasets.state("a").sequence_number
    replaced(workspace, manifest("b", "r"))
    replaced(workspace, manifest("a", "b"))
    inside = str(workspace.datasets.state("a").head)
    replaced(workspace, manifest("a", "r"))
    replaced(workspace, manifest("b", "a"))
    with pytest.raises(DependencyCycle, match="a -> b -> a"):
        workspace.maintenance.reset("a", inside)
    assert workspace.maintenance.reset("a", str(before)).sequence_number == before


def test_merge_refuses_a_circle(workspace: Workspace):
    rederive(workspace, "a", "b", branch="next")
    with pytest.raises(DependencyCycle, match="a -> b -> a"):
        workspace.branches.merge("a", "next")
    assert workspace.lineage("a").inputs[0].handle == workspace.datasets.handle("r")


# --- There is one all the same ---------------------------------------------------------------------------------------


@every_circle
def test_pull_brings_everything_else_up_to_date(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    feed(workspace, "r", "3 z", day=2)
    results = {result.name: result for result in workspace.pull(all=True)}
    assert {name: results[name].outcome for name in "ers"} == {
        "e": PullOutcome.UPDATED, "r": PullOutcome.UP_TO_DATE, "s": PullOutcome.UP_TO_DATE
    }  # fmt: skip
    for name in "abcd":
        error = results[name].error
        assert error is not None
        if name in ways:
            assert (results[name].outcome, error.code) == (PullOutcome.FAILED, "E103")
            assert error.message.endswith(f": {ways[name]}")
        else:
            assert results[name].outcome is PullOutcome.SKIPPED


@every_circle
def test_a_dry_run_says_the_same(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    plans = {plan.name: plan for plan in workspace.plan_pull(all=True)}
    assert {name for name, plan in plans.items() if plan.expectation is Expectation.FAILED} == set("abcd")
    assert {name: plan.error.message.rpartition(": ")[2] for name, plan in plans.items() if plan.error} == ways


def test_pull_recursive_brings_up_to_date_what_the_circle_is_derived_from(workspace: Workspace):
    rederive(workspace, "a", "e", "b")
    feed(workspace, "r", "3 z", day=2)
    results = {result.name: result.outcome for result in workspace.pull(["c"], recursive=True)}
    assert results == {
        "r": PullOutcome.UP_TO_DATE, "e": PullOutcome.UPDATED,
        "b": PullOutcome.FAILED, "a": PullOutcome.FAILED, "c": PullOutcome.SKIPPED,
    }  # fmt: skip


@every_circle
def test_verify_checks_all_and_finds_the_circle(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    reports = {str(report.handle): report for report in workspace.verify(all=True)}
    assert {name for name, report in reports.items() if not report.ok} == set(ways)
    for name, way in ways.items():
        (finding,) = reports[name].findings
        assert (finding.check, finding.code, finding.message.rpartition(": ")[2]) == ("lineage", "E103", way)
        assert reports[name].transforms_replayed == 1


@every_circle
def test_push_copies_what_is_in_no_circle(workspace: Workspace, inputs: Names, ways: Ways, tmp_path: Path):
    rederive(workspace, "a", *inputs)
    results = list(workspace.push(all=True, to=f"{tmp_path / 'there'}/"))
    assert told(results).keys() == ways.keys()
    assert {path.name for path in (tmp_path / "there").iterdir() if path.is_dir()} == set("abcders") - set(ways)


@every_circle
def test_delete_removes_what_it_is_told(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    assert [str(handle) for handle in workspace.datasets.delete(["d"])] == ["d"]
    gone = {str(handle) for handle in workspace.datasets.delete(["a"], recursive=True)}
    assert gone == {"a", "b", "c"}
    assert [str(summary.handle) for summary in workspace.datasets.all()] == ["e", "r", "s"]


@every_circle
def test_all_can_be_deleted(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    assert len(workspace.datasets.delete(all=True)) == 7


@every_circle
def test_a_dataset_is_none_of_its_own_dependents_that_keep_it(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    workspace.datasets.delete(["a"], force=True)
    assert told(list(workspace.pull(["r", "e", "s"]))) == {}


@every_circle
def test_lineage_shows_the_circle_once(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    for name in "abcders":
        tree = workspace.lineage(name)
        shown = ShownLineage(tree)
        assert len(shown.names()) == len(set(shown.names()))
        assert repr(shown).count("a cycle") == (1 if name in "abcd" else 0)
        graph = lineage_graph(tree)
        assert {node.lines[0] for node in graph.nodes} == set(shown.names())
        assert dot(graph)
        error = workspace.graph.cycle_above(name)
        assert (error is not None) == (name in "abcd")
    assert {str(handle) for handle in workspace.graph.dependents("a")} >= {"b"}
    assert len(workspace.graph.held_back()) == 7


@every_circle
def test_what_has_to_do_with_no_circle_can_be_added_and_changed(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    assert replaced(workspace, manifest("f", "e"), manifest("e", "r")) == [AddOutcome.UPDATED, AddOutcome.CREATED]
    assert replaced(workspace, manifest("g", "d")) == [AddOutcome.CREATED], "behind a circle: it may be broken later"


def test_behind_a_circle_without_data_the_query_is_checked_later(tmp_path: Path):
    made = workspace_with(tmp_path, root("r"), derivative("a", "r", QUERY), derivative("b", "a", QUERY))
    rederive(made, "a", "b")
    (result,) = made.add(load_snapshots(derivative("c", "b", QUERY), "manifest"))
    assert result.notes == ("the query will be checked at the first pull, when the schema of its inputs is known",)


def test_rows_behind_a_circle_have_no_provenance(workspace: Workspace):
    rederive(workspace, "a", "b")
    with pytest.raises(DependencyCycle, match=r"a -> b -> a$|b -> a -> b$"):
        workspace.provenance("d", 0)
    assert workspace.provenance("r", 0)


def test_copies_of_a_circle_are_pulled_since_nothing_is_derived_here(workspace: Workspace, tmp_path: Path):
    rederive(workspace, "a", "b")
    there = Workspace.init(tmp_path / "elsewhere")
    for name in "rab":
        list(there.pull([f"{workspace.storage.get(name).folder}"], as_name=name))
    assert told(list(there.pull(all=True))) == {}
    assert {str(report.handle) for report in there.verify(all=True) if not report.ok} == {"a", "b"}


# --- The way out -----------------------------------------------------------------------------------------------------


@every_circle
def test_the_hint_takes_the_last_change_back(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    for name in ways:
        error = workspace.graph.cycle_above(name)
        assert error is not None
        found = re.match(r"`odf reset (\S+) (\d+)` resets a to its previous query", error.hint or "")
        assert found is not None
        back = found[1], found[2]
    workspace.maintenance.reset(*back)
    feed(workspace, "r", "3 z", day=2)
    assert told(list(workspace.pull(all=True))) == {}
    assert all(report.ok for report in workspace.verify(all=True))


@every_circle
def test_or_another_manifest_breaks_it(workspace: Workspace, inputs: Names, ways: Ways):
    rederive(workspace, "a", *inputs)
    assert replaced(workspace, manifest("a", "r")) == [AddOutcome.UPDATED]
    assert told(list(workspace.pull(all=True))) == {}


def test_one_that_was_always_there_is_broken_by_deleting(tmp_path: Path):
    made = workspace_with(tmp_path, root("r"), derivative("a", "r", QUERY), derivative("b", "a", QUERY))
    made.maintenance.reset("a", "0")
    rederive(made, "a", "b")
    error = made.graph.cycle_above("a")
    assert error is not None
    assert error.hint is not None
    assert "`odf delete --force b`" in error.hint
    made.datasets.delete(["b"], force=True)
    assert made.graph.cycle_above("a") is None


# --- Long chains -----------------------------------------------------------------------------------------------------


DEPTH = 300
"""More datasets than Python lets functions call each other in these tests; elsewhere it is a thousand."""


@pytest.fixture
def little_stack() -> Iterator[None]:
    """A stack that ends after fewer calls than there are datasets."""
    before, depth, frame = sys.getrecursionlimit(), 0, inspect.currentframe()
    while frame is not None:
        depth, frame = depth + 1, frame.f_back
    sys.setrecursionlimit(depth + DEPTH - 50)
    yield
    sys.setrecursionlimit(before)


@pytest.fixture(scope="module")
def deep(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A long chain of datasets without data."""
    made = workspace_with(tmp_path_factory.mktemp("deep") / "workspace", root("d0"))
    chained(made, "d0", [f"d{number}" for number in range(1, DEPTH)])
    return made


@pytest.mark.usefixtures("little_stack")
def test_a_chain_may_be_long(deep: Workspace):
    last = f"d{DEPTH - 1}"
    tree = deep.lineage(last)
    assert len(ShownLineage(tree).names()) == DEPTH
    assert repr(ShownLineage(tree)).count("\n") == DEPTH - 1
    assert len(lineage_graph(tree).nodes) == DEPTH
    assert len(deep.graph.held_back()) == DEPTH
    assert len(deep.datasets.plan_delete(["d0"], recursive=True)) == DEPTH


@pytest.fixture
def analyzed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that remembers: the queries of the chain are all the same, and each would be a process."""
    known: dict[tuple[object, ...], AnalyzeResponse] = {}
    analyze = DataFusionEngine.analyze

    def remembered(self: DataFusionEngine, request: AnalyzeRequest) -> AnalyzeResponse:
        (one,) = request.inputs
        key = (repr(replace(request, inputs=())), one.query_alias, one.primary_key, Path(one.schema_file).read_bytes())
        if key not in known:
            known[key] = analyze(self, request)
        return known[key]

    monkeypatch.setattr(DataFusionEngine, "analyze", remembered)


@pytest.mark.usefixtures("little_stack", "analyzed_once")
def test_something_can_be_added_behind_it(deep: Workspace):
    (result,) = deep.add(load_snapshots(derivative("last", f"d{DEPTH - 1}", QUERY), "manifest"), dry_run=True)
    assert (result.outcome, result.notes) == (AddOutcome.CREATED, ())
