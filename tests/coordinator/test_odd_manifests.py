"""Manifests as people write them: oddities of public repositories, each as small as can be, pass `odf add --dry-run`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import AddOutcome, AddResult
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import DatasetNotFound, EngineNotFound

HEAD = """
version: 1
kind: DatasetSnapshot
content:
  name: odd
  kind: Root
  metadata:
"""
SCHEMA = "schema: {fields: [{name: event_time, type: timestamp}, {name: pointId, type: {kind: Option, inner: string}}]}"


def source(
    *, fetch: str = "{kind: Url, url: 'https://example.org/x'}", more: str = "", read: str = "{kind: NdJson}",
    merge: str = "{kind: append}",
) -> str:  # fmt: skip
    return f"{HEAD}    - kind: SetPollingSource\n      fetch: {fetch}\n      read: {read}\n      merge: {merge}\n{more}"


def query(text: str, engine: str = "datafusion", read: str = f"{{kind: NdJson, {SCHEMA}}}") -> str:
    step = f"      preprocess:\n        kind: sql\n        engine: {engine}\n        query: |\n          {text}\n"
    return source(read=read, more=step)


def tried(text: str, folder: Path) -> AddResult:
    (result,) = Workspace.init(folder).add(load_snapshots(text, "odd.yaml"), dry_run=True)
    assert result.outcome is AddOutcome.CREATED
    return result


PLAIN = {
    "nothing but a name": HEAD.rstrip() + " []\n",
    "kinds in lower case": source(merge="{kind: snapshot, primaryKey: [pointId]}"),
    "prepare steps and formats in lower case": source(more="      prepare: [{kind: decompress, format: zip, subPath: a.*}]\n"),
    "types in lower case": source(read=f"{{kind: Csv, header: true, nullValue: '', {SCHEMA}}}"),
    "templates without spaces and with numbers": source(
        fetch="{kind: Url, url: 'https://example.org/${{env.KEY}}?n=${{ env.N || 5 }}&t=${{ env.T || ''a:b'' }}'}"
    ),
    "a container that is given names of secrets only": source(
        fetch="{kind: Container, image: 'example.org/x:1', args: [all], env: [{name: TOKEN}, {name: N, value: '1'}]}"
    ),
    "an event signature over several lines": source(
        fetch='{kind: EthereumLogs, chainId: 1, signature: "Moved(\\n  address indexed to\\n)", filter: "block_number > 5"}',
        read="{kind: Parquet}",
    )
    + "    - {kind: SetVocab, eventTimeColumn: block_timestamp}\n",
    "the event time is named after the source": source() + "    - {kind: SetVocab, eventTimeColumn: added_at}\n",
    "names with capitals without quotes": query("select event_time, pointId as point_id from input"),
    "names with capitals in quotes": query('select event_time, "pointId" as POINT from input'),
    "a column called like a keyword": query("select event_time, pointId as from, pointId as to from input"),
    "more columns beside a star": query("select concat(pointId, '-', to_unixtime(event_time)) as id, * from input"),
    "functions over JSON": query("select event_time, json_get_str(pointId, 'name') as name from input"),
    "a window function": query("select event_time, row_number() over (order by pointId) as n from input"),
}  # fmt: skip


@pytest.mark.parametrize("text", PLAIN.values(), ids=PLAIN)
def test_it_is_added_without_a_remark(text: str, tmp_path: Path) -> None:
    """But what it reaches on this machine."""
    assert [note for note in tried(text, tmp_path).notes if not note.startswith("each pull ")] == []


REMARKS = {
    "a query over columns that only the data tells": (
        query("select to_timestamp(Day) as event_time from input", read="{kind: Csv, header: true}"),
        "will be checked when data arrives",
    ),
    "a query for an engine that is not here": (
        query("select `Day` as event_time from input", "flink", "{kind: Csv, header: true}"),
        "for flink was translated to Spark SQL",
    ),
    "functions on shapes over columns that only the data tells": (
        query('select ST_Transform(geometry, "epsg:3157", "epsg:4326") as g from input', "spark", "{kind: EsriShapefile}"),
        "will be checked when data arrives",
    ),
    "functions that nobody has": (
        query("select event_time, st_point(1.5, 2.5) as e from input"),
        "no data can be ingested like this.*st_point",
    ),
    "logs of Ethereum read as text": (
        source(fetch="{kind: EthereumLogs, chainId: 1, signature: 'A()'}", read="{kind: NdJson}"),
        "no data can be ingested like this.*EthereumLogs give Parquet, which NdJson does not read",
    ),
    "an engine that nobody knows": (query("select 1", "nosuch"), "no data can be ingested like this.*'nosuch'"),
    "a key that is not there": (
        source(read=f"{{kind: NdJson, {SCHEMA}}}", merge="{kind: ledger, primaryKey: [pointid]}"),
        "(?s)no data can be ingested like this.*'pointid' is not in the data.*Did you mean pointId",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "words"), REMARKS.values(), ids=REMARKS)
def test_it_is_added_with_a_remark(text: str, words: str, tmp_path: Path) -> None:
    notes = "\n".join(tried(text, tmp_path).notes)
    assert re.search(words, notes)


# --- Derivatives -----------------------------------------------------------------------------------------------------


def test_a_derivative_is_tried_without_its_inputs_and_says_so(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("com.example.rates"))
    snapshots = load_snapshots(derivative("d", "com.example.rats"), "d.yaml")
    (result,) = workspace.add(snapshots, dry_run=True)
    assert result.outcome is AddOutcome.CREATED
    first, second = result.notes
    assert first == (
        "the input 'com.example.rats' is neither in the workspace nor among the manifests, and has to be added first. "
        "Did you mean com.example.rates?"
    )
    assert second == "the query will be checked when all inputs exist"
    assert [str(summary.handle) for summary in workspace.datasets.all()] == ["com.example.rates"]


def test_neither_itself_nor_what_is_missing_too_is_suggested_for_a_missing_input(tmp_path: Path) -> None:
    """Manifests of one family have names alike."""
    query = "select event_time from source"
    missing = derivative("com.example.rates.sums", "com.example.rates.daily", query)
    family = missing.replace("inputs: [", "inputs: [{datasetRef: com.example.rates.days, alias: b}, ")
    assert family != missing
    (result,) = Workspace.init(tmp_path).add(load_snapshots(family, "m"), dry_run=True)
    told = [note for note in result.notes if "has to be added first" in note]
    assert len(told) == 2
    assert not [note for note in told if "Did you mean" in note]
    with pytest.raises(DatasetNotFound) as error:
        Workspace.open(tmp_path).add(load_snapshots(missing, "m"))
    assert error.value.hint == "Add the input first, or in the same command."


def test_a_derivative_of_a_derivative_without_its_inputs(tmp_path: Path) -> None:
    chain = [derivative("c", "b"), derivative("b", "a")]
    results = Workspace.init(tmp_path).add([s for text in chain for s in load_snapshots(text, "m")], dry_run=True)
    assert [(str(result.handle), len(result.notes)) for result in results] == [("b", 2), ("c", 1)]


def test_an_input_may_be_named_by_an_id_that_is_not_there(tmp_path: Path) -> None:
    other = workspace_with(tmp_path / "other", root("a")).datasets.handle("a").id
    (result,) = Workspace.init(tmp_path / "w").add(load_snapshots(derivative("d", str(other)), "d"), dry_run=True)
    assert str(other) in result.notes[0]


@pytest.mark.parametrize("name", ['"com.example.a"', "'com.example.a'"])
def test_a_query_names_its_input_in_quotes_of_any_kind(tmp_path: Path, name: str) -> None:
    text = derivative("d", "com.example.a", f"select op, event_time, id from {name}".replace('"', '\\"'))
    text = text.replace(", alias: source", "")
    workspace = workspace_with(tmp_path, root("com.example.a"))
    (result,) = workspace.add(load_snapshots(text, "d.yaml"))
    assert result.notes == ()


@pytest.mark.parametrize("engine", ["flink", "risingwave"])
def test_a_derivative_for_an_engine_of_the_reference_is_kept_and_not_pulled(tmp_path: Path, engine: str) -> None:
    workspace = workspace_with(tmp_path, root("a"))
    (result,) = workspace.add(load_snapshots(derivative("d", "a", "select 1", engine), "d.yaml"))
    assert result.notes == (
        f"the engine {engine} is not part of odfpy: the dataset can be copied, but not pulled here",
    )
    feed(workspace, "a", "1 x")
    (pulled,) = workspace.pull(["d"])
    assert isinstance(pulled.error, EngineNotFound)


# --- Folders ---------------------------------------------------------------------------------------------------------


def test_a_folder_may_hold_other_yaml_files(tmp_path: Path) -> None:
    folder = tmp_path / "contrib"
    (folder / ".github").mkdir(parents=True)
    (folder / ".github" / "ci.yaml").write_text("name: DatasetSnapshot\non: push\n")
    (folder / "compose.yml").write_text("services: {}\n")
    (folder / "a.yaml").write_text(root("a"))
    loaded = Workspace.init(tmp_path / "w").load([folder], recursive=True)
    assert [str(snapshot.name) for snapshot in loaded] == ["a"]
