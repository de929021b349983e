"""What queries are told of their inputs: primary keys, schemas without rows, columns that come later."""

from __future__ import annotations

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.engine.spark_here import in_place

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.data.schemas.primary_key import primary_key_of

APPEND = "{kind: Append}"
COUNTED = "select event_time, id, name, count(*) over (partition by name order by id) as n from source"


@pytest.fixture
def workspace(monkeypatch, spark, tmp_path):
    in_place(monkeypatch, spark)
    return workspace_with(tmp_path / "w", root("keyed"), root("plain", APPEND))


def derive(workspace: Workspace, name: str, source: str, query: str) -> None:
    workspace.add(load_snapshots(derivative(name, source, query, "spark"), f"{name}.yaml"))


def pull(workspace: Workspace, name: str) -> PullOutcome:
    (result,) = workspace.pull([name])
    if result.error is not None:
        raise result.error
    return result.outcome


def changelog(workspace: Workspace, name: str) -> list[str]:
    """All rows as `op columns`, without times."""
    signs = ("+A", "-R", "-C", "+C")
    hidden = ("offset", "op", "system_time", "event_time")
    return [
        " ".join([signs[row["op"]], *(str(value) for name, value in row.items() if name not in hidden)])
        for row in workspace.tail(name, 1000).to_pylist()
    ]


def key(workspace: Workspace, name: str) -> tuple[str, ...] | None:
    schema = workspace.datasets.state(name).schema
    assert schema is not None
    return primary_key_of(schema)


def test_the_key_of_an_input_passes_through_queries(workspace):
    derive(workspace, "rows", "keyed", "select event_time, id as number, name from source where id < 10")
    derive(workspace, "halves", "keyed", "select event_time, id, name from source where op <> 1")
    derive(workspace, "several", "keyed", "select event_time, id, explode(array(1, 2)) as n from source")
    derive(workspace, "counted", "rows", COUNTED.replace("id", "number"))
    derive(workspace, "unkeyed", "halves", COUNTED)
    names = ("rows", "halves", "several", "counted", "unkeyed")
    for day, given in ((1, ("1 a", "2 a", "3 b")), (2, ("1 a", "2 b", "3 b"))):
        feed(workspace, "keyed", *given, day=day)
        for name in names:
            pull(workspace, name)
    assert {name: key(workspace, name) for name in names} == {
        "rows": ("number",),
        "halves": None,  # what is taken back may still be there
        "several": None,
        "counted": ("number",),
        "unkeyed": None,
    }
    assert changelog(workspace, "counted")[3:] == ["-C 3 b 1", "+C 3 b 2", "-C 2 a 2", "+C 2 b 1"]
    (report,) = workspace.verify(["counted"])
    assert report.ok, report.findings


def test_an_input_without_rows_is_waited_for_only_as_long_as_nobody_knows_its_columns(workspace):
    few = derivative("few", "keyed", "select event_time, id, name from source where id > 100", "spark")
    both = derivative(
        "both", "plain", "select event_time, id from source union all select event_time, id from other", "spark"
    )
    both = both.replace("alias: source}", "alias: source}, {datasetRef: few, alias: other}")
    workspace.add([snapshot for text in (few, both) for snapshot in load_snapshots(text, "manifest")])
    feed(workspace, "plain", "1 a")
    (waits,) = workspace.pull(["both"])
    assert (waits.outcome, waits.notes) == (PullOutcome.UP_TO_DATE, ("waiting for the first data of few",))
    feed(workspace, "keyed", "1 a")
    pull(workspace, "few")
    assert workspace.datasets.state("few").num_records == 0
    assert pull(workspace, "both") is PullOutcome.UPDATED
    assert changelog(workspace, "both") == ["+A 1"]


def test_a_derivative_has_a_schema_though_it_has_neither_rows_nor_a_watermark(workspace):
    """As checks of data that find nothing do, over results of which no watermark is known."""
    derive(
        workspace, "latest", "keyed", "select max(event_time) as event_time, name, count(*) n from source group by name"
    )
    derive(workspace, "large", "latest", "select event_time, name, n from source where n > 100")
    derive(
        workspace,
        "counted",
        "large",
        "select max(event_time) as event_time, name, sum(n) as n from source group by name",
    )
    names = ("latest", "large", "counted")
    feed(workspace, "keyed", "1 a", "2 a")
    assert [pull(workspace, name) for name in names] == [PullOutcome.UPDATED] * 3
    assert workspace.tail("large").schema.names == ["offset", "op", "system_time", "event_time", "name", "n"]
    assert [pull(workspace, name) for name in names] == [PullOutcome.UP_TO_DATE] * 3
    feed(workspace, "keyed", *(f"{number} b" for number in range(10, 111)), day=2)
    for name in names:
        pull(workspace, name)
    assert changelog(workspace, "counted") == ["+A b 101"]
    for name in names:
        (report,) = workspace.verify([name], from_start=True)
        assert report.ok, report.findings


def test_a_column_that_an_input_gets_is_one_of_the_output_where_the_query_says_star(workspace):
    derive(
        workspace, "all", "keyed", "select * from source qualify row_number() over (partition by id order by name) = 1"
    )
    derive(workspace, "kinds", "keyed", "select max(event_time) as event_time, count(distinct *) as n from source")
    derive(
        workspace,
        "latest",
        "keyed",
        "select max(event_time) event_time, id, max(struct(*)) as m from source group by id",
    )
    nested = "select max(event_time) event_time, id, named_struct('m', max(struct(*))) n from source group by id"
    derive(workspace, "nested", "keyed", nested)
    names = ("all", "kinds", "latest", "nested")
    feed(workspace, "keyed", "1 a", "2 a")
    for name in names:
        pull(workspace, name)
    wider = root("keyed").replace(
        "- {name: name,", "- {name: more, type: {kind: Option, inner: Int64}}\n            - {name: name,"
    )
    workspace.add(load_snapshots(wider, "keyed.yaml"), replace=True)
    feed(workspace, "keyed", "1 b", "2 a", day=2)
    for name in names:
        pull(workspace, name)
    assert changelog(workspace, "all") == ["+A 1 a None", "+A 2 a None", "-C 1 a None", "+C 1 b None"]
    assert changelog(workspace, "kinds") == ["+A 2", "-C 2", "+C 0"], "SQL counts no row that has a NULL"
    (kept, before, after) = (row["m"] | {"op": row["op"]} for row in workspace.tail("latest", 9).to_pylist()[1:])
    assert [(row["op"], row["id"], row["name"], row["more"]) for row in (kept, before, after)] == [
        (0, 2, "a", None), (2, 1, "a", None), (3, 1, "b", None)
    ]  # fmt: skip
    assert changelog(workspace, "nested")[-1].startswith("+C 1 {'m':")
    for name in names:
        (report,) = workspace.verify([name], from_start=True)
        assert report.ok, report.findings
