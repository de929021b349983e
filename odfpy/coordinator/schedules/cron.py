"""Times of cron expressions in a time zone, with the rules of Debian's cron for daylight saving time.

A job at fixed times (neither minute nor hour begins with `*`) runs exactly once on each due day: a skipped time moves
to the end of the gap, and a repeated time is due at its first occurrence. A job whose minute or hour begins with `*`
follows elapsed time: for example, it runs every quarter of an hour.
"""

from __future__ import annotations

from datetime import datetime, timezone, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from cronsim import CronSim, CronSimError

from odfpy.errors import InvalidValue, did_you_mean

_FIELDS: Final = 5
_FORM: Final = "Five fields: minute, hour, day of the month, month, day of the week. `15 6 * * mon-fri` is an example."
_WORDS: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * sun",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_MAX_LENGTH: Final = 500


def check_cron(text: str) -> None:
    """Check that a text has five fields that match some day.

    Raises:
        InvalidValue: the text is invalid; the message names the wrong field.
    """
    shown = text[:_MAX_LENGTH]
    if meant := _WORDS.get(text.strip().lower()):
        raise InvalidValue(f"Not a cron expression: {shown!r}", hint=f"Write {meant!r}.")
    count = len(text.split())
    if count != _FIELDS or len(text) > _MAX_LENGTH:
        raise InvalidValue(f"Not a cron expression: {shown!r} has {count} fields, not {_FIELDS}", hint=_FORM)
    try:
        next(CronSim(text, datetime(2024, 1, 1, tzinfo=timezone.utc)))
    except CronSimError as error:
        field = str(error).removeprefix("Bad ").replace("-", " ")
        raise InvalidValue(f"Not a cron expression: {shown!r}, wrong {field}", hint=_FORM) from error
    except StopIteration:
        raise InvalidValue(f"No day matches the cron expression {shown!r}", hint=_FORM) from None


def zone_named(name: str | None) -> tzinfo:
    """Return the time zone with a name; UTC if the name is None.

    Raises:
        InvalidValue: the time zone does not exist.
    """
    if name is None:
        return timezone.utc
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        known = available_timezones()
        otherwise = "Names are such as Europe/Berlin."
        if not known:
            otherwise = "This machine has no time zones: `pip install tzdata` brings them."
        raise InvalidValue(
            f"No such time zone: {name[:_MAX_LENGTH]!r}", hint=did_you_mean(name, known, otherwise=otherwise)
        ) from None


def next_time(cron: str, zone: tzinfo, after: float) -> float | None:
    """Return the first time of a cron expression after an instant.

    Args:
        cron: a valid expression; see `check_cron`.
        zone: time zone of the expression.
        after: the instant, in seconds since 1970.

    Returns:
        Seconds since 1970; None if there is no such time within fifty years.
    """
    try:
        local = datetime.fromtimestamp(after, zone)
        # In a repeated hour, the next local time may be an hour before the instant.
        return next((seconds for moment in CronSim(cron, local) if (seconds := moment.timestamp()) > after), None)
    except (OverflowError, ValueError):  # the end of the calendar
        return None
