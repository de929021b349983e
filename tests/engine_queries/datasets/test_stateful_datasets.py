"""Derivatives with state in a workspace: changed queries and inputs, replays, checkpoints, wrong queries, descriptions.

All of it in one module, which has a Spark of its own: the engine runs in this process.
"""

from __future__ import annotations

import io
import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from support.chains.workspaces import BY_DAY, TOTALS, feed, root, workspace_with
from support.engine.spark_here import SparkHere

from odfpy.chain.encoding import load_snapshots
from odfpy.cli.app import run
from odfpy.coordinator.storage.results import AddOutcome, AddResult, PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError, SchemaError

pytestmark = pytest.mark.spark

APPEND = "{kind: Append}"
BOTH = TOTALS.replace(
    "from source", "from (select event_time, name from source union all select event_time, name from other)"
)
ROWS = "select event_time, name, id as n from source"


@pytest.fixture
def workspace(here: SparkHere, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """Two roots with four rows and two."""
    monkeypatch.setenv("HOME", str(tmp_path))
    made = workspace_with(tmp_path / "w", root("one", APPEND), root("two", APPEND))
    feed(made, "one", "1 a", "2 a", "3 b")
    feed(made, "one", "4 b", day=3)
    feed(made, "two", "5 a", "6 c", day=2)
    return made


def manifest(query: str, *inputs: str, version: str = "") -> str:
    sources = ", ".join(
        f"{{datasetRef: {name}, alias: {'source' if number == 0 else 'other'}}}"
        for number, name in enumerate(inputs or ("one",))
    )
    asked = f", version: '{version}'" if version else ""
    return f"""
kind: DatasetSnapshot
version: 1
content:
  name: made
  kind: Derivative
  metadata:
    - kind: SetTransform
      inputs: [{sources}]
      transform: {{kind: Sql, engine: spark{asked}, query: "{query}"}}
"""


def derive(workspace: Workspace, query: str, *inputs: str, version: str = "") -> AddResult:
    (result,) = workspace.add(load_snapshots(manifest(query, *inputs, version=version), "made.yaml"), replace=True)
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
        rest = [str(row[name]) for name in row if name not in ("offset", "op", "system_time", "event_time")]
        if row["offset"] >= since:
            found.append(" ".join([signs[row["op"]], str(row["event_time"].day), *rest]))
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


# --- Another query ---------------------------------------------------------------------------------------------------


def test_another_query_with_state_makes_the_output_its_own(workspace: Workspace, here: SparkHere) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "3 b 2"]
    assert derive(workspace, TOTALS).outcome is AddOutcome.UNCHANGED
    count = len(changelog(workspace))
    notes = derive(workspace, TOTALS.replace("count(*)", "count(*) * 10")).notes
    assert notes[-1] == "the query has changed: the next pull corrects the rows so far"
    assert pull(workspace) is PullOutcome.UPDATED  # though the input has nothing new
    assert changelog(workspace, count) == ["-C 1 a 2", "+C 1 a 20", "-C 3 b 2", "+C 3 b 20"]
    asked = len(here.asked)
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    assert len(here.asked) == asked
    feed(workspace, "one", "5 a", day=4)
    pull(workspace)
    assert changelog(workspace, count + 4) == ["-C 1 a 20", "+C 4 a 30"]
    assert verified(workspace, from_start=True) == 3


def test_from_rows_to_state_and_back_and_through_other_inputs(workspace: Workspace) -> None:
    derive(workspace, ROWS)
    pull(workspace)
    derive(workspace, BY_DAY)
    feed(workspace, "one", "5 a", "6 a", day=9)
    pull(workspace)  # what is new and what has changed
    assert state(workspace) == ["1 a 2", "1 b 1", "3 b 1"]
    derive(workspace, BOTH, "one", "two")
    pull(workspace)
    assert state(workspace) == ["2 c 1", "3 b 2", "9 a 5"]
    derive(workspace, TOTALS, "two")
    pull(workspace)
    assert state(workspace) == ["2 a 1", "2 c 1"]
    assert derive(workspace, ROWS, "two").notes == (
        "the query has changed, row by row: it applies to new rows; earlier rows stay",
    )
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    feed(workspace, "two", "7 c", day=5)
    pull(workspace)
    assert state(workspace) == ["2 a 1", "2 c 1", "5 c 7"]
    derive(workspace, f"with t as ({TOTALS}) select event_time, name, n from t where name <> 'a'", "two")
    pull(workspace)
    assert state(workspace) == ["5 c 2"]
    assert verified(workspace) == 6
    workspace.datasets.delete(["one"])  # of which nothing in force is derived
    (report,) = workspace.verify(["made"])
    assert "The input source (did:odf:" in report.findings[0].message


