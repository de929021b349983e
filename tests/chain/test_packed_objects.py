"""Objects that are kept compressed: what is read is what was hashed, also from the middle, and damage is noticed."""

from __future__ import annotations

import io
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from odfpy.chain.stores.object_store import ObjectStore
from odfpy.chain.stores.packed_objects import FRAME, PackedObjectStore, PackingObjectStore
from odfpy.data.multihash import Multihash
from odfpy.errors import HashMismatch, IntegrityError
from odfpy.testing.object_store import ObjectStoreContract

TEXT = b"GET /index.html HTTP/1.1 200\n" * 100_000
NOISE = os.urandom(2 * FRAME)


def packing(folder: Path, *, packs: bool = True) -> PackingObjectStore:
    return PackingObjectStore(folder / "data", folder / "packed", packs=lambda: packs)


def files_of(folder: Path, *contents: bytes) -> dict[Multihash, Path]:
    """Contents as files that were just written, by their names."""
    files = {}
    for number, data in enumerate(contents):
        path = folder / f"new-{number}"
        path.write_bytes(data)
        files[Multihash.of(data)] = path
    return files


class TestPackedObjects(ObjectStoreContract):
    """The contract of object stores."""

    def make(self, folder: Path) -> ObjectStore:
        return PackedObjectStore(folder / "objects")


class TestPackingObjects(ObjectStoreContract):
    """The same where some objects are packed, and some are not."""

    def make(self, folder: Path) -> ObjectStore:
        return packing(folder)


def test_text_is_kept_in_a_fraction_of_its_size_and_noise_as_it_is(tmp_path: Path) -> None:
    store = packing(tmp_path)
    files = files_of(tmp_path, TEXT, NOISE, b"")
    text, noise, empty = files
    store.insert_files(files)
    assert (tmp_path / "packed" / str(text)).stat().st_size * 20 < len(TEXT)
    assert (tmp_path / "data" / str(noise)).read_bytes() == NOISE
    assert [store.size(name) for name in files] == [len(TEXT), len(NOISE), 0]
    assert [store.read(name) for name in files] == [TEXT, NOISE, b""]
    assert sorted(store) == sorted(files)
    assert {item.name: item.size for item in store.stored()} == {text: len(TEXT), noise: len(NOISE), empty: 0}
    assert store.local_path(text) is None
    assert store.local_path(noise) == tmp_path / "data" / str(noise)


def test_slices_stay_files_of_their_own(tmp_path: Path) -> None:
    store = packing(tmp_path)
    (path,) = files_of(tmp_path, TEXT).values()
    store.insert_file(path, Multihash.of(TEXT))
    assert store.local_path(Multihash.of(TEXT)) == tmp_path / "data" / str(Multihash.of(TEXT))
    other = store.insert(TEXT + b"!")
    assert store.local_path(other) is not None


def test_what_was_packed_is_read_after_the_setting_has_changed(tmp_path: Path) -> None:
    packing(tmp_path).insert_files(files_of(tmp_path, TEXT))
    store = packing(tmp_path, packs=False)
    name = Multihash.of(TEXT)
    assert store.read(name) == TEXT
    store.insert_files(files_of(tmp_path, TEXT))
    assert (tmp_path / "data" / str(name)).is_file()
    assert list(store) == [name]
    store.delete(name)
    assert list(store) == []


def test_a_writer_that_was_killed_leaves_nothing_after_a_clean(tmp_path: Path) -> None:
    store = packing(tmp_path)
    store.insert_files(files_of(tmp_path, TEXT))
    (tmp_path / "packed" / ".tmp-left").write_bytes(b"x")
    store.clean()
    assert [path.name for path in (tmp_path / "packed").iterdir()] == [str(Multihash.of(TEXT))]


@settings(max_examples=examples(15, 40))
@given(st.integers(0, 3 * FRAME), st.lists(st.tuples(st.integers(0, 3 * FRAME), st.integers(0, 2 * FRAME)), max_size=5))
def test_any_range_is_that_of_the_content(
    tmp_path_factory: pytest.TempPathFactory, size: int, ranges: list[tuple[int, int]]
) -> None:
    data = (TEXT * 2)[:size]
    store = PackedObjectStore(tmp_path_factory.mktemp("packed"))
    name = store.insert(data)
    with store.open(name) as stream:
        for start, length in ranges:
            stream.seek(start)
            assert stream.read(length) == data[start : start + length]
        assert stream.seek(0, os.SEEK_END) == size


@settings(max_examples=examples(20, 60))
@given(st.data())
def test_no_damage_gives_other_bytes(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    store = PackedObjectStore(tmp_path_factory.mktemp("packed"))
    name = store.insert(TEXT)
    path = store.folder / str(name)
    whole = path.read_bytes()
    if data.draw(st.booleans()):
        damaged = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        at = data.draw(st.integers(0, len(whole) - 1))
        damaged = whole[:at] + bytes([whole[at] ^ data.draw(st.integers(1, 255))]) + whole[at + 1 :]
    path.write_bytes(damaged)
    with suppress(IntegrityError):  # HashMismatch is one
        assert store.read(name) == TEXT  # some bits of a frame mean nothing


def test_a_bomb_does_not_unpack_beyond_its_frame(tmp_path: Path) -> None:
    store = PackedObjectStore(tmp_path)
    name = store.insert(b"\0" * (2 * FRAME))
    path = tmp_path / str(name)
    whole = bytearray(path.read_bytes())
    whole[-24:-16] = (1 << 60).to_bytes(8, "little")
    path.write_bytes(whole)
    for ask in (store.size, store.open, store.read):
        with pytest.raises(IntegrityError):
            ask(name)


def test_a_wrong_hash_leaves_nothing(tmp_path: Path) -> None:
    store = PackedObjectStore(tmp_path)
    with pytest.raises(HashMismatch):
        store.insert_stream(io.BytesIO(TEXT + b"!"), Multihash.of(TEXT))
    assert not any(tmp_path.iterdir())


def test_a_packed_file_takes_the_place_of_a_plain_one_that_has_rotten(tmp_path: Path) -> None:
    """It came before files were packed, or by an upload; what is plain is read first."""
    store = packing(tmp_path)
    name = Multihash.of(TEXT)
    store.insert_stream(io.BytesIO(TEXT), name)
    plain = tmp_path / "data" / str(name)
    plain.write_bytes(b"!" + TEXT[1:])
    store.insert_files(files_of(tmp_path, TEXT))
    assert store.read(name) == TEXT
    assert not plain.exists()
