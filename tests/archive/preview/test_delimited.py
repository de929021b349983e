"""The first rows of CSV: as they are written, cut to what a page can show."""

from __future__ import annotations

from odfpy.archive.preview.delimited import MAX_COLUMNS, MAX_LENGTH, MAX_ROWS, FirstRows, first_rows


def rows(text: str, *, is_whole: bool = True) -> FirstRows:
    found = first_rows(text, is_whole=is_whole)
    assert found is not None
    return found


def test_the_first_line_has_the_names() -> None:
    assert rows('a,b\n1,"x, ""y"""\n\n2\n') == FirstRows(("a", "b"), (("1", 'x, "y"'), ("2", "")), 2, has_more=False)


def test_the_sign_of_the_first_line_parts_columns() -> None:
    assert rows("a;b,c\n1,5;2\n").columns == ("a", "b,c") or rows("a;b;c,d\n").columns == ("a", "b", "c,d")
    assert rows("a\tb\n1\t2\n").rows == (("1", "2"),)
    assert rows("alone\n1\n").columns == ("alone",)


def test_a_last_line_that_may_be_incomplete_is_left_out() -> None:
    found = rows("a,b\n1,2\n3,", is_whole=False)
    assert (found.rows, found.has_more) == ((("1", "2"),), True)
    assert first_rows("a,b", is_whole=False) is None


def test_there_is_no_more_than_a_page_can_show() -> None:
    wide = ",".join(f"c{number}" for number in range(1000))
    found = rows(f"{wide}\n" + "x\n" * 500)
    assert (len(found.columns), len(found.rows), found.num_columns) == (MAX_COLUMNS, MAX_ROWS, 1000)
    assert found.has_more
    assert {len(row) for row in found.rows} == {MAX_COLUMNS}
    assert rows("a\n" + "y" * 10_000).rows == (("y" * MAX_LENGTH + "…",),)


def test_what_is_no_table_is_none() -> None:
    assert first_rows("", is_whole=True) is None
    assert first_rows("\n\n", is_whole=True) is None
    assert first_rows('a,"' + "x" * 200_000, is_whole=True) is None
