"""Pages for everybody: assistive technology, the keyboard alone, phones, large letters, either theme, less motion."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect
from support.browser.accessibility import check_for_everybody
from support.browser.chromium import Visit
from support.browser.site import LOUD, STATIONS

PAGES = {
    "home": ("", "table.datasets"),
    "overview": (f"datasets/{STATIONS}", ".facts"),
    "overview of a derivative one": (f"datasets/{LOUD}", ".columns"),
    "data": (f"datasets/{STATIONS}/-/data", "tbody td.number"),
    "changelog": (f"datasets/{STATIONS}/-/data?view=changelog", "tbody td.number"),
    "schema": (f"datasets/{STATIONS}/-/schema", "table.list"),
    "source": (f"datasets/{STATIONS}/-/source", ".snippet"),
    "query of a derivative one": (f"datasets/{LOUD}/-/source", ".snippet"),
    "history": (f"datasets/{STATIONS}/-/history", ".blocks"),
    "get it": (f"datasets/{STATIONS}/-/get", ".snippet"),
    "lineage": ("lineage", ".node"),
    "lineage of one": (f"lineage?dataset={STATIONS}", ".node.selected"),
    "query page": (f'query?query=select * from "{STATIONS}"', ".rows td.number"),
    "proof": ("proof", ".drop"),
    "signin": ("signin", "form"),
    "no such page": ("nothing", ".empty"),
    "no such dataset": ("datasets/com.example.none", ".empty"),
}


@pytest.fixture(params=PAGES)
def shown(request: pytest.FixtureRequest) -> tuple[str, str]:
    return PAGES[request.param]


def open_all(visit: Visit, shown: tuple[str, str]) -> Page:
    """Open a page with all that can be unfolded."""
    path, sign = shown
    if sign == ".empty":
        visit.expect("status of 404")
    page = visit.go(path)
    page.wait_for_selector(sign, state="attached")
    page.evaluate("document.querySelectorAll('main details').forEach((one) => one.open = true)")
    return page


def test_axe_finds_nothing_serious(reader: Visit, shown: tuple[str, str]) -> None:
    check_for_everybody(open_all(reader, shown))


@pytest.mark.parametrize("width", [360, 640], ids=["phone", "200 percent of 1280"])
def test_no_page_is_wider_than_the_window(visit: Callable[..., Visit], shown: tuple[str, str], width: int) -> None:
    page = open_all(visit("reader", viewport={"width": width, "height": 640}), shown)
    expect(page.locator("main")).to_be_visible()
    wider = page.evaluate(
        "[...document.querySelectorAll('body *')].filter((one) => document.documentElement.scrollWidth > innerWidth"
        " && one.getBoundingClientRect().right > innerWidth).map((one) => one.outerHTML.slice(0, 120))"
    )
    assert page.evaluate("document.documentElement.scrollWidth") <= width, wider
