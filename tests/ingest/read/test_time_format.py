"""Formats of dates and times, one by one and vectorized."""

from __future__ import annotations

from datetime import date, datetime, timezone

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.errors import InvalidValue
from odfpy.ingest.read.text import CastFailed, TimeFormats, parse_texts
from odfpy.ingest.time_format import instant, time_format

UTC_MILLIS = pa.timestamp("ms", "UTC")

UNDERSTOOD = [
    # format, text, instant
    (None, "2024-03-01T12:00:00Z", "2024-03-01T12:00:00Z"),
    ("rfc3339", "2024-03-01 12:00:00.123456+02:00", "2024-03-01T10:00:00.123456Z"),
    (None, "2024-03-01", "2024-03-01T00:00:00Z"),
    (None, "2024-03-01T12:30", "2024-03-01T12:30:00Z"),
    (None, "2024-03-01t12:30:00z", "2024-03-01T12:30:00Z"),
    (None, "1969-12-31T23:59:59.999-0030", "1970-01-01T00:29:59.999Z"),
    ("%Y-%m-%d", "2024-02-29", "2024-02-29T00:00:00Z"),
    ("%m/%d/%Y %I:%M:%S %p", "9/25/2022 1:02:03 PM", "2022-09-25T13:02:03Z"),
    ("%m/%d/%Y %I:%M:%S %p", "09/25/2022 12:02:03 am", "2022-09-25T00:02:03Z"),
    ("%Y-%m-%dT%H%M", "2013-02-08T0500", "2013-02-08T05:00:00Z"),
    ("%Y%m%d", "20240131", "2024-01-31T00:00:00Z"),
    ("%d %B %Y", "5 March 2024", "2024-03-05T00:00:00Z"),
    ("%e-%b-%y", " 5-mar-68", "2068-03-05T00:00:00Z"),
    ("%F %T%.f %z", "2024-01-02 03:04:05.25 +0100", "2024-01-02T02:04:05.250Z"),
    ("%F %T%.f", "2024-01-02 03:04:05", "2024-01-02T03:04:05Z"),
    ("%Y-%j", "2024-366", "2024-12-31T00:00:00Z"),
    ("%s", "-1", "1969-12-31T23:59:59Z"),
    ("%Y", "2024", "2024-01-01T00:00:00Z"),
    ("100%% %Y", "100% 2024", "2024-01-01T00:00:00Z"),
    ("yyyy-MM-dd", "2024-03-05", "2024-03-05T00:00:00Z"),
    ("dd.MM.yyyy HH:mm", "5.3.2024 07:05", "2024-03-05T07:05:00Z"),
    ("yyyy-MM-dd'T'HH:mm[:ss][.SSS]X", "2024-03-05T07:05Z", "2024-03-05T07:05:00Z"),
    ("yyyy-MM-dd'T'HH:mm[:ss][.SSS]X", "2024-03-05T07:05:06.789+01", "2024-03-05T06:05:06.789Z"),
    ("yyyy-MM[-dd]", "2024-04", "2024-04-01T00:00:00Z"),
    ("yyyy[-MM[-dd]][ HH:mm]", "2024", "2024-01-01T00:00:00Z"),
    ("[yyyy ]h a", "1 pm", "1970-01-01T13:00:00Z"),
    ("[yy ]MMM[ dd]", "May", "1970-05-01T00:00:00Z"),
    ("yyyy[ hh a][-MM-dd][#DDD]", "2024-03-05", "2024-03-05T00:00:00Z"),
    ("yyyy[ hh a][-MM-dd][#DDD]", "2024#366", "2024-12-31T00:00:00Z"),
    ("EEE, d MMM yyyy HH:mm:ss z", "Tue, 5 Mar 2024 07:05:06 GMT", "2024-03-05T07:05:06Z"),
    ("h 'o''clock' a, MMMM d, yyyy", "11 o'clock PM, May 9, 2024", "2024-05-09T23:00:00Z"),
]

