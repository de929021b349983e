"""A search for times at which a function decreases that the engine takes for one that never does.

A watermark passes through such a function, so one counterexample is a broken promise. Each entry of the engine's list has
a generator here: of its forms, alone and inside of one another, with amounts and units of all kinds. Each query of the
search evaluates several of them at hundreds of times: ends of months, leap years, the Julian calendar's end, years
before 1 and after 9999, and what hypothesis adds. `ODF_LAWS=200` searches longer.
"""

from __future__ import annotations

import os
from datetime import date
from itertools import pairwise, product

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from odfpy.engine.spark.plan.catalyst import Catalyst, columns_read, items, subtree
from odfpy.engine.spark.plan.monotone import NEVER_DECREASING, never_decreases, never_exceeds, shift_of
from odfpy.engine.spark.process.session import request_session

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("ODF_LAWS", "4"))

DAY = 86_400_000_000
FIRST, LAST = -62_135_596_800_000_000, 253_402_300_799_999_000
"""The first and the last millisecond that a dataset can have, in microseconds."""
FARTHEST = 100_000 * 366 * DAY

YEARS = (1, 1582, 1896, 1900, 1970, 2000, 2023, 2024, 2100, 9999)
MONTHS = (1, 2, 3, 5, 10, 12)
CLOCK = (0, 1, 44_400_000_000, 48_600_000_000, DAY - 1)  # midnight, 12:20, 13:30 and the last microsecond


