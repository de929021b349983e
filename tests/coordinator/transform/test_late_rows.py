"""Late rows of inputs are counted in the summary of a pull: by the input's chain, whenever it is pulled."""

from __future__ import annotations

from pathlib import Path

from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace


def pulled(workspace: Workspace, name: str) -> dict[str, int]:
    (result,) = workspace.pull([name])
    assert result.error is None, result.error
    return result.counts


def workspace_in(folder: Path) -> Workspace:
    query = "select op, event_time, id, name from source"
    return workspace_with(
        folder, root(merge="{kind: Append}"), derivative("often", query=query), derivative("seldom", query=query)
    )


def test_late_rows_are_the_same_however_often_the_dataset_is_pulled(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    feed(workspace, "root", "1 a", "2 b", day=5)
    assert pulled(workspace, "often") == {"read": 2, "late": 0, "ignored": 0}
    feed(workspace, "root", "3 c", "4 d", "5 e", day=3)
    feed(workspace, "root", "6 f", day=9)
    assert pulled(workspace, "often") == {"read": 4, "late": 3, "ignored": 0}
    feed(workspace, "root", "7 g", day=5)
    feed(workspace, "root", "8 h", day=9)
    feed(workspace, "root", "9 i", day=10)
    assert pulled(workspace, "often") == {"read": 3, "late": 2, "ignored": 0}
    assert pulled(workspace, "often") == {}
    assert pulled(workspace, "seldom") == {"read": 9, "late": 5, "ignored": 0}


def test_rows_before_a_watermark_that_was_set_by_hand_are_late(tmp_path: Path) -> None:
    from odfpy.data.timestamp import Timestamp

    workspace = workspace_in(tmp_path)
    feed(workspace, "root", "1 a")
    workspace.set_watermark("root", Timestamp.parse("2024-01-20T00:00:00Z"))
    feed(workspace, "root", "2 b", day=19)
    feed(workspace, "root", "3 c", day=21)
    assert pulled(workspace, "seldom")["late"] == 1


def test_what_a_snapshot_takes_back_is_not_counted_as_a_late_row(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(), derivative("often", query="select op, event_time, id from source"))
    feed(workspace, "root", "1 a", "2 b", day=5)
    feed(workspace, "root", "1 z", day=6)
    assert pulled(workspace, "often") == {"read": 5, "late": 0, "ignored": 0}
