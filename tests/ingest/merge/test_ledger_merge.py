from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.ingested import Ingested, table
from support.ingest.merge_stories import Step, Story, tell

from odfpy.chain.sources import MergeLedger

STORIES = [
    Story(
        "rows with unseen keys are kept, in order of event time",
        (
            Step(
                """
                event_time | id | name
                2024-01-02 | 2  | b
                2024-01-01 | 1  | a
                """,
                """
                op | event_time | id | name
                +A | 2024-01-01 | 1  | a
                +A | 2024-01-02 | 2  | b
                """,
            ),
            Step(
                """
                event_time | id | name
                2024-01-04 | 4  | d
                2024-01-05 | 2  | changed
                2024-01-03 | 3  | c
                """,
                """
                op | event_time | id | name
                +A | 2024-01-03 | 3  | c
                +A | 2024-01-04 | 4  | d
                """,
            ),
        ),
    ),
    Story(
        "nothing unseen, nothing new",
        (
            Step("id | name\n1 | a", "op | event_time | id | name\n+A | 2024-01-01 | 1 | a"),
            Step("id | name\n1 | b", None),
        ),
    ),
    Story(
        "a key that comes twice at once is kept twice",
        (
            Step(
                """
                event_time | id | name
                2024-01-02 | 1  | c
                2024-01-01 | 1  | b
                2024-01-01 | 1  | a
                """,
                """
                op | event_time | id | name
                +A | 2024-01-01 | 1  | b
                +A | 2024-01-01 | 1  | a
                +A | 2024-01-02 | 1  | c
                """,
            ),
            Step("event_time | id | name\n2024-01-09 | 1 | d", None),
        ),
    ),
]

PAIR_STORIES = [
    Story(
        "a key of two columns is seen only when both are",
        (
            Step("id | part\n1 | 1\n2 | 2", "op | event_time | id | part\n+A|2024-01-01|1|1\n+A|2024-01-01|2|2"),
            Step("id | part\n1 | 2\n1 | 1\n2 | 1", "op|event_time|id|part\n+A|2024-01-01|1|2\n+A|2024-01-01|2|1"),
        ),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_ledger(story: Story, tmp_path: Path) -> None:
    tell(story, MergeLedger(("id",)), tmp_path)


@pytest.mark.parametrize("story", PAIR_STORIES, ids=str)
def test_ledger_with_key_of_two_columns(story: Story, tmp_path: Path) -> None:
    tell(story, MergeLedger(("id", "part")), tmp_path)


def test_ledger_counts_what_it_drops_and_what_was_repeated(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeLedger(("id",)))
    dataset.ingest(table("id\n1"))
    statistics = dataset.ingest(table("id\n1\n2\n2\n2")).statistics
    assert (statistics.read, statistics.appended, statistics.dropped, statistics.repeated) == (4, 3, 1, 2)
