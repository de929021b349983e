"""The page that shows what has changed between two moments."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect
from support.browser.chromium import Visit
from support.chains.workspaces import feed, root, workspace_with

from odfpy.chain.references import ReferenceKind
from odfpy.coordinator.workspace import Workspace

NAME = "com.keyed"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = workspace_with(tmp_path_factory.mktemp("pages"), root(NAME))
    feed(found, NAME, *(f"{number} b{number}" for number in range(150)))
    found.branches.create(NAME, ReferenceKind.TAG, "v1")
    feed(found, NAME, *(f"{number} {'<i>c</i>' if number % 2 else f'b{number}'}" for number in range(1, 260)), day=2)
    return found


def test_one_click_shows_what_came_last(reader: Visit) -> None:
    page = reader.go(f"datasets/{NAME}")
    page.get_by_role("link", name="Changes", exact=True).click()
    for words in ("110 added", "1 removed", "75 changed"):
        expect(page.get_by_text(words, exact=True)).to_be_visible()
    table = page.get_by_role("region", name="Differences")
    first = table.locator("tbody tr").first
    expect(first).to_contain_text("removed")
    changed = table.locator("tr.changed").first
    expect(changed.locator("del").last).to_have_text("was b1")
    expect(changed.locator("ins").last).to_have_text("is now <i>c</i>")


def test_pages_of_a_hundred_differences(reader: Visit) -> None:
    page = reader.go(f"compare?dataset={NAME}&old=v1")
    table = page.get_by_role("region", name="Differences")
    expect(page.get_by_text("1 to 100 of 186 differences")).to_be_visible()
    expect(table.locator("tbody tr")).to_have_count(100)
    page.get_by_role("button", name="Next").press("Enter")
    expect(page.get_by_text("101 to 186 of 186 differences")).to_be_visible()
    expect(table.locator("tbody tr")).to_have_count(86)
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    page.get_by_role("button", name="Previous").click()
    expect(page.get_by_text("1 to 100 of 186 differences")).to_be_visible()


def test_moments_are_picked_from_tags_times_and_blocks_or_written(reader: Visit) -> None:
    reader.expect("404")
    page = reader.go(f"datasets/{NAME}/-/changes")
    since = page.get_by_label("What changed since", exact=True)
    expect(since.locator("option")).to_contain_text(["now", "tag v1"])
    expect(since.locator("option", has_text="Data added").first).to_be_attached()
    since.select_option("v1")
    expect(page.get_by_text("from v1 to now")).to_be_visible()
    last_friday = since.locator("option", has_text="Last Friday").get_attribute("value")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT00:00:00Z", last_friday or "")
    since.select_option(last_friday)
    expect(page.get_by_role("alert")).to_contain_text("did not exist yet")
    page.get_by_role("button", name="Compare with the first block").click()
    expect(page.get_by_text("259 added", exact=True)).to_be_visible()
    since.select_option(label="another time, block, tag or branch …")
    written = page.get_by_label("What changed since: a time, block, tag or branch")
    expect(written).to_be_focused()
    written.fill("v1")
    written.press("Enter")
    expect(page.get_by_text("from v1 to now")).to_be_visible()
    page.get_by_label("until").select_option("v1")
    expect(page.get_by_role("heading", name="No differences")).to_be_visible()


def test_a_block_of_the_history_leads_to_what_it_changed(reader: Visit) -> None:
    page = reader.go(f"datasets/{NAME}/-/history")
    page.get_by_role("link", name="Changes (block 3)").click()
    expect(page.get_by_text("150 added", exact=True)).to_be_visible()


def test_rows_are_known_by_the_columns_that_one_names(reader: Visit) -> None:
    reader.expect("400")
    page = reader.go(f"datasets/{NAME}/-/changes")
    page.get_by_text("Key", exact=True).click()
    page.get_by_label("Key columns").fill("nothing")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_role("alert")).to_contain_text("has no column 'nothing'")
    page.get_by_text("Key: nothing").click()
    page.get_by_label("Key columns").fill("name")
    page.get_by_role("button", name="Compare").click()
    expect(page.get_by_text("rows are matched by name")).to_be_visible()