def days_around(year, month):
    first = date(year, month, 1).toordinal() - date(1970, 1, 1).toordinal()
    return range(max(first - 3, FIRST // DAY), first + 2)


ENDS = sorted(
    {day * DAY + clock for year, month in product(YEARS, MONTHS) for day in days_around(year, month) for clock in CLOCK}
    | {FIRST, LAST, 0, -1}
)

ONE_OF_TIME = st.sampled_from(["t", "t", "d", "n"])
SMALL = st.integers(-50, 50)
DAYS = SMALL | st.integers(-4_000_000, 4_000_000) | st.integers(-(2**31) + 1, 2**31 - 1)
UNITS = st.sampled_from(
    ["microsecond", "millisecond", "second", "minute", "hour", "day", "dayofyear", "week", "month", "quarter", "year"]
)
CUT = st.sampled_from(
    [
        "'microsecond'",
        "'Hour'",
        "'day'",
        "'DD'",
        "'week'",
        "'mon'",
        "'QUARTER'",
        "'yy'",
        "'none'",
        "cast(null as string)",
    ]
)
INTERVALS = st.one_of(
    st.builds("make_interval({}, {}, {}, {}, {}, {}, {})".format, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL, SMALL),
    st.builds("make_interval(0, 0, 0, {}, {})".format, DAYS, SMALL),
    st.builds("make_dt_interval({}, {}, {})".format, SMALL, SMALL, SMALL),
    st.builds("make_ym_interval({}, {})".format, SMALL, SMALL),
    st.builds("interval '{}' month".format, SMALL),
    st.sampled_from(["cast(null as interval)", "cast(null as interval day)", "nvl(null, interval 2 hours)"]),
)
DATE_INTERVALS = st.builds("make_interval({}, {}, {}, {})".format, SMALL, SMALL, SMALL, SMALL)


def inside(form, *amounts):
    """Expressions of a form over a time and some amounts, where the time may be such an expression itself."""
    return lambda times: st.builds(form.format, times, *amounts)


FORMS = {
    "AttributeReference": lambda _: ONE_OF_TIME,
    "Cast": inside("{1}({0} as {2})", st.sampled_from(["cast", "try_cast"]), st.sampled_from(["date", "timestamp", "timestamp_ntz"])),
    "DatetimeSub": inside("({} - {})", INTERVALS),
    "ParseToDate": lambda times: inside("to_date({})")(times) | inside("to_date({}, 'MM/dd/yyyy')")(times),
    "LastDay": inside("last_day({})"),
    "TruncDate": inside("trunc({}, {})", CUT),
    "TruncTimestamp": inside("date_trunc({1}, {0})", CUT),
    "AddMonths": inside("add_months({}, {})", SMALL),
    "DateAdd": inside("date_add({}, {})", DAYS),
    "DateSub": inside("date_sub({}, {})", DAYS),
    "DateAddInterval": inside("(to_date({}) + {})", DATE_INTERVALS),
    "DateAddYMInterval": inside("(to_date({}) + {})", st.builds("make_ym_interval({}, {})".format, SMALL, SMALL)),
    "TimestampAdd": inside("timestampadd({1}, {2}, {0})", UNITS, SMALL),
    "TimestampAddInterval": inside("({} + {})", INTERVALS),
    "TimestampAddYMInterval": lambda times: inside("(cast({} as timestamp) + {})", INTERVALS)(times)
    | inside("(date_trunc('week', {}) + interval '{}' month)", SMALL)(times),
}  # fmt: skip
TIMES = st.recursive(ONE_OF_TIME, lambda times: st.one_of([form(times) for form in FORMS.values()]), max_leaves=3)


class Search:
    """Evaluates expressions over a TIMESTAMP `t`, a DATE `d` and a TIMESTAMP_NTZ `n`, which are one time."""

    def __init__(self, spark):
        self.spark = request_session(spark)
        self.catalyst = Catalyst(self.spark)

    def analyzed(self, expression):
        """The expression as the engine sees it; None where there is no such function of that type."""
        try:
            plan = self.catalyst.analyze(self.catalyst.parse(f"SELECT {expression} AS v FROM {self.table([0])}"))
        except PySparkException:
            return None
        column = items(plan.projectList())[0]
        return column.child() if column.getClass().getSimpleName() == "Alias" else column

    @staticmethod
    def table(micros):
        rows = ", ".join(f"({value}L)" for value in micros)
        return (
            "(SELECT m, timestamp_micros(m) AS t, to_date(timestamp_micros(m)) AS d,"
            f" cast(timestamp_micros(m) AS timestamp_ntz) AS n FROM VALUES {rows} AS v(m))"
        )

    def values(self, expressions, micros):
        """The values of each expression at these times, in microseconds; None if one of them fails at some time."""
        made = ", ".join(f"unix_micros(cast({text} AS timestamp))" for text in expressions)
        try:
            rows = self.spark.sql(f"SELECT {made} FROM {self.table(micros)}").collect()
        except (PySparkException, Py4JJavaError):
            return None
        return [[row[at] for row in rows] for at in range(len(expressions))]

    def counterexample(self, expression, micros):
        """Two times, the first not later, of which the second has the lesser value; None where there are none."""
        found = self.values([expression], micros)
        if found is None:
            return None
        known = [(time, value) for time, value in zip(micros, found[0], strict=True) if value is not None]
        return next((pair for pair in pairwise(known) if pair[1][1] < pair[0][1]), None)


@pytest.fixture(scope="module")
def search(spark):
    return Search(spark)


MORE = st.lists(st.integers(FIRST // 1000, LAST // 1000).map(lambda millis: millis * 1000), max_size=60)
FAR = st.lists(st.integers(-FARTHEST, FARTHEST), max_size=30)


def test_every_form_has_a_generator():
    assert FORMS.keys() == NEVER_DECREASING.keys()


def test_no_times_are_found_at_which_what_never_decreases_does(search):
    tried = set()

    @settings(max_examples=EXAMPLES, deadline=None, derandomize=True, database=None, phases=[Phase.generate])
    @given(st.tuples(*(form(TIMES) for form in FORMS.values())), MORE, FAR)
    def run(texts, more, far):
        known = {text: node for text in texts if (node := search.analyzed(text)) is not None}
        kept = {text: node for text, node in known.items() if never_decreases(search.catalyst, node)}
        tried.update(name for node in kept.values() for name, _ in subtree(node))
        micros = sorted({*ENDS, *more})
        found = search.values(list(kept), micros)
        assert found is not None, f"one of {list(kept)} fails at a time that a dataset can have"
        for (text, node), values in zip(kept.items(), found, strict=True):
            assert None not in values, text
            assert values == sorted(values), text
            shift = shift_of(search.catalyst, node, columns_read(node)[0])
            assert shift is None or {value - time for value, time in zip(values, micros, strict=True)} == {shift}, text
            assert not never_exceeds(node) or all(value <= time for value, time in zip(values, micros, strict=True))
        beyond = search.values(list(kept), sorted({FIRST, LAST, *far}))  # if none of them overflows
        assert all(values == sorted(values) for values in beyond or ())

    run()
    assert tried >= NEVER_DECREASING.keys(), "a form is always refused"


DECREASING = [
    "t + interval 1 month",
    "n + interval 1 month",
    "t - interval 1 month",
    "t + make_interval(0, 1)",
    "t + make_interval(0, -1, 0, 0, 5)",
    "t + make_interval(4)",
    "timestampadd(month, 1, t)",
    "timestampadd(year, 4, t)",
    "date_trunc('hour', t + interval 1 month)",
    "date_trunc('hour', t) + interval 1 month",
    "timestampadd(quarter, 1, timestampadd(hour, 1, to_date(t)) + (t - d))",
    "t + make_dt_interval(0, -2 * hour(t))",
    "to_utc_timestamp(t, 'Europe/Berlin')",
    "from_utc_timestamp(t, 'America/New_York')",
    "next_day(t, 'MON') - make_dt_interval(2 * dayofweek(t))",
    "to_date(date_format(t, 'MM/dd/yyyy'), 'dd/MM/yyyy')",
    "timestamp_seconds(-unix_seconds(t))",
]


@pytest.mark.parametrize("text", DECREASING)
def test_what_decreases_somewhere_is_not_taken_for_what_never_does(search, text):
    node = search.analyzed(text)
    assert node is not None
    assert not never_decreases(search.catalyst, node)
    assert shift_of(search.catalyst, node, columns_read(node)[0]) is None


@pytest.mark.parametrize("text", DECREASING[:10])
def test_the_search_finds_where_months_and_years_decrease(search, text):
    assert search.counterexample(text, ENDS) is not None


@pytest.mark.parametrize(
    "text",
    [
        "date_add(t, cast(null as int))",
        "t + cast(null as interval day)",
        "date_trunc('fortnight', t)",
        "trunc(t, 'day')",
        "trunc(t, cast(null as string))",
        "date_add(t, 2147483647)",
        "t + make_dt_interval(106751990)",
        "d + make_interval(0, 0, 0, 1, 3)",
        "t + (SELECT interval 1 day)",
        "date_trunc(if(t > d, 'day', 'hour'), t)",
        "date_add(d, day(d))",
    ],
)
def test_an_amount_that_is_null_varies_or_overflows_makes_no_time_of_which_a_watermark_is_known(search, text):
    node = search.analyzed(text)
    assert node is not None
    assert not never_decreases(search.catalyst, node)


def test_dates_and_midnights_keep_their_order_when_months_are_added(search):
    kept = [
        "d + interval 1 month",
        "add_months(t, 1)",
        "to_date(t) - interval 13 months",
        "date_trunc('month', t) + interval 1 month",
        "date_trunc('day', t) + make_interval(0, -1, 0, 3, 5)",
        "cast(last_day(t) as timestamp) + interval 1 month + interval 1 day + interval 1 month",
        "timestampadd(month, 1, d)",
    ]
    assert [text for text in kept if not never_decreases(search.catalyst, search.analyzed(text))] == []
    assert all(values == sorted(values) for values in search.values(kept, ENDS))