def test_rows_that_are_the_same_are_counted_and_columns_come_and_go(workspace: Workspace) -> None:
    derive(workspace, "select date_trunc('month', event_time) as event_time, name, 1 as n from source")
    pull(workspace)
    count = len(changelog(workspace))
    derive(workspace, "select distinct date_trunc('month', event_time) as event_time, name, 1 as n from source")
    pull(workspace)
    assert changelog(workspace, count) == ["-R 1 a 1", "-R 1 b 1"]
    named = "select max(date_trunc('month', event_time)) as event_time, name, 1 as n{} from source group by name"
    derive(workspace, named.format(", max(id) as greatest"))
    pull(workspace)
    assert changelog(workspace, count + 2) == ["-C 1 a 1 None", "+C 1 a 1 2", "-C 1 b 1 None", "+C 1 b 1 4"]
    derive(workspace, named.format(""))
    pull(workspace)
    assert state(workspace) == ["1 a 1 None", "1 b 1 None"]


def test_a_schema_that_does_not_fit_is_refused_at_once(workspace: Workspace) -> None:
    derive(workspace, TOTALS)
    pull(workspace)
    head = workspace.storage.get("made").state.head
    for query, says in (
        (TOTALS.replace("count(*)", "cast(count(*) as string)"), "'n' is String"),
        (TOTALS.replace(", count(*) as n", ""), "'n' is missing"),
        (TOTALS.replace("count(*)", "max(id)"), "'n' is required but nullable"),
    ):
        with pytest.raises(SchemaError) as caught:
            derive(workspace, query)
        assert says in str(caught.value)
        assert "or create a new dataset" in (caught.value.hint or "")
    assert workspace.storage.get("made").state.head == head


# --- Checkpoints and versions ----------------------------------------------------------------------------------------


