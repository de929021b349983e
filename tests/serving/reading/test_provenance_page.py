"""The page that shows where a row comes from: step by step down to the file, with what the replay gives."""

from __future__ import annotations

import shutil

import pytest
from playwright.sync_api import Page, expect
from support.browser.chromium import Visit
from support.chains.workspaces import FOLDER, derivative, feed, root, workspace_with

from odfpy.coordinator.workspace import Workspace

HTML = "<img/src=x/onerror=document.title='taken'>"
SECOND = "select op, event_time, id, name || '!' as name from source"
SIZED = "select op, event_time, case when id > 2 then name else 'small' end as size from source"
FILE = "<b>one.csv"
LONG = 300_000


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("pages")
    manifests = [
        root("com.b", "{kind: Append}"),
        derivative("com.derived", "com.b"),
        derivative("com.second", "com.derived", SECOND),
        derivative("com.sized", "com.b", SIZED),
        FOLDER,
    ]
    found = workspace_with(folder, *manifests)
    feed(found, "com.b", *(f"{number} b" for number in range(5)), f"6 {HTML}", f"7 {'x' * LONG}")
    (folder / "in").mkdir()
    (folder / "in" / FILE).write_text("id\n1\n2\n")
    assert [one.error for one in found.pull(all=True)] == [None] * 5
    return found


def shown(visit: Visit, dataset: str, offset: int, more: str = "") -> Page:
    page = visit.go(f"provenance?dataset={dataset}&offset={offset}{more}")
    expect(page.get_by_role("heading", name=f"Where row {offset} comes from")).to_be_visible()
    return page


def test_a_row_is_followed_step_by_step_to_its_source(reader: Visit) -> None:
    page = shown(reader, "com.second", 1)
    expect(page.get_by_text("recomputed from these rows: same result")).to_be_visible()
    expect(page.get_by_role("region", name="Cells of the row")).to_contain_text("copied from id of com.derived")
    step = page.get_by_role("button", name="computed from: row 1 of com.derived")
    step.press("Enter")
    expect(step).to_have_attribute("aria-expanded", "true")
    expect(page.get_by_text("recomputed from these rows: same result")).to_have_count(2)
    expect(page.get_by_text("source default, with block 3")).to_be_visible()
    page.get_by_role("link", name="block 3").click()
    expect(page.get_by_text("From block")).to_be_visible()
    expect(page.locator(".blocks > li").first).to_contain_text("Data added")


def test_a_click_on_a_row_of_the_data_leads_there(reader: Visit) -> None:
    page = reader.go("datasets/com.second/-/data?view=changelog")
    page.get_by_role("button", name="Row 2").click()
    page.get_by_role("link", name="Where does this row come from?").click()
    expect(page.get_by_role("heading", name="Where row 2 comes from")).to_be_visible()


def test_only_the_column_that_one_asks_for_is_followed(reader: Visit) -> None:
    page = shown(reader, "com.second", 1)
    page.get_by_label("Trace").select_option("name")
    cells = page.get_by_role("region", name="Cells of the row")
    expect(cells.locator("tbody tr")).to_have_count(1)
    expect(cells).to_contain_text("computed from name of com.derived by source.name || '!'")
    assert "column=name" in page.url


def test_files_are_named_whatever_they_are_called(reader: Visit) -> None:
    page = shown(reader, "com.example.folder", 1)
    expect(page.get_by_text(f"file {FILE} of in/*.csv")).to_be_visible()


def test_markup_and_megabytes_in_cells_are_harmless(reader: Visit) -> None:
    page = shown(reader, "com.second", 3)
    expect(page.get_by_text(f"{HTML.upper()}!", exact=True)).to_be_visible()
    page = shown(reader, "com.second", 4)
    more = page.get_by_role("button", name=f"more ({LONG + 1:,} characters)")
    expect(more).to_be_visible()
    assert len(page.locator("main").inner_text()) < 5000
    more.click()
    expect(page.get_by_role("button", name="less")).to_be_visible()
    assert page.title() != "taken"


def test_a_row_that_is_not_there_is_told_in_place(reader: Visit) -> None:
    reader.expect("404")
    page = shown(reader, "com.second", 99)
    expect(page.get_by_role("alert")).to_contain_text("com.second has no row of offset 99")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    page.get_by_label("Offset").fill("")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_role("heading", name="Which row?")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("Offset").fill("0")
    page.get_by_role("button", name="Show").click()
    expect(page.get_by_text("recomputed from these rows: same result")).to_be_visible()


def test_what_one_expression_reads_of_an_input_is_one_line(reader: Visit) -> None:
    page = shown(reader, "com.sized", 3)
    size = page.get_by_role("region", name="Cells of the row").get_by_role("row", name="size")
    expect(size.locator("td").last).to_have_text(
        "computed from id, name of com.b by CASE WHEN source.id > 2 THEN source.name ELSE 'small' END"
    )


def test_what_cannot_be_followed_can_be_tried_again(reader: Visit, workspace: Workspace) -> None:
    reader.expect("500")
    data = workspace.storage.get("com.derived").folder / "data"
    away = data.with_name("away")
    shutil.move(data, away)
    try:
        page = shown(reader, "com.second", 1)
        expect(page.get_by_role("alert")).to_be_visible()
    finally:
        shutil.move(away, data)
    page.get_by_role("button", name="Try again").click()
    expect(page.get_by_text("recomputed from these rows: same result")).to_be_visible()
