"""Pages for everybody: assistive technology, the keyboard alone, phones, large letters, either theme, less motion."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest
from playwright.sync_api import Error, Page, expect
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
    "access": (f"datasets/{STATIONS}/-/access", "h2"),
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


def width(page: Page) -> int:
    found: int = page.evaluate("document.documentElement.scrollWidth")
    return found


@pytest.mark.slow_after(8)
def test_axe_finds_nothing_serious_and_no_page_is_wider_than_the_window(reader: Visit, shown: tuple[str, str]) -> None:
    page = open_all(reader, shown)
    check_for_everybody(page)
    for least in (640, 360):  # 200 % of 1280, and a phone
        page.set_viewport_size({"width": least, "height": 640})
        with suppress(Error):  # charts follow a moment later; what stays too wide is told below
            page.wait_for_function("least => document.documentElement.scrollWidth <= least", arg=least, timeout=5000)
        wider = (
            "[...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > innerWidth)"
        )
        assert width(page) <= least, page.evaluate(f"{wider}.map((one) => one.outerHTML.slice(0, 120))")


def test_the_keyboard_alone_reaches_the_content_and_every_page(reader: Visit) -> None:
    page = reader.go()
    page.wait_for_selector("table.datasets")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    expect(page.get_by_role("link", name="Skip to content")).to_be_in_viewport()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()
    link = page.get_by_role("link", name=STATIONS)
    while not link.evaluate("(one) => one === document.activeElement"):
        before = page.evaluate("document.activeElement.outerHTML")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.outerHTML") != before
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text(STATIONS)
    expect(page.get_by_role("main")).to_be_focused()


def test_a_theme_is_chosen_and_kept(visit: Callable[..., Visit]) -> None:
    page = visit("reader", color_scheme="light").go()
    back = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(back)
    page.get_by_role("button", name="Colours: auto").click()
    page.get_by_role("button", name="Colours: light").click()
    dark = page.evaluate(back)
    assert dark != light
    page.reload()
    expect(page.get_by_role("button", name="Colours: dark")).to_be_visible()
    assert page.evaluate(back) == dark
    page.get_by_role("button", name="Colours: dark").click()
    assert page.evaluate(back) == light


def test_nothing_moves_where_somebody_wants_less_motion(visit: Callable[..., Visit]) -> None:
    page = visit("reader", reduced_motion="reduce").go()
    page.wait_for_selector("table.datasets")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<span class=spinner></span>')")
    assert page.locator(".spinner").last.evaluate("(one) => getComputedStyle(one).animationName") == "none"
    assert page.evaluate("document.getAnimations().length") == 0
