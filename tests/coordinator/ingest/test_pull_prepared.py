"""Pulling from sources whose files have to be prepared or preprocessed first."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

from support.chains.csv_sources import csv_source, polled
from support.chains.workspaces import workspace_with
from support.ingest.preparing import zipped

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.results import AddResult, PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import InvalidQuery

SOURCE = """
kind: DatasetSnapshot
version: 1
content:
  name: prepared
  kind: Root
  metadata:
    - kind: SetPollingSource
      fetch: {kind: FilesGlob, path: "inbox/*.zip", order: ByName, eventTime: {kind: FromSystemTime}}
      prepare:
        - {kind: Decompress, format: Zip, subPath: "*.csv"}
        - {kind: Pipe, command: [sed, -e, "1,/BEGIN/d"]}
      read:
        kind: Csv
        schema: {fields: [{name: event_time, type: Timestamp}, {name: id, type: Int64}]}
      merge: {kind: Append}
"""


def workspace_with_source(folder: Path) -> tuple[Workspace, AddResult]:
    workspace = Workspace.init(folder)
    (folder / "inbox").mkdir()
    (added,) = workspace.add(load_snapshots(SOURCE, "m.yaml"))
    return workspace, added


def put(folder: Path, name: str, *ids: object) -> None:
    text = "Title\nBEGIN\n" + "".join(f"2024-01-01T00:00:00Z,{number}\n" for number in ids)
    (folder / "inbox" / name).write_bytes(zipped({"notes.txt": b"x", "data.csv": text.encode()}))


def test_files_are_prepared_one_by_one_and_nothing_is_left(tmp_path: Path):
    workspace, _ = workspace_with_source(tmp_path)
    put(tmp_path, "1.zip", 1, 2)
    put(tmp_path, "2.zip", 3)
    (result,) = workspace.pull(["prepared"])
    assert result.error is None
    assert [row["id"] for row in workspace.tail("prepared", 10).to_pylist()] == [1, 2, 3]
    assert sorted(path.name for path in (tmp_path / "inbox").iterdir()) == ["1.zip", "2.zip"]
    assert not list((tmp_path / ".odf" / "run").rglob("prepared-*"))


def test_a_file_that_cannot_be_prepared_changes_nothing(tmp_path: Path):
    workspace, _ = workspace_with_source(tmp_path)
    put(tmp_path, "1.zip", 1)
    list(workspace.pull(["prepared"]))
    before = workspace.datasets.state("prepared")
    (tmp_path / "inbox" / "2.zip").write_bytes(zipped({"data.csv": b"x"})[:-5])
    (result,) = workspace.pull(["prepared"])
    assert result.outcome is PullOutcome.FAILED
    assert "2.zip is truncated or damaged" in str(result.error)
    assert workspace.datasets.state("prepared") == before


def test_errors_name_the_file_as_fetched(tmp_path: Path):
    workspace, _ = workspace_with_source(tmp_path)
    put(tmp_path, "1.zip", "x")
    (result,) = workspace.pull(["prepared"])
    assert "1.zip, line 1: column 'id' has 'x'" in str(result.error)


def test_limits_are_settings(tmp_path: Path):
    workspace, _ = workspace_with_source(tmp_path)
    put(tmp_path, "1.zip", 1)
    workspace.config.set("prepare.maxSize", "10")
    (result,) = workspace.pull(["prepared"])
    assert "unpacks to more than 10 bytes" in str(result.error)


def test_adding_says_that_arguments_of_images_are_no_place_for_secrets(tmp_path: Path):
    fetch = "fetch: {kind: Container, image: 'example.com/image', args: [%s], env: [{name: TOKEN}]}"
    before = SOURCE[: SOURCE.index("fetch:")], SOURCE[SOURCE.index("read:") :]
    plain, secret = (
        Workspace.init(tmp_path / str(number)).add(load_snapshots(f"\n      {fetch % text}\n      ".join(before), "m"))
        for number, text in enumerate(("--all", "'${{ env.TOKEN }}'"))
    )
    warning = "other users of this machine can see the values in `args`"
    assert [note for note in plain[0].notes if warning in note] == []
    assert [note for note in secret[0].notes if warning in note]


def test_adding_names_commands_aloud(tmp_path: Path):
    _, added = workspace_with_source(tmp_path)
    assert added.notes == ("each pull runs the command sed -e 1,/BEGIN/d, in a sandbox if the system allows it",)


def test_an_error_of_a_query_names_the_file_of_many(tmp_path: Path) -> None:
    query = "select cast(price as decimal(18, 2)) as price from input"
    preprocess = f'preprocess: {{kind: Sql, engine: datafusion, query: "{query}"}}'
    merge = f"{{kind: Append}}\n      {preprocess}"
    manifest = csv_source("prices", "{name: price, type: String}", source=polled(), merge=merge)
    workspace = workspace_with(tmp_path / "workspace", manifest)
    (workspace.root / "in").mkdir()
    for name, price in (("monday.csv", "1.50"), ("tuesday.csv", "n/a")):
        (workspace.root / "in" / name).write_text(f"price\n{price}\n")
    (result,) = workspace.pull(["prices"])
    assert isinstance(result.error, InvalidQuery)
    assert result.error.message.startswith("tuesday.csv: Preprocessing with engine datafusion: Cannot cast")
    assert workspace.tail("prices", 5)["price"].to_pylist() == [Decimal("1.50")]
