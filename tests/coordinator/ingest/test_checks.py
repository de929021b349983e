"""What `odf add` can tell of a source before any data has come."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.chains.workspaces import derivative

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import InvalidQuery

MANIFEST = """
kind: DatasetSnapshot
version: 1
content:
  name: a
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {fetch}
      read: {{kind: Parquet}}
      preprocess: {{kind: Sql, engine: datafusion, query: "{query}"}}
      merge: {{kind: Ledger, primaryKey: [id]}}
"""
FETCHES = {
    "a file": "{kind: Url, url: 'file:in/1.parquet'}",
    "files of a folder": "{kind: FilesGlob, path: 'in/*.parquet'}",
}
LATER = "the preprocessing query will be checked when data arrives: the source declares no schema"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace.init(tmp_path)
    (tmp_path / "in").mkdir()
    rows = {
        "t": pa.array([0], pa.timestamp("us")),
        "id": pa.array([1], pa.uint32()),
        "name": pa.array(["x"], pa.string_view()),
    }
    pq.write_table(pa.table(rows), tmp_path / "in" / "1.parquet")
    return made


def notes(workspace: Workspace, fetch: str, query: str) -> tuple[str, ...]:
    (result,) = workspace.add(load_snapshots(MANIFEST.format(fetch=fetch, query=query), "a.yaml"))
    return result.notes


@pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES)
def test_a_parquet_file_at_hand_says_what_the_columns_are(workspace: Workspace, fetch: str):
    assert notes(workspace, fetch, "select t as event_time, id, name from input") == ()
    assert workspace.datasets.state("a").schema is None, "nothing is recorded before there is data"


@pytest.mark.parametrize("fetch", FETCHES.values(), ids=FETCHES)
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select nope as event_time from input", "No field named nope"),
        ("select t as event_time from input", "'id' is not in"),
    ],
)
def test_so_a_source_that_cannot_work_is_remarked_on_at_once(workspace: Workspace, fetch: str, query: str, words: str):
    (note,) = notes(workspace, fetch, query)
    assert note.startswith("no data can be ingested like this: ")
    assert words in note


def test_and_what_is_derived_from_it_is_checked_at_once(workspace: Workspace):
    notes(workspace, FETCHES["a file"], "select t as event_time, id, upper(name) as name from input")
    good = load_snapshots(derivative("good", "a", "select op, event_time, id, name from source"), "good.yaml")
    bad = load_snapshots(derivative("bad", "a", "select op, event_time, nam from source"), "bad.yaml")
    (result,) = workspace.add(good)
    assert result.notes == ()
    with pytest.raises(InvalidQuery, match="nam"):
        workspace.add(bad)


@pytest.mark.parametrize(
    "fetch",
    [
        "{kind: Url, url: 'file:in/2.parquet'}",
        "{kind: Url, url: 'file:in'}",
        "{kind: Url, url: 'file:${{ env.ODF_NOT_SET }}'}",
        "{kind: FilesGlob, path: 'out/*.parquet'}",
        "{kind: Url, url: 'https://example.invalid/1.parquet'}",
    ],
)
def test_a_file_that_is_not_at_hand_is_waited_for(workspace: Workspace, fetch: str):
    found = notes(workspace, fetch, "select t as event_time, id from input")
    assert [note for note in found if not note.startswith("each pull ")] == [LATER]


def test_a_damaged_file_is_for_the_pull_to_tell_of(workspace: Workspace):
    (workspace.root / "in" / "1.parquet").write_bytes(b"PAR1 and so on")
    assert notes(workspace, FETCHES["a file"], "select t as event_time, id from input") == (LATER,)
