"""Sources that lie. Each lie is an error that names the object, and the target stays what it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.chains.small_datasets import (
    LOGICAL_HASH,
    NOON,
    add_info,
    add_slice,
    append,
    dataset_id,
    image,
    make_dataset,
    put_block,
    seed,
    set_head,
    slice_event,
)
from support.servers.static_server import StaticServer, cut_after, endless, send, static_server

from odfpy.chain.encoding import MAX_BLOCK_SIZE
from odfpy.chain.events import AddData, Checkpoint, DataSlice, Seed, SetDataSchema, SetInfo
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.rules import OffsetsNotSequential, PrevOffsetMismatch, SeedMustBeFirst, SequenceBroken
from odfpy.chain.stores.object_store import ObjectTooLarge
from odfpy.data.multihash import Multihash
from odfpy.data.offset_interval import OffsetInterval
from odfpy.data.schemas.schema import DataSchema
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import (
    DatasetNotFound,
    HashMismatch,
    IntegrityError,
    MalformedBlock,
    ObjectNotFound,
    OdfError,
    TransferError,
)
from odfpy.repository import divergence
from odfpy.repository.locations.open import open_dataset
from odfpy.repository.transfer.simple import ForeignDataset, transfer


@pytest.fixture
def remote(tmp_path: Path) -> DatasetLayout:
    """A good dataset of three blocks, for a start."""
    return make_dataset(DatasetLayout.local(tmp_path / "remote"), "a", "b")


@pytest.fixture
def here(tmp_path: Path, remote: DatasetLayout) -> DatasetLayout:
    """An older copy of it."""
    copy = DatasetLayout.local(tmp_path / "here")
    transfer(remote, copy)
    return copy


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    with static_server(tmp_path) as site:
        yield site


@pytest.fixture(params=["http", "file"])
def url(request, server: StaticServer, tmp_path: Path) -> str:
    """Where the remote dataset is."""
    return f"{server.url}/remote" if request.param == "http" else str(tmp_path / "remote")


@pytest.fixture
def refused(here: DatasetLayout, tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Pulls, and sees that an error comes that names something, and that nothing has changed."""

    def pull(url: str, error: type[OdfError], *named: object) -> None:
        chain = (here.refs.get("head"), set(here.blocks))
        with pytest.raises(error) as caught:
            transfer(open_dataset(url), here)
        for text in named:
            assert str(text) in caught.value.message
        assert (here.refs.get("head"), set(here.blocks)) == chain
        assert [path for path in tmp_path.rglob("*") if path.name.startswith(".tmp")] == []
        assert all(here.data.read(name) is not None for name in here.data)

    return pull


def damage(folder: Path, name: Multihash, data: bytes) -> None:
    (folder / str(name)).write_bytes(data)


# --- Heads ---


@pytest.mark.parametrize(
    "head", [b"", b"<html>Welcome</html>", b"../../../etc/passwd", b"f1620zz", b"\xff" * 100, b"f1620" + b"0" * 5000]
)
def test_head_that_is_no_hash(url: str, head: bytes, refused, tmp_path: Path):
    (tmp_path / "remote" / "refs" / "head").write_bytes(head)
    refused(url, OdfError, "remote/refs/head")


def test_head_of_a_hash_that_nobody_can_check(url: str, remote: DatasetLayout, refused):
    unknown = Multihash(0x99, bytes(40))
    set_head(remote, unknown)
    refused(url, OdfError, f"remote/blocks/{unknown}")


def test_head_without_end(server: StaticServer, refused):
    server.special["/refs/head"] = endless(b" " * 65536)
    refused(f"{server.url}/remote", TransferError, "refs/head", "more than")


def test_page_instead_of_a_missing_head(server: StaticServer, refused):
    server.special["/refs/head"] = lambda handler: send(handler, b"<html>" + b"x" * 100_000, status=404)
    refused(f"{server.url}/remote", DatasetNotFound, "refs/head")


def test_server_that_fails(server: StaticServer, refused):
    server.special["/refs/head"] = lambda handler: send(handler, b"oh", status=500)
    refused(f"{server.url}/remote", TransferError, "refs/head", "status 500")


# --- Blocks ---


def test_block_is_missing(url: str, remote: DatasetLayout, refused, tmp_path: Path):
    add_info(remote, "c", "d")
    middle = remote.chain.in_order()[-2].hash
    remote.blocks.delete(middle)
    refused(url, ObjectNotFound, f"remote/blocks/{middle}")


