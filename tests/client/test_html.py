"""What notebooks show: nothing of it is taken for HTML that comes from data, and it stays small."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
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
from odfpy.client.html import MOST_BARS, MOST_CHARACTERS, cell, sparkline, table
from odfpy.coordinator.workspace import Workspace

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
    assert len(cell("x" * 1000)) == MOST_CHARACTERS
    assert table([text], [[text]], hints=[text]).count("<") == table(["a"], [["a"]], hints=["a"]).count("<")


@given(st.dictionaries(DAYS, st.integers(1, 10**9), min_size=1, max_size=30))
def test_a_sparkline_has_a_bar_for_each_day_or_for_several(rows_per_day: dict[date, int]) -> None:
    drawn = sparkline(rows_per_day)
    assert len(bars(drawn)) <= min(MOST_BARS, len(rows_per_day))
    told = [int(re.findall(r": (\d+)$", str(one[0].text))[0]) for one in bars(drawn)]
    assert sum(told) == sum(rows_per_day.values())
    assert all(0 < float(one.attrib["height"]) <= 28 for one in bars(drawn))


def test_days_without_rows_are_gaps() -> None:
    first = date(2024, 2, 28)
    drawn = bars(sparkline({first: 4, first + timedelta(3): 2}))
    assert [one.attrib["x"] for one in drawn] == ["0", "9"]
    assert [one.attrib["height"] for one in drawn] == ["28", "14"]
    assert sparkline({}) == ""


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
