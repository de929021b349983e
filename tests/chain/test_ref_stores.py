"""Reference stores: the contract for each of them, and what is special about files."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import pytest
from support.processes.writers import race_in_process

from odfpy.chain.stores.ref_store import HEAD, LocalRefStore, MemoryRefStore, RefStore
from odfpy.errors import IntegrityError, OdfError
from odfpy.testing.ref_store import FIRST, SECOND, RefStoreContract, check_race


class TestLocal(RefStoreContract):
    def make(self, folder: Path) -> RefStore:
        return LocalRefStore(folder / "deep" / "below" / "refs")


class TestMemory(RefStoreContract):
    def make(self, folder: Path) -> RefStore:
        return MemoryRefStore()


@pytest.fixture
def store(tmp_path: Path) -> LocalRefStore:
    return LocalRefStore(tmp_path / "refs")


def test_a_reference_is_a_file_with_the_hash_and_nothing_else(store: LocalRefStore):
    store.compare_and_swap(HEAD, None, FIRST)
    assert [path.name for path in store.folder.iterdir()] == [HEAD]
    assert (store.folder / HEAD).read_bytes() == str(FIRST).encode()


def test_reading_makes_no_folder(store: LocalRefStore):
    assert store.get(HEAD) is None
    assert not store.folder.exists()


def test_a_damaged_reference_is_not_overwritten(store: LocalRefStore):
    store.folder.mkdir()
    (store.folder / HEAD).write_bytes(b"\xff" * 10)
    with pytest.raises(IntegrityError, match=str(store.folder / HEAD)):
        store.get(HEAD)
    for expected in (None, FIRST):
        with pytest.raises(IntegrityError):
            store.compare_and_swap(HEAD, expected, SECOND)
    assert (store.folder / HEAD).read_bytes() == b"\xff" * 10


def test_a_folder_is_no_reference(store: LocalRefStore):
    (store.folder / HEAD).mkdir(parents=True)
    with pytest.raises(OdfError, match="Cannot read"):
        store.get(HEAD)


def test_what_lies_beside_references_is_none(store: LocalRefStore):
    store.compare_and_swap(HEAD, None, FIRST)
    for name in ("head.sig", ".tmp-1", "two words"):
        (store.folder / name).write_text("x")
    (store.folder / "folder").mkdir()
    assert list(store.names()) == [HEAD]


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OdfError, match="Cannot write"):
        LocalRefStore(tmp_path / "file" / "refs").compare_and_swap(HEAD, None, FIRST)


def test_of_many_processes_exactly_one_wins_each_round(store: LocalRefStore):
    writers, rounds = 4, 50
    context = multiprocessing.get_context("spawn")
    barrier, results = context.Barrier(writers), context.Queue()
    processes = [
        context.Process(target=race_in_process, args=(store.folder, writer, rounds, barrier, results))
        for writer in range(writers)
    ]
    for process in processes:
        process.start()
    check_race([results.get(timeout=120) for _ in processes])
    for process in processes:
        process.join()
    assert [path.name for path in store.folder.iterdir()] == [HEAD]


def test_damaged_tag_says_how_to_be_rid_of_it(tmp_path: Path):
    store = LocalRefStore(tmp_path)
    (tmp_path / "tag.v1").write_text("junk")
    with pytest.raises(IntegrityError, match=r"Damaged reference: .*tag\.v1") as caught:
        store.get("tag.v1")
    assert caught.value.hint is not None
    assert "A tag or branch can also be removed" in caught.value.hint
