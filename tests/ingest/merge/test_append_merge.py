from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.merge_stories import Step, Story, tell

from odfpy.chain.sources import MergeAppend

STORIES = [
    Story(
        "every row is kept in order of event time",
        (
            Step(
                """
                event_time | id | name
                2024-01-03 | 1  | a
                2024-01-01 | 2  | -
                2024-01-02 | 1  | a
                """,
                """
                op | event_time | id | name
                +A | 2024-01-01 | 2  | -
                +A | 2024-01-02 | 1  | a
                +A | 2024-01-03 | 1  | a
                """,
            ),
        ),
    ),
    Story(
        "rows of the same time keep the order of the input",
        (
            Step(
                """
                event_time | id
                2024-01-02 | 9
                2024-01-01 | 5
                2024-01-01 | 3
                2024-01-01 | 4
                """,
                """
                op | event_time | id
                +A | 2024-01-01 | 5
                +A | 2024-01-01 | 3
                +A | 2024-01-01 | 4
                +A | 2024-01-02 | 9
                """,
            ),
        ),
    ),
    Story(
        "the source's event time stands in for a missing one, also in the order",
        (
            Step(
                """
                event_time | id
                2024-01-04 | 1
                -          | 2
                2024-01-02 | 3
                """,
                """
                op | event_time | id
                +A | 2024-01-02 | 3
                +A | 2024-01-03 | 2
                +A | 2024-01-04 | 1
                """,
                at="2024-01-03",
            ),
        ),
    ),
    Story(
        "the same rows again are new events",
        (
            Step("id\n1", "op | event_time | id\n+A | 2024-01-01 | 1"),
            Step("id\n1", "op | event_time | id\n+A | 2024-01-01 | 1"),
        ),
    ),
    Story("no rows make no slice", (Step("id | name", None),)),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_append(story: Story, tmp_path: Path) -> None:
    tell(story, MergeAppend(), tmp_path)
