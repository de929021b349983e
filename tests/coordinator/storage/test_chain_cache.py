"""The sum of a chain in the cache: the same as walking the chain, whatever has become of the file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.chains.events import SCHEMA, add, push, source_state
from support.chains.small_datasets import add_info, append, dataset_id, make_dataset
from support.chains.workspaces import feed, root, workspace_with
from support.fixtures import KAMU, KAMU_DATASETS

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.metadata_chain import MetadataChain, sum_up
from odfpy.chain.state import ChainState
from odfpy.codec import flatbuffers_reader, flatbuffers_writer
from odfpy.codec.shape import OneOf, Record, Sequence, Shape, fields_of
from odfpy.coordinator.storage.chain_cache import FORMAT, WALK, ChainCache
from odfpy.data.multihash import Multihash
from odfpy.errors import OdfError


def summed_up(chain: MetadataChain, file: Path) -> ChainState:
    """As a process does that has just begun."""
    return ChainCache().summed_up(chain, file)


@pytest.fixture
def layout(tmp_path: Path) -> DatasetLayout:
    """A chain that is long enough to be kept."""
    made = make_dataset(DatasetLayout.local(tmp_path / "dataset"))
    slices = [add(10 * at, 10 * at + 9, new_source_state=source_state(f"{at}")) for at in range(WALK)]
    append(made, [SCHEMA, push(), push("other"), *slices])
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "chain-state"


@pytest.mark.parametrize("dataset", KAMU_DATASETS)
def test_every_state_of_the_reference_chains_is_read_as_it_was_written(dataset: str) -> None:
    state = ChainState()
    for hashed in DatasetLayout.local(KAMU / dataset).chain.in_order():
        state = sum_up([hashed], state)
        assert flatbuffers_reader.read(ChainState, flatbuffers_writer.write(state)) == state


def test_a_long_walk_is_done_once(layout: DatasetLayout, file: Path) -> None:
    expected = layout.chain.state()
    assert summed_up(layout.chain, file) == expected
    for path in list(Path(layout.blocks.describe(expected.head)).parent.iterdir()):
        if path.name != str(expected.head):
            path.unlink()
    assert summed_up(layout.chain, file) == expected


def test_what_comes_after_is_summed_up_on_top(layout: DatasetLayout, file: Path) -> None:
    summed_up(layout.chain, file)
    kept = file.read_bytes()
    for number in range(WALK):
        add_info(layout, f"text {number}")
        assert summed_up(layout.chain, file) == layout.chain.state()
    assert file.read_bytes() != kept


def test_a_short_chain_is_not_written_down(tmp_path: Path, file: Path) -> None:
    layout = make_dataset(DatasetLayout.local(tmp_path / "dataset"), "a", "b")
    assert summed_up(layout.chain, file) == layout.chain.state()
    assert not file.parent.exists()


def test_a_chain_that_went_back_or_took_another_way_is_walked_again(layout: DatasetLayout, file: Path) -> None:
    before = layout.chain.head()
    add_info(layout, *(f"text {number}" for number in range(WALK)))
    summed_up(layout.chain, file)
    layout.refs.compare_and_swap("head", layout.chain.head(), before)
    assert summed_up(layout.chain, file) == layout.chain.state()
    add_info(layout, "another")
    assert summed_up(layout.chain, file) == layout.chain.state()


def test_the_file_of_another_dataset_is_not_believed(layout: DatasetLayout, file: Path, tmp_path: Path) -> None:
    other = make_dataset(DatasetLayout.local(tmp_path / "other"), *(f"{number}" for number in range(WALK)), number=2)
    assert summed_up(other.chain, file).dataset_id == dataset_id(2)
    assert summed_up(layout.chain, file) == layout.chain.state()


def test_a_damaged_file_is_not_believed_and_made_again(layout: DatasetLayout, file: Path) -> None:
    expected = summed_up(layout.chain, file)
    whole, dice = file.read_bytes(), random.Random(1)
    for _ in range(40):
        at = dice.randrange(len(whole))
        for damaged in (whole[:at], whole[:at] + bytes([whole[at] ^ 1 << dice.randrange(8)]) + whole[at + 1 :]):
            file.write_bytes(damaged)
            assert summed_up(layout.chain, file) == expected
            assert file.read_bytes() == whole


def test_the_file_of_another_release_is_not_believed(layout: DatasetLayout, file: Path) -> None:
    expected = summed_up(layout.chain, file)
    written = file.read_bytes()
    file.write_bytes(written.replace(b"state %d " % FORMAT, b"state %d " % (FORMAT + 1)))
    assert summed_up(layout.chain, file) == expected
    assert file.read_bytes() == written


def test_a_place_that_cannot_be_written_is_done_without(layout: DatasetLayout, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    assert summed_up(layout.chain, tmp_path / "cache" / "chain-state") == layout.chain.state()


def test_a_damaged_head_is_noticed_all_the_same(layout: DatasetLayout, file: Path) -> None:
    state = summed_up(layout.chain, file)
    Path(layout.blocks.describe(state.head)).write_bytes(b"")
    with pytest.raises(OdfError):
        summed_up(layout.chain, file)


def test_one_process_reads_only_what_is_new(layout: DatasetLayout, tmp_path: Path) -> None:
    cache, nowhere = ChainCache(), Path("/dev/null/chain-state")
    before = cache.summed_up(layout.chain, nowhere)
    assert before == layout.chain.state()
    add_info(layout, "one more")
    expected = layout.chain.state()
    for path in list(Path(layout.blocks.describe(expected.head)).parent.iterdir()):
        if path.name not in (str(before.head), str(expected.head)):
            path.unlink()
    assert cache.summed_up(layout.chain, nowhere) == expected
    with pytest.raises(OdfError):
        summed_up(layout.chain, nowhere)


def test_one_process_believes_no_chain_that_is_gone(layout: DatasetLayout, file: Path) -> None:
    cache, before = ChainCache(), layout.chain.head()
    for _ in range(2):
        add_info(layout, "some", "more")
        assert cache.summed_up(layout.chain, file) == layout.chain.state()
        layout.refs.compare_and_swap("head", layout.chain.head(), before)
        assert cache.summed_up(layout.chain, file) == layout.chain.state()
    state = cache.summed_up(layout.chain, file)
    Path(layout.blocks.describe(state.head)).write_bytes(b"")
    with pytest.raises(OdfError):
        cache.summed_up(layout.chain, file)


def test_one_process_writes_what_it_has_summed_up_in_small_walks(tmp_path: Path, file: Path) -> None:
    layout, cache = make_dataset(DatasetLayout.local(tmp_path / "dataset")), ChainCache()
    for number in range(WALK):
        add_info(layout, f"text {number}")
        cache.summed_up(layout.chain, file)
    assert file.exists()
    add_info(layout, "later")
    assert summed_up(layout.chain, file) == layout.chain.state() == cache.summed_up(layout.chain, file)


def test_a_dataset_goes_on_from_the_cache(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root(merge="{kind: Append}"))
    for number in range(WALK):
        feed(workspace, "root", f"{number} a")
    dataset = workspace.storage.get("root")
    cached = workspace.storage.cache_of(dataset.handle.id) / "chain-state"
    assert cached.exists()
    assert feed(workspace, "root", "1 b").num_records == 1
    assert workspace.storage.get("root").state == dataset.chain.state()
    workspace.datasets.delete(["root"])
    assert not cached.exists()


# --- Its form --------------------------------------------------------------------------------------------------------


def described(shape: Shape, seen: set[type]) -> str:
    """All fields that a value has, and those of its parts."""
    match shape:
        case Record(type_):
            members: tuple[type, ...] = (type_,)
        case OneOf(members):
            pass
        case Sequence(item):
            return f"[{described(item, seen)}]"
        case _:
            return repr(shape).replace("DatasetReference", "Reference")  # its name when the digest was taken
    parts = []
    for member in members:
        parts.append(member.__name__)
        if member not in seen:
            seen.add(member)
            parts += [f"{f.name}:{f.optional}:{described(f.shape, seen)}" for f in fields_of(member)]
    return f"({' '.join(parts)})"


def test_the_format_changes_with_what_is_in_it() -> None:
    digest = Multihash.of(described(Record(ChainState), set()).encode()).digest.hex()[:16]
    known = {1: "51aea9d056d00e23", 2: "862bfd2a916eda6c", 3: "fbc8fc1b6672998a"}
    assert known[FORMAT] == digest, "fields have changed: count FORMAT up and enter the new digest here"
