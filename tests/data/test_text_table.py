"""Tables: side by side where there is room, folded where there is little, one below the other where there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odfpy.cli.datasets.listing import ago
from odfpy.data.rows.text_table import NARROWEST, cells, lines_of
from odfpy.data.timestamp import Timestamp
from odfpy.escaping import escape_controls

ROWS = [["com.example.rates", "1200", "2024-03-01T12:00:00.123Z"], ["a", "7", ""]]


def table(rows: list[list[str]], width: int | None = None, right: tuple[int, ...] = (1,)) -> str:
    columns = ["Name", "Records", "Watermark"][: len(rows[0])]
    return "\n".join(lines_of(columns, rows, right=right, width=width))


def test_columns_are_as_wide_as_their_widest_cell_and_lines_end_without_spaces() -> None:
    assert table(ROWS) == (
        "Name               Records  Watermark\n"
        "com.example.rates     1200  2024-03-01T12:00:00.123Z\n"
        "a                        7"
    )


def test_a_table_that_fits_is_not_folded() -> None:
    assert table(ROWS, width=52) == table(ROWS)


def test_wide_columns_are_folded_after_punctuation() -> None:
    assert table(ROWS, width=44) == (
        "Name               Records  Watermark\n"
        "com.example.rates     1200  2024-03-01T\n"
        "                            12:00:00.123Z\n"
        "a                        7"
    )


def test_what_cannot_be_folded_to_the_width_is_shown_one_value_a_line() -> None:
    assert table(ROWS, width=30) == (
        "-- 1 --\n"
        "Name       com.example.rates\n"
        "Records    1200\n"
        "Watermark  2024-03-01T12:00:00.123Z\n"
        "-- 2 --\n"
        "Name       a\n"
        "Records    7\n"
        "Watermark"
    )


def test_a_table_without_rows_has_its_titles() -> None:
    assert list(lines_of(["a", "b"], [])) == ["a  b"]
    assert list(lines_of([], [])) == []
    assert list(lines_of([], [[], []], width=80)) == []


def test_titles_alone_are_marked() -> None:
    marked = list(lines_of(["a"], [["b"]], heading=lambda line: f"<{line}>"))
    assert marked == ["<a>", "b"]


def test_wide_characters_take_two_cells_and_combining_ones_none() -> None:
    assert cells("日本") == 4
    assert cells("e\u0301") == 1
    assert table([["日本", "1"], ["ab", "22"]]) == "Name  Records\n日本        1\nab         22"


def test_control_characters_are_spelled_out() -> None:
    assert escape_controls("a\nb\tc\x1b[31mred\x7f\x9b") == "a\\nb\\tc\\x1b[31mred\\x7f\\x9b"
    assert "\x1b" not in table([["\x1b]0;title\x07", "1", ""]], width=80)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)


@given(st.data(), st.integers(1, 4), st.integers(1, 120))
def test_no_line_is_wider_than_the_terminal_and_nothing_is_lost(data: st.DataObject, columns: int, width: int) -> None:
    titles = [f"c{number}" for number in range(columns)]
    rows = data.draw(st.lists(st.lists(TEXTS, min_size=columns, max_size=columns), max_size=4))
    lines = list(lines_of(titles, rows, width=width))
    shown = "".join("".join(lines).split())
    if lines and not lines[0].startswith("-- "):
        assert all(cells(line) <= max(width, NARROWEST) for line in lines)
    for row in rows:
        for cell in row:
            letters = "".join(escape_controls(cell).split())
            remaining = iter(shown)
            assert all(letter in remaining for letter in letters), "in their order"


@pytest.mark.parametrize("text", ["x" * 100_000, "日" * 100_000, "a b " * 25_000])
def test_long_cells_are_folded_in_no_time(text: str) -> None:
    assert sum(len(line) for line in lines_of(["a"], [[text]], width=40)) > 50_000


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0 s ago"),
        (119, "119 s ago"),
        (120, "2 min ago"),
        (7199, "119 min ago"),
        (7200, "2 hours ago"),
        (172_799, "47 hours ago"),
        (172_800, "2 days ago"),
        (99 * 86_400, "99 days ago"),
        (100 * 86_400, "2024-01-01"),
    ],
)
def test_how_long_ago(seconds: int, text: str) -> None:
    start = Timestamp.parse("2024-01-01")
    assert ago(start, Timestamp(start.nanos + seconds * 1_000_000_000)) == text