def test_checkpoints_may_be_gone_or_damaged_or_of_another_version(
    workspace: Workspace, here: SparkHere, monkeypatch: pytest.MonkeyPatch
) -> None:
    derive(workspace, BY_DAY)
    pull(workspace)
    feed(workspace, "one", "5 a", day=5)
    pull(workspace)
    dataset = workspace.storage.get("made")
    files = sorted((dataset.folder / "checkpoints").iterdir())
    assert len(files) == 2

    # A replay from the start uses none of them.
    del here.asked[:]
    assert verified(workspace, from_start=True) == 2
    assert {str(file) for file in files}.isdisjoint(request.prev_checkpoint_path or "" for request in here.asked)

    # Damage is told, nothing is committed, and a replay goes without it.
    assert dataset.state.checkpoint is not None
    last = dataset.layout.checkpoints.local_path(dataset.state.checkpoint.physical_hash)
    assert last is not None
    data = bytearray(last.read_bytes())
    data[len(data) // 2] ^= 1
    last.write_bytes(bytes(data))
    (report,) = workspace.verify(["made"])
    assert [(found.message.partition(":")[0], found.file) for found in report.findings] == [
        ("Damaged checkpoint", str(last))
    ]
    assert (report.ok, report.transforms_replayed) == (False, 2)
    feed(workspace, "one", "9 a", day=9)
    with pytest.raises(OdfError, match="Damaged checkpoint") as caught:
        pull(workspace)
    assert str(last) in str(caught.value)
    assert "Delete the file" in (caught.value.hint or "")
    assert workspace.storage.get("made").state.head == dataset.state.head

    # Without any, replays and pulls go on from history.
    for file in files:
        file.unlink()
    (report,) = workspace.verify(["made"])
    assert [found.message for found in report.findings] == ["Missing checkpoints: 2 of 2; the last one"]
    assert (report.ok, report.transforms_replayed) == (True, 2)
    pull(workspace)
    assert state(workspace) == ["1 a 2", "1 b 1", "3 b 1", "5 a 1"]

    # Another version of the engine does not take what this one has kept.
    monkeypatch.setattr("odfpy.engine.spark.execution.operations.version_of", lambda _: "odfpy-spark/another")
    monkeypatch.setattr(SparkHere, "version", property(lambda _: "odfpy-spark/another"))
    feed(workspace, "one", "10 a", day=10)
    del here.asked[:]
    pull(workspace)
    assert [source.history_paths is not None for request in here.asked for source in request.query_inputs] == [
        False,
        True,
    ]
    assert not any(request.query_changed for request in here.asked)
    recorded = workspace.storage.get("made").state.set_transform
    assert recorded is not None
    assert recorded.transform.version == "odfpy-spark/another"


def test_a_column_that_an_input_gets_does_not_take_the_place_of_one_that_is_kept(workspace: Workspace) -> None:
    derive(
        workspace,
        "with t as (select *, upper(name) as u from source)"
        " select window.start as event_time, count(distinct u) as n from t group by window(event_time, '1 day')",
    )
    pull(workspace)
    wider = root("one", APPEND).replace(
        "- {name: name,", "- {name: more, type: {kind: Option, inner: Int64}}\n            - {name: name,"
    )
    workspace.add(load_snapshots(wider, "one.yaml"), replace=True)
    feed(workspace, "one", "5 a", day=5)
    pull(workspace)
    assert "more" in workspace.storage.get("one").state.schema.names
    assert state(workspace) == ["1 2", "3 1"]


def test_a_version_that_is_asked_for_is_remarked_on(workspace: Workspace) -> None:
    assert (
        "asks for version 3.0 of spark; it will be run with odfpy-" in derive(workspace, ROWS, version="3.0").notes[0]
    )


# --- The command line ------------------------------------------------------------------------------------------------

Odf = Callable[..., tuple[int, str, str]]


@pytest.fixture
def odf(workspace: Workspace, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Odf:
    monkeypatch.chdir(workspace.root)

    def call(*arguments: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        capfd.readouterr()
        code = run(list(arguments))
        printed = capfd.readouterr()
        return code, printed.out, printed.err

    return call


WRONG = {
    "select max(event_time) as event_time from source group by": ("Syntax error", "one SELECT"),
    "select max(event_time) as event_time, nosuch from source group by nosuch": ("`nosuch` cannot be resolved", "case"),
    "select max(event_time) as event_time from nosuch": ("`nosuch` cannot be found", "names or aliases of tables"),
    "select event_time from source a join other b on a.id = b.id": ("`event_time` is ambiguous", ""),
    "select max(event_time) as event_time, sum(array(id)) as s from source group by id": ("Cannot resolve", ""),
    "select name, count(*) as n from source group by name": ("no event time", "AS event_time"),
    "select window, count(*) as n from source group by window(event_time, '1 day')": ("no event time", "window.start"),
    "select name as event_time from source group by name": ("`event_time` has type string", "CAST"),
    "select max(event_time) as event_time, max(offset) as o from source": (
        "`offset` is not available in",
        "data column",
    ),
    "select max(event_time) as event_time, id from source where op = 0 group by id": ("`op` is not available in", ""),
    "select max(system_time) as event_time, id from source group by id": ("`system_time` is not available in", ""),
    "select max(event_time) as event_time, id from source group by id order by id": ("ORDER BY without", "Omit ORDER"),
    "select event_time, id from source limit 3": ("LIMIT without a total order", "Add ORDER BY"),
    "select window.start as event_time from source group by window(id, '1 day')": ("`window`", "of a time column"),
    "select window(event_time, '1 day').start as event_time from source"
    " group by window(event_time, '1 day'), window(event_time, '2 days')": ("Multiple time/session window", ""),
    "select max(event_time) as event_time from values (timestamp '2024-01-01') as t(event_time)": (
        "no input",
        "Select",
    ),
    "select timestamp '2024-01-01' as event_time": ("no input", "Select from an input"),
    "select max(event_time) as event_time, 0 as op from source group by id": ("`op` of the result", "Leave it out"),
}


def test_a_wrong_query_is_told_in_one_message_and_nothing_is_added(workspace: Workspace, odf: Odf) -> None:
    before = {
        path.name for path in (workspace.root / ".odf").rglob("*") if path.is_file() and "schemas" not in str(path)
    }
    for query, (says, hint) in WRONG.items():
        code, out, told = odf("add", "-", stdin=manifest(query, "one", "two"))
        lines = told.splitlines()
        hints = [line for line in lines if line.startswith("hint: ")]
        assert (code, out) == (1, ""), query
        assert lines[0].startswith("error: made: "), told
        assert says in lines[0], told
        assert hint in "".join(hints), told
        assert len(hints) <= 1, told
    after = {
        path.name for path in (workspace.root / ".odf").rglob("*") if path.is_file() and "schemas" not in str(path)
    }
    assert after == before


def test_what_only_the_rows_tell_is_told_at_the_pull(workspace: Workspace, odf: Odf) -> None:
    for query, says in (
        (TOTALS.replace("count(*)", "sum(cast(name as int))"), "cannot be cast"),
        (
            TOTALS.replace("max(event_time)", "max(case when id > 2 then event_time end)"),
            "`event_time` of a row is null",
        ),
    ):
        derive(workspace, query)
        head = workspace.storage.get("made").state.head
        code, _, told = odf("pull", "made")
        assert code == 1
        assert says in told
        assert workspace.storage.get("made").state.head == head


def test_a_query_is_described(workspace: Workspace, odf: Odf) -> None:
    derive(workspace, BY_DAY)
    code, out, _ = odf("inspect", "query", "made")
    assert code == 0
    lines = [line.strip() for line in out.splitlines()]
    assert "step       output: event-time window" in lines
    assert "key        event_time, name" in lines
    assert "watermark  just before the start of the first window that is open at the watermark of `source`" in lines
    assert any(line.startswith("why      GROUP BY") for line in lines)
    assert any(line.startswith("state    ") for line in lines)
    tree = json.loads(odf("inspect", "query", "made", "-o", "json")[1])
    assert tree["primaryKey"] == ["event_time", "name"]
    assert tree["steps"][0]["queryClass"] == "event-time window"
    pull(workspace)
    assert json.loads(odf("show", "made", "-o", "json")[1])["primaryKey"] == ["event_time", "name"]
    derive(workspace, "select event_time + interval 1 hour as event_time, name, id as n from source")
    tree = json.loads(odf("inspect", "query", "made", "-o", "json")[1])
    assert tree.get("primaryKey") is None
    assert tree["steps"][0]["state"] == "nothing"
    assert tree["watermark"].startswith("just before ")
    assert tree["watermark"].endswith(" at the watermark of `source`")
