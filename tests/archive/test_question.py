"""Questions to an archive: what is valid."""

from __future__ import annotations

import pytest

from odfpy.archive.question import Question, words
from odfpy.errors import UsageError


def test_names_come_with_commas_repeated_or_both() -> None:
    assert words("syslog,nginx") == ("syslog", "nginx")
    assert words(["syslog, nginx", "syslog", "etl"]) == ("syslog", "nginx", "etl")
    assert words(()) == words(" , ") == ()


def test_times_of_any_form_are_milliseconds() -> None:
    question = Question.of("syslog", start="1970-01-02", end=1_000_000_000_000)
    assert (question.start, question.end) == (86_400_000, 1_000_000_000_000)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"what": "", "start": 1, "end": 2}, "what"),
        ({"what": "a"}, "Neither"),
        ({"what": "a", "work_id": "b", "start": 1}, "cannot be combined"),
        ({"what": "a", "work_id": "b", "end": 1}, "cannot be combined"),
        ({"what": "a", "start": 2, "end": 1}, "ends before it starts"),
    ],
)
def test_what_makes_no_sense_is_told(options: dict[str, object], told: str) -> None:
    with pytest.raises(UsageError, match=told):
        Question.of(**options)


def test_a_range_may_be_open_at_one_side_and_a_moment_is_one() -> None:
    assert Question.of("a", start=1).end is None
    assert Question.of("a", end=1).start is None
    assert Question.of("a", start=5, end=5).start == 5000
