"""Resolution of a query's datasets, each to one block, and of the slices with requested rows.

The block is looked up once: commits during a query do not affect it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from odfpy.chain.block import HashedBlock
from odfpy.chain.metadata_chain import sum_up
from odfpy.chain.slices import SliceOfBlock, slice_files, slices_of
from odfpy.chain.state import ChainState, new_data_of
from odfpy.data.multihash import Multihash
from odfpy.errors import BlockOfAnother, InvalidValue, NotFound, NotYetThen, UsageError
from odfpy.query.answer import QueryInput
from odfpy.query.references import AtBlock, AtOffset, AtTime, PointInTime
from odfpy.query.resolver import Dataset, DatasetResolver
from odfpy.query.statistics import last_row_at, system_times

_TIMES: Final = "Write times as 2024-03-01T12:00:00Z or 2024-03-01."


@dataclass(frozen=True)
class Resolved:
    """A dataset, resolved to a block.

    Attributes:
        resolver: the resolver that returned the dataset.
        dataset: the dataset.
        state: the state of its chain at the block.
        head: the block.
    """

    resolver: DatasetResolver
    dataset: Dataset
    state: ChainState
    head: Multihash

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return str(self.dataset.handle.alias)

    @property
    def input(self) -> QueryInput:
        """The dataset and its block as an input of an answer."""
        return QueryInput(self.dataset.handle.id, self.dataset.handle.alias, self.head)

    @cached_property
    def blocks(self) -> list[HashedBlock]:
        """The blocks up to the head, oldest first."""
        return self.dataset.chain.in_order(self.head)

    def whole_history(self) -> HistoryPrefix:
        """Return the complete history."""
        return HistoryPrefix(self.state, slices_of(self.blocks), 0)

    def cut(self, moment: PointInTime | None, where: str) -> HistoryPrefix:
        """Return the history of the dataset up to a point in time.

        Args:
            moment: the point in time, None for the last block.
            where: position in the query, for messages.

        Raises:
            NotYetThen: the dataset had no block yet.
            NotFound, BlockOfAnother: the dataset has no such block.
        """
        match moment:
            case None:
                return self.whole_history()
            case AtTime(time):
                known = [hashed for hashed in self.blocks if hashed.block.system_time <= time]
                if not known:
                    began = self.blocks[0].block.system_time
                    raise NotYetThen(
                        f"{self.name} did not exist yet at {time}{where}",
                        hint=f"It began at {began}; ask for a later time.",
                    )
                return self._up_to_time(moment, known)
            case AtBlock(text, or_time):
                return self._up_to_block(find_block(self.resolver, self.dataset, text, where, or_time=or_time))
            case AtOffset(offset):
                return self._up_to_offset(offset)

    def _up_to_block(self, block: Multihash) -> HistoryPrefix:
        numbers = {one.hash: at for at, one in enumerate(self.blocks)}
        if block in numbers:
            return self._first(numbers[block] + 1)
        other = self.resolver.at(self.dataset, block)  # a block of an abandoned history
        return HistoryPrefix(other.state, slices_of(other.chain.in_order(block)), 0)

    def _up_to_time(self, moment: AtTime, known: Sequence[HashedBlock]) -> HistoryPrefix:
        """Return the history up to a time: rows are never recorded after their block, but may be long before it."""
        for at, one in enumerate(self.blocks[len(known) :], start=len(known)):
            data = new_data_of(one.block.event)
            if data is None:
                continue
            (path,) = slice_files(self.dataset.layout.data, [SliceOfBlock(one, data)])
            first, last = system_times(path, self.state.vocab)
            if first > moment.time:
                break
            if last > moment.time:
                row = last_row_at(path, self.state.vocab, moment.time)
                return self._first(at + 1, data.offset_interval.start + row)
            known = self.blocks[: at + 1]
        return self._first(len(known))

    def _up_to_offset(self, offset: int) -> HistoryPrefix:
        for at, one in enumerate(self.blocks):
            data = new_data_of(one.block.event)
            if data is not None and data.offset_interval.end >= offset:
                return self._first(at + 1, offset if offset < data.offset_interval.end else None)
        return self.whole_history()

    def _first(self, count: int, last_offset: int | None = None) -> HistoryPrefix:
        """Return the first blocks, and the rows of their last slice up to an offset."""
        if count == len(self.blocks) and last_offset is None:
            return self.whole_history()
        state = sum_up(self.blocks[:count])
        later = len(slices_of(self.blocks[count:]))
        return HistoryPrefix(state, slices_of(self.blocks[:count]), later, last_offset)


@dataclass(frozen=True)
class HistoryPrefix:
    """The beginning of a history.

    Attributes:
        state: the state of its chain.
        slices: its slices, in order.
        later: number of later slices.
        last_offset: the last row, if the last slice has more rows.
    """

    state: ChainState
    slices: list[SliceOfBlock]
    later: int
    last_offset: int | None = None

    @property
    def num_rows(self) -> int:
        """The number of rows."""
        return self.state.num_records if self.last_offset is None else self.last_offset + 1


def resolve(resolver: DatasetResolver, dataset: Dataset, pin: Multihash | None) -> Resolved:
    """Return a dataset at its head, or at the block that it is pinned to.

    Args:
        resolver: the resolver of the dataset.
        dataset: the dataset.
        pin: the block, None for the head.

    Raises:
        BlockOfAnother, NotFound: the dataset has no such block.
    """
    state = dataset.state
    head = state.head or dataset.chain.head()
    if pin is None or pin == head:
        return Resolved(resolver, dataset, state, head)
    pinned = resolver.at(dataset, find_block(resolver, dataset, str(pin), ""))
    return Resolved(resolver, pinned, pinned.state, pin)


def find_block(
    resolver: DatasetResolver, dataset: Dataset, text: str, where: str, *, or_time: bool = False
) -> Multihash:
    """Return the block for a text.

    Args:
        resolver: the resolver of the dataset.
        dataset: the dataset.
        text: a hash, a tag, a branch or a number.
        where: position in the query, for messages.
        or_time: whether the text may have been meant as a time.

    Raises:
        BlockOfAnother: the block belongs to another dataset.
        NotFound: the dataset has no such block.
        UsageError: the text is ambiguous.
    """
    try:
        return resolver.find_block(dataset, text)
    except UsageError as error:
        raise UsageError(f"{error.message}{where}", hint=error.hint) from error
    except NotFound as error:
        owner = resolver.owner(found) if (found := _hash(text)) is not None else None
        if owner is None:
            no_time, times = (", and it is not a time", f"{_TIMES} ") if or_time else ("", "")
            message, hint = f"{error.message}{no_time}{where}", f"{times}{error.hint or ''}".strip()
            raise error.with_message(message, hint=hint) from error
        name = dataset.handle.alias
        raise BlockOfAnother(
            f"Block {text} belongs to {owner}, not to {name}{where}",
            hint=f"`odf log {name}` shows the blocks of {name}.",
        ) from error


def _hash(text: str) -> Multihash | None:
    try:
        return Multihash.parse(text)
    except InvalidValue:
        return None
