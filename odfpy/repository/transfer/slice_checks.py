"""Checks of received slices: their footers must match their blocks, before rows are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from odfpy.chain.block import HashedBlock
from odfpy.chain.layout import DatasetLayout
from odfpy.chain.slices import SliceOfBlock
from odfpy.chain.state import ChainState, new_data_of
from odfpy.codec.errors import error_of
from odfpy.data.multihash import Multihash
from odfpy.errors import IntegrityError
from odfpy.http.limits import current_limits

_ASK = "Ask the publisher of the dataset for the reason; nothing of it was copied."


def check_slices(
    blocks: Iterable[HashedBlock], base: ChainState, layout: DatasetLayout, received: Collection[Multihash] = ()
) -> None:
    """Check the footers of the slices of blocks, as far as the files are local.

    Files that are not Parquet are not checked: readers reject them.

    Args:
        blocks: consecutive blocks, oldest first.
        base: state of the chain before these blocks.
        layout: the dataset with the files.
        received: newly received files; invalid ones are removed.

    Raises:
        IntegrityError: a footer contradicts its block, or is invalid; the message names block and file.
        OdfError: a file cannot be read.
    """
    slices = [found for found in _slices_in_state(blocks, base) if _is_here(found[0], layout)]
    if not slices:
        return
    from odfpy.data.slices.footer import ExpectedSlice
    from odfpy.repository.transfer.footer_process import FooterOf, first_problem

    most = current_limits().most_unpacked
    footers = [
        FooterOf(
            str(layout.data.local_path(item.data.physical_hash)),
            ExpectedSlice(item.data.offset_interval.start, item.data.offset_interval.end, state.vocab, state.schema),
            most,
        )
        for item, state in slices
    ]
    found = first_problem(footers)
    if found is None:
        return
    at, problem = found[0], error_of(found[1])
    item = slices[at][0]
    if item.data.physical_hash in received:
        layout.data.delete(item.data.physical_hash)
    where = f"Block {item.block.block.sequence_number} ({item.block.hash})"
    hint = _ASK if isinstance(problem, IntegrityError) else problem.hint
    raise problem.with_message(f"{where}: {problem.message}", hint=hint)


def _slices_in_state(blocks: Iterable[HashedBlock], base: ChainState) -> Iterator[tuple[SliceOfBlock, ChainState]]:
    state = base
    for hashed in blocks:
        state = state.after(hashed)
        data = new_data_of(hashed.block.event)
        if data is not None:
            yield SliceOfBlock(hashed, data), state


def _is_here(item: SliceOfBlock, layout: DatasetLayout) -> bool:
    from odfpy.data.slices.footer import is_parquet

    path = layout.data.local_path(item.data.physical_hash)
    return path is not None and is_parquet(path)
