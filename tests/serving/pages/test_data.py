"""The rows of a dataset: a hundred thousand of them, either view, one of them opened, whatever is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from support.browser.chromium import Visit
from support.browser.site import STATIONS, small_workspace
from support.chains.workspaces import root

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace

LARGE, ODD = "com.example.large", "com.example.odd"
ROWS = 100_000
HTML, RTL, EMOJI, LONG = "<b onclick=alert(1)>x", "עמודה ימנית", "🦊 fox", "n" * 255
EXACT = 9_007_199_254_740_993
"""A number that JavaScript's own cannot hold."""

MEGABYTES = 3_000_000
ODD_VALUES = {
    "event_time": "2024-01-01T00:00:00Z", HTML: "<img src=x onerror=alert(1)>", RTL: "שלום", EMOJI: "👩‍🚀", LONG: "long",
    "exact": EXACT, "missing": None, "list": "a" * MEGABYTES,
}  # fmt: skip


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = small_workspace(tmp_path_factory.mktemp("data") / "workspace")
    fields: list[dict[str, Any]] = [{"name": "event_time", "type": "Timestamp"}]
    fields += [{"name": name, "type": "String"} for name in (HTML, RTL, EMOJI, LONG)]
    fields += [
        {"name": "exact", "type": "Int64"},
        {"name": "missing", "type": {"kind": "Option", "inner": "Int64"}},
        {"name": "list", "type": "String"},
    ]
    source = {
        "kind": "AddPushSource", "sourceName": "default", "merge": {"kind": "Append"},
        "read": {"kind": "NdJson", "schema": {"fields": fields}},
    }  # fmt: skip
    content = {"name": ODD, "kind": "Root", "metadata": [source]}
    manifest = json.dumps({"kind": "DatasetSnapshot", "version": 1, "content": content}, ensure_ascii=False)
    found.add([*load_snapshots(root(LARGE, "{kind: Append}"), "large"), *load_snapshots(manifest, "odd")])
    lines = (f'{{"event_time":"2024-01-01T00:00:00Z","id":{one * 7},"name":"n{one}"}}\n' for one in range(ROWS))
    for name, text in ((LARGE, "".join(lines)), (ODD, (json.dumps(ODD_VALUES, ensure_ascii=False) + "\n") * 20)):
        file = found.root / "rows.ndjson"
        file.write_text(text, encoding="utf-8")
        list(found.ingest(name, [file]))
    return found


def cells(page: Page, index: int) -> list[str]:
    """The row with an index, once it is there."""
    row = page.locator(f"tr[aria-rowindex='{index + 2}']")
    expect(row.locator("td:not(:has(.skeleton))").first).to_be_attached()
    return [row.locator("th").inner_text(), *row.locator("td").all_inner_texts()]


def first_shown(page: Page) -> int:
    text = page.get_by_role("status").inner_text()
    return int(text.split()[1].replace(",", ""))


@pytest.mark.parametrize("view", ["current", "changelog"])
def test_a_hundred_thousand_rows_are_right_at_any_place(reader: Visit, view: str) -> None:
    page = reader.go(f"datasets/{LARGE}/-/data?view={view}")
    region = page.get_by_role("region", name="Changelog" if view == "changelog" else "Current state")
    expect(page.get_by_role("status")).to_contain_text("of 100,000")
    for top in (0.0, 0.5, 0.123, 1.0, 0.999, 0.001):
        region.evaluate("(frame, top) => { frame.scrollTop = (frame.scrollHeight - frame.clientHeight) * top }", top)
        page.wait_for_function(
            "(top) => Math.abs(Number(document.querySelector('.rows [role=status]').textContent.split(' ')[1]"
            ".replaceAll(',', '')) - top * 100000) < 60",
            arg=top,
        )
        index = first_shown(page)
        found = cells(page, index)
        assert found[0] == str(index)
        assert str(index * 7) in found
        assert f"n{index}" in found
    scroll_to_end = "(frame) => { frame.scrollTop = frame.scrollHeight }"
    region.evaluate(scroll_to_end)
    assert f"n{ROWS - 1}" in cells(page, ROWS - 1)
    expect(page.locator(f"tr[aria-rowindex='{ROWS + 1}']")).to_be_in_viewport()


def test_whoever_drags_past_rows_does_not_wait_for_them(reader: Visit) -> None:
    page = reader.go(f"datasets/{LARGE}/-/data?view=changelog")
    cells(page, 0)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/tail" in request.url else None)
    page.get_by_role("region", name="Changelog").evaluate(
        """async (frame) => {
          for (let step = 1; step <= 40; step += 1) {
            frame.scrollTop = (frame.scrollHeight / 50) * step;
            await new Promise(requestAnimationFrame);
          }
        }"""
    )
    page.wait_for_function(
        "() => Number(document.querySelector('.rows [role=status]').textContent.split(' ')[1].replaceAll(',', ''))"
        " > 79000"
    )
    index = first_shown(page)
    assert f"n{index}" in cells(page, index)
    assert len(asked) < 20, "40 places were passed"


