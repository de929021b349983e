"""What notebooks show: nothing of it is taken for HTML that comes from data, and it stays small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.chains.connecting import RATES, SCREAMED
from support.chains.workspaces import feed, root, workspace_with

import odfpy
from odfpy.client.connection import Connection
from odfpy.client.html import MAX_BARS, sparkline
from odfpy.coordinator.workspace import Workspace
from odfpy.data.rows.html_table import MAX_CHARACTERS, cell, table

DAYS = st.dates(date(1990, 1, 1), date(2030, 1, 1))


def bars(drawn: str) -> list[ET.Element]:
    """Those of a sparkline, which is well-formed XML."""
    return ET.fromstring(drawn).findall("{http://www.w3.org/2000/svg}rect")


def test_names_of_columns_and_values_are_data(here: Connection) -> None:
    rows = here.sql('SELECT \'<img src=x onerror="a">\' AS "<script>alert(1)</script>", NULL AS "&"')
    shown = rows._repr_html_()
    assert "<script" not in shown
    assert "<img" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<b>" not in here[RATES].current()._repr_html_()


@given(st.text())
def test_any_text_is_escaped(text: str) -> None:
    assert not re.search(r"[<>\"']|&(?!amp;|lt;|gt;|quot;|#x27;)", cell(text))
    assert len(cell("x" * 1000)) == MAX_CHARACTERS
    assert table([text], [[text]], hints=[text]).count("<") == table(["a"], [["a"]], hints=["a"]).count("<")


# --- Sparklines ------------------------------------------------------------------------------------------------------

SVG = "{http://www.w3.org/2000/svg}"
FIRST = date(2024, 2, 28)


def texts(drawn: str) -> list[str]:
    """What is written beside the bars of a sparkline, and below them; all of it is inside of the picture."""
    top = ET.fromstring(drawn)
    for one in top.findall(f"{SVG}text"):
        x, y, length = (float(one.attrib[name]) for name in ("x", "y", "textLength"))
        assert x + length <= float(top.attrib["width"])
        assert 8 <= y <= float(top.attrib["height"])
        assert one.attrib["fill"] == "currentColor", "it can be read in the light and in the dark"
    return [str(one.text) for one in top.findall(f"{SVG}text")]


@given(st.dictionaries(DAYS, st.integers(1, 10**9), min_size=1, max_size=30))
def test_a_sparkline_has_a_bar_for_each_day_or_for_several(rows_per_day: dict[date, int]) -> None:
    drawn = sparkline(rows_per_day)
    assert len(bars(drawn)) <= min(MAX_BARS, len(rows_per_day))
    told = [int(re.findall(r": ([\d,]+)$", str(one[0].text))[0].replace(",", "")) for one in bars(drawn)]
    assert sum(told) == sum(rows_per_day.values())
    assert all(0 < float(one.attrib["height"]) <= 40 for one in bars(drawn))
    *numbers, below = texts(drawn)
    assert below.endswith(str(max(rows_per_day)))
    if len(numbers) == 3:
        assert numbers[0] == f"max  {max(told):,}"
        assert numbers[2] == f"last {told[-1]:,}"
    assert ET.fromstring(drawn).attrib["aria-label"] == f"{below}: {', '.join(numbers)}"


def test_days_without_rows_are_gaps() -> None:
    drawn = sparkline({FIRST: 4, FIRST + timedelta(3): 2})
    assert [one.attrib["x"] for one in bars(drawn)] == ["0", "90"]
    assert [one.attrib["height"] for one in bars(drawn)] == ["40", "20"]
    assert texts(drawn) == ["max  4", "min  0", "last 2", "rows per day, 2024-02-28 to 2024-03-02"]
    assert sparkline({}) == ""


@pytest.mark.parametrize(
    ("rows_per_day", "expected"),
    [
        ({FIRST: 1_234}, ["1,234", "rows per day, 2024-02-28"]),
        ({FIRST: 7, FIRST + timedelta(1): 7}, ["each 7", "rows per day, 2024-02-28 to 2024-02-29"]),
        ({FIRST: None, FIRST + timedelta(1): 3, FIRST + timedelta(2): None}, ["3", "rows per day, 2024-02-29"]),
        ({FIRST: 0}, ["0", "rows per day, 2024-02-28"]),
    ],
)
def test_one_number_and_the_same_number_and_no_number(
    rows_per_day: dict[date, int | None], expected: list[str]
) -> None:
    assert texts(sparkline(rows_per_day)) == expected
    assert len(bars(sparkline(rows_per_day))) == sum(bool(rows) for rows in rows_per_day.values())
    assert sparkline({FIRST: None}) == ""


def test_a_sparkline_has_a_sensible_size() -> None:
    for count in (1, 2, 10, 90, 91, 5_000):
        top = ET.fromstring(sparkline({FIRST + timedelta(day): 1 + day % 7 for day in range(count)}))
        assert 100 <= float(top.attrib["width"]) <= 420
        assert top.attrib["height"] == "60"


# --- Where rows come from --------------------------------------------------------------------------------------------


def test_where_a_row_comes_from_is_a_table(here: Connection) -> None:
    answer = here[SCREAMED].provenance(0)
    top = ET.fromstring(f"<div>{answer._repr_html_()}</div>")
    head, *lines = (["".join(one.itertext()) for one in row] for row in top.iter("tr"))
    assert head == ["Dataset", "Offset", "Op", "Event time", "Values", "Made of"]
    assert lines == [
        [SCREAMED, "0", "+A", "2024-01-01T00:00:00.000Z", "id=2, name=<B>&AMP;", f"{RATES} 1"],
        [RATES, "1", "+A", "2024-01-01T00:00:00.000Z", "id=2, name=<b>&amp;", ""],
    ]
    assert "".join(top[0].itertext()) == f"{SCREAMED}, row 0: checked"
    assert here[SCREAMED].provenance(0)._repr_html_() == answer._repr_html_()
    assert repr(answer) == f"<origins of row 0 of {SCREAMED}: checked>"


def test_of_many_rows_the_first_ones_are_shown(here: Connection) -> None:
    answer = here[RATES].provenance(0)
    (dataset,) = answer.datasets
    row = replace(dataset.rows[0], values={"event_time": None, "system_time": None, "x\x1b": "y" * 100})
    many = replace(dataset, rows=(row,) * 12)
    shown = replace(answer, datasets=(many,))._repr_html_()
    assert shown.count("<tr>") == 12
    assert "... and 2 rows more" in shown
    assert shown.count(f"<td>x\\x1b={'y' * 39}…</td>") == 10


def test_a_dataset_shows_its_columns_its_watermark_and_rows_per_day(here: Connection) -> None:
    shown = here[RATES]._repr_html_()
    assert "watermark <b>2024-01-09T00:00:00Z</b>" in shown
    assert "rows <b>5</b>" in shown
    assert shown.count("<rect") == 3
    assert "<td>event_time</td><td>Timestamp(Millisecond, UTC)</td><td>required</td><td>system</td>" in shown
    assert "<td>name</td><td>String</td><td>optional</td><td></td>" in shown


def test_a_dataset_without_data_shows_that(tmp_path: Path) -> None:
    connection = odfpy.connect(workspace_with(tmp_path, root("empty")))
    assert "no data yet" in connection["empty"]._repr_html_()
    assert connection["empty"].rows_per_day() == {}


def test_a_dataset_whose_rows_cannot_be_read_is_shown_all_the_same(tmp_path: Path) -> None:
    workspace = workspace_with(tmp_path, root("damaged"))
    feed(workspace, "damaged", "1 x")
    for slice_file in workspace.storage.get("damaged").folder.glob("data/*"):
        slice_file.unlink()
    shown = odfpy.connect(workspace)["damaged"]._repr_html_()
    assert "rows per day: " in shown
    assert "<td>name</td>" in shown


def test_a_connection_shows_its_datasets(here: Connection, workspace: Workspace) -> None:
    shown = here._repr_html_()
    assert f"<td>{RATES}</td><td>Root</td><td>5</td>" in shown
    assert str(workspace.root) not in shown
    assert here._ipython_key_completions_() == [RATES, SCREAMED]


def test_a_lineage_is_drawn_without_anything_from_elsewhere(here: Connection) -> None:
    drawn = here[SCREAMED].lineage()._repr_html_()
    assert drawn.count("<rect") == 2
    assert not re.search(r"(?:src|href)=|<script", drawn)
    ET.fromstring(drawn)


def test_only_the_first_rows_are_shown(here: Connection) -> None:
    many = here.sql("SELECT value FROM generate_series(1, 25)")
    assert many._repr_html_().count("<tr>") == 11
    assert "25 rows, 10 shown" in many._repr_html_()
    assert repr(many).splitlines()[-1] == "25 rows, 10 shown"
    asked_first = here.prepare("SELECT value FROM generate_series(1, 25)")
    assert "the first 10 rows" in asked_first._repr_html_()
    assert asked_first.head(2).to_arrow() == pa.table({"value": [1, 2]}, asked_first.head(2).table.schema)


def test_rows_are_shown_as_text(here: Connection) -> None:
    rows = here.sql(f'SELECT id, name FROM "{RATES}" WHERE id = 3')
    assert repr(rows) == "id  name\n3   USD 5\n1 row"


def test_values_give_no_orders_to_a_terminal(here: Connection) -> None:
    rows = here.sql("SELECT 'a' || chr(27) || '[2J' || chr(10) || 'b' AS x, '日本' AS y, 1 AS z")
    assert repr(rows).splitlines()[:2] == ["x            y     z", "a\\x1b[2J\\nb  日本  1"]


def test_notebooks_show_errors_without_a_traceback(here: Connection) -> None:
    with pytest.raises(odfpy.OdfError) as caught:
        _ = here["com.example.rate"]
    assert caught.value._render_traceback_()[-1] == f"  hint: Did you mean {RATES}?"
