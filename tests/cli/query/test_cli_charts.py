"""Charts say where things are: labels stand below the places that they name, and a single row is not a chart."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.cli.screen.plot import chart_of, draw, write_png
from odfpy.cli.screen.ticks import number_ticks, one_day, time_ticks

if TYPE_CHECKING:
    from cli.conftest import Odf

WIDTHS = (40, 57, 80, 133)
BORDER = re.compile(r"└([─┬]+)┘")


def seconds(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp()


def labels(first: str, last: str, room: int = 70, *, whole: bool = False) -> list[str]:
    return [label for _, label in time_ticks(seconds(first), seconds(last), room, whole=whole)]


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        ("2024-03-01", "2024-03-06", [f"2024-03-0{day}" for day in range(1, 7)]),
        ("2024-02-27T18:00", "2024-03-02T03:00", ["2024-02-28", "2024-02-29", "2024-03-01", "2024-03-02"]),
        ("2024-03-01", "2024-03-20", ["2024-03-04", "2024-03-11", "2024-03-18"]),
        ("2024-01-01", "2024-12-01", ["2024-01", "2024-03", "2024-05", "2024-07", "2024-09", "2024-11"]),
        ("2023-11-15", "2024-04-15", ["2023-12", "2024-01", "2024-02", "2024-03", "2024-04"]),
        ("2000-01-01", "2023-01-01", ["2000", "2005", "2010", "2015", "2020"]),
        ("0001-01-01", "9999-12-31", ["2000", "4000", "6000", "8000"]),
        ("2024-03-31T01:00", "2024-03-31T04:00", ["01:00", "01:30", "02:00", "02:30", "03:00", "03:30", "04:00"]),
        ("2024-03-01T12:00", "2024-03-02T12:00", ["2024-03-01 12:00", "2024-03-02 00:00", "2024-03-02 12:00"]),
        ("2024-03-01T10:00:03", "2024-03-01T10:00:09", [f"10:00:0{second}" for second in range(3, 10)]),
        ("2024-03-01", "2024-03-01", ["2024-03-01"]),
        ("2024-03-01T01:02:03.5", "2024-03-01T01:02:03.5", ["2024-03-01 01:02:03.500000"]),
    ],
)
def test_labels_of_times(first: str, last: str, expected: list[str]) -> None:
    assert labels(first, last) == expected


def test_between_two_days_there_is_no_noon() -> None:
    assert labels("2024-03-01", "2024-03-02", whole=True) == ["2024-03-01", "2024-03-02"]
    assert "2024-03-01 12:00" in labels("2024-03-01", "2024-03-02")


def test_labels_without_a_day_have_it_beside_the_name() -> None:
    times = [datetime(2024, 3, 1, hour, tzinfo=timezone.utc) for hour in (10, 11)]
    chart = chart_of(pa.table({"t": pa.array(times, pa.timestamp("ms", "UTC")), "n": [1, 2]}))
    assert chart.label == "t, 2024-03-01"
    assert one_day(seconds("2024-03-01T10:00"), seconds("2024-03-02T10:00")) is None


MOMENTS = st.timedeltas(timedelta(days=-719_000), timedelta(days=2_932_000)).map(
    lambda since: datetime(1970, 1, 1, tzinfo=timezone.utc) + since
)


@given(MOMENTS, MOMENTS, st.integers(20, 200))
def test_a_label_says_where_it_is(one: datetime, other: datetime, room: int) -> None:
    """Whatever is written is read as just the moment of the place."""
    first, last = sorted((one.timestamp(), other.timestamp()))
    ticks = time_ticks(first, last, room)
    assert 1 <= len(ticks) <= 8
    assert [at for at, _ in ticks] == sorted({at for at, _ in ticks})
    day = one_day(first, last)
    for at, label in ticks:
        assert first - 1e-3 <= at <= last + 1e-3
        text = f"{day} {label}" if day is not None and label[2:3] == ":" else label
        text += "-01-01" if re.fullmatch(r"\d{1,4}", text) else "-01" if re.fullmatch(r"\d{1,4}-\d\d", text) else ""
        year, rest = text.split("-", 1)
        assert seconds(f"{int(year):04}-{rest}") == pytest.approx(at, abs=1e-3)


@pytest.mark.parametrize("ends", [(0.0, 5e-324), (0.0, 1e-300), (-1.7e308, 1.7e308)])
def test_numbers_that_are_as_close_or_as_far_apart_as_can_be(ends: tuple[float, float]) -> None:
    assert [at for at, _ in number_ticks(*ends, 60)] == [*ends]


@given(st.floats(-1e12, 1e12), st.floats(-1e12, 1e12), st.booleans())
def test_a_number_says_where_it_is(one: float, other: float, whole: bool) -> None:
    first, last = sorted((one, other))
    for at, label in number_ticks(first, last, 60, whole=whole):
        assert float(label) == pytest.approx(at, abs=max((last - first) * 1e-3, 1e-9), rel=1e-8)


def days(first: str, count: int) -> list[datetime]:
    begin = datetime.fromisoformat(first).replace(tzinfo=timezone.utc)
    return [begin + timedelta(day) for day in range(count)]


def drawn(table: dict[str, Any], width: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("LINES", "20")
    monkeypatch.setenv("NO_COLOR", "1")
    lines = draw(chart_of(pa.table(table))).splitlines()
    assert all(len(line) <= width for line in lines)
    return lines


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "kind", [pa.timestamp("ms", "UTC"), pa.timestamp("ns"), pa.date32(), pa.timestamp("s", "+05:00")]
)
def test_a_peak_stands_above_its_day(width: int, kind: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third of five days has the only number that is not zero."""
    monkeypatch.setenv("TZ", "America/New_York")
    times = pa.array(days("2024-03-09", 5), pa.timestamp("s", "UTC")).cast(kind)
    lines = drawn({"t": times, "n": [0, 0, 9, 0, 0]}, width, monkeypatch)
    peak = next(line for line in lines if re.search(r"[▀-▟]", line) and "▞▞" not in line)
    columns = [at for at, letter in enumerate(peak) if "▀" <= letter <= "▟"]
    bottom = next(at for at, line in enumerate(lines) if BORDER.search(line))
    ticks = [at for at, letter in enumerate(lines[bottom]) if letter == "┬"]
    shown = re.findall(r"2024-03-\d\d", lines[bottom + 1])
    assert len(ticks) == len(shown)
    span = len(str(BORDER.search(lines[bottom])[1])) - 1  # type: ignore[index]
    left = lines[bottom].index("└") + 1
    for tick, label in zip(ticks, shown, strict=True):
        assert abs(tick - left - span * (date.fromisoformat(label) - date(2024, 3, 9)).days / 4) <= 1
    assert abs(sum(columns) / len(columns) - left - span / 2) <= 2
    if width >= 80:
        assert "2024-03-11" in shown


