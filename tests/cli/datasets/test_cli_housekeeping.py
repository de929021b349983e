"""`odf gc`, `compact`, `reset`, `delete`, `verify --repair`: what a person reads, and what a program gets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cli.conftest import dataset_folder
from support.chains.workspaces import feed

from odfpy.coordinator.workspace import Workspace
from odfpy.data.multihash import Multihash

if TYPE_CHECKING:
    from cli.conftest import Odf

NAME, DERIVED = "com.example.rates", "com.example.upper"
AGAIN = "--reset-derivatives-on-diverged-input"


@pytest.fixture
def grown(workspace: Path) -> Path:
    """Two more slices in the dataset that another is derived from."""
    opened = Workspace.open(workspace)
    for day in (11, 12):
        feed(opened, NAME, f"{day} x", day=day)
    assert [result.error for result in opened.pull([DERIVED])] == [None]
    return workspace


def test_a_dataset_is_compacted_and_what_is_derived_made_again(odf: Odf, grown: Path) -> None:
    before = odf("tail", NAME, "-o", "json").json, odf("tail", DERIVED, "-o", "json").json
    planned = odf("compact", NAME, "--dry-run")
    assert planned.code == 0
    assert planned.err.startswith(f"{NAME}: what was 3 data files in 6 blocks would become 1 data file in 4 blocks\n")
    assert f"  derived from the old history: {DERIVED}; `odf pull --all {AGAIN}` recomputes them\n" in planned.err
    unasked = odf("compact", NAME)
    assert unasked.code == 2
    assert f"Compact {NAME}, with a new history?" in unasked.err
    assert "hint: Add --yes." in unasked.err

    (done,) = odf("compact", NAME, "--yes", "-o", "json").json
    assert (done["slices"], done["blocks"]) == ({"before": 3, "after": 1}, {"before": 6, "after": 4})
    assert done["toBeMadeAgain"] == [DERIVED]
    assert odf("compact", NAME, "--yes").err == f"{NAME}: nothing to compact\n"

    stopped = odf("pull", DERIVED)
    assert stopped.code == 1
    assert f"{DERIVED} cannot continue: its input {NAME} was compacted, reset or overwritten" in stopped.says
    assert AGAIN in stopped.says
    assert odf("pull", DERIVED, AGAIN).code == 0
    assert odf("gc").err.endswith(" freed\n")
    assert odf("verify", NAME, DERIVED).code == 0
    now = odf("tail", NAME, "-o", "json").json, odf("tail", DERIVED, "-o", "json").json
    assert now[0] == before[0]
    assert [row["name"] for row in now[1]] == [row["name"] for row in before[1]]


def test_a_repository_is_tidied_up(odf: Odf, workspace: Path) -> None:
    assert odf("push", NAME, "--to", "./there/").code == 0
    stray = workspace / "there" / NAME / "data" / str(Multihash.of(b"stray"))
    stray.write_bytes(b"stray")
    assert odf("gc", "--repo", "./there").err == "Nothing to remove\n"
    (planned,) = odf("gc", "--repo", "./there", "--older-than", "0s", "--dry-run", "-o", "json").json
    assert planned["files"] == [{"path": str(stray), "bytes": 5, "why": "object"}]
    assert stray.exists()
    assert odf("gc", NAME, "--repo", "./there", "--older-than", "0s").err.endswith("5 B freed\n")
    assert not stray.exists()
    for wrong in (["--checkpoints"], ["--caches"], ["--older-than", "soon"]):
        assert odf("gc", "--repo", "./there", *wrong).code == 2
    assert odf("gc", "--older-than", "1d").code == 2
    assert odf("gc", "--repo", "https://127.0.0.1:1").code == 2


def test_limits_of_a_compaction(odf: Odf, grown: Path) -> None:
    (done,) = odf("compact", NAME, "--max-slice-records", "1", "--yes", "-o", "json").json
    assert done["slices"] == {"before": 3, "after": 3}
    (done,) = odf("compact", NAME, "--max-slice-size", "1", "--yes", "-o", "json").json
    assert done["newHead"] == done["oldHead"]


def test_back_and_forth(odf: Odf, grown: Path) -> None:
    unasked = odf("reset", NAME, "4")
    assert unasked.code == 2
    assert f"{NAME} loses 1 block with 1 record, back to block 4 (f1620" in unasked.err
    done = odf("reset", NAME, "4", "--yes", "-o", "json").json
    assert (done["blocks"], done["records"], done["sequenceNumber"]) == (1, 1, 4)
    assert done["toBeMadeAgain"] == [DERIVED]
    again = odf("reset", NAME, "4", "--yes")
    assert (again.code, again.err) == (0, f"{NAME} is already at block 4 ({done['newHead']})\n")
    assert odf("reset", NAME, done["oldHead"], "-y").err.startswith(f"{NAME} moved forward to block 5 ")
    assert odf("verify", NAME).code == 0


def test_garbage_is_told_before_it_goes(odf: Odf, grown: Path) -> None:
    assert odf("gc").err == "Nothing to remove\n"
    odf("compact", NAME, "-y")
    folder = dataset_folder(grown, NAME)
    files = sorted(folder.rglob("*"))
    told = odf("gc", "--dry-run")
    assert told.out.startswith(f"{NAME}: ")
    assert "unreferenced" in told.out
    assert told.err.endswith("would be freed\n")
    assert sorted(folder.rglob("*")) == files
    records = {record["dataset"]: record for record in odf("gc", NAME, "-o", "json").json}
    assert list(records) == [NAME]
    assert records[NAME]["bytes"] == sum(file["bytes"] for file in records[NAME]["files"]) > 0
    assert {file["why"] for file in records[NAME]["files"]} == {"object"}
    assert not any(Path(file["path"]).exists() for file in records[NAME]["files"])
    assert odf("gc", "--caches", "--checkpoints").code == 2
    assert odf("gc", "--caches", "--checkpoints", "--yes").code == 0
    assert odf("verify", NAME, "--integrity").code == 0


def test_a_damaged_dataset_does_not_keep_the_others_from_being_cleaned(odf: Odf, grown: Path) -> None:
    odf("compact", NAME, "-y")
    next((dataset_folder(grown, "com.example.cities") / "blocks").iterdir()).unlink()
    done = odf("gc")
    assert done.code == 1
    assert "com.example.cities: " in done.err
    assert "nothing of the dataset was removed" in done.err
    assert f"{NAME}: " in done.out


def test_damage_is_repaired_from_where_it_was_pushed(odf: Odf, grown: Path, tmp_path: Path) -> None:
    assert odf("push", NAME, "--to", str(tmp_path / "mirror")).code == 0
    file = min((dataset_folder(grown, NAME) / "data").iterdir())
    file.write_bytes(b"rot")
    assert odf("verify", NAME).code == 1
    mended = odf("verify", NAME, "--repair")
    assert mended.code == 0
    assert f"  repaired: {file}\n" in mended.out
    (report,) = odf("verify", NAME, "--repair", "-o", "json").json
    assert (report["ok"], report["repaired"], report["unreferenced"]["files"]) == (True, [], 0)


def test_deleting_what_others_are_derived_from(odf: Odf, workspace: Path) -> None:
    refused = odf("delete", NAME)
    assert refused.code == 2
    assert f"{NAME} is an input of {DERIVED}" in refused.says
    assert "but they can no longer be pulled or verified." in refused.says
    unasked = odf("delete", NAME, "-r")
    assert f"Delete {DERIVED}, {NAME}, with all data?" in unasked.says
    assert odf("delete", NAME, "-r", "-y").err == f"Deleted {DERIVED}\nDeleted {NAME}\n"
    assert odf("delete", "--all", "-y").code == 0
    assert odf("list").err == "No datasets; add some with `odf add`.\n"
    assert odf("delete", "--all", "-y").err == "No datasets\n"


@pytest.mark.parametrize(
    "words",
    [
        ["compact"],
        ["compact", "nothing"],
        ["compact", NAME, "--max-slice-records", "0"],
        ["compact", NAME, "--max-slice-records", "many"],
        ["compact", NAME, "--max-slice-size", "-1"],
        ["compact", DERIVED, "-y"],
        ["reset"],
        ["reset", NAME],
        ["reset", "nothing", "1"],
        ["reset", NAME, "99", "-y"],
        ["reset", NAME, "../../head", "-y"],
        ["reset", NAME, "\udcff", "-y"],
        ["gc", "nothing"],
        ["gc", "com.%.x"],
        ["delete", "--all", NAME],
        ["rename", NAME],
        ["rename", NAME, "a b"],
        ["rename", NAME, DERIVED],
        ["verify", "--repair"],
        ["pull", NAME, AGAIN, "--set-watermark", "2024-01-01"],
    ],
)
def test_wrong_input_changes_nothing(words: list[str], odf: Odf, workspace: Path) -> None:
    before = {path: path.read_bytes() for path in (workspace / ".odf" / "datasets").rglob("*") if path.is_file()}
    wrong = odf(*words)
    assert wrong.code in (1, 2)
    assert wrong.says
    assert "internal error" not in wrong.err
    assert {path: path.read_bytes() for path in before} == before
