"""Rows of a slice that is not what its block says go nowhere: not into a derivative, an answer, or a replay of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with

from odfpy.chain.slices import slices_of
from odfpy.coordinator.storage.results import PullOutcome
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import HashMismatch, ObjectNotFound, OdfError

QUERY = "select op, event_time, id, name from source"


def slices(workspace: Workspace, name: str = "root") -> list[Path]:
    """The files of a dataset's slices, the oldest first."""
    dataset = workspace.storage.get(name)
    found = slices_of(reversed(list(dataset.chain.iter_blocks())))
    return [dataset.folder / "data" / str(item.data.physical_hash) for item in found]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    """Two derivatives of a root, one of which is not pulled yet."""
    made = workspace_with(
        tmp_path / "w",
        root(merge="{kind: Append}"),
        derivative("derived", query=QUERY),
        derivative("later", query=QUERY),
    )
    feed(made, "root", "1 a", "2 b", day=1)
    feed(made, "root", "3 c", "4 d", day=2)
    assert [result.outcome for result in made.pull(["derived"])] == [PullOutcome.UPDATED]
    return made


def swapped(workspace: Workspace) -> None:
    """Both hold two rows of the same columns, so nothing but their bytes tells them apart."""
    first, second = slices(workspace)
    aside = first.with_suffix(".aside")
    first.rename(aside)
    second.rename(first)
    aside.rename(second)


def flipped(workspace: Workspace) -> None:
    path = slices(workspace)[-1]
    data = path.read_bytes()
    at = data.index(b"PAR1") + 4
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])


DAMAGES = pytest.mark.parametrize("damage", [swapped, flipped], ids=lambda damage: damage.__name__)
Damage = Callable[[Workspace], None]


@DAMAGES
def test_nothing_is_derived_from_a_damaged_slice(workspace: Workspace, damage: Damage) -> None:
    damage(workspace)
    (result,) = workspace.pull(["later"])
    assert isinstance(result.error, HashMismatch)
    assert "root: Damaged object" in result.error.message
    assert "so it is not the data file of block" in result.error.message
    assert "`odf verify root --repair`" in str(result.error.hint)
    assert workspace.storage.get("later").state.num_records == 0


@DAMAGES
def test_a_pull_does_not_look_at_slices_that_it_does_not_need(workspace: Workspace, damage: Damage) -> None:
    damage(workspace)
    feed(workspace, "root", "5 e", day=3)
    (result,) = workspace.pull(["derived"])
    assert result.outcome is PullOutcome.UPDATED


@DAMAGES
def test_a_replay_does_not_agree_with_a_damaged_input(workspace: Workspace, damage: Damage) -> None:
    damage(workspace)
    (report,) = workspace.verify(["derived"])
    assert not report.ok
    assert any("Damaged object" in finding.message for finding in report.findings)


@DAMAGES
@pytest.mark.parametrize("statement", ["select * from root", "select max(id) from root"])
def test_no_answer_is_made_of_damaged_slices(workspace: Workspace, damage: Damage, statement: str) -> None:
    damage(workspace)
    with pytest.raises(HashMismatch, match="root: Damaged object"):
        workspace.sql(statement)
    with pytest.raises(HashMismatch, match="root: Damaged object"):
        workspace.tail("root")


@DAMAGES
def test_nothing_is_compacted_away_that_is_damaged(workspace: Workspace, damage: Damage) -> None:
    damage(workspace)
    with pytest.raises(OdfError, match="Damaged object"):
        workspace.maintenance.compact("root")
    assert len(slices(workspace)) == 2


def test_a_slice_that_is_gone_is_missed(workspace: Workspace) -> None:
    slices(workspace)[0].unlink()
    (result,) = workspace.pull(["later"])
    assert isinstance(result.error, ObjectNotFound)
    assert "Missing data file" in result.error.message


def test_slices_are_not_hashed_again_that_were_written_here(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    from odfpy.data.multihash import Multihash

    monkeypatch.setattr(Multihash, "of_stream", lambda *_: pytest.fail("hashed again"))
    assert workspace.tail("root").num_rows == 4
    assert workspace.tail("derived").num_rows == 4


def test_slices_of_a_copy_are_hashed_while_they_come(workspace: Workspace, tmp_path: Path) -> None:
    from odfpy.data.multihash import Multihash

    (result,) = workspace.push(["root"], to=str(tmp_path / "pushed"))
    assert result.error is None
    other = Workspace.init(tmp_path / "other")
    (result,) = other.pull([str(tmp_path / "pushed")], as_name="copy")
    assert result.error is None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Multihash, "of_stream", lambda *_: pytest.fail("hashed again"))
        assert other.tail("copy").num_rows == 4


@pytest.mark.parametrize(
    "damage", [lambda _: b"", lambda content: content.replace(b"name", b"mane")], ids=["cut", "name"]
)
def test_a_damaged_file_of_a_schema_is_made_again(workspace: Workspace, damage: Callable[[bytes], bytes]) -> None:
    """It is only cached: no copy of the dataset has it, and no verification checks it."""
    feed(workspace, "root", "5 e", day=3)
    (kept,) = (workspace.storage.cache / "schemas").iterdir()
    content = kept.read_bytes()
    kept.write_bytes(damage(content))
    (result,) = workspace.pull(["derived"])
    assert result.error is None
    assert workspace.tail("derived").column("name").to_pylist() == ["a", "b", "c", "d", "e"]
    assert [path.read_bytes() for path in kept.parent.iterdir()] == [content]
