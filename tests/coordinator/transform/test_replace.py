"""`odf add --replace`: a dataset gets another source, query or vocabulary; its history stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.chains.workspaces import copied, derivative, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.storage.results import AddOutcome, AddResult, PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import IngestError, InvalidQuery, OdfError, SchemaError

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: a
  kind: Root
  metadata:
"""
EVENT_TIME = "{name: event_time, type: Timestamp}"
ID = "{name: id, type: Int64}"
NAME = "{name: name, type: {kind: Option, inner: String}}"
MORE = "{name: more, type: {kind: Option, inner: String}}"
GLOB = "{kind: FilesGlob, path: 'data/*.ndjson'}"


def read(*fields: str) -> str:
    return f"{{kind: NdJson, schema: {{fields: [{', '.join(fields or (EVENT_TIME, ID, NAME))}]}}}}"


def polling(fetch: str = GLOB, *, of: str = "", merge: str = "{kind: Append}", query: str | None = None) -> str:
    step = f", preprocess: {{kind: Sql, engine: datafusion, query: '{query}'}}" if query else ""
    return f"{{kind: SetPollingSource, fetch: {fetch}, read: {of or read()}, merge: {merge}{step}}}"


def pushing(name: str = "default", *, of: str = "") -> str:
    return f"{{kind: AddPushSource, sourceName: {name}, read: {of or read()}, merge: {{kind: Append}}}}"


def replaced(workspace: Workspace, *events: str) -> AddResult:
    text = MANIFEST + "".join(f"    - {event}\n" for event in events)
    (result,) = workspace.add(load_snapshots(text, "a.yaml"), replace=True)
    return result


def put(workspace: Workspace, file: str, *texts: str) -> None:
    """A file with one row for each text, as `id name`."""
    lines = []
    for text in texts:
        key, name = text.split()
        lines.append(json.dumps({"event_time": "2024-01-01T00:00:00Z", "id": int(key), "name": name}) + "\n")
    path = workspace.root / file
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(lines))


def pull(workspace: Workspace) -> PullOutcome:
    (result,) = workspace.pull(["a"])
    assert result.error is None, result.error
    return result.outcome


def kinds(workspace: Workspace) -> list[str]:
    return [type(hashed.block.event).__name__ for hashed in workspace.datasets.log("a")][::-1]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A dataset with one row from `data/2.ndjson`."""
    made = Workspace.init(tmp_path_factory.mktemp("prepared"))
    replaced(made, polling())
    put(made, "data/2.ndjson", "1 x")
    assert pull(made) is PullOutcome.UPDATED
    return made


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    return copied(prepared, tmp_path)


# --- What may change -------------------------------------------------------------------------------------------------


def test_the_same_again_changes_nothing(workspace: Workspace):
    head = workspace.datasets.state("a").head
    assert replaced(workspace, polling()).outcome is AddOutcome.UNCHANGED
    assert workspace.datasets.state("a").head == head


def test_another_merge_strategy_holds_from_the_next_rows_on(workspace: Workspace):
    assert replaced(workspace, polling(merge="{kind: Ledger, primaryKey: [id]}")).outcome is AddOutcome.UPDATED
    put(workspace, "data/3.ndjson", "1 y", "2 z")
    assert pull(workspace) is PullOutcome.UPDATED
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 z"]


def test_another_merge_strategy_knows_the_state_of_all_rows(workspace: Workspace):
    replaced(workspace, polling(merge="{kind: Snapshot, primaryKey: [id]}"))
    put(workspace, "data/3.ndjson", "2 z")
    pull(workspace)
    assert rows(workspace, "a") == ["+A 1 x", "-R 1 x", "+A 2 z"]


READS = {
    "a new optional column": (read(EVENT_TIME, ID, NAME, MORE), ["event_time", "id", "name", "more"]),
    "another order": (read(NAME, ID, EVENT_TIME), ["event_time", "id", "name"]),
    "an optional column less": (read(EVENT_TIME, ID), ["event_time", "id", "name"]),
    "a required column that may lack values": (
        read(EVENT_TIME, "{name: id, type: {kind: Option, inner: Int64}}", NAME), ["event_time", "id", "name"]
    ),
    "an optional column that may not": (read(EVENT_TIME, ID, "{name: name, type: String}"), ["event_time", "id", "name"]),
    "another read step": (f"{{kind: Csv, schema: {{fields: [{EVENT_TIME}, {ID}]}}}}", ["event_time", "id", "name"]),
}  # fmt: skip


@pytest.mark.parametrize(("of", "columns"), READS.values(), ids=READS)
def test_another_schema_of_the_source_keeps_history(workspace: Workspace, of: str, columns: list[str]):
    assert replaced(workspace, polling(of=of)).outcome is AddOutcome.UPDATED
    if "Csv" in of:
        (workspace.root / "data" / "3.ndjson").write_text("2024-01-01T00:00:00Z,2\n")
    else:
        put(workspace, "data/3.ndjson", "2 z")
    assert pull(workspace) is PullOutcome.UPDATED
    table = workspace.tail("a")
    assert table.column_names[3:] == columns
    assert table.column("id").to_pylist() == [1, 2]
    assert table.column("name")[0].as_py() == "x"


def test_a_query_may_come_and_go(workspace: Workspace):
    replaced(workspace, polling(query="select event_time, id, upper(name) as name from input"))
    put(workspace, "data/3.ndjson", "2 y")
    pull(workspace)
    replaced(workspace, polling())
    put(workspace, "data/4.ndjson", "3 z")
    pull(workspace)
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 Y", "+A 3 z"]


# --- Fetching elsewhere ----------------------------------------------------------------------------------------------


def test_files_after_the_last_one_are_new_also_by_another_pattern(workspace: Workspace):
    put(workspace, "data/1.json", "8 a")
    put(workspace, "data/3.json", "2 b")
    assert replaced(workspace, polling("{kind: FilesGlob, path: 'data/*.json'}")).notes == ()
    pull(workspace)
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 b"]


def test_what_is_known_of_one_place_is_not_held_against_another(workspace: Workspace):
    """The name of the last file is not an ETag, and the time of one document says nothing of another one's."""
    put(workspace, "other/1.ndjson", "2 y")
    result = replaced(workspace, polling("{kind: Url, url: 'file:other/1.ndjson'}"))
    assert result.notes == ("the source fetches from another location: the next pull ingests everything from there",)
    assert workspace.datasets.state("a").source_states == ()
    assert [pull(workspace), pull(workspace)] == [PullOutcome.UPDATED, PullOutcome.UP_TO_DATE]
    put(workspace, "other/2.ndjson", "3 z")
    replaced(workspace, polling("{kind: Url, url: 'file:other/2.ndjson'}"))
    pull(workspace)
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 y", "+A 3 z"]


