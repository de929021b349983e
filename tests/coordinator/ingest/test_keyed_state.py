"""The key index of a dataset, as ingests use it: always as if there were none, but for the time it takes."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from support.chains.workspaces import copied, feed, root, rows, workspace_with

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp

LEDGER = "{kind: Ledger, primaryKey: [id]}"
SNAPSHOT = "{kind: Snapshot, primaryKey: [id]}"
UPSERT = "{kind: UpsertStream, primaryKey: [id]}"
STRATEGIES = pytest.mark.parametrize("merge", [LEDGER, SNAPSHOT, UPSERT], ids=["ledger", "snapshot", "upsert"])


def keys_of(workspace: Workspace, name: str = "root") -> Path:
    """The folder of the dataset's key index."""
    (folder,) = (workspace.storage.cache_of(workspace.storage.get(name).handle.id) / "keys").iterdir()
    return folder


def is_up_to_date(workspace: Workspace, name: str = "root") -> bool:
    """Whether there is an index that belongs to the head."""
    return str(workspace.storage.get(name).state.head).encode() in (keys_of(workspace, name) / "index").read_bytes()


Filled = Callable[[Path, str], Workspace]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Filled:
    """Makes a workspace with a dataset of three slices, in a folder and with a strategy: a copy of the first one."""

    @cache
    def first(merge: str) -> Workspace:
        workspace = workspace_with(tmp_path_factory.mktemp("filled"), root(merge=merge))
        feed(workspace, "root", "1 a", "2 b", "3 c", "4 d")
        feed(workspace, "root", "1 a", "2 changed", "5 e", day=2)
        feed(workspace, "root", "2 again", "3 c", "6 f", day=3)
        assert is_up_to_date(workspace)
        return workspace

    return lambda folder, merge: copied(first(merge), folder)


def goes_on(workspace: Workspace) -> list[str]:
    """What the dataset is after one more ingest, which looks up keys of all ages."""
    feed(workspace, "root", "1 a", "2 x", "4 y", "6 f", "7 g", day=4)
    assert is_up_to_date(workspace)
    return rows(workspace, "root")


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """What it must be, by strategy: nothing is wrong with this one, and a cache that goes each time changes nothing."""
    found = {}
    for merge in (LEDGER, SNAPSHOT, UPSERT):
        workspace = workspace_with(tmp_path_factory.mktemp("plain"), root(merge=merge))
        for number, batch in enumerate(
            (("1 a", "2 b", "3 c", "4 d"), ("1 a", "2 changed", "5 e"), ("2 again", "3 c", "6 f")), start=1
        ):
            feed(workspace, "root", *batch, day=number)
            shutil.rmtree(workspace.storage.cache)
        found[merge] = goes_on(workspace)
    return found


