"""The list of datasets: who sees what, looking for one, order, favourites, thousands."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect
from support.browser.chromium import Profiles, Visit
from support.browser.site import LOUD, PUBLIC, STATIONS, site, small_workspace
from support.chains.workspaces import root

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError

FIRST, LAST = "com.many.000", "com.many.119"
ALL = 123


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """More datasets than a page of the list has."""
    found = small_workspace(tmp_path_factory.mktemp("home") / "workspace")
    found.add([one for number in range(120) for one in load_snapshots(root(f"com.many.{number:03}"), "manifest")])
    remember(found.storage.get(LOUD), OdfError("Cannot read /secret/place"))
    return found


def names(page: Page) -> list[str]:
    return page.locator("table.datasets tbody th a").all_inner_texts()


def row(page: Page, name: str) -> str:
    return page.locator("table.datasets tbody tr", has=page.get_by_role("link", name=name)).inner_text()


def expect_first(page: Page, name: str) -> None:
    expect(page.locator("table.datasets tbody th a").first).to_have_text(name)


def test_strangers_see_public_datasets_and_a_way_to_sign_in(nobody: Visit) -> None:
    page = nobody.go()
    expect(page.get_by_role("status")).to_have_text("1 dataset")
    assert names(page) == [PUBLIC]
    expect(page.get_by_role("link", name="Sign in")).to_be_visible()


def test_a_line_answers_at_a_glance(reader: Visit) -> None:
    page = reader.go("?search=com.example")
    expect(page.get_by_role("status")).to_contain_text("3 datasets")
    assert "verified" in row(page, STATIONS)
    assert "never" in row(page, LOUD)
    assert "last pull failed" in row(page, LOUD)
    assert "this server's key, owner" in row(page, STATIONS)
    assert "2024-01-03" in row(page, STATIONS)
    assert "public" in row(page, PUBLIC)


@pytest.mark.parametrize("role", ["reader", "admin"])
def test_why_a_pull_failed_is_told(visit: Callable[..., Visit], role: str) -> None:
    page = visit(role).go("?search=loud")
    title = page.get_by_text("last pull failed").get_attribute("title") or ""
    assert title.startswith("Cannot read /secret/place")


def test_looking_for_a_dataset_while_one_types(reader: Visit) -> None:
    page = reader.go()
    expect(page.get_by_role("status")).to_have_text(f"{ALL} datasets")
    page.keyboard.press("/")
    page.keyboard.type("weather")
    expect(page.get_by_role("status")).to_have_text("1 dataset for “weather”")
    assert names(page) == [STATIONS]
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value("weather")
    expect_first(page, STATIONS)
    page.get_by_role("searchbox").fill("names Known example")
    expect(page.get_by_role("status")).to_have_text("1 dataset for “names Known example”")
    page.get_by_role("searchbox").fill("nothing like that")
    expect(page.get_by_text("No match for “nothing like that”")).to_be_visible()
    page.get_by_role("link", name="Show all datasets").click()
    expect(page.get_by_role("status")).to_have_text(f"{ALL} datasets")


def test_kind_and_order_are_in_the_address(reader: Visit) -> None:
    page = reader.go()
    page.get_by_role("button", name="Derivative").click()
    expect(page.get_by_role("status")).to_have_text("1 dataset")
    assert names(page) == [LOUD]
    page.get_by_role("button", name="All", exact=True).click()
    records = page.get_by_role("columnheader", name="Records")
    expect(records).to_have_attribute("title", "all rows of the changelog, including corrections")
    records.get_by_role("button").click()
    expect(records).to_have_attribute("aria-sort", "descending")
    expect_first(page, STATIONS)
    records.get_by_role("button").click()
    expect(records).to_have_attribute("aria-sort", "ascending")
    expect_first(page, FIRST)
    assert "sort=numRecords" in page.url
    page.reload()
    expect_first(page, FIRST)


def test_more_are_shown_when_somebody_wants_them(reader: Visit) -> None:
    page = reader.go()
    page.get_by_role("button", name="Show more (23 left)").click()
    expect(page.get_by_role("link", name=LAST)).to_be_visible()
    assert len(names(page)) == len(set(names(page))) == ALL
    expect(page.get_by_role("button", name="Show more")).to_have_count(0)


def test_favourites_are_on_top_wherever_they_stand_in_the_list(reader: Visit) -> None:
    page = reader.go("?search=com.many.119")
    star = page.get_by_role("button", name=f"Favourite: {LAST}")
    star.click()
    expect(star).to_have_attribute("aria-pressed", "true")
    reader.go()
    expect_first(page, LAST)
    assert names(page).count(LAST) == 1
    expect(page.get_by_role("button", name="Show more (22 left)")).to_be_visible()
    reader.go("?search=com.example")
    expect_first(page, LOUD)
    assert LAST not in names(page), "a search is one"
    reader.go(f"datasets/{LAST}")
    page.get_by_role("button", name="Favourite").click()
    reader.go()
    expect_first(page, LOUD)


def test_an_empty_workspace_says_what_to_do(tmp_path: Path, profiles: Profiles) -> None:
    with site(Workspace.init(tmp_path / "empty")) as served:
        for role, words in (("reader", "odf new"), ("nobody", "Sign in")):
            with profiles.visiting(served.url, served.tokens[role]) as visit:
                page = visit.go()
                expect(page.locator(".empty")).to_contain_text(words)
                visit.go("lineage")
                expect(page.locator(".empty")).to_contain_text(words)