REFUSED = [
    (None, "1704110400"),
    (None, "2024-02-30"),
    (None, "2023-02-29T00:00:00Z"),
    (None, "2024-01-01T24:00:00Z"),
    (None, "2024-01-01T23:59:60Z"),
    (None, " 2024-01-01"),
    (None, "2024-1-1"),
    (None, "0000-01-01"),
    (None, "2024-01-01T00:00:00+24:00"),
    ("%Y%m%d", "2024115"),
    ("%d.%m.%Y", "31.04.2024"),
    ("%d.%m.%Y", "1.13.2024"),
    ("%I:%M %p %F", "13:00 PM 2024-01-01"),
    ("%Y-%j", "2023-366"),
    ("yyyy[#DDD]", "2024#000"),
    ("yyyy-MM[-dd]", "2024-04-00"),
    ("%d %b %Y", "5 Marble 2024"),
    ("yyyy-MM-dd", "\uff12\uff10\uff12\uff14-03-05"),
]


@pytest.mark.parametrize(("text_format", "text", "wanted"), UNDERSTOOD)
def test_time_is_understood(text_format: str | None, text: str, wanted: str):
    assert str(time_format(text_format).parse(text)) == wanted


@pytest.mark.parametrize(("text_format", "text", "wanted"), UNDERSTOOD)
def test_columns_of_times_are_understood_in_the_same_way(text_format: str | None, text: str, wanted: str):
    formats = TimeFormats.of(None, text_format)
    times = parse_texts(pa.array([text, None, text]), pa.timestamp("us", "UTC"), formats)
    expected = datetime.fromisoformat(wanted.replace("Z", "+00:00"))
    assert times.to_pylist() == [expected, None, expected]


@pytest.mark.parametrize(("text_format", "text"), REFUSED)
def test_what_is_no_such_time_is_refused(text_format: str | None, text: str):
    with pytest.raises(InvalidValue):
        time_format(text_format).parse(text)
    with pytest.raises(CastFailed):
        parse_texts(pa.array([text]), UTC_MILLIS, TimeFormats.of(None, text_format))


@pytest.mark.parametrize(
    "text_format", ["%Q", "%", "%Y-%Y", "%F %d", "no fields but B", "yyyy-MM-dd]", "[yyyy", "'just text'", "%%", ""]
)
def test_format_that_makes_no_sense_is_refused(text_format: str):
    with pytest.raises(InvalidValue, match="time format"):
        time_format(text_format)


def test_a_date_with_a_time_of_day_is_no_date():
    formats = TimeFormats.of("%Y-%m-%d %H:%M", None)
    assert parse_texts(pa.array(["2024-01-02 00:00"]), pa.date32(), formats).to_pylist() == [date(2024, 1, 2)]
    with pytest.raises(CastFailed):
        parse_texts(pa.array(["2024-01-02 00:01"]), pa.date32(), formats)


@given(st.dates())
def test_days_are_counted_as_python_counts_them(day: date):
    seconds, nanos, valid = instant({"Y": day.year, "m": day.month, "d": day.day})
    assert valid
    assert (seconds, nanos) == ((day.toordinal() - date(1970, 1, 1).toordinal()) * 86_400, 0)


@given(st.integers(1, 9999), st.integers(0, 13), st.integers(0, 32))
def test_only_days_that_exist_are_valid(year: int, month: int, day: int):
    try:
        date(year, month, day)
    except ValueError:
        exists = False
    else:
        exists = True
    assert instant({"Y": year, "m": month, "d": day})[2] == exists


@given(st.lists(st.datetimes(timezones=st.just(timezone.utc)), max_size=20))
def test_formatted_times_come_back(times: list[datetime]):
    times = [time.replace(microsecond=time.microsecond // 1000 * 1000) for time in times]
    texts = pa.array([f"{time:%d.%m.}{time.year:04} {time:%H-%M-%S,%f}" for time in times], pa.string())
    formats = TimeFormats.of(None, "%d.%m.%Y %H-%M-%S,%f")
    assert parse_texts(texts, UTC_MILLIS, formats).to_pylist() == times