@STRATEGIES
def test_it_is_extended_with_each_commit(
    merge: str, filled: Filled, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    workspace = workspace_with(tmp_path, root(merge=merge))
    for day in (1, 2, 3):
        feed(workspace, "root", f"{day} a", day=day)
        assert is_up_to_date(workspace)
    workspace = filled(tmp_path / "other", merge)
    assert goes_on(workspace) == expected[merge]


def flip(file: Path) -> None:
    data = bytearray(file.read_bytes())
    for at in range(0, len(data), max(1, len(data) // 20)):
        data[at] ^= 4
    file.write_bytes(bytes(data))


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "missing": shutil.rmtree,
    "index missing": lambda keys: (keys / "index").unlink(),
    "index flipped": lambda keys: flip(keys / "index"),
    "index cut": lambda keys: cut(keys / "index"),
    "index of another release": lambda keys: (keys / "index").write_bytes(
        (keys / "index").read_bytes().replace(b'"format": 1', b'"format": 9')
    ),
    "runs missing": lambda keys: [run.unlink() for run in keys.glob("run-*")],
    "runs flipped": lambda keys: [flip(run) for run in keys.glob("run-*")],
    "runs cut": lambda keys: [cut(run) for run in keys.glob("run-*")],
    "runs empty": lambda keys: [run.write_bytes(b"") for run in keys.glob("run-*")],
}


@STRATEGIES
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_index_is_made_again(
    damage: str, merge: str, filled: Filled, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    workspace = filled(tmp_path, merge)
    DAMAGE[damage](keys_of(workspace))
    assert goes_on(workspace) == expected[merge]


@STRATEGIES
def test_an_index_that_is_behind_catches_up(merge: str, tmp_path: Path, expected: dict[str, list[str]]) -> None:
    workspace = workspace_with(tmp_path, root(merge=merge))
    feed(workspace, "root", "1 a", "2 b", "3 c", "4 d")
    keys, old = keys_of(workspace), tmp_path / "old"
    shutil.copytree(keys, old)
    feed(workspace, "root", "1 a", "2 changed", "5 e", day=2)
    workspace.set_watermark("root", Timestamp.parse("2024-01-02T12:00:00Z"))
    feed(workspace, "root", "2 again", "3 c", "6 f", day=3)
    shutil.rmtree(keys)
    shutil.copytree(old, keys)
    assert goes_on(workspace) == expected[merge]


@STRATEGIES
def test_the_index_of_another_dataset_is_not_believed(
    merge: str, filled: Filled, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    workspace = filled(tmp_path / "this", merge)
    other = workspace_with(tmp_path / "other", root(merge=merge))
    feed(other, "root", "1 z", "7 z", "8 z")
    shutil.rmtree(keys_of(workspace))
    shutil.copytree(keys_of(other), workspace.storage.cache_of(workspace.storage.get("root").handle.id) / "keys" / "x")
    (strange,) = (workspace.storage.cache_of(workspace.storage.get("root").handle.id) / "keys").iterdir()
    strange.rename(strange.with_name(keys_of(other).name))
    assert goes_on(workspace) == expected[merge]


@STRATEGIES
def test_a_head_that_went_back_takes_the_index_with_it(merge: str, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge=merge))
    feed(workspace, "root", "1 a", "2 b")
    dataset = workspace.storage.get("root")
    before = dataset.chain.head()
    feed(workspace, "root", "1 other", "3 c", day=2)
    dataset.layout.refs.compare_and_swap("head", dataset.chain.head(), before)
    feed(workspace, "root", "2 b", "3 d", day=3)
    made = {LEDGER: ["+A 3 d"], SNAPSHOT: ["-R 1 a", "+A 3 d"], UPSERT: ["+A 3 d"]}
    kept = [row for row in rows(workspace, "root") if row not in ("-C 2 b", "+C 2 b")]
    assert kept == ["+A 1 a", "+A 2 b", *made[merge]]
    assert is_up_to_date(workspace)


@STRATEGIES
def test_a_cache_that_cannot_be_written_is_done_without(
    merge: str, filled: Filled, tmp_path: Path, expected: dict[str, list[str]]
) -> None:
    workspace = filled(tmp_path, merge)
    keys = keys_of(workspace)
    shutil.rmtree(keys)
    keys.write_text("a file where the folder should be")
    feed(workspace, "root", "1 a", "2 x", "4 y", "6 f", "7 g", day=4)
    assert rows(workspace, "root") == expected[merge]
    assert keys.is_file()


def test_a_change_of_the_source_changes_what_is_looked_up(filled: Filled, tmp_path: Path) -> None:
    workspace = filled(tmp_path, LEDGER)
    before = rows(workspace, "root")
    workspace.add(load_snapshots(root(merge=UPSERT), "manifest"), replace=True)
    feed(workspace, "root", "1 a", "4 y", day=4)
    assert rows(workspace, "root")[len(before) :] == ["-C 1 a", "+C 1 a", "-C 4 d", "+C 4 y"]
    workspace.add(load_snapshots(root(merge=LEDGER), "manifest"), replace=True)
    feed(workspace, "root", "4 z", "9 z", day=5)
    assert rows(workspace, "root")[-1] == "+A 9 z"


@STRATEGIES
def test_a_key_may_come_with_the_rows_that_are_merged_by_it(merge: str, tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    feed(workspace, "root", "1 a", "2 b")
    by_code = root(merge=merge.replace("id", "code")).replace(
        "fields:", "fields:\n            - {name: code, type: Int64}"
    )
    workspace.add(load_snapshots(by_code, "manifest"), replace=True)
    for name in ("c", "d"):
        (tmp_path / "in").write_text(f'{{"event_time":"2024-01-02T00:00:00Z","code":7,"id":3,"name":"{name}"}}\n')
        list(workspace.ingest("root", [tmp_path / "in"]))
    came = {LEDGER: ["+A 3 c"], UPSERT: ["+A 3 c", "-C 3 c", "+C 3 d"]}
    came[SNAPSHOT] = ["-R 2 b", *came[UPSERT]]  # rows without the code are of one key, of which the last counts
    assert rows(workspace, "root") == ["+A 1 a", "+A 2 b", *came[merge]]


def test_a_deleted_dataset_leaves_no_index(filled: Filled, tmp_path: Path) -> None:
    workspace = filled(tmp_path, LEDGER)
    keys = keys_of(workspace)
    workspace.datasets.delete(["root"])
    assert not keys.exists()


def test_an_index_that_a_killed_ingest_left_half_written_is_made_again(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge=UPSERT))
    feed(workspace, "root", *(f"{key} a" for key in range(20_000)))
    lines = (f'{{"event_time":"2024-01-02T00:00:00Z","id":{key},"name":"b"}}\n' for key in range(0, 40_000, 2))
    (tmp_path / "new.ndjson").write_text("".join(lines))
    keys = keys_of(workspace)
    known = set(keys.iterdir())
    process = subprocess.Popen([sys.executable, "-m", "odfpy", "ingest", "root", "new.ndjson"], cwd=tmp_path)
    while process.poll() is None and set(keys.iterdir()) == known:
        time.sleep(0.001)  # until it begins to write the index, which it does when the commit is done
    process.send_signal(signal.SIGKILL)
    process.wait()
    feed(workspace, "root", "1 x", "2 b", "3 y", day=2)
    assert is_up_to_date(workspace)
    assert rows(workspace, "root")[-5:] == ["+A 39998 b", "-C 1 a", "+C 1 x", "-C 3 a", "+C 3 y"]
    assert len(list(keys.iterdir())) <= 3
