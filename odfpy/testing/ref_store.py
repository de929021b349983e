"""Contract of reference stores.

A test module inherits a suite and defines how to create a store:

    class TestMyStore(RefStoreContract):
        def make(self, folder: Path) -> RefStore:
            return MyStore(folder / "refs")

`RefStoreReading` is for read-only stores; `RefStoreContract` is for writable stores.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from odfpy.chain.stores.ref_store import HEAD, RefStore
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.errors import ConcurrentUpdate, InvalidValue

FIRST, SECOND, THIRD = (Multihash.of(text) for text in (b"first", b"second", b"third"))
BAD_NAMES = (
    "",
    ".",
    "..",
    "../head",
    "a/b",
    "/head",
    "-head",
    ".head",
    "he ad",
    "head\n",
    "head\0",
    "hé",
    "x" * 101,
    "head.sig",
)


class RefStoreReading:
    """Tests of the guarantees that readers rely on."""

    def filled(self, folder: Path, references: Mapping[str, Multihash]) -> RefStore:
        """Create a store that contains the given references; `folder` is empty and at the suite's disposal."""
        raise NotImplementedError

    @pytest.fixture
    def full(self, tmp_path: Path) -> RefStore:
        """A store with two references."""
        return self.filled(tmp_path, {HEAD: FIRST, "other-1.x_y": SECOND})

    def test_references_are_found_by_name(self, full: RefStore) -> None:
        assert full.get(HEAD) == FIRST
        assert full.get("other-1.x_y") == SECOND

    def test_a_missing_reference_is_none(self, full: RefStore) -> None:
        assert full.get("missing") is None

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_names_are_no_paths(self, full: RefStore, name: str) -> None:
        with pytest.raises(InvalidValue):
            full.get(name)

    def test_places_are_described_by_name(self, full: RefStore) -> None:
        assert HEAD in full.describe(HEAD)
        assert "missing" in full.describe("missing")


