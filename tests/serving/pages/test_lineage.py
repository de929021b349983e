"""The lineage: found, zoomed, moved and walked with mouse and keyboard; a thousand datasets at once."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, Route, expect
from support.browser.chromium import Visit
from support.browser.graphs import many_nodes
from support.browser.site import LOUD, PUBLIC, STATIONS
from support.chains.workspaces import feed

from odfpy.coordinator.workspace import Workspace


def transform(page: Page) -> str:
    text: str = page.locator(".picture svg").evaluate("(one) => one.style.transform")
    return text


def changes(page: Page, before: str) -> str:
    """The place of the picture, once it is another one."""
    page.wait_for_function("(before) => document.querySelector('.picture svg').style.transform !== before", arg=before)
    return transform(page)


def test_what_holds_a_watermark_back_stands_out(reader: Visit, workspace: Workspace) -> None:
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(3)
    expect(page.locator(".line")).to_have_count(1)
    expect(page.locator(".line.back")).to_have_count(0)  # all is taken in, and nothing waits
    feed(workspace, STATIONS, "1 Bern", "2 Chur (GR)", "4", "5 Eich", day=9)
    reader.go("lineage")
    expect(page.locator(".line.back")).to_have_count(1)
    page.get_by_text("The lineage as a table").click()
    expect(page.get_by_role("row", name=LOUD)).to_contain_text(STATIONS)


def test_a_dataset_is_found_and_so_is_the_next_one(reader: Visit) -> None:
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(3)
    search = page.get_by_role("combobox", name="Find a dataset")
    search.fill("loud")
    expect(page.locator(f"datalist option[value='{LOUD}']")).to_be_attached()
    expect(page.locator("datalist option")).to_have_count(1)
    search.press("Enter")
    expect(page.locator(".node.selected")).to_contain_text(LOUD)
    expect(page.locator(".node")).to_have_count(2)
    search.fill(PUBLIC)
    expect(page.locator(".node.selected")).to_contain_text(PUBLIC)
    assert f"dataset={PUBLIC}" in page.url
    page.get_by_role("link", name="Whole workspace").click()
    expect(page.locator(".node")).to_have_count(3)


def test_names_show_what_they_end_with_and_nothing_covers_them(reader: Visit) -> None:
    long = "org.example.measurements-of-the-north.stations-with-a-rather-long-name-by-hour"
    graph = many_nodes(60)
    for node in graph["nodes"]:
        node["name"] = f"{long}-{node['name'][-2:]}"
    reader.page.route(f"{reader.url}/lineage", lambda route: answered(route, graph))
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(60)
    texts = page.locator(".node .name").all_text_contents()
    assert {text[:9] for text in texts} == {"stations-"}
    assert sorted(text[-7:] for text in texts) == [f"hour-{number:02}" for number in range(60)]
    handles, shown = (
        page.locator(selector).evaluate_all("(all) => all.map((one) => one.getBoundingClientRect().toJSON())")
        for selector in (".handle", ".node text:not(.far-name)")
    )
    assert handles
    assert not [
        (handle, text)
        for handle in handles
        for text in shown
        if handle["left"] < text["right"] and text["left"] < handle["right"]
        and handle["top"] < text["bottom"] and text["top"] < handle["bottom"]
    ]  # fmt: skip


def test_a_phone_has_words_before_the_picture(visit: Callable[..., Visit]) -> None:
    page = visit("reader", viewport={"width": 390, "height": 780}).go("lineage")
    expect(page.get_by_role("row", name=LOUD)).to_be_visible()
    expect(page.locator(".picture")).to_have_count(0)
    page.get_by_role("row", name=LOUD).get_by_role("link").click()
    nearby = page.locator(".nearby")
    expect(nearby.get_by_role("heading")).to_have_text(["Derived from", "Datasets derived from it"])
    nearby.get_by_role("link", name=STATIONS).click()
    expect(nearby.get_by_role("listitem").filter(has_text=LOUD)).to_be_visible()
    page.get_by_text("The lineage as a picture").click()
    expect(page.locator(".node.selected")).to_contain_text(STATIONS)


def test_the_mouse_zooms_and_moves(reader: Visit) -> None:
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(3)
    frame = page.locator(".picture .frame")
    box = frame.bounding_box()
    assert box
    page.mouse.move(box["x"] + 5, box["y"] + box["height"] - 5)
    place = changes(page, "")
    page.mouse.wheel(0, 300)
    place = changes(page, place)
    page.mouse.down()
    page.mouse.move(box["x"] + 90, box["y"] + 60, steps=3)
    page.mouse.up()
    place = changes(page, place)
    page.get_by_role("button", name="Zoom in").click()
    place = changes(page, place)
    page.get_by_role("button", name="Fit").click()
    changes(page, place)


def test_the_keyboard_zooms_moves_and_opens(reader: Visit) -> None:
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(3)
    page.locator(".picture .frame").focus()
    place = changes(page, "")
    for key in ("+", "-", "ArrowLeft", "ArrowDown", "0"):
        page.keyboard.press(key)
        place = changes(page, place)
    page.keyboard.press("Tab")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused.startswith("com.example.")
    assert "watermark" in focused
    page.keyboard.press("Space")
    expect(page.locator(".node.selected")).to_have_count(1)
    page.locator(".picture a").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("com.example.")


def test_a_dataset_that_is_not_there_leads_back(reader: Visit) -> None:
    reader.expect("status of 40[14]")
    page = reader.go("lineage?dataset=com.example.none")
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_role("link", name="Lineage of the whole workspace").click()
    expect(page.locator(".node")).to_have_count(3)


@pytest.mark.parametrize(("count", "folded"), [(1000, 0), (3000, 2000)])
def test_a_thousand_datasets_are_drawn_and_others_folded(reader: Visit, count: int, folded: int) -> None:
    """The answer of the server is one that was made, as large as that of a large workspace."""
    graph = many_nodes(count)
    reader.page.route(f"{reader.url}/lineage", lambda route: answered(route, graph))
    page = reader.go("lineage")
    expect(page.locator(".node")).to_have_count(count - folded)
    status = page.get_by_role("status")
    expect(status).to_contain_text(f"{folded} more are collapsed" if folded else "1,000 datasets.")
    page.get_by_text("The lineage as a table").click()
    expect(page.locator("table.list tbody tr")).to_have_count(min(count, 2000))


def answered(route: Route, graph: object) -> None:
    route.fulfill(content_type="application/json", body=json.dumps(graph))
