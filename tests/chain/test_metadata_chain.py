"""The chain of a dataset: walking, summing up, appending, and noticing damage."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.chains.events import DERIVATIVE, NOW, ROOT, SCHEMA, add, day, hash_of, push, source_state, unchecked

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.encoding import _Manifest, encode_block, hash_block
from odfpy.chain.events import AddData, DisablePushSource, MetadataEvent, SetInfo, SetVocab
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import MetadataChain, check_block_bytes, sum_up
from odfpy.chain.new_blocks import NewBlocks, validate
from odfpy.chain.state import ChainState
from odfpy.chain.stores.ref_store import HEAD
from odfpy.codec import flatbuffers_writer
from odfpy.data.multihash import BLAKE3, Multihash
from odfpy.data.timestamp import Timestamp
from odfpy.data.vocabulary import DEFAULT_VOCABULARY
from odfpy.dataset.kind import DatasetKind
from odfpy.errors import (
    ConcurrentUpdate,
    HashMismatch,
    IntegrityError,
    InternalError,
    MalformedBlock,
    ObjectNotFound,
    ReferenceNotFound,
    UnsupportedVersion,
)

EVENTS: list[MetadataEvent] = [
    ROOT, SCHEMA, SetInfo("a"), push(), add(0, 9, new_watermark=day(1), new_source_state=source_state("1")),
    add(10, 19, new_watermark=day(2)), SetVocab(event_time_column="date"),
]  # fmt: skip


@pytest.fixture(params=["memory", "local"])
def chain(request: pytest.FixtureRequest, tmp_path: Path) -> MetadataChain:
    return (DatasetLayout.in_memory() if request.param == "memory" else DatasetLayout.local(tmp_path / "dataset")).chain


def filled(chain: MetadataChain, events: list[MetadataEvent] = EVENTS) -> ChainState:
    return chain.commit(chain.prepare(ChainState(), events, NOW))


# --- Walking ---------------------------------------------------------------------------------------------------------


def test_an_empty_chain_has_no_head(chain: MetadataChain):
    with pytest.raises(ReferenceNotFound):
        chain.head()
    with pytest.raises(ReferenceNotFound):
        list(chain.iter_blocks())


def test_blocks_come_newest_first_or_in_order(chain: MetadataChain):
    filled(chain)
    assert [hashed.block.event for hashed in chain.iter_blocks()] == EVENTS[::-1]
    assert [hashed.block.event for hashed in chain.in_order()] == EVENTS
    assert [hashed.block.sequence_number for hashed in chain.in_order()] == list(range(len(EVENTS)))
    assert chain.in_order() == unchecked(EVENTS)


def test_walking_from_and_to_a_block(chain: MetadataChain):
    filled(chain)
    blocks = chain.in_order()
    assert chain.in_order(blocks[3].hash) == blocks[:4]
    assert chain.in_order(after=blocks[3].hash) == blocks[4:]
    assert chain.in_order(blocks[3].hash, after=blocks[1].hash) == blocks[2:4]
    assert chain.in_order(after=chain.head()) == []


def test_walking_to_a_block_that_is_not_there(chain: MetadataChain):
    filled(chain)
    blocks = chain.in_order()
    for head, until in ((None, hash_of("x")), (blocks[1].hash, blocks[3].hash)):
        with pytest.raises(IntegrityError, match="is not in the chain"):
            list(chain.iter_blocks(head, until=until))


def test_walking_ends_whatever_the_numbers_say(chain: MetadataChain):
    """Two blocks with the same number, one after the other, as a careless or hostile writer may make them."""
    first, second = unchecked([ROOT, SetInfo("a")], sequence_number=0)
    for hashed in (first, second):
        chain.blocks.insert(encode_block(hashed.block))
    chain.refs.compare_and_swap(HEAD, None, second.hash)
    with pytest.raises(IntegrityError, match="has number 0 where -1 must be"):
        list(chain.iter_blocks())


# --- Appending -------------------------------------------------------------------------------------------------------


def test_nothing_is_stored_before_the_commit(chain: MetadataChain):
    new = chain.prepare(ChainState(), EVENTS, NOW)
    assert isinstance(new, NewBlocks)
    assert list(chain.blocks) == []
    assert chain.refs.get(HEAD) is None
    assert new.state == validate(unchecked(EVENTS))


def test_commit_stores_the_blocks_and_moves_the_head(chain: MetadataChain):
    state = filled(chain)
    assert chain.head() == state.head
    assert set(chain.blocks) == {hashed.hash for hashed in chain.in_order()}
    assert chain.state() == state == validate(chain.in_order())


def test_commit_of_nothing_changes_nothing(chain: MetadataChain):
    state = filled(chain)
    assert chain.commit(chain.prepare(state, [], NOW)) == state
    assert chain.head() == state.head


def test_of_two_writers_one_wins_and_the_other_can_go_on(chain: MetadataChain):
    base = filled(chain)
    mine = chain.prepare(base, [SetInfo("mine")], NOW)
    theirs = chain.prepare(base, [SetInfo("theirs")], NOW)
    won = chain.commit(theirs)
    with pytest.raises(ConcurrentUpdate):
        chain.commit(mine)
    assert chain.head() == won.head
    again = chain.commit(chain.prepare(chain.state(), [SetInfo("mine")], NOW))
    assert [hashed.block.event for hashed in chain.iter_blocks()][:2] == [SetInfo("mine"), SetInfo("theirs")]
    assert chain.head() == again.head


def test_a_first_commit_does_not_replace_a_chain(chain: MetadataChain):
    filled(chain)
    with pytest.raises(ConcurrentUpdate):
        chain.commit(chain.prepare(ChainState(), [DERIVATIVE], NOW))
    assert chain.state().kind is DatasetKind.ROOT


# --- State -----------------------------------------------------------------------------------------------------------


def test_state_sums_up_the_chain(chain: MetadataChain):
    state = filled(chain)
    assert (state.dataset_id, state.kind) == (ROOT.dataset_id, DatasetKind.ROOT)
    assert (state.sequence_number, state.system_time) == (len(EVENTS) - 1, NOW)
    assert (state.num_records, state.next_offset, state.last_offset) == (20, 20, 19)
    assert state.data_bytes == 200
    assert state.watermark == day(2)
    assert state.schema == SCHEMA.schema
    assert state.source_state("default") == source_state("1")
    assert state.source_state("other") is None
    assert state.vocab.event_time_column == "date"
    assert state.info == SetInfo("a")
    assert state.push_source("default") == push()


def test_state_of_an_older_block(chain: MetadataChain):
    filled(chain)
    state = chain.state(chain.in_order()[4].hash)
    assert (state.num_records, state.watermark, state.vocab) == (10, day(1), DEFAULT_VOCABULARY)


def test_state_of_nothing():
    state = ChainState()
    assert (state.num_records, state.next_offset, state.last_offset, state.watermark) == (0, 0, None, None)
    with pytest.raises(InternalError):
        _ = state.kind


def test_latest_source_states_are_kept_by_name():
    events = [AddData(new_source_state=source_state(value, source)) for value, source in ("1a", "1b", "2a")]
    state = sum_up(unchecked([ROOT, *events]))
    assert {found.source_name: found.value for found in state.source_states} == {"a": "2", "b": "1"}


def test_push_sources_are_replaced_by_name_and_leave():
    state = sum_up(unchecked([ROOT, push("a"), push("b"), push("a", preprocess=None), DisablePushSource("b")]))
    assert [source.source_name for source in state.push_sources] == ["a"]


def test_time_of_the_last_rows():
    later = Timestamp(NOW.nanos + 1)
    assert sum_up(unchecked([ROOT, SCHEMA, add(0, 9), SetInfo("a")], system_time=later)).last_data_time == NOW
    assert sum_up(unchecked([ROOT, SCHEMA, add(0, 9)], system_time=later)).last_data_time == later
    assert sum_up(unchecked([ROOT, SCHEMA])).last_data_time is None


# --- Damage ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    filled(DatasetLayout.local(tmp_path).chain)
    return tmp_path


def block_file(folder: Path, number: int) -> Path:
    return folder / "blocks" / str(unchecked(EVENTS)[number].hash)


def test_a_missing_block_is_named(folder: Path):
    block_file(folder, 3).unlink()
    with pytest.raises(ObjectNotFound) as caught:
        DatasetLayout.local(folder).chain.state()
    assert str(block_file(folder, 3)) in caught.value.message


def test_a_changed_byte_is_noticed_and_named(folder: Path):
    data = bytearray(block_file(folder, 3).read_bytes())
    data[-1] ^= 1
    block_file(folder, 3).write_bytes(data)
    with pytest.raises(HashMismatch) as caught:
        DatasetLayout.local(folder).chain.state()
    assert str(block_file(folder, 3)) in caught.value.message
    assert caught.value.hint


def test_a_block_under_another_name_is_noticed(folder: Path):
    block_file(folder, 3).write_bytes(block_file(folder, 2).read_bytes())
    with pytest.raises(HashMismatch):
        DatasetLayout.local(folder).chain.state()


@pytest.mark.parametrize("text", ["", "\n", "not a hash", "f1620", "\xff\xfe", "f1620" + "0" * 63, "x" * 100_000])
def test_a_damaged_reference_is_named(folder: Path, text: str):
    (folder / "refs" / "head").write_text(text, encoding="latin-1")
    with pytest.raises(IntegrityError) as caught:
        DatasetLayout.local(folder).chain.head()
    assert str(folder / "refs" / "head") in caught.value.message
    assert caught.value.hint


def test_a_reference_may_end_with_a_newline(folder: Path):
    head = folder / "refs" / "head"
    head.write_text(head.read_text() + "\n")
    assert DatasetLayout.local(folder).chain.head() == unchecked(EVENTS)[-1].hash


def test_bytes_that_are_no_block_are_named_with_their_file(folder: Path):
    layout = DatasetLayout.local(folder)
    name = layout.blocks.insert(b"no block at all")
    with pytest.raises(MalformedBlock, match=str(folder / "blocks" / str(name))):
        layout.chain.block(name)


def test_a_block_of_a_later_version_is_named_with_its_file(folder: Path):
    layout = DatasetLayout.local(folder)
    content = flatbuffers_writer.write(MetadataBlock(system_time=NOW, sequence_number=0, event=ROOT))
    name = layout.blocks.insert(flatbuffers_writer.write(_Manifest(0x400000, 9, content)))
    with pytest.raises(UnsupportedVersion, match=str(folder / "blocks" / str(name))):
        layout.chain.block(name)


# --- Blocks from elsewhere -------------------------------------------------------------------------------------------


def test_received_bytes_must_be_the_block_of_that_name():
    hashed, data = hash_block(MetadataBlock(system_time=NOW, sequence_number=0, event=ROOT))
    assert check_block_bytes(hashed.hash, data) == hashed
    assert check_block_bytes(Multihash.of(data, BLAKE3), data) == HashedBlock(Multihash.of(data, BLAKE3), hashed.block)
    with pytest.raises(HashMismatch):
        check_block_bytes(hashed.hash, data + b"\0")
    with pytest.raises(MalformedBlock):
        check_block_bytes(Multihash.of(b"x"), b"x")
    with pytest.raises(IntegrityError, match="Unknown hash algorithm"):
        check_block_bytes(Multihash(0x12, bytes(32)), data)