def test_the_keyboard_moves_through_rows_and_opens_one(reader: Visit) -> None:
    page = reader.go(f"datasets/{LARGE}/-/data?view=changelog")
    cells(page, 0)
    region = page.get_by_role("region", name="Changelog")
    region.focus()
    page.keyboard.press("End")
    expect(page.get_by_role("status")).to_contain_text("to 99,999 of 100,000")
    assert f"n{ROWS - 1}" in cells(page, ROWS - 1)
    page.get_by_role("button", name=f"Row {ROWS - 1}").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"n{ROWS - 1}")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)


def test_the_changelog_has_signs_and_colours_of_operations(reader: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}/-/data")
    expect(page.get_by_role("status")).to_contain_text("of 3")
    state = [cells(page, index)[-1] for index in range(3)]
    assert sorted(state) == ["Bern", "Chur (GR)", "null"]
    page.get_by_role("button", name="Changelog").click()
    expect(page.get_by_role("status")).to_contain_text("of 7")
    rows = {tuple(cells(page, index)[2:3] + cells(page, index)[-1:]) for index in range(7)}
    assert {("-C", "Chur"), ("+C", "Chur (GR)"), ("-R", "Davos"), ("+A", "null")} <= rows
    expect(page.locator("tr.op-retract")).to_have_count(1)
    assert "view=changelog" in page.url


def test_a_phone_shows_data_first_and_the_system_columns_when_asked(visit: Callable[..., Visit]) -> None:
    phone = visit("reader", viewport={"width": 390, "height": 780})
    page = phone.go(f"datasets/{STATIONS}/-/data")
    cells(page, 0)
    headers = page.locator("thead th")
    expect(headers).to_have_text(["row", "event_time", "id", "name"])
    expect(page.get_by_role("columnheader", name="id")).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name="Changelog").click()
    expect(headers).to_have_text(["row", "op", "event_time", "id", "name"])
    page.get_by_label("System columns").check()
    expect(headers).to_have_text(["row", "offset", "op", "system_time", "event_time", "id", "name"])
    page.reload()
    expect(page.get_by_label("System columns")).to_be_checked()


def test_rows_say_that_they_can_be_clicked(reader: Visit) -> None:
    page = reader.go(f"datasets/{STATIONS}/-/data")
    cells(page, 0)
    expect(page.get_by_text("Click a row to see all of it, and its provenance.")).to_be_visible()
    row = page.locator("tr[aria-rowindex='2']")
    look = "(one) => [getComputedStyle(one).cursor, getComputedStyle(one).backgroundColor]"
    cursor, before = row.evaluate(look)
    row.hover()
    assert (cursor, row.evaluate(look)[1] != before) == ("pointer", True)
    row.get_by_text("Bern").click()
    expect(page.get_by_role("dialog").get_by_role("link", name="Where does this row come from?")).to_be_visible()


def test_a_link_leads_to_a_row(reader: Visit) -> None:
    page = reader.go(f"datasets/{LARGE}/-/data?view=changelog&row=54321")
    assert "n54321" in cells(page, 54321)
    expect(page.get_by_role("status")).to_contain_text("Records 54,321 to")


def test_values_of_any_kind_are_shown_as_they_are(reader: Visit) -> None:
    reader.expect("status of 400")  # all rows are too much for one answer, so they come in pieces
    page = reader.go(f"datasets/{ODD}/-/data?view=changelog")
    found = cells(page, 0)
    for value in ("<img src=x onerror=alert(1)>", "שלום", "👩‍🚀", "long", str(EXACT), "null"):
        assert value in found
    assert max(map(len, found)) <= 201, "long texts are cut in the table"
    headers = page.locator("thead th").all_inner_texts()
    assert {HTML, RTL, EMOJI, LONG} <= set(headers)


def test_a_row_of_megabytes_can_be_opened_and_the_page_stays_usable(reader: Visit) -> None:
    reader.expect("status of 400")  # all rows are too much for one answer, so they come in pieces
    page = reader.go(f"datasets/{ODD}/-/data?view=changelog")
    cells(page, 0)
    page.get_by_role("button", name="Row 0", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(f"({MEGABYTES:,} characters)")
    expect(dialog).to_contain_text(str(EXACT))
    dialog.get_by_role("button", name="Close").click()
    expect(dialog).to_have_count(0)


def test_the_schema_names_columns_of_any_kind(reader: Visit) -> None:
    page = reader.go(f"datasets/{ODD}/-/schema")
    expect(page.get_by_role("rowheader", name=HTML)).to_be_visible()
    expect(page.get_by_role("rowheader", name=LONG)).to_be_visible()
    expect(page.get_by_role("row", name="missing")).to_contain_text("may be null")


def test_a_new_row_shows_up_on_an_open_page(reader: Visit, workspace: Workspace) -> None:
    page = reader.go(f"datasets/{LARGE}/-/data?view=changelog")
    expect(page.get_by_role("status")).to_contain_text("of 100,000")
    file = workspace.root / "rows.ndjson"
    file.write_text('{"event_time":"2024-01-02T00:00:00Z","id":1,"name":"new"}\n')
    list(workspace.ingest(LARGE, [file]))
    expect(page.get_by_role("status")).to_contain_text("of 100,001")
