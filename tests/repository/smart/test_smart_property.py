"""Random pairs of chains and random cuts: both ends always hold a valid chain, and the end is the one that the model says."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from support.chains.small_datasets import image
from support.chains.smart_pair import Pair, Site
from support.chains.stories import Chain, pairs

from odfpy.chain.layout import DatasetLayout
from odfpy.chain.new_blocks import validate
from odfpy.chain.stores.ref_store import HEAD
from odfpy.errors import OdfError
from odfpy.repository.objects import objects_of_blocks
from odfpy.repository.peer_errors import ConnectionLost, PeerFailed
from odfpy.repository.smart_transfer.messages import Visibility
from odfpy.repository.smart_transfer.pull import IntervalRefused, blocks_after, pull, serve_pull
from odfpy.repository.smart_transfer.push import push
from odfpy.repository.smart_transfer.serve_push import serve_push
from odfpy.repository.transfer.options import TransferOptions
from odfpy.repository.transfer.simple import ForeignDataset, TransferOutcome

cuts = st.none() | st.integers(0, 12)


@st.composite
def maybe_pairs(draw: st.DrawFn) -> tuple[Chain, Chain | None]:
    """What is sent, and what is there; None for nothing."""
    source, target = draw(pairs(most_steps=3))
    return source, draw(st.sampled_from([None, target]))


def check(layout: DatasetLayout | None) -> None:
    """The chain is valid, and every file of it is there."""
    if layout is not None and layout.refs.get(HEAD) is not None:
        blocks = layout.chain.in_order()
        validate(blocks)
        for item in objects_of_blocks(blocks):
            assert item.kind.store(layout).read(item.name)


def pulled(source: Chain, target: Chain | None, *, force: bool) -> object:
    if target is None:
        return TransferOutcome.UPDATED
    if source.number != target.number:
        return ForeignDataset if force else IntervalRefused
    if source == target:
        return TransferOutcome.UP_TO_DATE
    return TransferOutcome.UPDATED if force or source.is_ahead_of(target) else IntervalRefused


@settings(max_examples=40)
@given(maybe_pairs(), st.booleans(), cuts)
def test_pull_comes_to_what_the_model_says_also_after_a_cut(pair, force: bool, cut: int | None):
    theirs, ours = pair
    site, here = Site(theirs.build()), ours.build() if ours else DatasetLayout.in_memory()
    before, here_before = image(site.source()), here.refs.get(HEAD)

    def conversation(cut: int | None) -> Pair:
        return Pair(
            pull(here, TransferOptions(force=force)), serve_pull(site.source(), site.located), here, site, cut_after=cut
        )

    first = conversation(cut)
    try:
        first.run()
    except ConnectionLost:
        assert here.refs.get(HEAD) == here_before
    except OdfError:
        assert here.refs.get(HEAD) == here_before
    check(here)
    second = conversation(None)
    try:
        found: object = second.run().outcome
    except OdfError as error:
        found = type(error)
    wanted = pulled(theirs, ours, force=force)
    assert found in ({wanted, TransferOutcome.UP_TO_DATE} if wanted is TransferOutcome.UPDATED else {wanted})
    assert not set(first.moved) & set(second.moved), "what has arrived is not sent again"
    assert image(site.source()) == before
    check(here)
    assert here.refs.get(HEAD) == (site.head if isinstance(wanted, TransferOutcome) else here_before)


@settings(max_examples=50)
@given(maybe_pairs(), st.booleans(), cuts, st.sampled_from(Visibility))
def test_push_comes_to_what_the_model_says_also_after_a_cut(pair, force: bool, cut: int | None, visibility: Visibility):
    ours, theirs = pair
    here, site = ours.build(), Site(theirs.build() if theirs else None)
    before, head_before = image(here), site.head
    is_forward = theirs is None or (ours.number == theirs.number and ours.is_ahead_of(theirs))

    def conversation(cut: int | None) -> Pair | None:
        # What the client decides before it begins; without `force`, a client that has nothing to add says so.
        blocks = blocks_after(here.chain, here.chain.head(), site.head, force=True)
        if not blocks:
            return None
        client = push(here, blocks, site.head, force=force, visibility=visibility)
        return Pair(client, serve_push(site), here, site, cut_after=cut)

    moved: list = []
    for left in (cut, None):
        talk = conversation(left)
        try:
            if talk is not None:
                talk.run()
        except ForeignDataset:
            assert theirs is not None
            assert ours.number != theirs.number
        except ConnectionLost:
            assert left is not None
        except PeerFailed:  # the server says that force is needed
            assert not is_forward
            assert not force
        check(site.layout)
        if talk is not None:
            assert not set(moved) & set(talk.moved), "what has arrived is not sent again"
            moved += talk.moved
    assert image(here) == before
    wanted = is_forward or (force and theirs is not None and theirs.number == ours.number)
    assert site.head == (here.refs.get(HEAD) if wanted else head_before)
    assert site.visibility == (None if theirs else visibility)
