"""`odf ingest --watch`: what comes into a folder is taken in, each file once, whatever happens in between.

Time is what the test makes it: between two looks at the folder a step of the story is told, and at its end the watch
is interrupted, as by a person.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from support.chains.workspaces import root, rows, workspace_with
from support.processes.leases import has_leases

from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import BadValue, DatasetLocked, IngestError, OdfError, UsageError

Step = Callable[[], object]
LEDGER, APPEND = "{kind: Ledger, primaryKey: [id]}", "{kind: Append}"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = workspace_with(tmp_path / "workspace", root("ledger", LEDGER), root("append", APPEND))
    (made.root / "inbox").mkdir()
    return made


def put(workspace: Workspace, name: str, *ids: int, bad: bool = False) -> Path:
    """A whole file with one row for each id, at once."""
    path = workspace.root / "inbox" / name
    lines = [f'{{"event_time":"2024-01-01T00:00:00Z","id":{"true" if bad else key},"name":"x"}}\n' for key in ids]
    temporary = path.with_name(f".{name}")
    temporary.write_text("".join(lines))
    temporary.replace(path)
    return path


def watched(workspace: Workspace, *story: Step, ref: str = "ledger", **options: object) -> list[PullResult]:
    """What a watch gives while a story is told, a step for each time that nothing is to be done."""
    steps = iter([lambda: None, *(step for told in story for step in (told, lambda: None))])

    def pause() -> None:
        step = next(steps, None)
        if step is None:
            raise KeyboardInterrupt
        step()

    return list(workspace.watch(ref, workspace.root / "inbox", settle=0, pause=pause, **options))  # type: ignore[arg-type]


def told(results: list[PullResult]) -> list[tuple[str | None, str, int]]:
    return [(result.input, result.outcome.value, result.num_records) for result in results]


def test_files_that_are_there_and_files_that_come(workspace: Workspace) -> None:
    put(workspace, "b.ndjson", 2)
    put(workspace, "a.ndjson", 1)
    found = watched(workspace, lambda: put(workspace, "c.ndjson", 1, 3), lambda: None)
    assert told(found) == [("a.ndjson", "updated", 1), ("b.ndjson", "updated", 1), ("c.ndjson", "updated", 1)]
    assert rows(workspace, "ledger") == ["+A 1 x", "+A 2 x", "+A 3 x"]
    assert found[-1].counts["unchanged"] == 1


def test_after_a_restart_only_what_is_new_is_taken_in(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    assert len(watched(workspace, ref="append")) == 1
    put(workspace, "b.ndjson", 2)
    assert told(watched(Workspace.open(workspace.root), ref="append")) == [("b.ndjson", "updated", 1)]
    assert watched(Workspace.open(workspace.root), ref="append") == []
    assert rows(workspace, "append") == ["+A 1 x", "+A 2 x"]


def test_what_was_committed_is_remembered_even_if_the_watch_died_at_that_moment(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    put(workspace, "b.ndjson", 2)
    results = workspace.watch("append", workspace.root / "inbox", settle=0, pause=lambda: None)
    assert next(results).input == "a.ndjson"
    results.close()  # type: ignore[attr-defined]
    by_hand = put(workspace, "by-hand.ndjson", 9).rename(workspace.root / "by-hand.ndjson")
    assert [result.num_records for result in workspace.ingest("append", [by_hand])] == [1]
    assert told(watched(workspace, ref="append")) == [("b.ndjson", "updated", 1)]


def test_a_bad_file_is_told_of_once_and_does_not_end_the_watch(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1, bad=True)
    put(workspace, "b.ndjson", 2)
    found = watched(workspace, lambda: None, lambda: put(workspace, "a.ndjson", 1), lambda: None)
    assert told(found) == [("a.ndjson", "failed", 0), ("b.ndjson", "updated", 1), ("a.ndjson", "updated", 1)]
    assert isinstance(found[0].error, BadValue)
    assert "a.ndjson, line 1" in found[0].error.message
    assert rows(workspace, "ledger") == ["+A 2 x", "+A 1 x"]


def test_a_file_whose_name_is_no_text_is_told_of_once(workspace: Workspace) -> None:
    put(workspace, os.fsdecode(b"\xff.ndjson"), 1)
    put(workspace, "a.ndjson", 2)
    found = watched(workspace, lambda: None, lambda: None)
    assert told(found) == [("a.ndjson", "updated", 1), ("\\udcff.ndjson", "failed", 0)]
    assert found[1].error is not None
    assert "is not UTF-8" in found[1].error.message


def test_a_file_is_not_taken_in_before_it_is_complete(workspace: Workspace) -> None:
    path = put(workspace, "a.ndjson", 1)
    writer = path.open("a")
    found = watched(
        workspace,
        lambda: None,
        lambda: writer.write('{"event_time":"2024-01-01T00:00:00Z","id":2,"name":"x"}\n') and writer.flush(),
        lambda: None,
        writer.close,
        lambda: None,
    )
    whole = [("a.ndjson", "updated", 2)]
    assert told(found) == (whole if has_leases(workspace.root) else [("a.ndjson", "updated", 1)] * 2)


def test_a_changed_file_comes_again_where_rows_are_known_by_keys(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    found = watched(workspace, lambda: put(workspace, "a.ndjson", 1, 2), lambda: None)
    assert told(found) == [("a.ndjson", "updated", 1), ("a.ndjson", "updated", 1)]


def test_a_changed_file_is_refused_where_its_rows_would_come_twice(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    found = watched(workspace, lambda: put(workspace, "a.ndjson", 1, 2), lambda: None, lambda: None, ref="append")
    assert told(found) == [("a.ndjson", "updated", 1), ("a.ndjson", "failed", 0)]
    assert isinstance(found[1].error, IngestError)
    assert "would be duplicated" in found[1].error.message
    assert rows(workspace, "append") == ["+A 1 x"]


def test_another_writer_is_waited_for(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("odfpy.coordinator.ingest.watch.RETRY", 0.0)
    put(workspace, "a.ndjson", 1)
    other = workspace.storage.get("ledger").writing()
    other.__enter__()
    results = workspace.watch("ledger", workspace.root / "inbox", settle=0, pause=lambda: None)
    first = next(results)
    assert isinstance(first.error, DatasetLocked)
    other.__exit__(None, None, None)
    assert (second := next(results)).outcome is PullOutcome.UPDATED
    assert second.input == "a.ndjson"


def test_only_names_that_fit_the_pattern_are_meant(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    put(workspace, "b.json", 2)
    assert told(watched(workspace, pattern="*.ndjson")) == [("a.ndjson", "updated", 1)]


def test_a_file_with_nothing_new_is_remembered_too(workspace: Workspace) -> None:
    put(workspace, "a.ndjson", 1)
    put(workspace, "b.ndjson", 1)
    assert [result.num_records for result in watched(workspace)] == [1, 0]
    assert watched(workspace) == []


def test_files_are_neither_moved_nor_changed(workspace: Workspace) -> None:
    path = put(workspace, "a.ndjson", 1)
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    watched(workspace)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert list(path.parent.iterdir()) == [path]


def test_what_cannot_be_watched(workspace: Workspace) -> None:
    for ref, folder, options in (
        ("ledger", "nowhere", {}),
        ("ledger", "inbox", {"source_name": "other"}),
        ("ledger", "inbox", {"input_format": "xlsx"}),
    ):
        with pytest.raises(UsageError):
            next(workspace.watch(ref, workspace.root / folder, **options))  # type: ignore[arg-type]


def test_a_folder_that_is_taken_away_ends_the_watch(workspace: Workspace) -> None:
    with pytest.raises(OdfError, match="Cannot read the folder"):
        watched(workspace, (workspace.root / "inbox").rmdir)
