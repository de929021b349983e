"""`odf add --replace` of a derivative with another query or other inputs: what its output becomes, and its replay."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from support.spark_here import SparkHere, in_place
from support.workspaces import feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.results import AddResult, PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError, SchemaError

APPEND = "{kind: Append}"
BY_DAY = (
    "select window.start as event_time, name, count(*) as n from source"
    " group by window(event_time, '1 day'), name"
)  # fmt: skip
TOTALS = "select max(event_time) as event_time, name, count(*) as n from source group by name"


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch, spark: object) -> SparkHere:
    return in_place(monkeypatch, spark)


@pytest.fixture
def workspace(here: SparkHere, tmp_path: Path) -> Workspace:
    """Two roots with four rows and two."""
    made = workspace_with(tmp_path / "w", root("one", APPEND), root("two", APPEND))
    feed(made, "one", "1 a", "2 a", "3 b")
    feed(made, "one", "4 b", day=3)
    feed(made, "two", "5 a", "6 c", day=2)
    return made


def derive(workspace: Workspace, query: str, *inputs: str, engine: str = "spark") -> AddResult:
    sources = ", ".join(
        f"{{datasetRef: {name}, alias: {'source' if number == 0 else 'other'}}}"
        for number, name in enumerate(inputs or ("one",))
    )
    text = f"""
kind: DatasetSnapshot
version: 1
content:
  name: made
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{sources}]
      transform: {{kind: Sql, engine: {engine}, query: "{query}"}}