def test_block_has_another_hash(url: str, remote: DatasetLayout, refused, tmp_path: Path):
    add_info(remote, "c", "d")
    middle, last = remote.chain.in_order()[-2:]
    damage(tmp_path / "remote" / "blocks", middle.hash, remote.blocks.read(last.hash))
    refused(url, HashMismatch, f"remote/blocks/{middle.hash}")


def test_block_is_malformed(url: str, remote: DatasetLayout, refused):
    set_head(remote, junk := remote.blocks.insert(b"not a block" * 10))
    refused(url, MalformedBlock, f"remote/blocks/{junk}")


def test_block_is_larger_than_a_block_can_be(url: str, remote: DatasetLayout, refused, tmp_path: Path):
    set_head(remote, name := Multihash.of(b"large"))
    with (tmp_path / "remote" / "blocks" / str(name)).open("wb") as file:
        file.truncate(MAX_BLOCK_SIZE + 1)
    refused(url, OdfError, f"remote/blocks/{name}", str(MAX_BLOCK_SIZE))


def test_block_without_end(server: StaticServer, remote: DatasetLayout, refused):
    add_info(remote, "c")
    server.special[str(remote.chain.head())] = endless()
    refused(f"{server.url}/remote", TransferError, f"blocks/{remote.chain.head()}", "more than")


def test_blocks_whose_numbers_do_not_fall(url: str, remote: DatasetLayout, refused):
    """What a cycle would be, if one could make blocks that hold each other's hashes."""
    first = put_block(remote, SetInfo(description="x"), remote.chain.head(), 9)
    put_block(remote, SetInfo(description="y"), first.hash, 9)
    refused(url, IntegrityError, f"remote/blocks/{first.hash}", "number 9 where 8 must be")


def test_chain_that_ends_early(url: str, remote: DatasetLayout, refused):
    put_block(remote, SetInfo(description="x"), None, 7)
    refused(url, IntegrityError, f"remote/blocks/{remote.chain.head()}", "is the first block, and has number 7")


def test_first_number_in_the_middle(url: str, remote: DatasetLayout, refused):
    before = remote.chain.head()
    put_block(remote, SetInfo(description="x"), before, 0)
    refused(url, IntegrityError, f"remote/blocks/{remote.chain.head()} names {before}", "has number 0")


def test_many_blocks_that_would_fill_the_memory(url: str, remote: DatasetLayout, refused, monkeypatch):
    monkeypatch.setattr(divergence, "MAX_BYTES", 100_000)
    add_info(remote, "honest" * 2000, *(f"{number}" * 30_000 for number in range(5)))
    refused(url, ObjectTooLarge, "remote/blocks/f1620", "the last 4 blocks of this chain have")


def test_number_near_the_end_of_numbers(url: str, remote: DatasetLayout, refused):
    block = put_block(remote, SetInfo(description="x"), remote.chain.head(), 2**64 - 1)
    refused(url, SequenceBroken, block.hash, "its number must be 3")


# --- Rules ---


def test_chain_of_another_dataset(url: str, refused, tmp_path: Path):
    for path in (tmp_path / "remote").rglob("head"):
        path.unlink()
    make_dataset(DatasetLayout.local(tmp_path / "remote"), "a", "b", "c", number=7)
    refused(url, ForeignDataset, "remote/refs/head", dataset_id(7))


def test_chain_that_does_not_begin_with_a_seed(url: str, refused, tmp_path: Path):
    remote = DatasetLayout.local(tmp_path / "remote")
    block = put_block(remote, SetInfo(description="x"), None, 0)
    refused(url, SeedMustBeFirst, block.hash)


def test_second_seed_that_would_change_the_identity(url: str, remote: DatasetLayout, refused):
    block = put_block(remote, Seed(dataset_id(7), DatasetKind.ROOT), remote.chain.head(), 3)
    refused(url, SeedMustBeFirst, block.hash)


def test_chain_that_breaks_a_rule_stores_nothing(url: str, remote: DatasetLayout, here: DatasetLayout, refused):
    before = image(here)
    add_slice(remote, b"good")
    state = remote.chain.state()
    event = slice_event(state, b"bad")
    wrong = AddData(prev_offset=7, new_data=event.new_data)
    block = put_block(remote, wrong, state.head, state.sequence_number + 1)
    refused(url, PrevOffsetMismatch, block.hash)
    assert image(here) == before


