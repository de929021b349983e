"""Branches and tags travel where they are asked to, and nothing of the head changes for that."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.chains.small_datasets import add_info, add_slice, make_dataset
from support.servers.static_server import StaticServer, static_server

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.references import ReferenceKind, ReferenceName
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import AlreadyExists, HashMismatch, TransferError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.reference_transfer import ReferenceNotThere, copy_reference, fetch_reference, send_reference
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome, transfer

TAG = ReferenceName.of(ReferenceKind.TAG, "v1")
STAGING = ReferenceName.of(ReferenceKind.BRANCH, "staging")


@pytest.fixture
def there(tmp_path: Path) -> DatasetLayout:
    """A dataset with a tag at its second block, and a branch with a slice of its own."""
    layout = make_dataset(DatasetLayout.local(tmp_path / "there"), "one", "two")
    layout.refs.compare_and_swap(TAG.reference, None, layout.chain.in_order()[1].hash)
    add_slice(layout.on(STAGING), b"staged")
    return layout


@pytest.fixture
def here(there: DatasetLayout, tmp_path: Path) -> DatasetLayout:
    """A copy, as it was pulled: without them."""
    layout = DatasetLayout.local(tmp_path / "here")
    transfer(there, layout)
    assert list(layout.refs.names()) == [HEAD]
    return layout


@pytest.fixture
def server(tmp_path: Path) -> Iterator[StaticServer]:
    with static_server(tmp_path) as server:
        yield server


@pytest.mark.parametrize("through", ["folder", "server"])
def test_they_are_fetched_with_all_that_they_lead_to(
    through: str, there: DatasetLayout, here: DatasetLayout, server: StaticServer, tmp_path: Path
):
    url = str(tmp_path / "there") if through == "folder" else f"{server.url}/there"
    head = here.chain.head()
    for name in (TAG, STAGING):
        assert fetch_reference(url, here, name).outcome is TransferOutcome.UPDATED
        assert here.refs.get(name.reference) == there.refs.get(name.reference)
        assert fetch_reference(url, here, name).outcome is TransferOutcome.UP_TO_DATE
    assert here.chain.head() == head
    assert [here.data.read(name) for name in here.data] == [b"staged"]
    assert here.on(STAGING).chain.state().num_records == 1


def test_they_are_sent(there: DatasetLayout, here: DatasetLayout, tmp_path: Path):
    for name in (TAG, STAGING):
        send_reference(there, str(tmp_path / "here"), name)
    assert list(here.refs.names()) == [STAGING.reference, HEAD, TAG.reference]


def test_a_reference_at_the_head_is_made(there: DatasetLayout, here: DatasetLayout):
    other = ReferenceName.of(ReferenceKind.TAG, "latest")
    there.refs.compare_and_swap(other.reference, None, there.chain.head())
    assert copy_reference(there, here, other).outcome is TransferOutcome.UPDATED
    assert here.refs.get(other.reference) == there.chain.head()


def test_a_name_means_either_a_branch_or_a_tag(there: DatasetLayout, here: DatasetLayout, tmp_path: Path):
    here.refs.compare_and_swap(STAGING.other.reference, None, here.chain.head())
    for carry in (
        lambda: copy_reference(there, here, STAGING, TransferOptions(force=True)),
        lambda: send_reference(there, str(tmp_path / "here"), STAGING),
    ):
        with pytest.raises(AlreadyExists, match="the tag staging already exists"):
            carry()
    assert here.refs.get(STAGING.reference) is None


def test_a_branch_goes_on_and_a_diverged_one_is_refused(there: DatasetLayout, here: DatasetLayout):
    copy_reference(there, here, STAGING)
    add_info(there.on(STAGING), "more")
    assert copy_reference(there, here, STAGING).num_blocks == 1
    add_info(there.on(STAGING), "theirs")
    add_info(here.on(STAGING), "ours")
    with pytest.raises(DatasetsDiverged):
        copy_reference(there, here, STAGING)
    assert copy_reference(there, here, STAGING, TransferOptions(force=True)).num_dropped == 1


def test_a_branch_comes_to_a_head_that_has_moved_on(there: DatasetLayout, here: DatasetLayout):
    add_info(here, "ours")
    head = here.chain.head()
    result = copy_reference(there, here, STAGING)
    assert (result.outcome, result.num_dropped, here.chain.head()) == (TransferOutcome.UPDATED, 0, head)


def test_a_tag_is_only_moved_by_force(there: DatasetLayout, here: DatasetLayout):
    copy_reference(there, here, TAG)
    before = here.refs.get(TAG.reference)
    assert before is not None
    there.refs.compare_and_swap(TAG.reference, before, there.chain.head())
    with pytest.raises(AlreadyExists, match="tag v1 already exists"):
        copy_reference(there, here, TAG)
    assert here.refs.get(TAG.reference) == before
    copy_reference(there, here, TAG, TransferOptions(force=True))
    assert here.refs.get(TAG.reference) == there.chain.head()


def test_what_is_not_there_or_is_another_dataset_is_refused(there: DatasetLayout, here: DatasetLayout, tmp_path: Path):
    with pytest.raises(ReferenceNotThere, match="there is no tag v1"):
        copy_reference(here, there, TAG)
    with pytest.raises(TransferError, match="there is no dataset to which tag v1 could be added"):
        copy_reference(there, DatasetLayout.local(tmp_path / "empty"), TAG)
    foreign = make_dataset(DatasetLayout.in_memory(), "x", number=2)
    with pytest.raises(ForeignDataset):
        copy_reference(there, foreign, STAGING)
    assert list(foreign.refs.names()) == [HEAD]


def test_a_damaged_block_of_a_branch_is_refused(there: DatasetLayout, here: DatasetLayout, tmp_path: Path):
    tip = there.on(STAGING).chain.head()
    (tmp_path / "there" / "blocks" / str(tip)).write_bytes(b"damaged")
    with pytest.raises(HashMismatch, match=str(tip)):
        copy_reference(there, here, STAGING)
    assert list(here.refs.names()) == [HEAD]
