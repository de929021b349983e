"""New blocks of a chain, created from events or received, and checked against the rules one by one."""

from __future__ import annotations

from collections.abc import Iterable

from odfpy.chain.block import HashedBlock, MetadataBlock
from odfpy.chain.encoding import hash_block
from odfpy.chain.events import MetadataEvent
from odfpy.chain.rules import NoOpEvent, repeats, state_after
from odfpy.chain.state import ChainState
from odfpy.data.timestamp import Timestamp


class NewBlocks:
    """Blocks that are valid on top of a state, but not stored yet.

    Attributes:
        base: the state before them.
        state: the state after them.
        blocks: the blocks, oldest first.
        encoded: the encoded blocks.
    """

    def __init__(self, base: ChainState) -> None:
        self.base = base
        self.state = base
        self.blocks: list[HashedBlock] = []
        self.encoded: list[bytes] = []

    def add(self, event: MetadataEvent, system_time: Timestamp) -> None:
        """Add an event as a block.

        Raises:
            ChainRuleViolation: the event may not follow.
            NoOpEvent: the event changes nothing.
        """
        if repeats(event, self.state):
            raise NoOpEvent(f"{type(event).__name__} is the same as before")
        block = MetadataBlock(
            system_time=system_time,
            prev_block_hash=self.state.head,
            sequence_number=self.state.sequence_number + 1,
            event=event,
        )
        hashed, data = hash_block(block)
        self.state = state_after(self.state, hashed)
        self.blocks.append(hashed)
        self.encoded.append(data)


def validate(blocks: Iterable[HashedBlock], state: ChainState | None = None) -> ChainState:
    """Return the state after consecutive blocks, oldest first, and check every rule.

    Raises:
        ChainRuleViolation: a rule is violated; the first violation is reported.
    """
    state = state or ChainState()
    for hashed in blocks:
        state = state_after(state, hashed)
    return state
