"""Slices that come from elsewhere: whether their footers say what their blocks say, before anybody reads them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from functools import partial

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.slices import SliceOfBlock
from odfpy.chain.state import ChainState, new_data_of
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError, OdfError
from odfpy.http.limits import limits_in_force
from odfpy.repository.objects import run_all


def check_slices(
    blocks: Iterable[HashedBlock], base: ChainState, layout: DatasetLayout, came: Collection[Multihash] = ()
) -> None:
    """Check the footers of the slices that some blocks bring, where they are on this machine.

    A file that is no Parquet at all is left to whoever reads it, and will not.

    Args:
        blocks: as they follow each other, oldest first.
        base: what the chain amounts to before the first of them.
        layout: the dataset that has their files.
        came: files that were not there before; those that are refused are removed.

    Raises:
        IntegrityError: a footer says something else, or what cannot be; the message names block and file.
    """
    run_all([partial(_check, item, state, layout, came) for item, state in _slices_in_state(blocks, base)])


def _slices_in_state(blocks: Iterable[HashedBlock], base: ChainState) -> Iterator[tuple[SliceOfBlock, ChainState]]:
    state = base
    for hashed in blocks:
        state = state.after(hashed)
        data = new_data_of(hashed.block.event)
        if data is not None:
            yield SliceOfBlock(hashed, data), state


def _check(item: SliceOfBlock, state: ChainState, layout: DatasetLayout, came: Collection[Multihash]) -> None:
    from odfpy.data.footer import ExpectedSlice, check_footer, is_parquet

    name: Multihash = item.data.physical_hash
    path = layout.data.local_path(name)
    if path is None or not is_parquet(path):
        return
    interval = item.data.offset_interval
    expected = ExpectedSlice(interval.start, interval.end, state.vocab, state.schema)
    try:
        check_footer(path, expected, limits_in_force().most_unpacked)
    except OdfError as error:
        if name in came:
            layout.data.delete(name)
        raise IntegrityError(
            f"Block {item.block.block.sequence_number} ({item.block.hash}): {error.message}",
            hint="Whoever publishes the dataset has to say how that came about; nothing of it was taken.",
        ) from error
