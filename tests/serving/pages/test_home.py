"""The list of datasets: who sees what, looking for one, order, favourites."""

from __future__ import annotations

from playwright.sync_api import Page, expect
from support.browser.chromium import Visit
from support.browser.site import LOUD, PUBLIC, STATIONS


def names(page: Page) -> list[str]:
    return page.locator("table.datasets tbody th a").all_inner_texts()


def test_strangers_see_public_datasets_and_a_way_to_sign_in(nobody: Visit) -> None:
    page = nobody.go()
    expect(page.get_by_role("status")).to_have_text("1 dataset")
    assert names(page) == [PUBLIC]
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_looking_for_a_dataset_while_one_types(reader: Visit) -> None:
    page = reader.go()
    expect(page.get_by_role("status")).to_have_text("3 datasets")
    assert names(page) == [LOUD, PUBLIC, STATIONS]
    page.keyboard.press("/")
    page.keyboard.type("weather")
    expect(page.get_by_role("status")).to_have_text("1 dataset for “weather”")
    assert names(page) == [STATIONS]
