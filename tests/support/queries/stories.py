"""The history for laws of queries in every test run, in which everything happens.

Random histories are either many or small: hypothesis begins with almost empty ones.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pyarrow as pa
from support.queries.cases import Pull, parsed

FIELDS = (pa.field("k", pa.string()), pa.field("v", pa.int32()))
"""The columns of `a` and of `b`."""

_DAY = "2024-01-0"

_IN_TIME = (
    ({}, {"a": "1T06", "b": "1T02"}),
    (
        {
            "a": ["+A 1T07 x 1", "+A 1T08 - 0", "+A 1T07 y 2", "+A 1T07 x 3"],
            "b": ["+A 1T06 x 2", "+A 1T09 y 1", "+A 1T09 - 1"],
        },
        {"a": "1T13", "b": "1T11"},
    ),
    ({"a": ["+A 1T14 x 1", "+A 1T20 x 0", "+A 1T20 x 0"], "b": ["+A 1T12 x 3"]}, {"a": "2T06", "b": "2T06"}),
)
"""Rows and watermarks pull by pull: there are watermarks before there are rows."""

_LATE = (
    {},
    {"a": ["+A 1T04 x 1"], "b": ["+A 1T01 y 0"]},
    {"a": ["-C 1T07 y 2", "+C 1T09 y 3", "-R 1T04 x 1"], "b": ["+A 1T08 x 3", "-R 1T09 y 1"]},
)
"""Late rows and retractions."""


_FURTHER: tuple[tuple[dict[str, list[str]], dict[str, str]], ...] = (
    ({"a": ["+A 2T07 x 1", "+A 2T07 - 2"], "b": ["+A 2T07 x 2", "-C 1T06 x 2", "+C 1T06 x 1"]}, {"a": "2T08"}),
    ({"a": ["-R 1T20 x 0", "-C 1T07 x 1", "+C 1T07 y 1"], "b": ["-R 1T09 - 1", "+A 1T05 z 1"]}, {"b": "2T08"}),
    ({"a": ["+A 2T09 z 3", "+A 1T03 y 2"]}, {"a": "2T10", "b": "2T10"}),
    ({"b": ["-R 2T07 x 2", "+A 2T11 y 0", "+A 2T11 y 0"]}, {"a": "2T12", "b": "2T12"}),
    ({"a": ["-R 2T07 - 2", "+A 2T13 w 1"], "b": ["+A 2T13 w 1"]}, {"a": "2T14", "b": "2T14"}),
)
"""Later rows, mostly for existing keys."""


def told_further(inputs: Iterable[str]) -> list[Pull]:
    """Return the history, and five pulls more.

    Args:
        inputs: `a`, or `a` and `b`.
    """
    inputs = tuple(inputs)
    pulls = told(inputs)
    for rows, marks in _FURTHER:
        entries = {alias: [_row(line) for line in rows.get(alias, [])] for alias in inputs}
        pulls.append(Pull(entries, {alias: f"{_DAY}{mark}:00" for alias, mark in marks.items() if alias in inputs}))
    return pulls


def only_appended(pulls: Iterable[Pull]) -> list[Pull]:
    """Return the pulls without retractions and corrections."""
    return [
        replace(pull, rows={alias: [row for row in rows if row[0] == "+A"] for alias, rows in pull.rows.items()})
        for pull in pulls
    ]


def told(inputs: Iterable[str], *, in_time: bool = False) -> list[Pull]:
    """Return the pulls of the history.

    Args:
        inputs: `a`, or `a` and `b`.
        in_time: whether to omit late rows and retractions.
    """
    inputs = tuple(inputs)
    pulls = []
    for (rows, marks), late in zip(_IN_TIME, _LATE, strict=True):
        lines = {alias: [*([] if in_time else late.get(alias, [])), *rows.get(alias, [])] for alias in inputs}
        entries = {alias: [_row(line) for line in found] for alias, found in lines.items()}
        pulls.append(Pull(entries, {alias: f"{_DAY}{mark}:00" for alias, mark in marks.items() if alias in inputs}))
    return pulls


def _row(line: str) -> tuple[object, ...]:
    op, time, *values = line.split()
    return parsed(" ".join([op, f"{_DAY}{time}:00", *values]), FIELDS)
