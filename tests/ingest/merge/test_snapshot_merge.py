from __future__ import annotations

from pathlib import Path

import pytest
from support.ingest.ingested import Ingested, table
from support.ingest.merge_stories import Step, Story, tell

from odfpy.chain.sources import MergeSnapshot
from odfpy.errors import IngestError

FIRST = Step(
    """
    id | name | n
    3  | c    | 3
    1  | a    | 1
    2  | b    | -
    """,
    """
    op | event_time | id | name | n
    +A | 2024-01-01 | 1  | a    | 1
    +A | 2024-01-01 | 2  | b    | -
    +A | 2024-01-01 | 3  | c    | 3
    """,
)

STORIES = [
    Story("the first state is new, by key", (FIRST,)),
    Story(
        "keys come, change and go",
        (
            FIRST,
            Step(
                """
                id | name | n
                4  | d    | 4
                2  | B    | -
                1  | a    | 1
                """,
                """
                op | event_time | id | name | n
                -C | 2024-01-01 | 2  | b    | -
                +C | 2024-02-01 | 2  | B    | -
                -R | 2024-01-01 | 3  | c    | 3
                +A | 2024-02-01 | 4  | d    | 4
                """,
                at="2024-02-01",
            ),
        ),
    ),
    Story(
        "the same state later is no change",
        (FIRST, Step("id | name | n\n1 | a | 1\n2 | b | -\n3 | c | 3", None, at="2024-02-01")),
    ),
    Story(
        "null is a value like any other",
        (
            FIRST,
            Step(
                """
                id | name | n
                1  | -    | 1
                2  | b    | 2
                3  | c    | 3
                """,
                """
                op | event_time | id | name | n
                -C | 2024-01-01 | 1  | a    | 1
                +C | 2024-02-01 | 1  | -    | 1
                -C | 2024-01-01 | 2  | b    | -
                +C | 2024-02-01 | 2  | b    | 2
                """,
                at="2024-02-01",
            ),
        ),
    ),
    Story(
        "an event time that is given and differs is a change, a missing one is none",
        (
            Step(
                "event_time | id\n2024-01-01 | 1\n2024-01-01 | 2\n2024-01-01 | 3",
                "op | event_time | id\n+A | 2024-01-01 | 1\n+A | 2024-01-01 | 2\n+A | 2024-01-01 | 3",
            ),
            Step(
                "event_time | id\n2024-01-01 | 1\n2024-01-02 | 2\n- | 3",
                "op | event_time | id\n-C | 2024-01-01 | 2\n+C | 2024-01-02 | 2",
                at="2024-02-01",
            ),
        ),
    ),
    Story(
        "a key comes back",
        (
            Step("id | name\n1 | a\n2 | b", "op|event_time|id|name\n+A|2024-01-01|1|a\n+A|2024-01-01|2|b"),
            Step("id | name\n2 | b", "op|event_time|id|name\n-R|2024-01-01|1|a"),
            Step("id | name\n1 | a\n2 | b", "op|event_time|id|name\n+A|2024-03-01|1|a", at="2024-03-01"),
            Step("id | name\n1 | a\n2 | b", None),
        ),
    ),
    Story(
        "an empty state retracts everything",
        (
            Step("id | name\n1 | a\n2 | b", "op|event_time|id|name\n+A|2024-01-01|1|a\n+A|2024-01-01|2|b"),
            Step("id | name", "op|event_time|id|name\n-R|2024-01-01|1|a\n-R|2024-01-01|2|b"),
            Step("id | name", None),
        ),
    ),
    Story(
        "NaN equals NaN, and both zeros are equal",
        (
            Step("id | x\n1 | nan\n2 | 0.0", "op|event_time|id|x\n+A|2024-01-01|1|nan\n+A|2024-01-01|2|0.0"),
            Step("id | x\n1 | nan\n2 | -0.0", None),
            Step("id | x\n1 | 1.5\n2 | -0.0", "op|event_time|id|x\n-C|2024-01-01|1|nan\n+C|2024-01-01|1|1.5"),
        ),
    ),
]

COMPARED = [
    Story(
        "only compared columns make a change, and then the whole row changes",
        (
            Step("id | name | n\n1 | a | 1", "op | event_time | id | name | n\n+A | 2024-01-01 | 1 | a | 1"),
            Step("id | name | n\n1 | b | 1", None, at="2024-02-01"),
            Step(
                "id | name | n\n1 | c | 2",
                """
                op | event_time | id | name | n
                -C | 2024-01-01 | 1  | a    | 1
                +C | 2024-03-01 | 1  | c    | 2
                """,
                at="2024-03-01",
            ),
        ),
    ),
    Story(
        "an event time that is not compared makes no change",
        (
            Step("event_time | id | n\n2024-01-01 | 1 | 1", "op | event_time | id | n\n+A | 2024-01-01 | 1 | 1"),
            Step("event_time | id | n\n2024-02-01 | 1 | 1", None),
        ),
    ),
]


@pytest.mark.parametrize("story", STORIES, ids=str)
def test_snapshot(story: Story, tmp_path: Path) -> None:
    tell(story, MergeSnapshot(("id",)), tmp_path)


@pytest.mark.parametrize("story", COMPARED, ids=str)
def test_snapshot_with_compare_columns(story: Story, tmp_path: Path) -> None:
    tell(story, MergeSnapshot(("id",), ("n",)), tmp_path)


def test_snapshot_compares_the_event_time_when_told_to(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",), ("event_time",)))
    dataset.ingest(table("id | name\n1 | a"))
    assert dataset.ingest(table("id | name\n1 | b"), "2024-02-01").slices == ()
    assert dataset.ingest(table("event_time | id | name\n2024-02-01 | 1 | b")).statistics.corrected == 1


def test_snapshot_with_a_repeated_key_is_refused(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id", "part")))
    with pytest.raises(IngestError, match="id = 7, part = 2 more than once, first in row 2, and 1 other keys, too"):
        dataset.ingest(table("id | part\n1 | 1\n7 | 2\n7 | 3\n7 | 2\n8 | 1\n8 | 1"))


def test_snapshot_statistics(tmp_path: Path) -> None:
    dataset = Ingested(tmp_path, MergeSnapshot(("id",)))
    dataset.ingest(table("id | name\n1 | a\n2 | b\n3 | c\n4 | d"))
    statistics = dataset.ingest(table("id | name\n1 | a\n2 | z\n5 | e")).statistics
    assert (statistics.read, statistics.appended, statistics.corrected) == (3, 1, 1)
    assert (statistics.retracted, statistics.dropped, statistics.repeated) == (2, 1, 0)