class RefStoreContract(RefStoreReading):
    """Tests of the guarantees that readers and writers rely on.

    Attributes:
        writers: number of concurrent writers.
        rounds: number of rounds of the race; stores behind a network may lower both.
    """

    writers = 6
    rounds = 30

    def make(self, folder: Path) -> RefStore:
        """Create an empty store; `folder` is empty and at the suite's disposal."""
        raise NotImplementedError

    def filled(self, folder: Path, references: Mapping[str, Multihash]) -> RefStore:
        store = self.make(folder)
        for name, target in references.items():
            store.compare_and_swap(name, None, target)
        return store

    @pytest.fixture
    def store(self, tmp_path: Path) -> RefStore:
        """An empty store."""
        return self.make(tmp_path)

    def test_it_begins_empty(self, store: RefStore) -> None:
        assert store.get(HEAD) is None

    def test_a_reference_is_made_and_moved(self, store: RefStore) -> None:
        store.compare_and_swap(HEAD, None, FIRST)
        assert store.get(HEAD) == FIRST
        store.compare_and_swap(HEAD, FIRST, SECOND)
        assert store.get(HEAD) == SECOND
        store.compare_and_swap(HEAD, SECOND, FIRST)
        assert store.get(HEAD) == FIRST

    def test_moving_to_the_same_place_is_fine(self, full: RefStore) -> None:
        full.compare_and_swap(HEAD, FIRST, FIRST)
        assert full.get(HEAD) == FIRST

    def test_any_hash_can_be_pointed_to(self, store: RefStore) -> None:
        target = Multihash.of(b"x", BLAKE3)
        store.compare_and_swap(HEAD, None, target)
        assert store.get(HEAD) == target

    @pytest.mark.parametrize("expected", [None, SECOND], ids=["none", "another"])
    def test_a_reference_that_is_elsewhere_is_not_moved(self, full: RefStore, expected: Multihash | None) -> None:
        with pytest.raises(ConcurrentUpdate) as caught:
            full.compare_and_swap(HEAD, expected, THIRD)
        assert str(FIRST) in caught.value.message
        assert full.get(HEAD) == FIRST

    def test_a_missing_reference_is_not_moved(self, store: RefStore) -> None:
        with pytest.raises(ConcurrentUpdate):
            store.compare_and_swap(HEAD, FIRST, SECOND)
        assert store.get(HEAD) is None

    def test_names_are_those_of_the_references(self, store: RefStore) -> None:
        assert list(store.names()) == []
        for name in ("other", HEAD, "a.b-c"):
            store.compare_and_swap(name, None, FIRST)
        assert list(store.names()) == ["a.b-c", HEAD, "other"]

    def test_a_reference_is_deleted_and_made_again(self, full: RefStore) -> None:
        full.delete(HEAD, FIRST)
        assert (full.get(HEAD), list(full.names())) == (None, ["other-1.x_y"])
        full.compare_and_swap(HEAD, None, SECOND)
        assert full.get(HEAD) == SECOND

    def test_a_reference_that_has_moved_is_not_deleted(self, full: RefStore) -> None:
        with pytest.raises(ConcurrentUpdate) as caught:
            full.delete(HEAD, SECOND)
        assert str(FIRST) in caught.value.message
        assert full.get(HEAD) == FIRST

    def test_a_missing_reference_is_not_deleted(self, store: RefStore) -> None:
        with pytest.raises(ConcurrentUpdate):
            store.delete(HEAD, FIRST)

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_names_to_delete_are_no_paths(self, store: RefStore, name: str) -> None:
        with pytest.raises(InvalidValue):
            store.delete(name, FIRST)

    def test_references_do_not_disturb_each_other(self, full: RefStore) -> None:
        full.compare_and_swap(HEAD, FIRST, THIRD)
        assert full.get("other-1.x_y") == SECOND

    @pytest.mark.parametrize("name", BAD_NAMES)
    def test_names_of_new_references_are_no_paths(self, store: RefStore, name: str) -> None:
        with pytest.raises(InvalidValue):
            store.compare_and_swap(name, None, FIRST)

    def test_of_many_writers_exactly_one_wins_each_round(self, store: RefStore) -> None:
        barrier = threading.Barrier(self.writers)

        def write(writer: int) -> list[bool]:
            return race(store, writer, self.rounds, lambda: barrier.wait(60))

        with ThreadPoolExecutor(self.writers) as pool:
            check_race(list(pool.map(write, range(self.writers))))

    def test_readers_never_see_less_than_a_reference(self, full: RefStore) -> None:
        targets = [Multihash.of(bytes([number])) for number in range(2 * self.rounds)]
        done = threading.Event()

        def read() -> set[Multihash | None]:
            seen = {full.get(HEAD)}
            while not done.is_set():
                seen.add(full.get(HEAD))
            return seen

        with ThreadPoolExecutor(2) as pool:
            reader = pool.submit(read)
            before = FIRST
            for target in targets:
                full.compare_and_swap(HEAD, before, target)
                before = target
            done.set()
            assert reader.result() <= {FIRST, *targets}


def race(store: RefStore, writer: int, rounds: int, wait: Callable[[], object]) -> list[bool]:
    """Try to move the head once per round, concurrently with other writers; return whether each round was won.

    Args:
        store: the store.
        writer: number of this writer.
        rounds: number of rounds.
        wait: waits for the other writers.
    """
    won = []
    for number in range(rounds):
        wait()
        before = store.get(HEAD)
        wait()
        try:
            store.compare_and_swap(HEAD, before, Multihash.of(f"{number} {writer}".encode()))
        except ConcurrentUpdate:
            won.append(False)
        else:
            won.append(True)
    return won


def check_race(results: list[list[bool]]) -> None:
    """Check that each round had exactly one winner."""
    assert [sum(round_) for round_ in zip(*results, strict=True)] == [1] * len(results[0])