def test_rules_hold_across_what_the_target_has_already(url: str, remote: DatasetLayout, here: DatasetLayout, refused):
    add_slice(remote, b"one")
    transfer(remote, here)
    state = remote.chain.state()
    again = AddData(prev_offset=0, new_data=DataSlice(LOGICAL_HASH, Multihash.of(b"two"), OffsetInterval(0, 0), 3))
    block = put_block(remote, again, state.head, state.sequence_number + 1)
    refused(url, OffsetsNotSequential, block.hash)


def test_empty_target_does_not_take_a_chain_whose_numbers_are_wrong(tmp_path: Path):
    remote = DatasetLayout.local(tmp_path / "odd")
    put_block(remote, seed(), None, 1)
    with pytest.raises(IntegrityError):
        transfer(remote, DatasetLayout.local(tmp_path / "new"))
    assert not (tmp_path / "new").exists()


# --- Files ---


def pull_of_a_slice(remote: DatasetLayout, content: bytes, **announced: object) -> Multihash:
    """A block on the remote side that announces a slice in some way."""
    state = remote.chain.state()
    fields = {"physical_hash": Multihash.of(content), "size": len(content)} | announced
    new_data = DataSlice(logical_hash=LOGICAL_HASH, offset_interval=OffsetInterval(0, 0), **fields)  # type: ignore[arg-type]
    append(remote, [SetDataSchema(schema=DataSchema(fields=()))])
    put_block(remote, AddData(new_data=new_data), remote.chain.head(), state.sequence_number + 2)
    return new_data.physical_hash


def test_file_is_missing(url: str, remote: DatasetLayout, refused):
    name = pull_of_a_slice(remote, b"row")
    refused(url, ObjectNotFound, f"remote/data/{name}")


def test_checkpoint_is_missing(url: str, remote: DatasetLayout, refused):
    append(remote, [AddData(new_checkpoint=Checkpoint(name := Multihash.of(b"state"), 5))])
    refused(url, ObjectNotFound, f"remote/checkpoints/{name}")


def test_file_has_another_hash(url: str, remote: DatasetLayout, refused, tmp_path: Path):
    (name,) = add_slice(remote, b"row")
    damage(tmp_path / "remote" / "data", name, b"cow")
    refused(url, HashMismatch, f"remote/data/{name}")


def test_file_is_cut_short(url: str, remote: DatasetLayout, refused, tmp_path: Path):
    (name,) = add_slice(remote, b"row")
    damage(tmp_path / "remote" / "data", name, b"ro")
    refused(url, HashMismatch, f"remote/data/{name}")


def test_file_is_longer_than_announced(url: str, remote: DatasetLayout, refused):
    name = pull_of_a_slice(remote, b"x" * 1000, size=999)
    remote.data.insert(b"x" * 1000)
    refused(url, ObjectTooLarge, f"remote/data/{name}")


def test_file_is_shorter_than_announced(url: str, remote: DatasetLayout, refused):
    name = pull_of_a_slice(remote, b"row", size=4)
    remote.data.insert(b"row")
    refused(url, IntegrityError, name, "3 bytes, not 4")


def test_file_without_end(server: StaticServer, remote: DatasetLayout, refused):
    (name,) = add_slice(remote, b"row" * 1000)
    server.special[f"/data/{name}"] = endless()
    refused(f"{server.url}/remote", ObjectTooLarge, f"remote/data/{name}")


def test_connection_is_cut_within_a_file(server: StaticServer, remote: DatasetLayout, refused):
    (name,) = add_slice(remote, content := b"row" * 1000)
    server.special[f"/data/{name}"] = cut_after(content, 1234)
    refused(f"{server.url}/remote", TransferError, f"remote/data/{name}", "1234 of 3000")


def test_file_whose_hash_nobody_can_check(url: str, remote: DatasetLayout, refused):
    refused_name = pull_of_a_slice(remote, b"row", physical_hash=Multihash(0x99, b"../../x"))
    refused(url, IntegrityError, remote.chain.head(), refused_name)


def test_file_named_by_a_logical_hash(url: str, remote: DatasetLayout, refused):
    refused(url, IntegrityError, pull_of_a_slice(remote, b"row", physical_hash=LOGICAL_HASH))


def test_file_of_two_sizes(url: str, remote: DatasetLayout, refused):
    append(remote, [AddData(new_checkpoint=Checkpoint(Multihash.of(b"state"), 5))])
    state = remote.chain.state()
    other = AddData(
        prev_checkpoint=Multihash.of(b"state"), new_checkpoint=Checkpoint(Multihash.of(b"state"), 6), new_watermark=NOON
    )
    put_block(remote, other, state.head, state.sequence_number + 1)
    refused(url, IntegrityError, Multihash.of(b"state"), "6 bytes, but 5 bytes")
