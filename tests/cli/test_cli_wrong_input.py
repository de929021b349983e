"""Wrong input: one message that says what, where and what to try; the right exit code; and nothing has happened."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.chains.workspaces import FOLDER, derivative, root
from support.fixtures import KAMU
from support.servers.static_server import static_server

if TYPE_CHECKING:
    from cli.conftest import Odf

FILES = {
    "good.ndjson": '{"event_time":"2024-02-01T00:00:00Z","id":9,"name":"z"}\n',
    "bad.ndjson": '{"event_time":"2024-02-01T00:00:00Z","id":8,"name":"y"}\n{"event_time":"x","id":9,"name":"z"}\n',
}

CSV = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.table
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: Csv
        header: true
        schema: {fields: [{name: event_time, type: Timestamp}, {name: id, type: Int64}, {name: name, type: String}]}
      merge: {kind: Append}
"""

WEB = """
kind: DatasetSnapshot
version: 1
content:
  name: com.example.web
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: Url, url: "URL"}
      read: {kind: Csv, header: true, schema: {fields: [{name: id, type: Int64}]}}
      merge: {kind: Append}
"""


@pytest.fixture(autouse=True)
def untouched(workspace: Path) -> Iterator[None]:
    """Every test of this module leaves the datasets as they were, and no scratch file behind."""
    before = contents(workspace)
    yield
    assert contents(workspace) == before
    scratch = workspace / ".odf" / "run" / "scratch"
    assert not scratch.exists() or list(scratch.iterdir()) == []


def contents(workspace: Path) -> dict[str, str]:
    folders = [workspace / ".odf" / name for name in ("datasets", "keys", "repos")]
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


def without(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new)


# --- Manifests -------------------------------------------------------------------------------------------------------

PLAIN = root("com.example.new")

MANIFESTS = {
    "unknown key": (
        without(PLAIN, "sourceName", "sourcName"), 1, ["line 8", "`content.metadata[0].sourcName`", "sourceName?"]),
    "unknown key at the top": (PLAIN + "contents: 1\n", 1, ["contents"]),
    "wrong kind of manifest": (without(PLAIN, "DatasetSnapshot", "DatasetSnap"), 1, ["line 1", "DatasetSnap"]),
    "wrong kind of dataset": (without(PLAIN, "kind: Root", "kind: Rot"), 1, ["line 5", "Did you mean Root?"]),
    "wrong kind of event": (without(PLAIN, "AddPushSource", "AddPushSauce"), 1, ["line 7", "Did you mean AddPushSource?"]),
    "wrong kind of reader": (without(PLAIN, "NdJson", "NdJsn"), 1, ["line 10", "Did you mean NdJson?"]),
    "wrong kind of merge": (without(PLAIN, "Snapshot, ", "Snapchat, "), 1, ["line 16", "Snapshot?"]),
    "wrong kind of type": (without(PLAIN, "Int64", "Int65"), 1, ["line 14", "Int64?"]),
    "wrong kind of value": (CSV.replace("header: true", 'header: "yes"'), 1, ["line 11", "true or false", "'yes'"]),
    "missing key": (without(PLAIN, "sourceName: default", ""), 1, ["sourceName"]),
    "newer version": (without(PLAIN, "version: 1", "version: 2"), 1, ["line 2", "version: 1"]),
    "not YAML": ("content: [", 1, ["wrong.yaml, line 2", "not YAML"]),
    "two times the same key": (PLAIN + "kind: DatasetSnapshot\n", 1, ["kind", "twice"]),
    "an alias that explodes": ("a: &a [1]\nb: *a\n", 1, ["line 2", "aliases"]),
    "no manifest": ("# nothing\n", 1, ["no manifest", "odf new"]),
    "a missing input": (derivative("com.example.d", "com.example.rate"), 1, ["com.example.rate", "neither"]),
    "a cycle": (
        derivative("com.example.a", "com.example.b") + "---" + derivative("com.example.b", "com.example.a"),
        2, ["com.example.a -> com.example.b -> com.example.a"]),
    "a dataset of itself": (derivative("com.example.a", "com.example.a"), 2, ["com.example.a -> com.example.a"]),
    "two times the same name": (PLAIN + "---" + PLAIN, 1, ["Two manifests", "com.example.new"]),
    "two names that differ by case only": (
        PLAIN + "---" + PLAIN.replace("example.new", "example.NEW"), 1, ["Two manifests"]),
    "a name that is taken": (PLAIN.replace("example.new", "example.rates"), 1, ["already exists", "--replace"]),
    "a bad id": (
        derivative("com.example.d", "did:odf:fed0123"), 1, ["did:odf:fed0123"]),
    "an id of nobody": (
        derivative("com.example.d", "did:odf:fed01" + 64 * "0"), 1, ["did:odf:fed0100000", "odf list --wide"]),
    "no transform": (
        PLAIN.replace("kind: Root", "kind: Derivative"), 2, ["SetTransform"]),
    "a query that does not parse": (
        derivative("com.example.d", "com.example.rates", "selekt 1"), 1, ["com.example.d", "selekt"]),
    "a query of a column that is not there": (
        derivative("com.example.d", "com.example.rates", "select event_time, nam from source"), 1, ["nam"]),
    "an unknown engine": (
        derivative("com.example.d", "com.example.rates", engine="sparc"), 1, ["sparc", "Did you mean spark?"]),
}  # fmt: skip


