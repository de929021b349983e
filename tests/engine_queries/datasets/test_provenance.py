"""Where rows of datasets come from, through several hops, in a workspace; the engine runs in this process."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.spark_here import in_place

from odfpy.chain.encoding import load_snapshots
from odfpy.cli.app import run
from odfpy.coordinator.provenance import row_questions
from odfpy.coordinator.provenance.row_traces import RowTraces
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetNotFound, OdfError, UsageError
from odfpy.provenance import report
from odfpy.provenance.errors import NoSuchColumn, NoSuchRow
from odfpy.provenance.model import Check, Provenance, TracedRow

pytestmark = pytest.mark.spark

BY_DAY = (
    "select window.start as event_time, name, count(*) as n, max(id) as last from source"
    " group by window(event_time, '1 day'), name"
)  # fmt: skip


@pytest.fixture(scope="module")
def workspace(spark: object, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """`one`, fed on three days; `kept`, its rows without the first; `daily`, these by day and name."""
    folder = tmp_path_factory.mktemp("provenance")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setenv("HOME", str(folder))
        in_place(monkeypatch, spark)
        yield fed(folder / "w")


def fed(folder: Path) -> Workspace:
    made = workspace_with(
        folder,
        root("one"),
        derivative("kept", "one", "select event_time, id, name from source where id > 1", "spark"),
        derivative("daily", "kept", BY_DAY, "spark"),
    )
    for day, rows in enumerate((["1 a", "2 a", "3 b", "4 a"], ["1 a", "2 a", "3 b", "4 a", "5 b"]), start=1):
        feed(made, "one", *rows, day=day)
        pull(made)
    feed(made, "one", "1 a", "2 a", "3 b", "4 b", "5 b", "6 c", day=3)
    pull(made)
    return made


def pull(workspace: Workspace) -> None:
    for result in workspace.pull(all=True):
        assert result.error is None, result.error


def pull_only(workspace: Workspace, name: str) -> None:
    (result,) = workspace.pull([name])
    assert result.error is None, result.error


def lines(workspace: Workspace, name: str) -> list[str]:
    """The rows of a dataset: offset, operation, day and the other columns."""
    signs = ("+A", "-R", "-C", "+C")
    return [
        f"{row['offset']} {signs[row['op']]} {row['event_time'].day} "
        + " ".join(str(row[name]) for name in row if name not in ("offset", "op", "system_time", "event_time"))
        for row in workspace.tail(name, 100).to_pylist()
    ]


def made_of(answer: Provenance, name: str) -> dict[int, TracedRow]:
    (dataset,) = (one for one in answer.datasets if one.name == name)
    return {row.offset: row for row in dataset.rows}


def cited(row: TracedRow) -> list[int]:
    return [offset for offsets in row.made_of.values() for offset in offsets]


def causes(row: TracedRow) -> list[int]:
    return [offset for offsets in row.because_of.values() for offset in offsets]


def test_a_row_is_followed_to_the_rows_of_its_root(workspace: Workspace) -> None:
    assert lines(workspace, "kept")[:3] == ["0 +A 1 2 a", "1 +A 1 3 b", "2 +A 1 4 a"]
    assert lines(workspace, "daily")[:4] == ["0 +A 1 a 2 4", "1 +A 1 b 1 3", "2 -C 1 a 2 4", "3 +C 1 a 1 2"]
    answer = workspace.provenance("daily", 0)
    assert [one.name for one in answer.datasets] == ["daily", "kept", "one"]
    assert cited(answer.row) == [0, 2]
    assert {offset: cited(row) for offset, row in made_of(answer, "kept").items()} == {0: [1], 2: [3]}
    assert sorted(made_of(answer, "one")) == [1, 3]
    assert [one.check for one in answer.datasets[:2]] == [Check.CONFIRMED, Check.CONFIRMED]
    origin = answer.datasets[2].origins[1]
    assert (origin.sequence_number, origin.source) == (3, "default")


def test_a_correction_names_the_correction_that_caused_it(workspace: Workspace) -> None:
    answer = workspace.provenance("daily", 2, depth=1)
    assert (cited(answer.row), causes(answer.row), answer.row.takes_back) == ([0, 2], [4], 0)
    assert [one.name for one in answer.datasets] == ["daily", "kept"]
    answer = workspace.provenance("daily", 3, depth=1, check=False)
    assert (cited(answer.row), causes(answer.row)) == ([0], [4])
    assert answer.check is Check.SKIPPED


def test_a_column_is_followed_by_itself(workspace: Workspace) -> None:
    answer = workspace.provenance("daily", 4, column="last", check=False)
    found = [(one.column, one.source, one.is_copy, one.through) for of in answer.datasets for one in of.columns]
    assert found == [("last", "id", False, ("max(source.id)",)), ("id", "id", True, ())]


def test_an_input_of_which_no_row_is_cited_has_its_name_all_the_same(workspace: Workspace) -> None:
    query = "select source.event_time, source.id, more.name from source left join more on source.id = more.id"
    workspace.add(load_snapshots(of_two("both", query), "manifest"))
    pull(workspace)
    (row, *_) = (offset for offset, line in enumerate(lines(workspace, "both")) if line.split()[3] == "1")
    answer = workspace.provenance("both", row)
    assert [one.name for one in answer.datasets] == ["both", "one"]
    assert "where  name: copied from kept.name" in "\n".join(report.lines(answer))
    assert {one["inputName"] for one in report.tree(answer)["datasets"][0]["columns"]} == {"one", "kept"}


def of_two(name: str, query: str, engine: str = "spark") -> str:
    """A dataset derived from `one`, `source` in the query, and `kept`, `more`."""
    made = derivative(name, "one", query, engine)
    return made.replace("alias: source}", "alias: source}, {datasetRef: kept, alias: more}")


@pytest.mark.parametrize("engine", ["spark", "datafusion"])
def test_of_a_union_only_the_branch_is_named_that_a_row_came_through(workspace: Workspace, engine: str) -> None:
    parts = (
        "event_time, id, name from source",
        "event_time, id + 100, name from more",
        "event_time, -id, 'x' from more",
    )
    text = of_two(f"union-{engine}", " union all ".join(f"select {part}" for part in parts), engine)
    workspace.add(load_snapshots(text, "manifest"))
    pull(workspace)
    found = lines(workspace, f"union-{engine}")
    for number, came in (("1", ("one", ())), ("102", ("kept", ("id + 100",))), ("-3", ("kept", ("- id",)))):
        row = next(offset for offset, line in enumerate(found) if line.split()[3] == number)
        answer = workspace.provenance(f"union-{engine}", row, depth=1)
        (where,) = (one for one in answer.datasets[0].columns if one.column == "id")
        assert where.input_name == came[0]
        assert len(where.through) == len(came[1])
        assert ("name" in {one.column for one in answer.datasets[0].columns}) == (number != "-3")


@pytest.mark.parametrize(
    ("name", "offset", "options", "error", "words"),
    [
        ("nothing", 0, {}, DatasetNotFound, "nothing"),
        ("daily", 99, {}, NoSuchRow, "no row of offset 99"),
        ("daily", -1, {}, NoSuchRow, "no row of offset -1"),
        ("daily", 0, {"column": "lst"}, NoSuchColumn, "no column 'lst'"),
        ("daily", 0, {"depth": -1}, UsageError, "depth must be 0 or more, not -1"),
    ],
)
def test_wrong_questions(
    workspace: Workspace, name: str, offset: int, options: dict[str, Any], error: type[OdfError], words: str
) -> None:
    with pytest.raises(error, match=words) as caught:
        workspace.provenance(name, offset, **options)
    assert caught.value.hint


def test_a_row_of_a_root_dataset_has_a_source_and_is_made_of_nothing(workspace: Workspace) -> None:
    answer = workspace.provenance("one", 5)
    assert answer.row.made_of == {}
    assert answer.datasets[0].origins[5].sequence_number == 5
    assert answer.check is Check.SKIPPED


# --- On the screen ---------------------------------------------------------------------------------------------------


def shown(capsys: pytest.CaptureFixture[str], workspace: Workspace, *words: str) -> str:
    assert run(["-w", str(workspace.root), *words]) == 0, capsys.readouterr().err
    return capsys.readouterr().out


def test_the_answer_for_people(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    said = shown(capsys, workspace, "provenance", "daily", "2", "--column", "name")
    assert said.splitlines()[0] == "daily, row 2: -C  event_time=2024-01-01T00:00:00.000Z  name=a  n=2  last=4"
    assert "  why    kept 0, 2" in said
    assert "because of kept 4" in said
    assert "takes back row 0" in said
    assert "where  name: copied from kept.name" in said
    assert "checked: the cited rows alone give these rows again" in said
    assert "came with block 3" in said


def test_the_answer_for_programs_and_as_a_graph(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    ask = ("provenance", "daily", "0", "--check", "off", "-o")
    tree = json.loads(shown(capsys, workspace, *ask, "json"))
    assert [one["name"] for one in tree["datasets"]] == ["daily", "kept", "one"]
    assert list(tree["datasets"][0]["rows"][0]["madeOf"].values()) == [[0, 2]]
    assert tree["datasets"][2]["rows"][0]["origin"]["sequenceNumber"] == 3
    drawing = shown(capsys, workspace, *ask, "dot")
    assert drawing.startswith('digraph "daily, row 0" {')
    assert drawing.count(" -> ") == 4
    page = shown(capsys, workspace, *ask, "html")
    assert page.count("<rect") == 5
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org/2000/svg)|<script", page)


def test_the_lineage_of_a_dataset_as_a_graph(workspace: Workspace, capsys: pytest.CaptureFixture[str]) -> None:
    drawing = shown(capsys, workspace, "inspect", "lineage", "daily", "-o", "dot")
    assert drawing.count(" -> ") == 2
    page = shown(capsys, workspace, "inspect", "lineage", "daily", "-o", "html")
    assert page.count("<rect") == 3
    assert shown(capsys, workspace, "inspect", "lineage", "daily", "-o", "tree").startswith("daily")


@pytest.mark.parametrize(
    "words",
    [("daily", "x"), ("daily", "-1"), ("daily", "0", "-o", "txt"), ("daily", "0", "--check", "maybe"), ("one", "8")],
)
def test_wrong_usage(workspace: Workspace, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    assert run(["-w", str(workspace.root), "provenance", *words]) == 2
    assert "error: " in capsys.readouterr().err


# --- What goes though nothing of it has changed; inputs that are gone; other engines -----------------------------------

FIRST_TWO = "select event_time, id, name from source order by id desc limit 2"


@pytest.fixture(scope="module")
def top(workspace: Workspace) -> Workspace:
    """`top`, the two greatest ids of `one`, which a row leaves when a greater one comes; `other`, of another engine."""
    texts = (
        root("two", "{kind: Append}"),
        derivative("top", "two", FIRST_TWO, "spark"),
        derivative("same", "two", "select event_time, 'all' as name from source where id >= 0", "spark"),
        derivative("other", "two", "select event_time, id, name from source"),
    )
    workspace.add([one for text in texts for one in load_snapshots(text, "manifest")])
    for rows in (["1 a", "2 b"], ["0 x", "3 c", "0 y"]):
        feed(workspace, "two", *rows)
        pull(workspace)
    return workspace


def test_a_row_that_another_one_has_pushed_out_names_it(top: Workspace) -> None:
    assert lines(top, "top") == ["0 +A 1 1 a", "1 +A 1 2 b", "2 -R 1 1 a", "3 +A 1 3 c"]
    answer = top.provenance("top", 2)
    assert (cited(answer.row), causes(answer.row), answer.row.takes_back) == ([0], [3], 0)
    assert answer.check is Check.CONFIRMED


def test_rows_that_say_the_same_are_told_apart_by_their_place(top: Workspace) -> None:
    assert set(lines(top, "same")) == {f"{offset} +A 1 all" for offset in range(5)}
    for offset in (1, 3):
        answer = top.provenance("same", offset, check=False)
        assert (cited(answer.row), answer.row.ways) == ([offset], 2 if offset < 2 else 3)


def test_rows_are_traced_through_several_engines(top: Workspace) -> None:
    """`counted` by Spark, over `corrected` by DataFusion, over a root dataset with corrections."""
    query = "select op, event_time, id, upper(name) as name from source where id < 5"
    by_name = "select max(event_time) as event_time, name, count(*) as n from source group by name"
    texts = derivative("corrected", "one", query), derivative("counted", "corrected", by_name, "spark")
    top.add([one for text in texts for one in load_snapshots(text, "manifest")])
    pull(top)
    assert lines(top, "one")[5:7] == ["5 -C 1 4 a", "6 +C 3 4 b"]
    assert lines(top, "corrected")[4:] == ["4 -C 1 4 A", "5 +C 3 4 B"]
    answer = top.provenance("corrected", 4)
    assert (cited(answer.row), answer.row.takes_back, answer.check) == ([5], 3, Check.CONFIRMED)
    of_b = next(offset for offset, line in enumerate(lines(top, "counted")) if line.split()[3:] == ["B", "2"])
    answer = top.provenance("counted", of_b)
    assert [one.name for one in answer.datasets] == ["counted", "corrected", "one"]
    assert (cited(answer.row), {row.offset for row in answer.datasets[2].rows}) == ([2, 5], {2, 6})
    assert answer.check is Check.CONFIRMED


MAXIMA = "select window.start as event_time, max(id) as most from source group by window(event_time, '1 day')"
SUM = "select max(event_time) as event_time, sum(most) as n from source"


def test_rows_that_many_runs_have_made_are_traced_together(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = (
        root("log", "{kind: Append}"),
        derivative("maxima", "log", MAXIMA, "spark"),
        derivative("sum", "maxima", SUM, "spark"),
    )
    workspace.add([one for text in texts for one in load_snapshots(text, "manifest")])
    # The second row of the first day is late, and changes nothing.
    for rows, day in (("7 a", 1), ("5 b", 2), ("1 c", 1), ("6 d", 3), ("9 e", 4)):
        feed(workspace, "log", rows, day=day)
        pull_only(workspace, "maxima")
    pull_only(workspace, "sum")
    assert lines(workspace, "maxima") == ["0 +A 1 7", "1 +A 2 5", "2 +A 3 6"]
    asked = []
    ways = RowTraces.ways
    monkeypatch.setattr(RowTraces, "ways", lambda self, question: asked.append(question) or ways(self, question))
    answer = workspace.provenance("sum", 0)
    assert {offset: cited(row) for offset, row in made_of(answer, "maxima").items()} == {0: [0], 1: [1], 2: [3]}
    assert answer.check is Check.CONFIRMED
    together = [len(question.rows) for question in asked]
    monkeypatch.setattr(row_questions, "_MIN_RUNS", 1_000)
    asked.clear()
    assert workspace.provenance("sum", 0) == answer
    assert (together, [len(question.rows) for question in asked]) == ([1, 3, 1], [1, 1, 1, 1])


AS_OF = (
    "select f.event_time, f.id, r.name from source f left join more r"
    " on f.id = r.id and f.event_time >= r.valid_from and f.event_time < r.valid_to"
)


def test_rows_with_and_without_a_version_are_checked_together(workspace: Workspace) -> None:
    """One finds the version of its key, which the snapshot of day 3 lacks; the other one comes later, and finds none."""
    joined = derivative("priced", "facts", AS_OF, "spark")
    joined = joined.replace("alias: source}", "alias: source}, {datasetRef: prices, alias: more}")
    joined = joined.replace("kind: Sql,", "kind: Sql, temporalTables: [{name: more, primaryKey: [id]}],")
    by_id = "select max(event_time) as event_time, id, count(*) as n, count(name) as known from source group by id"
    texts = (root("facts", "{kind: Append}"), root("prices"), joined, derivative("known", "priced", by_id, "spark"))
    workspace.add([one for text in texts for one in load_snapshots(text, "manifest")])
    for name, row, day in (("prices", "1 a", 1), ("facts", "1 x", 2), ("prices", "2 b", 3), ("facts", "1 y", 4)):
        feed(workspace, name, row, day=day)
    for name in ("prices", "facts"):
        feed(workspace, name, "2 c", day=6)
    for name in ("priced", "known"):
        pull_only(workspace, name)
    of_one = next(
        offset for offset, line in enumerate(lines(workspace, "known")) if line.split()[3:] == ["1", "2", "1"]
    )
    answer = workspace.provenance("known", of_one)
    assert {line: cited(row) for line, row in zip("xy", made_of(answer, "priced").values(), strict=True)} == {
        "x": [0, 0],
        "y": [1],
    }
    assert answer.check is Check.CONFIRMED


def test_inputs_are_known_by_their_ids_and_must_be_there(top: Workspace) -> None:
    top.datasets.rename("two", "renamed")
    assert top.provenance("top", 0, check=False).datasets[1].name == "renamed"
    shutil.rmtree(top.storage.get("renamed").folder)
    with pytest.raises(DatasetNotFound, match="is not in the workspace") as caught:
        top.provenance("top", 0)
    assert caught.value.hint
