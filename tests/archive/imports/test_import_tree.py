"""The import of a tree of folders, whose paths say what its files are."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from odfpy.archive.errors import RecordRefused
from odfpy.archive.imports.outcome import Imported, ImportLimits, ImportOutcome
from odfpy.archive.imports.tree import TreeRules, import_tree
from odfpy.archive.naming.translator import TranslationFailed
from odfpy.errors import InvalidValue, NotFound
from odfpy.testing.archives import FolderArchive

IMPORTED, KNOWN, SKIPPED, REFUSED = ImportOutcome
RULES: dict[str, Any] = {
    "what": r".*/(?P<what>[^/]+)/[^/]*$~{what}",
    "where": r".*/tree/(?P<where>[^/]+)/.*~{where}",
    "start": r".*/(?P<day>\d{4}-\d\d-\d\d)[^/]*\.log$~{day}",
}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("web1/nginx/2024-03-01.log", "web1/nginx/2024-03-02.log", "web2/etl/2024-03-01-a.log"):
        file = tmp_path / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    return tmp_path / "tree"


@pytest.fixture
def store(tmp_path: Path) -> FolderArchive:
    return FolderArchive(tmp_path / "archive")


def imported(store: FolderArchive, tree: Path, limits: ImportLimits | None = None, **rules: Any) -> list[Imported]:
    return list(import_tree(store, tree, TreeRules(**(RULES | rules)), limits=limits))


def outcomes(found: list[Imported]) -> Counter[ImportOutcome]:
    return Counter(one.outcome for one in found)


def test_words_and_times_come_from_the_paths(store: FolderArchive, tree: Path) -> None:
    assert outcomes(imported(store, tree)) == {IMPORTED: 3}
    found = {(one.what, one.where, one.start, one.end, one.work_id) for one in store.records()}
    assert found == {
        ("nginx", "web1", 1709251200000, None, None),
        ("nginx", "web1", 1709337600000, None, None),
        ("etl", "web2", 1709251200000, None, None),
    }
    assert {one.path for one in store.records()} == {str(path) for path in tree.rglob("*.log")}


def test_words_and_times_may_be_the_same_for_all(store: FolderArchive, tree: Path) -> None:
    imported(store, tree, what="log", where="web1", start="2024-01-01", end="2024-01-02", work_id="import-1")
    found = {(one.what, one.where, one.start, one.end, one.work_id) for one in store.records()}
    assert found == {("log", "web1", 1704067200000, 1704153600000, "import-1")}


def test_times_may_be_those_of_the_files(store: FolderArchive, tree: Path) -> None:
    for path in tree.rglob("*.log"):
        os.utime(path, (1_700_000_000, 1_700_000_000.25))
    imported(store, tree, start="mtime", end="mtime")
    assert {(one.start, one.end) for one in store.records()} == {(1_700_000_000_250, 1_700_000_000_250)}


def test_files_that_do_not_match_are_skipped(store: FolderArchive, tree: Path) -> None:
    (tree / "web1" / "nginx" / "notes.txt").write_text("x")
    (tree / "top.log").write_text("x")
    found = imported(store, tree)
    assert outcomes(found) == {IMPORTED: 3, SKIPPED: 2}
    assert {Path(one.name).name for one in found if one.outcome is SKIPPED} == {"notes.txt", "top.log"}


def test_links_pipes_and_devices_are_skipped_and_not_followed(store: FolderArchive, tree: Path, tmp_path: Path) -> None:
    (tmp_path / "outside" / "web3" / "nginx").mkdir(parents=True)
    (tmp_path / "outside" / "web3" / "nginx" / "2024-03-01.log").write_text("x")
    (tree / "link").symlink_to(tmp_path / "outside")
    (tree / "web1" / "nginx" / "2024-03-09.log").symlink_to("/etc/passwd")
    os.mkfifo(tree / "web1" / "nginx" / "2024-03-10.log")
    assert outcomes(imported(store, tree)) == {IMPORTED: 3, SKIPPED: 3}


def test_what_breaks_rules_is_refused_and_others_come(store: FolderArchive, tree: Path) -> None:
    (tree / "web1" / "Nginx").mkdir()
    (tree / "web1" / "Nginx" / "2024-03-01.log").write_text("x")
    (tree / "web1" / "nginx" / "2024-13-77.log").write_text("x")
    (tree / "web1" / "nginx" / os.fsdecode(b"2024-03-01-\xff.log")).write_text("x")
    found = imported(store, tree)
    assert outcomes(found) == {IMPORTED: 3, REFUSED: 3}


def test_an_import_again_changes_nothing(store: FolderArchive, tree: Path) -> None:
    imported(store, tree)
    (tree / "web1" / "nginx" / "2024-03-03.log").write_text("new")
    assert outcomes(imported(store, tree)) == {KNOWN: 3, IMPORTED: 1}


def test_many_are_one_commit_within_limits_in_the_order_of_paths(store: FolderArchive, tree: Path) -> None:
    found = imported(store, tree, ImportLimits(files=2))
    assert store.commits == [2, 1]
    assert [one.name for one in found] == sorted(one.name for one in found)


def test_a_dry_run_pushes_nothing(store: FolderArchive, tree: Path) -> None:
    assert outcomes(imported(store, tree, ImportLimits(dry_run=True))) == {IMPORTED: 3}
    assert store.commits == []


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ({"what": "A"}, RecordRefused),
        ({"where": ""}, RecordRefused),
        ({"work_id": "null"}, RecordRefused),
        ({"what": "(~{x}"}, TranslationFailed),
        ({"start": "sometime"}, InvalidValue),
        ({"end": "(?P<x>.)~{y}"}, TranslationFailed),
    ],
)
def test_a_wrong_rule_is_told_before_anything_is_pushed(
    store: FolderArchive, tree: Path, rules: dict[str, str], error: type[Exception]
) -> None:
    with pytest.raises(error):
        imported(store, tree, **rules)
    assert store.commits == []


def test_a_tree_that_is_not_there_is_told(store: FolderArchive, tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        imported(store, tmp_path / "nowhere")
