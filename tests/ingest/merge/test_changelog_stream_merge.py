from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.ingested import Ingested, table
from support.ingest.merge_stories import Step, Story, tell

from odfpy.chain.sources import MergeChangelogStream

STORIES = [
    Story(
        "rows are kept as they are, by key and operation",
        (
            Step(
                """
                op | event_time | id | name
                +A | 2024-01-02 | 2  | b
                +A | 2024-01-01 | 1  | a
                """,
                """
                op | event_time | id | name
                +A | 2024-01-01 | 1  | a
                +A | 2024-01-02 | 2  | b
                """,
            ),
            Step(
                """
                op | event_time | id | name
                +C | 2024-01-04 | 2  | z
                -R | 2024-01-01 | 1  | a
                -C | 2024-01-02 | 2  | b
                +A | 2024-01-03 | 0  | c
                """,
                """
                op | event_time | id | name
                +A | 2024-01-03 | 0  | c
                -R | 2024-01-01 | 1  | a
                -C | 2024-01-02 | 2  | b
                +C | 2024-01-04 | 2  | z
                """,
            ),
        ),
    ),
    Story(
        "equal operations of a key keep the order of the input",
        (
            Step(
                """
                op | event_time | id | name
                +A | 2024-01-03 | 1  | c
                +A | 2024-01-01 | 1  | a
                +A | -          | 1  | b
                """,
                """
                op | event_time | id | name
                +A | 2024-01-03 | 1  | c
                +A | 2024-01-01 | 1  | a
                +A | 2024-01-02 | 1  | b
                """,
                at="2024-01-02",
            ),
        ),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_changelog_stream(story: Story, tmp_path: Path) -> None:
    tell(story, MergeChangelogStream(("id",)), tmp_path)


def test_changelog_stream_counts_operations(tmp_path: Path) -> None:
    new = table("op | id\n+A | 1\n+A | 2\n-C | 3\n+C | 3\n-R | 4")
    statistics = Ingested(tmp_path, MergeChangelogStream(("id",))).ingest(new).statistics
    assert (statistics.appended, statistics.corrected, statistics.retracted, statistics.dropped) == (2, 1, 1, 0)
