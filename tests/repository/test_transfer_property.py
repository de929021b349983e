"""Random pairs of chains: what a transfer comes to, against a model of a few lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from support.chains.small_datasets import contents, image
from support.chains.stories import Chain, chains, pairs

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import OdfError
from odfpy.repository.divergence import DatasetsDiverged
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome, transfer


def expected(source: Chain, target: Chain, *, force: bool) -> TransferOutcome | type[OdfError]:
    if source.number != target.number:
        return ForeignDataset
    if source == target:
        return TransferOutcome.UP_TO_DATE
    if force or source.is_ahead_of(target):
        return TransferOutcome.UPDATED
    if target.is_ahead_of(source):
        return TransferOutcome.TARGET_AHEAD
    return DatasetsDiverged


def outcome(source: DatasetLayout, target: DatasetLayout, *, force: bool) -> TransferOutcome | type[OdfError]:
    try:
        return transfer(source, target, TransferOptions(force=force)).outcome
    except OdfError as error:
        return type(error)


@given(pairs(), st.booleans())
def test_outcome_is_that_of_the_model(pair: tuple[Chain, Chain], force: bool):
    source, target = (chain.build() for chain in pair)
    source_before, target_before = image(source), image(target)
    found = outcome(source, target, force=force)
    assert found == expected(*pair, force=force)
    assert image(source) == source_before
    if found is TransferOutcome.UPDATED:
        assert target.refs.get(HEAD) == source.refs.get(HEAD)
        assert target.chain.state() == source.chain.state()
        for ours, theirs in zip(stores(target), stores(source), strict=True):
            assert contents(ours).items() >= contents(theirs).items()
    else:
        assert image(target) == target_before
    assert outcome(source, target, force=False) in (
        [TransferOutcome.UP_TO_DATE] if found is TransferOutcome.UPDATED else [expected(*pair, force=False)]
    )


@given(pairs())
def test_numbers_are_those_of_the_blocks_that_differ(pair: tuple[Chain, Chain]):
    source, target = (chain.build() for chain in pair)
    if pair[0].number != pair[1].number:
        return
    ours, theirs = ({block.hash for block in side.chain.iter_blocks()} for side in (source, target))
    files_before = sum(len(list(store)) for store in stores(target)[1:])
    result = transfer(source, target, TransferOptions(force=True))
    assert result.num_blocks == len(ours - theirs)
    assert result.num_dropped == len(theirs - ours)
    assert result.num_objects == sum(len(list(store)) for store in stores(target)[1:]) - files_before


@given(chains())
def test_empty_target_becomes_an_exact_copy(chain: Chain):
    source, target = chain.build(), DatasetLayout.in_memory()
    result = transfer(source, target)
    assert image(target) == image(source)
    assert (result.num_blocks, result.num_records) == (
        source.chain.state().sequence_number + 1,
        source.chain.state().num_records,
    )


def stores(layout: DatasetLayout):
    return layout.blocks, layout.data, layout.checkpoints
