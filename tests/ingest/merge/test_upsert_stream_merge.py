from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.ingested import Ingested, table
from support.ingest.merge_stories import Step, Story, tell

from odfpy.chain.sources import MergeUpsertStream

FIRST = Step(
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
)

STORIES = [
    Story(
        "keys come, change and go; others stay",
        (
            FIRST,
            Step(
                """
                op | event_time | id | name
                +A | 2024-02-03 | 3  | c
                -R | 2024-02-02 | 2  | -
                """,
                """
                op | event_time | id | name
                -R | 2024-01-02 | 2  | b
                +A | 2024-02-03 | 3  | c
                """,
            ),
            Step(
                """
                op | event_time | id | name
                +A | 2024-03-01 | 1  | A
                """,
                """
                op | event_time | id | name
                -C | 2024-01-01 | 1  | a
                +C | 2024-03-01 | 1  | A
                """,
            ),
        ),
    ),
    Story(
        "of several rows of a key the last one counts, whatever its event time",
        (
            Step(
                """
                op | event_time | id | name
                +A | 2024-01-03 | 1  | c
                -R | 2024-01-04 | 1  | -
                +A | 2024-01-01 | 1  | a
                +A | 2024-01-01 | 2  | b
                -R | 2024-01-01 | 2  | b
                """,
                """
                op | event_time | id | name
                +A | 2024-01-01 | 1  | a
                """,
            ),
        ),
    ),
    Story(
        "a retraction and a new row at once are a correction",
        (
            FIRST,
            Step(
                """
                op | event_time | id | name
                -R | 2024-01-02 | 2  | b
                +A | 2024-01-03 | 2  | z
                """,
                """
                op | event_time | id | name
                -C | 2024-01-02 | 2  | b
                +C | 2024-01-03 | 2  | z
                """,
            ),
        ),
    ),
    Story(
        "what is known already and what was never known make no difference",
        (FIRST, Step("op | event_time | id | name\n+A | 2024-01-01 | 1 | a\n-R | 2024-01-01 | 9 | q", None)),
    ),
    Story(
        "a missing event time alone is no change",
        (
            FIRST,
            Step("op | event_time | id | name\n+A | - | 1 | a", None, at="2024-05-01"),
            Step(
                "op | event_time | id | name\n+A | - | 1 | b",
                "op | event_time | id | name\n-C | 2024-01-01 | 1 | a\n+C | 2024-05-01 | 1 | b",
                at="2024-05-01",
            ),
            Step(
                "op | event_time | id | name\n+A | 2024-06-01 | 1 | b",
                "op | event_time | id | name\n-C | 2024-05-01 | 1 | b\n+C | 2024-06-01 | 1 | b",
            ),
        ),
    ),
    Story(
        "a key comes back",
        (
            FIRST,
            Step("op|event_time|id|name\n-R|2024-02-01|1|a", "op|event_time|id|name\n-R|2024-01-01|1|a"),
            Step("op|event_time|id|name\n-R|2024-02-01|1|a", None),
            Step("op|event_time|id|name\n+A|2024-03-01|1|a", "op|event_time|id|name\n+A|2024-03-01|1|a"),
        ),
    ),
    Story(
        "without an op column every row is upserted",
        (
            Step("id | name\n1 | a", "op | event_time | id | name\n+A | 2024-01-01 | 1 | a"),
            Step(
                "id | name\n1 | b\n2 | c",
                """
                op | event_time | id | name
                -C | 2024-01-01 | 1  | a
                +C | 2024-02-01 | 1  | b
                +A | 2024-02-01 | 2  | c
                """,
                at="2024-02-01",
            ),
        ),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_upsert_stream(story: Story, tmp_path: Path) -> None:
    tell(story, MergeUpsertStream(("id",)), tmp_path)


def test_upsert_stream_statistics(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeUpsertStream(("id",)))
    dataset.ingest(table("id | name\n1 | a\n2 | b\n3 | c"))
    new = table("op | id | name\n+A | 1 | a\n+A | 2 | x\n+A | 2 | y\n-R | 3 | -\n-R | 9 | -\n+A | 4 | d")
    statistics = dataset.ingest(new).statistics
    assert (statistics.read, statistics.appended, statistics.corrected) == (6, 1, 1)
    assert (statistics.retracted, statistics.dropped, statistics.repeated) == (1, 3, 1)
