"""Sessions: whatever stands above them sees rows of sessions, not rows that would be sessions by themselves.

Spark moves filters on the times of sessions below the aggregate. What is right here is written by hand.
"""

from __future__ import annotations

import pytest
from support.engine.requests import Source
from support.queries.batch_cases import Compared
from support.queries.cases import QUICK, Case, Pull, Tuned, answer_of, parsed
from support.queries.stories import FIELDS

pytestmark = pytest.mark.spark

SESSIONS = (
    "select session_window.end as event_time, session_window.start as s, k, count(*) as n from a "
    "group by session_window(event_time, '3 hours'), k"
)
ROWS = ["+A 2024-01-01T03:00 x 1", "+A 2024-01-01T04:00 x 2", "+A 2024-01-01T04:00 y 5"]
"""A session from 3 to 7 with two rows, one from 4 to 7 with one."""
X, Y = "07:00 03:00 x 2", "07:00 04:00 y 1"

QUERIES = {
    "all": (SESSIONS, [X, Y]),
    "by the end": (f"select * from ({SESSIONS}) where event_time > timestamp'2024-01-01 06:30:00'", [X, Y]),
    "by the start": (f"select * from ({SESSIONS}) where s > timestamp'2024-01-01 03:30:00'", [Y]),
    "by HAVING": (f"{SESSIONS} having session_window.start < timestamp'2024-01-01 03:30:00'", [X]),
    "by another column": (f"select * from ({SESSIONS}) where k = 'x'", [X]),
    "the first end of each": (f"select min(event_time) as event_time, k from ({SESSIONS}) group by k", ["07:00 x", "07:00 y"]),
    "different ends": (f"select distinct event_time, k from ({SESSIONS})", ["07:00 x", "07:00 y"]),
    "of which a row begins": (f"select g.* from ({SESSIONS}) g left semi join a on g.s = a.event_time and a.v = 2", [Y]),
    "that end after a row": (
        f"select g.event_time, g.k from ({SESSIONS}) g left semi join a on g.event_time = a.event_time + interval 2 hours",
        [],
    ),
    "in a join": (f"select g.*, a.v from ({SESSIONS}) g join a on g.s = a.event_time and g.k = a.k", [f"{X} 1", f"{Y} 5"]),
    "in a query inside of an expression": (
        f"select event_time, v from a where v > (select max(n) from ({SESSIONS}) where event_time > timestamp'2024-01-01 06:30:00')",
        ["04:00 5"],
    ),
    "in a common table expression": (
        f"with g as ({SESSIONS}) select * from g where s > timestamp'2024-01-01 03:30:00' union all select * from g where event_time < timestamp'2024-01-01 06:30:00'",
        [Y],
    ),
    "of sums of fractions": (
        "select session_window.end as event_time, session_window.start as s, k, cast(sum(v / 4D) * 4 as int) as n from a group by session_window(event_time, '3 hours'), k having session_window.end > timestamp'2024-01-01 06:30:00'",
        ["07:00 03:00 x 3", "07:00 04:00 y 5"],
    ),
    "over rows of two queries": (
        ("select session_window.end as event_time, count(*) as n from (select event_time from a where v < 2 union all "
        "select event_time from a where v > 1) group by session_window(event_time, '3 hours')"),
        ["07:00 3"],
    ),
    "over rows of two queries, by key": (
        ("select session_window.end as event_time, k, count(*) as n from (select event_time, k from a where v < 2 union all "
        "select event_time, k from a where v > 1) group by session_window(event_time, '3 hours'), k"),
        ["07:00 x 2", "07:00 y 1"],
    ),
    "of another time": (
        "select max(event_time) as event_time, session_window.start as s, k from a group by session_window(date_trunc('day', event_time) + make_interval(0, 0, 0, 0, hour(event_time)), '3 hours'), k having session_window.end > timestamp'2024-01-01 06:30:00'",
        ["04:00 03:00 x", "04:00 04:00 y"],
    ),
}  # fmt: skip


def expected(lines):
    """Lines with the day at each time."""
    return sorted(" ".join(f"2024-01-01T{one}" if ":" in one else one for one in line.split()) for line in lines)


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("name", QUERIES)
def test_derivatives_are_made_of_whole_sessions(name, spark, tmp_path):
    query, right = QUERIES[name]
    case = Case(name, "", [(None, query)], {"a": FIELDS}, {}, ())
    runner = Compared(Tuned(spark, **QUICK), case, tmp_path)
    rows = [parsed(line, FIELDS) for line in ROWS]
    first = runner.pull(Pull({"a": rows}, {"a": "2024-01-01T06:30"}))
    # Both sessions are open: what is given before they are over is not made of them.
    assert not any("06:00" in line or "07:00" in line for line in first.lines)
    assert runner.compare().is_equal
    second = runner.pull(Pull({}, {"a": "2024-01-01T09:00"}))
    lines = [*first.lines, *second.lines]
    given = sorted(line.partition(" ")[2] for line in lines if line.startswith(("+A", "+C")))
    taken = [line for line in lines if line.startswith(("-R", "-C"))]
    assert (given, taken) == (expected(right), [])
    assert runner.compare().is_equal


@pytest.mark.parametrize("name", QUERIES)
def test_answers_are_made_of_whole_sessions(name, spark, tmp_path):
    query, right = QUERIES[name]
    source = Source(tmp_path, "a", FIELDS).add([parsed(line, FIELDS) for line in ROWS])
    found = answer_of(spark, query, source, tmp_path / "out")
    lines = [
        " ".join(one.strftime("%H:%M") if hasattr(one, "hour") else str(one) for one in row.values()) for row in found
    ]
    assert sorted(lines) == sorted(right)
