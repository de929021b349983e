"""Files that are there as a whole or not at all: many of them at once; and locks of files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odfpy.files import TEMPORARY, replace_files, try_lock


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_many_files_are_written_or_replaced_in_folders_old_and_new(tmp_path: Path):
    (tmp_path / "old").write_bytes(b"before")
    replace_files([(tmp_path / "old", b"after"), (tmp_path / "a" / "b" / "new", b""), (tmp_path / "old", b"last")])
    assert files_in(tmp_path) == {"old": b"last", "a/b/new": b""}
    replace_files([])


def test_none_takes_its_place_where_one_cannot_be_made(tmp_path: Path):
    def files() -> Iterator[tuple[Path, bytes]]:
        yield tmp_path / "first", b"after"
        assert any(name.startswith(TEMPORARY) for name in files_in(tmp_path)), "it lies aside"
        raise ValueError("the second has another hash")

    (tmp_path / "first").write_bytes(b"before")
    with pytest.raises(ValueError, match="another hash"):
        replace_files(files())
    assert files_in(tmp_path) == {"first": b"before"}


def test_they_take_their_places_in_their_order_and_nothing_is_left_aside(tmp_path: Path):
    (tmp_path / "second").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_files((tmp_path / name, b"x") for name in ("first", "second", "third"))
    assert files_in(tmp_path) == {"first": b"x"}


def test_a_lock_is_of_one_or_of_all_who_share_it_and_ends_with_the_file(tmp_path: Path):
    path = tmp_path / "lock"
    with path.open("w") as first, path.open("w") as second:
        assert try_lock(first)
        assert try_lock(first), "it is held already"
        assert not try_lock(second)
        assert not try_lock(second.fileno(), shared=True)
        assert try_lock(first, shared=True)
        assert try_lock(second, shared=True)
        assert not try_lock(second)
        first.close()
        assert try_lock(second)
