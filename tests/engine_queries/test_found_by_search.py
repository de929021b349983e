"""What the random search has found, as small as it was made: each of these was wrong once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.queries.cases import QUICK, Case, Runner, Tuned, parsed, read_cases
from support.queries.cases import Pull as Arrived
from support.queries.oracle import Oracle, state_of
from support.queries.stories import FIELDS

pytestmark = pytest.mark.spark

FILES = Path(__file__).with_name("found")
END = "2100-01-01T00:00"


def found(name, query, *pulls, inputs="a"):
    """A query over `a` or `a` and `b`, with rows `+A DAY k v` pull by pull; nothing comes after the watermarks."""
    steps = [(None, query)] if isinstance(query, str) else query
    arrived = [
        Arrived({alias: [_row(line) for line in lines] for alias, lines in pull.items()}, dict.fromkeys(inputs, END))
        for pull in pulls
    ]
    return Case(name, "", steps, dict.fromkeys(inputs, FIELDS), {}, arrived)


def _row(line):
    op, day, *values = line.split()
    return parsed(" ".join([op, f"2024-01-{day}T00:00", *values]), FIELDS)


FOUND = [
    found(
        "a column under its own name below a window function that reads it",
        "SELECT t AS event_time, k, g FROM (SELECT r.event_time AS t, r.k AS k, "
        "lag(v) OVER (PARTITION BY r.k ORDER BY r.event_time, r.k, v) AS g FROM a AS r)",
        {"a": ["+A 01 x 1", "+A 02 y 1"]},
        {"a": ["+A 03 x 2"]},
    ),
    found(
        "a query inside of a query inside of a query, each of which looks at the one around it",
        "SELECT event_time, k, v FROM a WHERE event_time IN (SELECT r.event_time FROM (SELECT * FROM a AS q WHERE "
        "EXISTS (SELECT 1 FROM b WHERE b.k = q.k AND b.v > (SELECT min(v) FROM a AS p WHERE p.k = b.k))) r WHERE r.k = a.k)",
        {"a": ["+A 01 x 1", "+A 02 y 2"], "b": ["+A 01 x 5"]},
        {"a": ["+A 03 y 0"], "b": ["+A 02 y 1", "+A 02 z 7"]},
        {"a": ["-R 03 y 0"], "b": ["-R 01 x 5"]},
        inputs="ab",
    ),
    *(case for path in sorted(FILES.glob("*.yaml")) for case in read_cases(path)),
]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.name)
def test_found(case, spark, tmp_path):
    runner, oracle = Runner(Tuned(spark, **QUICK), case, tmp_path), Oracle(Tuned(spark, **QUICK), tmp_path)
    emitted, given = [], {alias: [] for alias in case.inputs}
    for pull in case.pulls:
        for alias, rows in pull.rows.items():
            given[alias] += rows
        emitted += runner.pull(pull).rows
        assert state_of(emitted) == oracle.answer(case, given, {})