def test_another_merge_strategy_takes_in_what_was_there_only_by_force(workspace: Workspace):
    ledger, upsert = "{kind: Ledger, primaryKey: [id]}", "{kind: UpsertStream, primaryKey: [id]}"
    put(workspace, "data/4.ndjson", "3 z")
    assert len(replaced(workspace, polling(merge=ledger)).notes) == 1
    pull(workspace)
    put(workspace, "data/5.ndjson", "3 Z")
    pull(workspace)
    assert rows(workspace, "a")[-1] == "+A 3 z", "a ledger leaves rows as they are"
    note = "only `odf pull --force` merges previously ingested rows again"
    assert replaced(workspace, polling(merge=upsert)).notes == (note,)
    assert pull(workspace) is PullOutcome.UP_TO_DATE
    assert [one.error for one in workspace.pull(["a"], force=True)] == [None]
    assert rows(workspace, "a")[-2:] == ["-C 3 z", "+C 3 Z"]


def test_the_same_url_goes_on_where_it_was(workspace: Workspace):
    put(workspace, "other/1.ndjson", "2 y")
    url = "kind: Url, url: 'file:other/1.ndjson'"
    replaced(workspace, polling(f"{{{url}}}"))
    pull(workspace)
    assert replaced(workspace, polling(f"{{{url}, headers: [{{name: X, value: y}}]}}")).notes == ()
    assert pull(workspace) is PullOutcome.UP_TO_DATE


def test_a_source_that_is_pulled_becomes_one_that_is_pushed_to_and_back(workspace: Workspace):
    result = replaced(workspace, pushing())
    assert result.notes == ("the polling source is disabled: the manifest has push sources instead",)
    feed(workspace, "a", "2 y")
    result = replaced(workspace, polling())
    assert result.notes == ("the push source 'default' is disabled: the manifest does not have it",)
    pull(workspace)
    assert rows(workspace, "a") == ["+A 1 x", "+A 2 y", "+A 1 x"]
    assert kinds(workspace)[4:] == [
        "DisablePollingSource", "AddPushSource", "AddData", "DisablePushSource", "SetPollingSource", "AddData"
    ]  # fmt: skip


def test_push_sources_come_and_go_one_by_one(workspace: Workspace):
    replaced(workspace, pushing("one"), pushing("two"))
    result = replaced(workspace, pushing("two", of=read(EVENT_TIME, ID)), pushing("three"))
    assert result.notes == ("the push source 'one' is disabled: the manifest does not have it",)
    assert [source.source_name for source in workspace.datasets.state("a").push_sources] == ["two", "three"]


