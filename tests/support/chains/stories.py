"""Chains described by the steps that create them, as models of transfers."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st
from support.chains.small_datasets import add_info, add_slice, make_dataset

from odfpy.chain.layout import DatasetLayout

Steps = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class Chain:
    """A chain, described by its steps: equal steps give equal chains, with a common beginning as far as they agree."""

    number: int
    steps: Steps

    def build(self) -> DatasetLayout:
        """Return the dataset, in memory."""
        layout = make_dataset(DatasetLayout.in_memory(), number=self.number)
        add_slice(layout, b"first")
        for kind, value in self.steps:
            if kind == "say":
                add_info(layout, str(value) + str(layout.chain.state().sequence_number))
            else:
                add_slice(layout, bytes([value]), b"state" if value % 2 else None)
        return layout

    def is_ahead_of(self, other: Chain) -> bool:
        """Return whether it has all of another one, and more."""
        return self != other and self.steps[: len(other.steps)] == other.steps


def steps(most: int) -> st.SearchStrategy[Steps]:
    """Return the steps of a chain."""
    return st.lists(st.tuples(st.sampled_from(["say", "add"]), st.integers(0, 2)), max_size=most).map(tuple)


def chains() -> st.SearchStrategy[Chain]:
    """Any chain of the first dataset."""
    return st.builds(Chain, st.just(1), steps(4))


@st.composite
def pairs(draw: st.DrawFn, *, most_steps: int = 4) -> tuple[Chain, Chain]:
    """Return a source and a target: often with a common beginning, sometimes of different datasets."""
    common, ours, theirs = (draw(steps(most_steps)) for _ in range(3))
    return Chain(1, common + ours), Chain(draw(st.sampled_from([1, 1, 1, 2])), common + theirs)
