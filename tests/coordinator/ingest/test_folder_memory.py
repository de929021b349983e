"""Files of a folder that a pull passes over are counted and told: late ones, and those that have changed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from support.chains.workspaces import FOLDER, copied, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.ingest.ingest import ingest_file
from odfpy.coordinator.maintenance.compact import CompactOptions
from odfpy.coordinator.storage.results import PullOutcome, PullResult
from odfpy.coordinator.workspace import Workspace
from odfpy.data.data_warning import DataWarning, WarningKind
from odfpy.errors import IngestError

NAME = "com.example.folder"
AGAIN = "`odf pull --force` ingests all files again"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace whose source has taken in two files."""
    made = workspace_with(tmp_path_factory.mktemp("prepared"), FOLDER)
    write(made, "tx_01.csv", 1)
    write(made, "tx_07.csv", 7)
    assert pull(made).num_records == 2
    return made


@pytest.fixture
def workspace(prepared: Workspace, tmp_path: Path) -> Workspace:
    return copied(prepared, tmp_path)


def write(workspace: Workspace, name: str, number: int) -> Path:
    file = workspace.root / "in" / name
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(f"id\n{number}\n")
    return file


def pull(workspace: Workspace, **options: bool) -> PullResult:
    (result,) = workspace.pull([NAME], **options)
    assert result.error is None
    return result


def told(workspace: Workspace) -> tuple[DataWarning, ...]:
    """What a pull says, and a dry run before it, which changes nothing of that."""
    (plan,) = workspace.plan_pull([NAME])
    (again,) = workspace.plan_pull([NAME])
    result = pull(workspace)
    ours = tuple(item for item in result.warnings if item.kind in (WarningKind.LEFT_OUT, WarningKind.CHANGED))
    assert plan.warnings == again.warnings == ours
    return ours


def cached(workspace: Workspace) -> Path:
    return workspace.storage.get(NAME).cache / "taken-in.json"


def test_nothing_is_said_of_files_that_are_as_they_were(workspace: Workspace) -> None:
    assert told(workspace) == ()


def test_files_that_come_late_are_counted(workspace: Workspace) -> None:
    write(workspace, "tx_05.csv", 5)
    assert told(workspace) == (
        DataWarning(
            WarningKind.LEFT_OUT,
            f"1 file sorts before tx_07.csv, the last ingested file, and is skipped; {AGAIN}",
            1,
            ("tx_05.csv",),
        ),
    )
    write(workspace, "tx_06.csv", 6)
    (warning,) = told(workspace)
    assert warning.message.startswith("2 files sort before tx_07.csv, the last ingested file, and are skipped")
    assert warning.examples == ("tx_05.csv", "tx_06.csv")


def test_files_of_another_folder_are_all_new(workspace: Workspace) -> None:
    """Also those with names that the folder before had."""
    other = FOLDER.replace("in/*.csv", "new/*.csv")
    write(workspace, "../new/tx_01.csv", 11)
    write(workspace, "../new/tx_07.csv", 17)
    (change,) = workspace.add(load_snapshots(other, "manifest"), replace=True)
    assert "the source fetches from another location: the next pull ingests everything from there" in change.notes
    assert pull(workspace).num_records == 2
    write(workspace, "../new/tx_05.csv", 15)
    assert [warning.examples for warning in told(workspace)] == [("tx_05.csv",)]
    workspace.add(load_snapshots(other.replace("*.csv", "./tx*.csv"), "manifest"), replace=True)
    assert [warning.examples for warning in told(workspace)] == [("tx_05.csv",)]


def test_links_that_lead_nowhere_are_counted(workspace: Workspace) -> None:
    (workspace.root / "in" / "tx_08.csv").symlink_to("gone.csv")
    wanted = DataWarning(WarningKind.LEFT_OUT, "1 link is broken, and is skipped", 1, ("tx_08.csv",))
    assert told(workspace) == (wanted,)
    (workspace.root / "in" / "gone.csv").write_text("id\n8\n")
    assert pull(workspace).num_records == 1
    for name in ("gone.csv", "tx_01.csv"):
        (workspace.root / "in" / name).unlink()
    (workspace.root / "in" / "tx_01.csv").symlink_to("archived/tx_01.csv")
    assert told(workspace) == (), "what they led to has been taken in"


def test_a_folder_that_is_gone_fails_the_pull(workspace: Workspace) -> None:
    (workspace.root / "in").rename(workspace.root / "elsewhere")
    (result,) = workspace.pull([NAME])
    assert result.outcome is PullOutcome.FAILED
    assert "The folder of 'in/" in str(result.error)
    (workspace.root / "elsewhere").rename(workspace.root / "in")
    assert pull(workspace).outcome is PullOutcome.UP_TO_DATE


def test_they_are_told_beside_what_is_new(workspace: Workspace) -> None:
    write(workspace, "tx_05.csv", 5)
    write(workspace, "tx_08.csv", 8)
    result = pull(workspace)
    assert result.num_records == 1
    assert [item.message.partition(",")[0] for item in result.warnings] == ["1 file sorts before tx_08.csv"]


def test_files_that_have_changed_are_counted_until_they_are_taken_in_again(workspace: Workspace) -> None:
    write(workspace, "tx_01.csv", 1111)
    wanted = DataWarning(
        WarningKind.CHANGED,
        f"1 file has changed since the ingest, and is not ingested again; {AGAIN}",
        1,
        ("tx_01.csv",),
    )
    assert told(workspace) == told(workspace) == (wanted,)
    assert pull(workspace, force=True).outcome is PullOutcome.UPDATED
    assert told(workspace) == ()


