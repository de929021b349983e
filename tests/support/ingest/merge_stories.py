"""Merges as stories: the input, and the resulting dataset."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from support.ingest.ingested import Ingested, dedented, table, text

from odfpy.chain.sources import MergeStrategy


@dataclass(frozen=True)
class Step:
    """An input, the event time of its source, and the rows of the slice that it makes, None for no slice."""

    new: str
    makes: str | None
    at: str = "2024-01-01"


@dataclass(frozen=True)
class Story:
    """A sequence of ingests into one dataset."""

    name: str
    steps: tuple[Step, ...]

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


def tell(story: Story, strategy: MergeStrategy, folder: Path) -> None:
    """Check that a story has the expected results."""
    dataset = Ingested(folder, strategy)
    for step in story.steps:
        result = dataset.ingest(table(step.new), step.at)
        made = text(dataset.slice(-1)) if result.slices else None
        assert made == (None if step.makes is None else dedented(step.makes)), story.name