def test_a_manifest_without_a_source_leaves_the_source_as_it_is(workspace: Workspace):
    assert replaced(workspace, "{kind: SetInfo, description: x}").outcome is AddOutcome.UPDATED
    assert workspace.datasets.state("a").polling_source is not None


# --- What may not change ---------------------------------------------------------------------------------------------

REFUSED = {
    "a required column is gone": (polling(of=read(EVENT_TIME, NAME)), SchemaError, "Required field 'id' is missing"),
    "a type": (
        polling(of=read(EVENT_TIME, "{name: id, type: String}", NAME)), SchemaError, "'id' is String .* Int64 is recorded"
    ),
    "the width of a number": (
        polling(of=read(EVENT_TIME, "{name: id, type: UInt64}")), SchemaError, "'id' is UInt64 .* Int64 is recorded"
    ),
    "the event time becomes a date": (
        polling(of=read("{name: event_time, type: Date}", ID)), SchemaError, "'event_time' is Date .* Timestamp"
    ),
    "a type, by a query": (
        polling(query="select event_time, cast(id as text) as id from input"), SchemaError, "'id' is String"
    ),
    "a query that does not run": (polling(query="select event_time, nope as id from input"), InvalidQuery, "nope"),
    "a key that is not there": (polling(merge="{kind: Ledger, primaryKey: [key]}"), IngestError, "'key' is not in"),
    "a column with the name of a system column": (
        polling(of=read(EVENT_TIME, ID, "{name: offset, type: Int64}")), IngestError, "'offset' .* system column"
    ),
    "an unknown engine": (
        polling(query="select 1").replace("datafusion", "nosuch"), OdfError, "'nosuch'"
    ),
    "the event time is renamed": (
        "{kind: SetVocab, eventTimeColumn: t}", SchemaError, "'event_time' may not be renamed to 't'"
    ),
    "the offset is renamed": ("{kind: SetVocab, offsetColumn: o}", SchemaError, "'offset' may not be renamed to 'o'"),
}  # fmt: skip


@pytest.mark.parametrize(("event", "error", "words"), REFUSED.values(), ids=REFUSED)
def test_what_may_not_change_is_refused_by_name_and_nothing_is_changed(
    workspace: Workspace, event: str, error: type[OdfError], words: str
):
    head = workspace.datasets.state("a").head
    with pytest.raises(error, match=words) as caught:
        replaced(workspace, event)
    assert caught.value.hint or error is InvalidQuery
    assert caught.value.message.startswith("a: ")
    assert workspace.datasets.state("a").head == head


def test_before_the_first_data_everything_may_change(tmp_path: Path):
    workspace = Workspace.init(tmp_path)
    replaced(workspace, polling())
    replaced(
        workspace,
        polling(of=read("{name: t, type: Date}", "{name: id, type: String}")),
        "{kind: SetVocab, eventTimeColumn: t}",
    )
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "1.ndjson").write_text('{"t": "2024-01-01", "id": "x"}\n')
    pull(workspace)
    assert workspace.tail("a").column_names == ["offset", "op", "system_time", "t", "id"]


# --- Derivatives -----------------------------------------------------------------------------------------------------


@pytest.fixture
def derived(tmp_path: Path) -> Workspace:
    workspace = workspace_with(
        tmp_path, root("b"), root("c"), derivative("d", "b", "select op, event_time, id, name from source")
    )
    feed(workspace, "b", "1 x")
    feed(workspace, "c", "7 y")
    return pulled(workspace)


def pulled(workspace: Workspace) -> Workspace:
    (result,) = workspace.pull(["d"])
    assert result.error is None, result.error
    return workspace


def rederived(workspace: Workspace, query: str, source: str = "b") -> None:
    workspace.add(load_snapshots(derivative("d", source, query), "d.yaml"), replace=True)


def test_another_query_holds_for_the_rows_to_come(derived: Workspace):
    rederived(derived, "select op, event_time, id, upper(name) as name, id * 2 as twice from source")
    feed(derived, "b", "1 x", "2 z", day=2)
    pulled(derived)
    assert rows(derived, "d") == ["+A 1 x", "+A 2 Z"]
    assert derived.tail("d").column("twice").to_pylist() == [None, 4]
    (report,) = derived.verify(["d"])
    assert report.ok, report.findings


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select op, event_time, cast(id as text) as id, name from source", "'id' is String"),
        ("select op, event_time, name from source", "Required field 'id' is missing"),
        ("select op, cast(event_time as date) as event_time, id, name from source", "'event_time' is Date"),
    ],
)
def test_another_query_may_not_change_what_is_recorded(derived: Workspace, query: str, words: str):
    with pytest.raises(SchemaError, match=words) as caught:
        rederived(derived, query)
    assert caught.value.hint


