"""Contract of object stores.

A test module inherits a suite and defines how to create a store:

    class TestMyStore(ObjectStoreContract):
        def make(self, folder: Path) -> ObjectStore:
            return MyStore(folder / "objects")

`ObjectStoreReading` is for read-only stores; `ObjectStoreContract` is for writable stores.
"""

from __future__ import annotations

import io
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odfpy.chain.stores.object_store import CHUNK, ObjectStore, ObjectTooLarge
from odfpy.data.multihash import BLAKE3, SHA3_256, HashAlgorithm, Multihash
from odfpy.errors import HashMismatch, IntegrityError, ObjectNotFound, OdfError

SMALL = b"a small object"
EMPTY = b""
LARGE = bytes(range(256)) * (2 * CHUNK // 256) + b"and a bit"
OBJECTS = (SMALL, EMPTY, LARGE)
ABSENT = Multihash.of(b"an object that is nowhere")


class BrokenStream(io.BytesIO):
    """A stream that ends with an error, like an interrupted connection."""

    def read(self, size: int | None = -1, /) -> bytes:
        """Return the bytes; raise the error at the end."""
        data = super().read(size)
        if not data:
            raise ConnectionResetError("connection reset")
        return data


class ObjectStoreReading:
    """Tests of the guarantees that readers rely on."""

    def filled(self, folder: Path, objects: Iterable[bytes]) -> ObjectStore:
        """Create a store that contains the given objects; `folder` is empty and at the suite's disposal."""
        raise NotImplementedError

    @pytest.fixture
    def full(self, tmp_path: Path) -> ObjectStore:
        """A store with all of `OBJECTS`."""
        return self.filled(tmp_path, OBJECTS)

    def test_it_contains_what_is_in_it(self, full: ObjectStore) -> None:
        assert all(Multihash.of(data) in full for data in OBJECTS)
        assert ABSENT not in full
        assert Multihash.of(SMALL, BLAKE3) not in full
        assert str(Multihash.of(SMALL)) not in full

    @pytest.mark.parametrize("data", OBJECTS, ids=["small", "empty", "large"])
    def test_an_object_is_read_whole(self, full: ObjectStore, data: bytes) -> None:
        assert full.read(Multihash.of(data)) == data

    @pytest.mark.parametrize("data", OBJECTS, ids=["small", "empty", "large"])
    def test_an_object_is_a_stream_of_known_size(self, full: ObjectStore, data: bytes) -> None:
        name = Multihash.of(data)
        assert full.size(name) == len(data)
        with full.open(name) as stream:
            assert b"".join(iter(lambda: stream.read(CHUNK), b"")) == data

    def test_streams_do_not_disturb_each_other(self, full: ObjectStore) -> None:
        name = Multihash.of(LARGE)
        with full.open(name) as first, full.open(name) as second:
            assert first.read(10) == second.read(10) == LARGE[:10]

    def test_a_missing_object_is_an_error_that_names_the_place(self, full: ObjectStore) -> None:
        for ask in (full.open, full.size, full.read):
            with pytest.raises(ObjectNotFound) as caught:
                ask(ABSENT)
            assert full.describe(ABSENT) in caught.value.message

    def test_places_are_described_by_name(self, full: ObjectStore) -> None:
        assert str(Multihash.of(SMALL)) in full.describe(Multihash.of(SMALL))
        assert str(ABSENT) in full.describe(ABSENT)

    def test_a_local_file_holds_the_object(self, full: ObjectStore) -> None:
        path = full.local_path(Multihash.of(SMALL))
        assert path is None or path.read_bytes() == SMALL


class ObjectStoreContract(ObjectStoreReading):
    """Tests of the guarantees that readers and writers rely on."""

    def make(self, folder: Path) -> ObjectStore:
        """Create an empty store; `folder` is empty and at the suite's disposal."""
        raise NotImplementedError

    def filled(self, folder: Path, objects: Iterable[bytes]) -> ObjectStore:
        store = self.make(folder)
        for data in objects:
            store.insert(data)
        return store

    @pytest.fixture
    def store(self, tmp_path: Path) -> ObjectStore:
        """An empty store."""
        return self.make(tmp_path)

    def test_it_begins_empty(self, store: ObjectStore) -> None:
        assert store.writable
        assert list(store) == []
        assert ABSENT not in store

    def test_it_lists_what_is_in_it(self, full: ObjectStore) -> None:
        assert sorted(full) == sorted(Multihash.of(data) for data in OBJECTS)

    def test_it_tells_sizes_and_ages_where_it_can(self, full: ObjectStore) -> None:
        try:
            stored = list(full.stored())
        except OdfError:
            return
        assert sorted((item.name, item.size) for item in stored) == sorted((Multihash.of(d), len(d)) for d in OBJECTS)
        assert all(abs(item.written - time.time()) < 3600 for item in stored)

    @pytest.mark.parametrize("algorithm", [SHA3_256, BLAKE3], ids=lambda algorithm: algorithm.name)
    def test_insert_returns_the_name(self, store: ObjectStore, algorithm: HashAlgorithm) -> None:
        name = store.insert(SMALL, algorithm)
        assert name == Multihash.of(SMALL, algorithm)
        assert store.read(name) == SMALL

    @pytest.mark.parametrize("count", [0, 3, 300])
    def test_many_are_stored_at_once_or_not_at_all(self, store: ObjectStore, count: int) -> None:
        objects = {Multihash.of(data): data for data in (b"%d" % number for number in range(count))}
        for _ in range(2):
            was_done = store.insert_all(list(objects.items()))
            assert {name: store.read(name) for name in store} == (objects if was_done else {})

    def test_many_with_a_wrong_one_leave_nothing_wrong(self, store: ObjectStore) -> None:
        objects = [(Multihash.of(b"%d" % number), b"%d" % (number - number // 299)) for number in range(300)]
        try:
            was_done = store.insert_all(objects)
        except HashMismatch:
            was_done = False
        assert not was_done
        assert all(name.matches(store.read(name)) for name in store)

    def test_inserting_again_changes_nothing(self, store: ObjectStore) -> None:
        assert store.insert(SMALL) == store.insert(SMALL)
        assert list(store) == [Multihash.of(SMALL)]

    @pytest.mark.parametrize("data", OBJECTS, ids=["small", "empty", "large"])
    @pytest.mark.parametrize("announced", [True, False])
    def test_a_stream_is_stored(self, store: ObjectStore, data: bytes, announced: bool) -> None:
        store.insert_stream(io.BytesIO(data), Multihash.of(data), size=len(data) if announced else None)
        assert store.read(Multihash.of(data)) == data

    def test_a_stream_under_a_wrong_name_leaves_nothing(self, store: ObjectStore) -> None:
        with pytest.raises(HashMismatch):
            store.insert_stream(io.BytesIO(LARGE), ABSENT)
        self._holds_nothing(store, ABSENT)

    def test_a_stream_that_is_cut_off_leaves_nothing(self, store: ObjectStore) -> None:
        with pytest.raises(HashMismatch):
            store.insert_stream(io.BytesIO(LARGE[:-1]), Multihash.of(LARGE), size=len(LARGE))
        self._holds_nothing(store, Multihash.of(LARGE))

    def test_a_stream_that_goes_on_is_not_read_to_its_end(self, store: ObjectStore) -> None:
        stream = io.BytesIO(LARGE * 10)
        with pytest.raises(ObjectTooLarge):
            store.insert_stream(stream, Multihash.of(LARGE), size=len(LARGE))
        assert stream.tell() <= len(LARGE) + CHUNK
        self._holds_nothing(store, Multihash.of(LARGE))

    def test_a_stream_that_fails_leaves_nothing(self, store: ObjectStore) -> None:
        with pytest.raises((OdfError, ConnectionResetError)):
            store.insert_stream(BrokenStream(LARGE), Multihash.of(LARGE))
        self._holds_nothing(store, Multihash.of(LARGE))

    def test_an_interrupted_writer_leaves_nothing(self, store: ObjectStore) -> None:
        class Interrupted(io.BytesIO):
            def read(self, _size: int | None = -1, /) -> bytes:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.insert_stream(Interrupted(), Multihash.of(LARGE))
        self._holds_nothing(store, Multihash.of(LARGE))

    def test_a_name_that_cannot_be_checked_is_refused(self, store: ObjectStore) -> None:
        unknown = Multihash(0x12, bytes(32))
        with pytest.raises(IntegrityError):
            store.insert_stream(io.BytesIO(SMALL), unknown)
        self._holds_nothing(store, unknown)

    def test_a_failed_insert_does_not_harm_the_object_that_is_there(self, store: ObjectStore) -> None:
        name = store.insert(SMALL)
        for wrong in (io.BytesIO(LARGE), BrokenStream(SMALL)):
            with pytest.raises((OdfError, ConnectionResetError)):
                store.insert_stream(wrong, name)
        assert store.read(name) == SMALL

    def test_a_file_is_moved_in(self, store: ObjectStore, tmp_path: Path) -> None:
        file = tmp_path / "written elsewhere"
        file.write_bytes(LARGE)
        store.insert_file(file, Multihash.of(LARGE))
        assert not file.exists()
        assert store.read(Multihash.of(LARGE)) == LARGE

    def test_a_missing_file_is_an_error(self, store: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(OdfError):
            store.insert_file(tmp_path / "nowhere", ABSENT)
        self._holds_nothing(store, ABSENT)

    @pytest.mark.parametrize("count", [0, 3, 300])
    def test_files_are_moved_in_together(self, store: ObjectStore, tmp_path: Path, count: int) -> None:
        known = store.insert(b"0")
        objects = {Multihash.of(data): data for data in (b"%d" % number for number in range(count))}
        files = {}
        for name, data in objects.items():
            files[name] = tmp_path / f"written-{name}"
            files[name].write_bytes(data)
        store.insert_files(files)
        assert {name: store.read(name) for name in store} == {known: b"0"} | objects
        assert not any(path.exists() for path in files.values())

    def test_moving_in_files_one_of_which_is_missing_is_an_error(self, store: ObjectStore, tmp_path: Path) -> None:
        with pytest.raises(OdfError):
            store.insert_files({ABSENT: tmp_path / "nowhere"})
        self._holds_nothing(store, ABSENT)

    def test_delete(self, full: ObjectStore) -> None:
        full.delete(Multihash.of(SMALL))
        assert Multihash.of(SMALL) not in full
        assert sorted(full) == sorted([Multihash.of(EMPTY), Multihash.of(LARGE)])
        full.delete(Multihash.of(SMALL))
        full.delete(ABSENT)

    def test_a_deleted_object_can_come_back(self, full: ObjectStore) -> None:
        full.delete(Multihash.of(SMALL))
        assert full.read(full.insert(SMALL)) == SMALL

    def test_many_writers_of_the_same_objects(self, store: ObjectStore) -> None:
        objects = [bytes([number]) * 1000 for number in range(20)] * 4
        with ThreadPoolExecutor(8) as pool:
            names = list(pool.map(store.insert, objects))
        assert sorted(store) == sorted(set(names))
        assert all(store.read(name) == data for name, data in zip(names, objects, strict=True))

    def _holds_nothing(self, store: ObjectStore, name: Multihash) -> None:
        assert name not in store
        assert list(store) == []
        with pytest.raises(ObjectNotFound):
            store.read(name)
