"""Columns of a source that may hold the event time, for a source that names none."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

import pyarrow as pa

_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_TELLING: Final = {"date", "datetime", "day", "time", "timestamp", "ts", "when"}


def event_time_candidates(columns: Iterable[tuple[str, pa.DataType]]) -> tuple[str, ...]:
    """Names of columns that may hold when something happened, by type or by name; those by type come first.

    Args:
        columns: names and types of data columns, without the system's.
    """
    by_type, by_name = [], []
    for name, kind in columns:
        if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            by_type.append(name)
        elif (pa.types.is_string(kind) or pa.types.is_integer(kind)) and _sounds_like_time(name):
            by_name.append(name)
    return (*by_type, *by_name)


def _sounds_like_time(name: str) -> bool:
    words = [word.lower() for word in _WORDS.findall(name)]
    return bool(words) and (not _TELLING.isdisjoint((words[0], words[-1])) or (len(words) > 1 and words[-1] == "at"))
