"""Object stores: the contract for each of them, and what is special about files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import settings
from support.examples import examples

from odfpy.chain.stores.object_store import LocalObjectStore, MemoryObjectStore, ObjectStore
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, OdfError
from odfpy.testing.object_store import ObjectStoreContract
from odfpy.testing.stateful import ObjectStoreMachine


class TestLocal(ObjectStoreContract):
    def make(self, folder: Path) -> ObjectStore:
        return LocalObjectStore(folder / "deep" / "below" / "objects")


class TestMemory(ObjectStoreContract):
    def make(self, folder: Path) -> ObjectStore:
        return MemoryObjectStore()


class LocalMachine(ObjectStoreMachine):
    def make(self, folder: Path) -> ObjectStore:
        return LocalObjectStore(folder)


TestLocalAgainstTheModel = LocalMachine.TestCase
TestLocalAgainstTheModel.settings = settings(max_examples=examples(20, 60), stateful_step_count=25, deadline=None)


@pytest.fixture
def store(tmp_path: Path) -> LocalObjectStore:
    return LocalObjectStore(tmp_path / "objects")


def test_objects_are_files_named_by_their_hashes(store: LocalObjectStore):
    name = store.insert(b"data")
    assert [path.name for path in store.folder.iterdir()] == [str(name)]
    assert store.local_path(name) == store.folder / str(name)
    assert store.describe(name) == str(store.folder / str(name))


def test_reading_makes_no_folder(store: LocalObjectStore):
    assert Multihash.of(b"") not in store
    assert list(store) == []
    store.clean()
    store.delete(Multihash.of(b""))
    assert not store.folder.exists()


def test_other_files_are_not_objects(store: LocalObjectStore):
    name = store.insert(b"data")
    for other in ("README.md", ".hidden", "f1620", str(name).upper(), ".tmp-0123", "f1620" + "0" * 63):
        (store.folder / other).write_text("x")
    assert list(store) == [name]


def test_a_folder_is_no_object(store: LocalObjectStore):
    name = Multihash.of(b"data")
    (store.folder / str(name)).mkdir(parents=True)
    assert name not in store
    for act in (store.open, store.read, store.delete):
        with pytest.raises(OdfError):
            act(name)
    with pytest.raises(OdfError, match="Cannot write"):
        store.insert(b"data")


def test_leftovers_of_killed_writers_are_cleaned(store: LocalObjectStore):
    name = store.insert(b"data")
    (store.folder / ".tmp-0123456789abcdef").write_bytes(b"half an obj")
    assert list(store) == [name]
    store.clean()
    assert [path.name for path in store.folder.iterdir()] == [str(name)]


def test_a_damaged_object_is_noticed_and_can_be_repaired(store: LocalObjectStore):
    name = store.insert(b"data")
    (store.folder / str(name)).write_bytes(b"date")
    with pytest.raises(HashMismatch, match=str(store.folder)) as caught:
        store.read(name)
    assert caught.value.hint
    store.insert(b"data")
    assert store.read(name) == b"data"


def test_a_place_that_cannot_be_written_is_a_clear_error(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("in the way")
    store = LocalObjectStore(file / "objects")
    with pytest.raises(OdfError, match="Cannot write"):
        store.insert(b"data")
    with pytest.raises(OdfError):
        store.open(Multihash.of(b"data"))