@pytest.mark.parametrize("case", MANIFESTS)
def test_manifest(case: str, odf: Odf, workspace: Path) -> None:
    text, code, words = MANIFESTS[case]
    (workspace / "wrong.yaml").write_text(text.lstrip("\n"))
    refused = odf("add", "wrong.yaml")
    assert (refused.code, refused.out) == (code, "")
    for word in words:
        assert word in refused.says


@pytest.mark.parametrize(
    "name", ["../x", "/x", "a/../../x", ".x", "x.", "a..b", "a b", "", "~", "a\\b", "x" * 300, "-x"]
)
def test_names_are_no_paths(name: str, odf: Odf, workspace: Path) -> None:
    (workspace / "wrong.yaml").write_text(PLAIN.replace("com.example.new", f'"{name}"'))
    for words in (["add", "wrong.yaml"], ["new", "--", name], ["rename", "--", "com.example.rates", name]):
        refused = odf(*words)
        assert refused.code in (1, 2)
        assert "name" in refused.says
    assert odf("repo", "add", "--", name, "/srv/x").code == 2
    assert odf("pull", "--as", name, "--", "/srv/x").code == 2
    assert odf("tail", "--", name).code in (1, 2)
    assert sorted(path.name for path in workspace.parent.iterdir()) == ["workspace"]


@pytest.mark.parametrize(
    "text", ["did:odf:", "did:odf:fed01", "did:odf:zzzz", "did:odf:f" + 68 * "0", "did:key:fed0100"]
)
def test_ids(text: str, odf: Odf) -> None:
    for command in ("show", "tail", "pull", "verify"):
        refused = odf(command, text)
        assert refused.code in (1, 2)
        assert text.removeprefix("did:odf:") in refused.says