def test_lines_go_to_the_right_in_whatever_order_rows_came() -> None:
    times = pa.array(days("2024-03-01", 4), pa.timestamp("ms", "UTC")).take(pa.array([2, 0, 3, 1]))
    chart = chart_of(pa.table({"t": times, "n": [3, 1, 4, 2]}))
    assert [y for _, y in chart.series[0].points] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ({"n": [42]}, ["n  42"]),
        ({"count(*)": pa.array([12_345_678_901_234_567])}, ["count(*)  12345678901234567"]),
        ({"a": [1], "b": [2.5]}, ["a  1", "b  2.5"]),
        ({"city": ["Zürich"], "日本": [5], "note": ["x"]}, ["city  Zürich", "日本  5"]),
        (
            {"t": pa.array(days("2024-03-01", 1), pa.timestamp("ms", "UTC")), "n": [1]},
            ["t  2024-03-01T00:00:00Z", "n  1"],
        ),
        ({"day": [1, 2, 3], "n": [None, 7, None]}, ["day  2", "n    7"]),
    ],
)
def test_a_single_row_is_shown_in_numbers(
    table: dict[str, Any], expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert drawn(table, 80, monkeypatch) == expected


def test_several_rows_with_one_height_or_one_place_are_a_chart(monkeypatch: pytest.MonkeyPatch) -> None:
    assert any("┬" in line for line in drawn({"n": [5, 5, 5]}, 80, monkeypatch))
    assert any("┬" in line for line in drawn({"x": [1, 1], "n": [2, 3]}, 80, monkeypatch))


def test_values_give_no_orders_to_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn({"a\x1b[2J": ["b\x1b[2J"], "n": [1]}, 80, monkeypatch) == ["a\\x1b[2J  b\\x1b[2J", "n         1"]


def test_whole_numbers_have_all_their_digits_beside_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn({"name": ["a", "b"], "n": [1_234_567, -2_000_000]}, 60, monkeypatch)
    assert [line.split()[-1] for line in lines] == ["1234567", "-2000000"]


def test_a_single_row_on_the_command_line(odf: Odf, workspace: Path) -> None:
    assert odf("sql", "--engine", "datafusion", "-c", "select 42 as n", "--plot").out == "n  42\n"


def test_files_have_the_same_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    axes_of: list[Any] = []
    figure = pytest.importorskip("matplotlib.figure")
    subplots = figure.Figure.subplots
    monkeypatch.setattr(figure.Figure, "subplots", lambda self: axes_of.append(subplots(self)) or axes_of[-1])
    times = pa.array(days("2024-03-01", 6), pa.timestamp("ms", "UTC"))
    for table in ({"t": times, "n": range(6)}, {"n": [42]}):
        write_png(chart_of(pa.table(table)), tmp_path / "chart.png")
        assert (tmp_path / "chart.png").read_bytes().startswith(b"\x89PNG")
    days_of, alone = axes_of
    shown = {text.get_text(): at for text, at in zip(days_of.get_xticklabels(), days_of.get_xticks(), strict=True)}
    assert shown == {f"2024-03-0{day}": seconds(f"2024-03-0{day}") for day in range(1, 7)}
    assert [text.get_text() for text in alone.texts] == ["n: 42"]
    assert not alone.axison
