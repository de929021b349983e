"""Event time of a whole input, for rows without one (ODF specification, "EventTimeSource")."""

from __future__ import annotations

import re

from odfpy.chain.sources import EventTimeFromMetadata, EventTimeFromPath, EventTimeSource
from odfpy.data.timestamp import Timestamp
from odfpy.errors import FetchError, InvalidValue
from odfpy.ingest.time_format import time_format


def event_time_of(source: EventTimeSource, *, path: str, modified: Timestamp | None, now: Timestamp) -> Timestamp:
    """Return the event time that a source assigns to an input.

    Args:
        source: the definition of the event time.
        path: path of the input, in which `FromPath` searches for its pattern; the first group is the time.
        modified: when the input was last modified, if known; otherwise `now` is used.
        now: time of the ingest.

    Raises:
        FetchError: the path has no such time.
        InvalidValue: the pattern or the format is invalid.
    """
    if isinstance(source, EventTimeFromPath):
        return _from_path(source, path)
    if isinstance(source, EventTimeFromMetadata) and modified is not None:
        return modified
    return now


def modified_at(nanos: int, shown: str) -> Timestamp:
    """Return the modification time of a file.

    Args:
        nanos: nanoseconds since 1970, by the file system.
        shown: name of the file in messages.

    Raises:
        FetchError: the time is not between the years 1 and 9999.
    """
    try:
        return Timestamp(nanos)
    except InvalidValue as error:
        raise FetchError(
            f"{shown} was last modified at a time that cannot be recorded: {error.message}", hint="`touch` corrects it."
        ) from error


def compile_pattern(source: EventTimeFromPath) -> re.Pattern[str]:
    """Return the pattern of a source; its first group is the time.

    Raises:
        InvalidValue: the pattern is not a regular expression, or has no group.
    """
    try:
        pattern = re.compile(source.pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidValue(f"Event time pattern `{source.pattern}` is not a regular expression: {error}") from error
    if pattern.groups < 1:
        raise InvalidValue(
            f"Event time pattern `{source.pattern}` has no group", hint=r"Put the time in brackets: (\d+-\d+-\d+)\.csv"
        )
    return pattern


def _from_path(source: EventTimeFromPath, path: str) -> Timestamp:
    match = compile_pattern(source).search(path)
    if match is None or match[1] is None:
        raise FetchError(
            f"{path!r} has no event time: it does not match the pattern `{source.pattern}`",
            hint="Correct `pattern` under `eventTime`, or let `path` match fewer files.",
        )
    try:
        return time_format(source.timestamp_format).parse(match[1])
    except InvalidValue as error:
        raise FetchError(
            f"{path!r} has no event time: {error.message}", hint="Correct `timestampFormat` under `eventTime`."
        ) from error
