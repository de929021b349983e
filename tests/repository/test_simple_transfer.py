"""Moving datasets between folders and from servers (ODF specification, "Simple Transfer Protocol")."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, dataset_id, image, make_dataset, seed, set_head
from support.fixtures import KAMU, KAMU_DATASETS
from support.servers.static_server import StaticServer, cut_after, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.signatures import SignatureReport
from odfpy.chain.state import ChainState
from odfpy.chain.stores.object_store import MemoryObjectStore, ObjectStore
from odfpy.chain.stores.ref_store import HEAD
from odfpy.data.multihash import Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.errors import ConcurrentUpdate, DatasetNotFound, OdfError, TransferError
from odfpy.repository import objects
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import (
    ForeignDataset,
    HistoryRewritten,
    TransferOutcome,
    TransferResult,
    transfer,
)

Opener = Callable[[Path], DatasetLayout]


@pytest.fixture
def here(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "here")


@pytest.fixture
def there(tmp_path: Path) -> DatasetLayout:
    return DatasetLayout.local(tmp_path / "there")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    with static_server(tmp_path) as site:
        yield site


def temporary_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.startswith(".tmp")]


# --- Datasets of the reference implementation ---


@pytest.fixture(params=["http", "file"])
def golden(request) -> Iterator[Callable[[str], DatasetLayout]]:
    """Opens the golden datasets, by one kind of URL."""
    if request.param == "file":
        yield lambda name: open_dataset((KAMU / name).as_uri())
        return
    with static_server(KAMU) as site:
        yield lambda name: open_dataset(f"{site.url}/{name}")


@pytest.mark.parametrize("name", KAMU_DATASETS)
def test_dataset_of_the_reference_is_pulled_byte_for_byte(golden, name: str, here: DatasetLayout):
    result = transfer(golden(name), here)
    original = DatasetLayout.local(KAMU / name)
    state = original.chain.state()
    assert image(here) == image(original)
    assert result == TransferResult(
        outcome=TransferOutcome.UPDATED,
        old_head=None,
        new_head=original.chain.head(),
        num_blocks=state.sequence_number + 1,
        num_records=state.num_records,
        num_objects=len(list(original.data)) + len(list(original.checkpoints)),
        num_bytes=sum(store.size(item) for store in (original.data, original.checkpoints) for item in store),
        signatures=SignatureReport(unsigned=state.sequence_number + 1),
        state=state,
    )


@pytest.mark.parametrize("name", KAMU_DATASETS)
def test_copy_that_is_behind_goes_on_from_every_block(golden, name: str, tmp_path: Path):
    original = DatasetLayout.local(KAMU / name)
    blocks = original.chain.in_order()
    for behind in range(1, len(blocks)):
        older = shutil.copytree(KAMU / name, tmp_path / f"older-{behind}")
        (older / "refs" / "head").write_text(str(blocks[-1 - behind].hash))
        copy = DatasetLayout.local(tmp_path / f"copy-{behind}")
        transfer(DatasetLayout.local(older), copy)
        result = transfer(golden(name), copy)
        assert (result.outcome, result.num_blocks) == (TransferOutcome.UPDATED, behind)
        assert image(copy) == image(original)


def test_pushed_dataset_can_be_pulled_from_the_folder_that_a_server_serves(server: StaticServer, tmp_path: Path):
    transfer(open_dataset(str(KAMU / "cities")), open_dataset(str(tmp_path / "repository" / "cities")))
    copy = DatasetLayout.local(tmp_path / "copy")
    transfer(open_dataset(f"{server.url}/repository/cities"), copy)
    assert image(copy) == image(DatasetLayout.local(KAMU / "cities"))


# --- What a transfer comes to ---


def test_equal_heads_are_up_to_date(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    transfer(there, here)
    head = there.chain.head()
    assert transfer(there, here) == TransferResult(outcome=TransferOutcome.UP_TO_DATE, old_head=head, new_head=head)


def test_up_to_date_reads_only_the_heads(there: DatasetLayout, server: StaticServer):
    make_dataset(there, "a")
    add_slice(there, b"row")

    class Untouchable(MemoryObjectStore):
        def __contains__(self, name: object) -> bool:
            raise AssertionError(name)

        def open(self, name: Multihash):
            raise AssertionError(name)

    mirror = DatasetLayout.in_memory()
    set_head(mirror, there.chain.head())
    copy = DatasetLayout(mirror.refs, Untouchable(), Untouchable(), Untouchable())
    assert transfer(open_dataset(f"{server.url}/there"), copy).outcome is TransferOutcome.UP_TO_DATE
    assert server.requests == [("GET", "/there/refs/head")]


def test_fast_forward_reads_only_what_is_new(here: DatasetLayout, there: DatasetLayout, server: StaticServer):
    make_dataset(there, "a", "b")
    transfer(there, here)
    (name,) = add_slice(there, b"row")
    remote = open_dataset(f"{server.url}/there")
    result = transfer(remote, here)
    assert (result.num_blocks, result.num_records, result.num_objects, result.num_bytes) == (2, 1, 1, 3)
    assert sorted(server.asked()) == sorted(
        ["/there/refs/head", "/there/refs/head.sig", f"/there/data/{name}"]
        + [f"/there/blocks/{b.hash}" for b in there.chain.in_order()[-2:]]
    )


def test_target_that_has_more_is_left_alone(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    transfer(there, here)
    add_info(here, "b", "c")
    before = image(here)
    result = transfer(there, here)
    head, behind = here.chain.head(), there.chain.head()
    assert result == TransferResult(
        outcome=TransferOutcome.TARGET_AHEAD, old_head=head, new_head=head, num_ahead=2, behind=behind
    )
    assert result.source_head == behind
    assert image(here) == before


@pytest.mark.parametrize("rewritten", [False, True], ids=["rolled-back", "rewritten"])
def test_place_that_does_not_have_any_more_what_it_had(here: DatasetLayout, there: DatasetLayout, rewritten: bool):
    make_dataset(there, "a")
    early = there.chain.head()
    add_info(there, "b", "c")
    seen = transfer(there, here).source_head
    there.refs.compare_and_swap(HEAD, seen, early)
    if rewritten:
        add_info(there, "other")
    before = image(here)
    with pytest.raises(HistoryRewritten, match=r"was at block 3 \(f1620.*2 blocks that were there have been removed"):
        transfer(there, here, TransferOptions(seen=seen))
    assert image(here) == before
    assert (
        transfer(there, here, TransferOptions(seen=seen, force=True)).new_head
        == here.chain.head()
        == there.chain.head()
    )


def test_blocks_of_our_own_on_top_of_what_was_seen_are_not_missed(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    seen = transfer(there, here).source_head
    add_info(here, "mine")
    assert transfer(there, here, TransferOptions(seen=seen)).outcome is TransferOutcome.TARGET_AHEAD


def test_diverged_sides_are_refused_with_both_heads_and_the_common_ancestor(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a", "b")
    transfer(there, here)
    ancestor = here.chain.head()
    add_info(here, "mine")
    add_info(there, "theirs", "theirs too")
    before = image(here)
    with pytest.raises(DatasetsDiverged) as caught:
        transfer(there, here)
    message = caught.value.message
    assert f"continues with 2 blocks (to {there.chain.head()})" in message
    assert f"with 1 block (to {here.chain.head()})" in message
    assert f"have diverged after block 2 ({ancestor})" in message
    assert "drops 1 block there" in (caught.value.hint or "")
    assert image(here) == before


def test_force_makes_the_target_the_same_as_the_source(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    transfer(there, here)
    add_info(here, "mine", "mine too")
    add_info(there, "theirs")
    old_head = here.chain.head()
    result = transfer(there, here, TransferOptions(force=True))
    assert (result.outcome, result.num_blocks, result.num_dropped) == (TransferOutcome.UPDATED, 1, 2)
    assert (result.old_head, result.new_head) == (old_head, there.chain.head())
    assert here.chain.state() == there.chain.state()


def test_force_takes_a_target_back_that_is_ahead(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    transfer(there, here)
    add_info(here, "b")
    result = transfer(there, here, TransferOptions(force=True))
    assert (result.num_blocks, result.num_dropped) == (0, 1)
    assert here.chain.head() == there.chain.head()


@pytest.mark.parametrize("force", [False, True])
def test_another_dataset_is_refused(here: DatasetLayout, there: DatasetLayout, force: bool):
    make_dataset(here, "a", number=1)
    make_dataset(there, "a", "b", number=2)
    before = image(here)
    with pytest.raises(ForeignDataset, match=str(dataset_id(2))):
        transfer(there, here, TransferOptions(force=force))
    assert image(here) == before


def test_same_id_without_a_common_block_is_a_divergence(here: DatasetLayout, there: DatasetLayout):
    make_dataset(here)
    later = Timestamp.parse("2025-01-01T00:00:00Z")
    there.chain.commit(there.chain.prepare(ChainState(), [seed()], later))
    with pytest.raises(DatasetsDiverged, match="have diverged from the first block on"):
        transfer(there, here)


def test_empty_target_takes_only_the_expected_id(here: DatasetLayout, there: DatasetLayout, tmp_path: Path):
    make_dataset(there, "a")
    add_slice(there, b"row")
    with pytest.raises(ForeignDataset, match=f"{dataset_id(1)}, not {dataset_id(2)}"):
        transfer(there, here, TransferOptions(expected_id=dataset_id(2)))
    assert not (tmp_path / "here").exists()
    assert transfer(there, here, TransferOptions(expected_id=dataset_id(1))).num_blocks == 4


@pytest.mark.parametrize("place", ["{folder}/nothing", "{url}/nothing"])
def test_place_without_a_head_is_a_clear_error(here: DatasetLayout, tmp_path: Path, server: StaticServer, place: str):
    url = place.format(folder=tmp_path, url=server.url)
    with pytest.raises(DatasetNotFound, match=f"{url}/refs/head does not exist"):
        transfer(open_dataset(url), here)


def test_server_cannot_be_pushed_to(there: DatasetLayout, server: StaticServer):
    make_dataset(there)
    with pytest.raises(TransferError, match="read-only") as caught:
        transfer(there, open_dataset(f"{server.url}/new"))
    assert f"--to odf+{server.url}/new;" in (caught.value.hint or "")
    assert server.requests == []


def test_folder_without_permission_is_a_clear_error(there: DatasetLayout, tmp_path: Path):
    make_dataset(there)
    (tmp_path / "file").write_text("")
    with pytest.raises(OdfError, match=f"{tmp_path}/file/here"):
        transfer(there, DatasetLayout.local(tmp_path / "file" / "here"))


# --- Order, and what stays after an interruption ---


class Told(ObjectStore):
    """A store that tells in which order objects come in."""

    def __init__(self, inner: ObjectStore, label: str, story: list[str]) -> None:
        self._inner, self._label, self._story = inner, label, story

    def insert_stream(self, stream, name, *, size=None):
        self._inner.insert_stream(stream, name, size=size)
        self._story.append(self._label)

    def __contains__(self, name):
        return name in self._inner

    def __iter__(self):
        return iter(self._inner)

    def open(self, name):
        return self._inner.open(name)

    def size(self, name):
        return self._inner.size(name)

    def describe(self, name):
        return self._inner.describe(name)

    def insert_file(self, path, name):
        self._inner.insert_file(path, name)

    def delete(self, name):
        self._inner.delete(name)


def test_files_come_first_then_blocks_then_the_head(there: DatasetLayout):
    make_dataset(there, "a")
    add_slice(there, b"row", b"state")
    story: list[str] = []
    plain = DatasetLayout.in_memory()
    target = DatasetLayout(
        plain.refs,
        Told(plain.blocks, "block", story),
        Told(plain.data, "file", story),
        Told(plain.checkpoints, "file", story),
    )
    transfer(there, target)
    assert story == ["file"] * 2 + ["block"] * 4
    assert image(plain) == image(there)


def test_head_that_moved_meanwhile_is_not_overwritten(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there, "a")
    transfer(there, here)
    add_slice(there, b"row")
    moved: list[Multihash] = []

    def somebody_else(_done: int, _total: int) -> None:
        if not moved:
            add_info(here, "first")
            moved.append(here.chain.head())

    with pytest.raises(ConcurrentUpdate):
        transfer(there, here, TransferOptions(force=True), progress=somebody_else)
    assert here.chain.head() == moved[0]


def test_cut_connection_leaves_the_target_as_it_was_and_is_resumed(
    here: DatasetLayout, there: DatasetLayout, server: StaticServer, tmp_path: Path, monkeypatch
):
    monkeypatch.setattr(objects, "MAX_PARALLEL", 1)  # so that it is known which files come before the cut
    make_dataset(there, "a")
    transfer(there, here)
    head = here.chain.head()
    names = [add_slice(there, bytes([number]) * 100_000)[0] for number in range(4)]
    server.special[f"/data/{names[2]}"] = cut_after(there.data.read(names[2]), 50_000)
    with pytest.raises(TransferError, match=f"data/{names[2]}: interrupted after 50000 of 100000 bytes"):
        transfer(open_dataset(f"{server.url}/there"), here)
    assert here.chain.head() == head
    assert set(here.data) == set(names[:2])
    assert temporary_files(tmp_path) == []

    server.special.clear()
    server.forget()
    result = transfer(open_dataset(f"{server.url}/there"), here)
    assert (result.num_objects, result.num_bytes) == (2, 200_000)
    assert set(server.asked("/data/")) == {f"/there/data/{name}" for name in names[2:]}
    assert image(here) == image(there)


def test_one_failure_among_many_files_leaves_only_whole_ones(
    here: DatasetLayout, there: DatasetLayout, server: StaticServer, tmp_path: Path
):
    make_dataset(there, "a")
    names = [add_slice(there, bytes([number]) * 300_000)[0] for number in range(20)]
    server.special[f"/data/{names[3]}"] = cut_after(there.data.read(names[3]), 1000)
    with pytest.raises(TransferError, match=f"{names[3]}: interrupted"):
        transfer(open_dataset(f"{server.url}/there"), here)
    kept = set(here.data)
    assert all(here.data.read(name) for name in kept)
    assert (here.refs.get(HEAD), list(here.blocks), temporary_files(tmp_path)) == (None, [], [])

    server.special.clear()
    server.forget()
    transfer(open_dataset(f"{server.url}/there"), here)
    assert not {f"/there/data/{name}" for name in kept} & set(server.asked("/data/"))
    assert image(here) == image(there)


def test_file_that_is_there_but_cut_short_comes_again(here: DatasetLayout, there: DatasetLayout, tmp_path: Path):
    make_dataset(there, "a")
    (name,) = add_slice(there, b"row")
    here.data.insert(b"row")
    (tmp_path / "here" / "data" / str(name)).write_bytes(b"r")
    assert transfer(there, here).num_objects == 1
    assert image(here) == image(there)


def test_progress_counts_the_bytes_of_all_files(here: DatasetLayout, there: DatasetLayout):
    make_dataset(there)
    add_slice(there, b"x" * 1000, b"y" * 500)
    add_slice(there, b"z" * 2000, b"y" * 500)
    seen: list[tuple[int, int]] = []
    transfer(there, here, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (3500, 3500)


def test_interrupt_by_the_person_leaves_nothing_half_made(here: DatasetLayout, there: DatasetLayout, tmp_path: Path):
    make_dataset(there)
    for number in range(5):
        add_slice(there, bytes([number]) * 3_000_000)

    def interrupt(_done: int, _total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        transfer(there, here, progress=interrupt)
    assert (here.refs.get(HEAD), temporary_files(tmp_path)) == (None, [])


def test_a_push_of_one_block_reads_few_there(here: DatasetLayout, monkeypatch: pytest.MonkeyPatch):
    """In a bucket each block that is read is a request, and a chain may have thousands of them."""
    there = DatasetLayout.in_memory()
    make_dataset(here, *(f"block {number}" for number in range(40)))
    transfer(here, there)
    add_info(here, "news")
    reads: list[Multihash] = []
    read = MemoryObjectStore.read
    monkeypatch.setattr(MemoryObjectStore, "read", lambda store, name: (reads.append(name), read(store, name))[1])
    assert transfer(here, there).outcome is TransferOutcome.UPDATED
    assert len(reads) < 5