"""
    (result,) = workspace.add(load_snapshots(text, "made.yaml"), replace=True)
    return result


def pull(workspace: Workspace) -> PullOutcome:
    (result,) = workspace.pull(["made"])
    if result.error is not None:
        raise result.error
    return result.outcome


def changelog(workspace: Workspace, since: int = 0) -> list[str]:
    """The rows of the output from an offset on, as `op day other columns`."""
    signs = ("+A", "-R", "-C", "+C")
    found = []
    for row in workspace.tail("made", 1000).to_pylist():
        time = row["event_time"]
        rest = [str(row[name]) for name in row if name not in ("offset", "op", "system_time", "event_time")]
        if row["offset"] >= since:
            found.append(" ".join([signs[row["op"]], str(time.day), *rest]))
    return found


def state(workspace: Workspace) -> list[str]:
    """The rows that the output stands for."""
    rows: Counter[str] = Counter()
    for line in changelog(workspace):
        rows[line[3:]] += 1 if line[0] == "+" else -1
    assert min(rows.values(), default=0) >= 0, rows
    return sorted(rows.elements())


def verified(workspace: Workspace, **options: bool) -> int:
    (report,) = workspace.verify(["made"], **options)
    assert report.ok, report.findings
    return report.transforms_replayed


def test_another_query_with_state_makes_the_output_its_own(workspace: Workspace, here: SparkHere) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "3 b 2"]
    count = len(changelog(workspace))
    derive(workspace, TOTALS.replace("count(*)", "count(*) * 10"))
    assert pull(workspace) is PullOutcome.UPDATED  # though the input has nothing new
    assert changelog(workspace, count) == ["-C 1 a 2", "+C 1 a 20", "-C 3 b 2", "+C 3 b 20"]
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    feed(workspace, "one", "5 a", day=4)
    asked = len(here.asked)
    pull(workspace)
    assert len(here.asked) > asked
    assert changelog(workspace, count + 4) == ["-C 1 a 20", "+C 4 a 30"]
    assert verified(workspace) == verified(workspace, from_start=True) == 3


def test_what_is_new_and_what_has_changed_come_in_one_difference(workspace: Workspace) -> None:
    derive(workspace, BY_DAY)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "1 b 1"]
    derive(workspace, BY_DAY.replace("count(*)", "count(*) + 100"))
    feed(workspace, "one", "5 a", "6 a", day=9)
    pull(workspace)
    assert state(workspace) == ["1 a 102", "1 b 101", "3 b 101"]
    assert verified(workspace) == 2


def test_from_rows_to_state_and_back(workspace: Workspace) -> None:
    rows = "select event_time, name, id as n from source"
    derive(workspace, rows)
    pull(workspace)
    notes = derive(workspace, TOTALS).notes
    assert notes == ("another query: the next pull corrects the rows so far to what it gives",)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "3 b 2"]
    notes = derive(workspace, rows).notes
    assert notes == ("another query, row by row: it holds for rows to come, those so far stay as they are",)
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    feed(workspace, "one", "7 c", day=5)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "3 b 2", "5 c 7"]
    derive(workspace, TOTALS)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "3 b 2", "5 c 1"]
    assert verified(workspace) == verified(workspace, from_start=True) == 4


def test_inputs_that_are_added_and_removed(workspace: Workspace) -> None:
    both = (
        "select max(event_time) as event_time, name, count(*) as n"
        " from (select event_time, name from source union all select event_time, name from other) group by name"
    )
    derive(workspace, TOTALS)
    pull(workspace)
    derive(workspace, both, "one", "two")
    pull(workspace)
    assert state(workspace) == ["2 a 3", "2 c 1", "3 b 2"]
    derive(workspace, TOTALS, "two")
    pull(workspace)
    assert state(workspace) == ["2 a 1", "2 c 1"]
    feed(workspace, "two", "9 c", day=8)
    pull(workspace)
    assert state(workspace) == ["2 a 1", "8 c 2"]
    assert verified(workspace) == verified(workspace, from_start=True) == 4


def test_rows_that_are_the_same_are_not_mixed_up(workspace: Workspace) -> None:
    derive(workspace, "select date_trunc('month', event_time) as event_time, name, 1 as n from source")
    pull(workspace)
    derive(workspace, "select distinct date_trunc('month', event_time) as event_time, name, 1 as n from source")
    count = len(changelog(workspace))
    pull(workspace)
    assert changelog(workspace, count) == ["-R 1 a 1", "-R 1 b 1"]
    assert verified(workspace) == 2


def test_the_last_step_may_be_row_by_row(workspace: Workspace) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    derive(workspace, f"with t as ({TOTALS}) select event_time, name, n from t where n > 0 and name <> 'b'")
    count = len(changelog(workspace))
    pull(workspace)
    assert changelog(workspace, count) == ["-R 3 b 2"]
    feed(workspace, "one", "5 a", day=4)
    pull(workspace)
    assert state(workspace) == ["4 a 3"]
    assert verified(workspace) == verified(workspace, from_start=True) == 3


def test_columns_may_come_and_optional_ones_may_go(workspace: Workspace) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    derive(workspace, TOTALS.replace(" as n", " as n, max(id) as greatest"))
    pull(workspace)
    assert state(workspace) == ["1 a 2 2", "3 b 2 4"]
    derive(workspace, TOTALS)
    pull(workspace)
    assert state(workspace) == ["1 a 2 None", "3 b 2 None"]
    feed(workspace, "one", "9 c", day=9)
    pull(workspace)
    assert state(workspace) == ["1 a 2 None", "3 b 2 None", "9 c 1 None"]
    assert verified(workspace) == verified(workspace, from_start=True) == 4


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (TOTALS.replace("count(*)", "cast(count(*) as string)"), "'n' is String"),
        (TOTALS.replace(", count(*) as n", ""), "'n' is missing"),
        (TOTALS.replace("count(*)", "max(id)"), "'n' is required but may be null"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_at_once(workspace: Workspace, query: str, says: str) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    head = workspace.storage.get("made").state.head
    with pytest.raises(SchemaError) as caught:
        derive(workspace, query)
    assert says in str(caught.value)
    assert "query" in (caught.value.hint or "")
    assert workspace.storage.get("made").state.head == head


def test_the_version_of_an_engine_is_no_other_query(workspace: Workspace, here: SparkHere) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    assert derive(workspace, TOTALS).outcome.value == "unchanged"
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    assert not any(request.query_changed for request in here.asked)


# --- Checkpoints -----------------------------------------------------------------------------------------------------


def checkpoints(workspace: Workspace) -> list[Path]:
    return sorted((workspace.storage.get("made").folder / "checkpoints").iterdir())


@pytest.fixture
def grown(workspace: Workspace) -> Workspace:
    """A dataset of three runs."""
    derive(workspace, BY_DAY)
    for day in (4, 5):
        pull(workspace)
        feed(workspace, "one", f"{day} a", day=day)
    pull(workspace)
    return workspace


def test_without_checkpoints_replays_and_pulls_go_on_from_history(grown: Workspace) -> None:
    for file in checkpoints(grown):
        file.unlink()
    (report,) = grown.verify(["made"])
    assert {finding.message for finding in report.findings} == {"Missing checkpoint"}
    assert report.transforms_replayed == 3
    feed(grown, "one", "9 a", day=9)
    pull(grown)
    assert state(grown) == ["1 a 2", "1 b 1", "3 b 1", "4 a 1", "5 a 1"]


def test_a_damaged_checkpoint_is_told_and_not_used(grown: Workspace) -> None:
    last = grown.storage.get("made").state.checkpoint
    assert last is not None
    file = grown.storage.get("made").layout.checkpoints.local_path(last.physical_hash)
    assert file is not None
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    feed(grown, "one", "9 a", day=9)
    head = grown.storage.get("made").state.head
    with pytest.raises(OdfError, match="Damaged checkpoint") as caught:
        pull(grown)
    assert str(file) in str(caught.value)
    assert "Delete the file" in (caught.value.hint or "")
    assert grown.storage.get("made").state.head == head
    (report,) = grown.verify(["made"])
    assert [finding.check for finding in report.findings] == ["checkpoint"]
    assert report.transforms_replayed == 3
    file.unlink()
    assert pull(grown) is PullOutcome.UPDATED


def test_a_replay_from_the_start_uses_no_checkpoint_of_the_dataset(grown: Workspace, here: SparkHere) -> None:
    del here.asked[:]
    assert verified(grown, from_start=True) == 3
    recorded = {str(file) for file in checkpoints(grown)}
    used = [request.prev_checkpoint_path for request in here.asked]
    assert used[0] is None
    assert recorded.isdisjoint(filter(None, used))


def test_another_version_of_the_engine_does_without_what_this_one_has_kept(
    grown: Workspace, here: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odfpy.engine.spark.operations.version_of", lambda _: "odfpy-spark/another")
    monkeypatch.setattr(SparkHere, "version", property(lambda _: "odfpy-spark/another"))
    feed(grown, "one", "9 a", day=9)
    pull(grown)
    recorded = grown.storage.get("made").state.set_transform
    assert recorded is not None
    assert recorded.transform.version == "odfpy-spark/another"
    assert not any(request.query_changed for request in here.asked)
    assert verified(grown) == 4