def test_another_input_is_taken_from_its_beginning(derived: Workspace):
    rederived(derived, "select op, event_time, id, name from source", "c")
    pulled(derived)
    assert rows(derived, "d") == ["+A 1 x", "+A 7 y"]
    (report,) = derived.verify(["d"])
    assert report.ok, report.findings


PLAIN = "select op, event_time, id, name from source"
UPPER = PLAIN.replace(" name", " upper(name) as name")


@pytest.mark.parametrize(
    ("merge", "is_told"), [("{kind: Append}", False), ("{kind: UpsertStream, primaryKey: [id]}", True)]
)
def test_another_query_row_by_row_over_rows_that_may_be_corrected(tmp_path: Path, merge: str, is_told: bool) -> None:
    """What corrections take back is not there, until the query has been applied to all rows."""
    workspace = workspace_with(tmp_path, root(merge=merge), derivative(query=PLAIN))
    feed(workspace, "root", "1 a")
    list(workspace.pull(["derived"]))
    (changed,) = workspace.add(load_snapshots(derivative(query=UPPER), "derived.yaml"), replace=True)
    told = [note for note in changed.notes if "an input may correct earlier rows" in note]
    assert bool(told) == is_told
    if is_told:
        feed(workspace, "root", "1 b", day=2)
        list(workspace.pull(["derived"]))
        assert rows(workspace, "derived") == ["+A 1 a", "-C 1 A", "+C 1 B"]
        assert "`odf compact --keep-metadata-only`" in told[0]
        workspace.maintenance.compact("derived", CompactOptions(keep_metadata_only=True))
        list(workspace.pull(["derived"]))
        assert rows(workspace, "derived") == ["+A 1 A", "-C 1 A", "+C 1 B"]


def test_a_column_that_an_input_gets_in_the_same_command_comes_later(tmp_path: Path) -> None:
    plain, more = (
        derivative("first", query=PLAIN),
        derivative("first", query=PLAIN.replace(" from", ", id as more from")),
    )
    workspace = workspace_with(tmp_path, root(), plain, derivative("second", "first", PLAIN))
    feed(workspace, "root", "1 a")
    list(workspace.pull(all=True))
    second = derivative("second", "first", PLAIN.replace(" from", ", more from"))
    snapshots = [*load_snapshots(more, "first.yaml"), *load_snapshots(second, "second.yaml")]
    with pytest.raises(InvalidQuery, match="second: No field named more") as refused:
        workspace.add(snapshots, replace=True)
    assert str(refused.value.hint).endswith(
        "New columns of first come with its next rows: first add and pull only that."
    )
    workspace.add(snapshots[:1], replace=True)
    feed(workspace, "root", "1 a", "2 b", day=2)
    list(workspace.pull(["first"]))
    with pytest.raises(InvalidQuery, match="No field named nothing") as refused:
        workspace.add(
            load_snapshots(derivative("second", "first", "select nothing from source"), "s.yaml"), replace=True
        )
    assert "come with" not in str(refused.value.hint)
    workspace.add(snapshots, replace=True)
    list(workspace.pull(["second"]))
    assert workspace.tail("second", 10)["more"].to_pylist() == [None, 2]


@pytest.mark.parametrize(
    ("old", "new", "is_told"),
    [
        ("{kind: Append}", "{kind: UpsertStream, primaryKey: [id]}", True),
        ("{kind: Snapshot, primaryKey: [id, name]}", "{kind: UpsertStream, primaryKey: [id]}", True),
        ("{kind: UpsertStream, primaryKey: [id]}", "{kind: UpsertStream, primaryKey: [id, name]}", False),
        ("{kind: UpsertStream, primaryKey: [id]}", "{kind: Ledger, primaryKey: [id]}", False),
        ("{kind: UpsertStream, primaryKey: [id]}", "{kind: Append}", False),
    ],
)
def test_a_key_that_several_rows_may_have(tmp_path: Path, old: str, new: str, is_told: bool) -> None:
    """Only the last row of a key counts, and corrections take back no other."""
    workspace = workspace_with(tmp_path, root(merge=old))
    (unfed,) = workspace.add(load_snapshots(root(merge=new), "root.yaml"), replace=True)
    assert not unfed.notes, "there are no rows yet"
    workspace.add(load_snapshots(root(merge=old), "root.yaml"), replace=True)
    feed(workspace, "root", "1 a", "2 b")
    (changed,) = workspace.add(load_snapshots(root(merge=new), "root.yaml"), replace=True)
    assert [note for note in changed.notes if "the primary key is now id: of current rows" in note] == list(
        changed.notes
    ), changed.notes
    assert bool(changed.notes) == is_told