def test_files_that_are_no_manifests(odf: Odf, workspace: Path) -> None:
    (workspace / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    (workspace / "empty").mkdir()
    for words, said in (
        (["binary.yaml"], "binary.yaml, line 1: not UTF-8"),
        (["nothing.yaml"], "No such file: nothing.yaml"),
        (["empty"], "--recursive"),
        (["-r", "empty"], "No manifests"),
        (["-"], "standard input"),
    ):
        assert said in odf("add", *words).says


def test_a_manifest_with_another_ending_is_suggested(odf: Odf, workspace: Path) -> None:
    (workspace / "orders.yaml").write_text("")
    (workspace / "orders.csv").write_text("")
    assert "hint: Did you mean orders.yaml?" in odf("add", "orders.yml").says


# --- Data ------------------------------------------------------------------------------------------------------------


DATA = {
    "a bad value": ("event_time,id,name\n2024-01-01,1,a\n2024-01-01,x2,b\n", ["line 3", "'id'", "'x2'", "Int64"]),
    "a bad time": ("event_time,id,name\nyesterday,1,a\n", ["line 2", "'event_time'", "'yesterday'"]),
    "no value where one is required": ("event_time,id,name\n2024-01-01,,a\n", ["line 2", "'id'"]),
    "a missing column": ("event_time,name\n2024-01-01,a\n", ["header", "missing: 'id'"]),
    "too few values": ("event_time,id,name\n2024-01-01,1\n", ["line 2", "2 values", "3 columns"]),
    "too many values": ("event_time,id,name\n2024-01-01,1,a,b\n", ["line 2", "4 values", "3 columns"]),
    "a quote without end": ('event_time,id,name\n2024-01-01,1,"a\n', ["line 2"]),
    "no text": ("event_time,id,name\n2024-01-01,1,\udcff\n", ["line 2", "utf-8"]),
}


@pytest.mark.parametrize("case", DATA)
def test_csv(case: str, odf: Odf, workspace: Path, tmp_path: Path) -> None:
    text, words = DATA[case]
    other = tmp_path / "other"
    (workspace / "table.yaml").write_text(CSV)
    assert odf("init", str(other)).code == odf("add", "table.yaml", "-w", str(other)).code == 0
    (workspace / "wrong.csv").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused = odf("ingest", "com.example.table", "wrong.csv", "-w", str(other))
    assert (refused.code, refused.out) == (1, "")
    assert "wrong.csv" in refused.says
    for word in words:
        assert word in refused.says
    assert odf("list", "-o", "json", "-w", str(other)).json[0]["blocks"] == 2


def test_an_empty_file_is_no_error_but_is_told_of(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (workspace / "table.yaml").write_text(CSV)
    (workspace / "empty.csv").write_text("")
    assert odf("init", str(other)).code == odf("add", "table.yaml", "-w", str(other)).code == 0
    for _ in range(2):
        done = odf("ingest", "com.example.table", "empty.csv", "-w", str(other))
        assert done.code == 0
        assert "(0 rows read;" in done.err


def test_what_came_before_the_file_at_fault_stays(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    (workspace / "new.yaml").write_text(PLAIN)
    assert odf("init", str(other)).code == odf("add", "new.yaml", "-w", str(other)).code == 0
    for name, text in FILES.items():
        (workspace / name).write_text(text)
    files = ("good.ndjson", "bad.ndjson", "good.ndjson", "good.ndjson")
    told = odf("ingest", "com.example.new", *files, "-w", str(other), "-o", "json")
    assert told.code == 1
    assert told.says.startswith("error: com.example.new: bad.ndjson, line 2: ")
    assert "; not tried: good.ndjson and 1 more (E" in told.says
    assert [record["records"] for record in told.json] == [1]


def test_what_a_failed_pull_has_taken_in_before_the_file_at_fault_is_told(odf: Odf, tmp_path: Path) -> None:
    other = tmp_path / "other"
    assert odf("init", str(other)).code == 0
    (other / "polled.yaml").write_text(FOLDER)
    assert odf("add", str(other / "polled.yaml"), "-w", str(other)).code == 0
    (other / "in").mkdir()
    for number, text in enumerate(("1", "2", "x", "4")):
        (other / "in" / f"{number}.csv").write_text(f"id\n{text}\n")
    told = odf("pull", "com.example.folder", "-w", str(other), "-o", "json")
    assert told.code == 1
    (result,) = told.json
    (listed,) = odf("list", "-w", str(other), "-o", "json").json
    assert (result["outcome"], result["records"], result["blocks"]) == ("failed", 2, 3)
    assert result["newHead"] == listed["head"] != result["oldHead"]
    assert "2.csv" in result["error"]
    (other / "in" / "2.csv").write_text("id\n3\n")
    (other / "in" / "4.csv").write_text("id\nx\n")
    told = odf("pull", "com.example.folder", "-w", str(other))
    assert told.code == 1
    assert "4.csv" in told.err
    assert "  committed before that: 2 records in 2 blocks\n" in told.err
    told = odf("pull", "com.example.folder", "-w", str(other))
    assert "committed" not in told.err, "nothing was"


def test_files_that_are_not_there(odf: Odf, workspace: Path) -> None:
    (workspace / "good.ndjson").write_text(FILES["good.ndjson"])
    assert "No such file: nothing.csv" in odf("ingest", "com.example.rates", "good.ndjson", "nothing.csv").says
    assert ". is a folder" in odf("ingest", "com.example.rates", ".").says


def test_sources_that_are_not_there(odf: Odf, workspace: Path) -> None:
    (workspace / "good.ndjson").write_text(FILES["good.ndjson"])
    refused = odf("ingest", "com.example.rates", "good.ndjson", "--source-name", "defalt")
    assert refused.code == 2
    assert "Did you mean default?" in refused.says


# --- Places ----------------------------------------------------------------------------------------------------------


def test_a_404(odf: Odf, workspace: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    with static_server(tmp_path) as server:
        (workspace / "web.yaml").write_text(WEB.replace("URL", f"{server.url}/nothing.csv"))
        assert odf("init", str(other)).code == odf("add", "web.yaml", "-w", str(other)).code == 0
        refused = odf("pull", "com.example.web", "-w", str(other))
        assert refused.code == 1
        assert f"com.example.web: {server.url}/nothing.csv: the server answers 404" in refused.says
        refused = odf("pull", f"{server.url}/nowhere")
        assert refused.code == 1
        assert f"No dataset there: {server.url}/nowhere/refs/head" in refused.says
    refused = odf("pull", "com.example.web", "-w", str(other))
    assert "Connection refused" in refused.says


def test_repositories_and_folders_without_datasets(odf: Odf) -> None:
    assert "Add it with `odf repo add nowhere URL`" in odf("pull", "nowhere/x").says
    assert "No dataset there" in odf("pull", "./nowhere").says
    assert "ftp://" in odf("repo", "add", "x", "ftp://example.com/").says
    assert "matches the pattern" in odf("pull", "org.%").says
    assert "not been pushed anywhere yet" in odf("push", "com.example.rates").says


def test_a_copy_must_not_replace_another_dataset(odf: Odf, workspace: Path) -> None:
    refused = odf("pull", str(KAMU / "cities"), "--as", "com.example.rates")
    assert refused.code == 1
    assert "of another one, did:odf:" in refused.says
    assert "under another name" in refused.says


def test_watermarks_do_not_go_back(odf: Odf) -> None:
    refused = odf("pull", "com.example.rates", "--set-watermark", "1999-01-01")
    assert refused.code == 1
    assert "is at 2024-01-01T00:00:00Z already" in refused.says


# --- Queries ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("selekt 1", ["selekt"]),
        ('select nam from "com.example.rates"', ["nam"]),
        ('select * from "com.example.rate"', ["com.example.rate"]),
        ('select * from "com.example.empty"', ["com.example.empty", "no data yet"]),
        ("drop table x", []),
        ("create table x (a int)", []),
        ("copy (select 1) to '/tmp/nothing'", []),
    ],
)
def test_sql(query: str, words: list[str], odf: Odf) -> None:
    refused = odf("sql", "--engine", "datafusion", "-c", query)
    assert (refused.code, refused.out) == (1, "")
    for word in words:
        assert word in refused.says


def test_a_derivative_without_quotes_is_told_where_they_belong(odf: Odf, workspace: Path) -> None:
    query = "select event_time, com.example.rates.id from com.example.rates"
    manifest = derivative("com.example.wrong", "com.example.rates", query).replace(", alias: source", "")
    assert "alias" not in manifest
    (workspace / "wrong.yaml").write_text(manifest)
    refused = odf("add", "wrong.yaml")
    assert refused.code == 1
    assert refused.says.endswith('hint: Write "com.example.rates" instead of com.example.rates.\n')


def test_without_data_there_is_nothing_to_see(odf: Odf) -> None:
    for words in (["tail", "com.example.empty"], ["inspect", "schema", "com.example.empty"]):
        assert "Pull or ingest data first." in odf(*words).says