def test_rows_that_come_while_a_file_is_taken_in_are_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever still writes it loses them otherwise, and nobody hears of it."""
    file = write(workspace, "tx_08.csv", 8)

    def late(*arguments: Any) -> PullResult:
        result = ingest_file(*arguments)
        with file.open("a") as more:
            more.write("9\n")
        return result

    monkeypatch.setattr("odfpy.coordinator.pull.ingest_file", late)
    (result,) = workspace.pull([NAME])
    assert [one.kind for one in result.warnings if one.kind is WarningKind.CHANGED] == [WarningKind.CHANGED]
    monkeypatch.undo()
    assert [one.kind for one in told(workspace)] == [WarningKind.CHANGED]


def test_a_file_that_goes_while_another_is_taken_in_fails_the_dataset_and_not_the_pull(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(workspace, "tx_08.csv", 8)
    gone = write(workspace, "tx_09.csv", 9)

    def whole(source: object, path: Path, name: str) -> None:
        if path == gone:
            path.unlink()

    monkeypatch.setattr("odfpy.coordinator.ingest.ingest.require_whole", whole)
    monkeypatch.setattr("odfpy.coordinator.ingest.ingest.warnings_of_absent_columns", lambda *_: ())
    (result,) = workspace.pull([NAME])
    assert isinstance(result.error, IngestError)
    assert "There is no file" in result.error.message
    assert result.num_records == 1, "what was committed before it is told"


def test_a_change_of_the_same_length_is_a_change(workspace: Workspace) -> None:
    file = write(workspace, "tx_01.csv", 9)
    later = file.stat().st_mtime_ns + 10**9
    os.utime(file, ns=(later, later))
    assert [item.kind for item in told(workspace)] == [WarningKind.CHANGED]


def test_a_file_that_was_only_touched_has_not_changed(workspace: Workspace) -> None:
    os.utime(workspace.root / "in" / "tx_01.csv", ns=(1, 1))
    assert told(workspace) == ()


def test_a_file_that_is_gone_needs_no_word(workspace: Workspace) -> None:
    (workspace.root / "in" / "tx_01.csv").unlink()
    assert told(workspace) == ()


@pytest.mark.parametrize("damage", [None, b"", b"{}", b"[1]", b'{"path": "in/*.csv", "contents": {"a": 1}}'])
def test_without_its_cache_names_are_read_off_the_chain(workspace: Workspace, damage: bytes | None) -> None:
    write(workspace, "tx_01.csv", 1111)
    write(workspace, "tx_05.csv", 5)
    cached(workspace).unlink()
    if damage is not None:
        cached(workspace).write_bytes(damage)
    assert [item.examples for item in told(workspace)] == [("tx_05.csv",)], "what has changed before is not known"
    write(workspace, "tx_01.csv", 11)
    assert [item.kind for item in told(workspace)] == [WarningKind.LEFT_OUT, WarningKind.CHANGED]


def test_what_has_become_one_block_was_taken_in_all_the_same(workspace: Workspace) -> None:
    write(workspace, "tx_05.csv", 5)
    write(workspace, "tx_08.csv", 8)
    assert pull(workspace).num_records == 1
    assert workspace.maintenance.compact(NAME).slices == (3, 1)
    assert [item.examples for item in told(workspace)] == [("tx_05.csv",)]
    write(workspace, "tx_01.csv", 1111)
    assert [item.kind for item in told(workspace)] == [WarningKind.LEFT_OUT, WarningKind.CHANGED]


def test_without_rows_no_file_was_taken_in(workspace: Workspace) -> None:
    workspace.maintenance.compact(NAME, CompactOptions(keep_metadata_only=True))
    assert told(workspace) == ()
    assert workspace.datasets.state(NAME).num_records == 2


def test_what_was_taken_back_was_not_taken_in(workspace: Workspace) -> None:
    workspace.maintenance.reset(NAME, str(workspace.storage.get(NAME).chain.in_order()[3].hash))
    assert workspace.datasets.state(NAME).num_records == 1
    write(workspace, "tx_00.csv", 0)
    result = pull(workspace)
    assert [item.examples for item in result.warnings] == [("tx_00.csv",)]
    assert workspace.datasets.state(NAME).num_records == 2, "the seventh came in again"


def test_by_event_time_files_that_happened_earlier_are_left_out(tmp_path: Path) -> None:
    manifest = FOLDER.replace("order: ByName", "order: ByEventTime, eventTime: {kind: FromPath, pattern: '(.+)_'}")
    workspace = workspace_with(tmp_path, manifest)
    write(workspace, "2024-02-01_b.csv", 1)
    assert pull(workspace).num_records == 1
    write(workspace, "2024-01-01_c.csv", 2)
    assert [item.kind for item in told(workspace)] == [WarningKind.LEFT_OUT]


def test_each_file_of_a_pull_has_the_time_of_its_own_ingest(workspace: Workspace) -> None:
    """With one time for all of them, the rows of all but the first are late, and may be ignored downstream."""
    write(workspace, "tx_08.csv", 8)
    write(workspace, "tx_09.csv", 9)
    assert pull(workspace).counts["late"] == 0
    times = workspace.tail(NAME, 4).column("event_time").to_pylist()
    assert times == sorted(set(times))
