"""Signing in and out, sessions that end under an open page, and servers that go away under one."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect
from support.browser.chromium import Visit, visiting
from support.browser.site import PUBLIC, STATIONS, Site, site, small_workspace
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.sharing.model import PrincipalKind
from odfpy.sharing.sharing import Sharing

PASSWORD = "correct horse battery"
GONE = "ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    found = small_workspace(tmp_path_factory.mktemp("sessions") / "workspace")
    sharing = Sharing.of_workspace(found.storage.odf, None)
    sharing.principals.add(PrincipalKind.USER, "ann")
    sharing.passwords.set("ann", PASSWORD)
    return found


def test_signing_in_with_a_token_leads_back_to_the_page(nobody: Visit, served: Site) -> None:
    nobody.expect("status of 40[14]")
    page = nobody.go(f"datasets/{STATIONS}/-/schema")
    expect(page.locator(".empty")).to_contain_text("may be private")
    page.get_by_role("main").get_by_role("link", name="Sign in").click()
    page.get_by_label("Access token").fill("odf_wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("Unknown or expired")
    token = served.tokens["reader"]
    assert token
    page.get_by_label("Access token").fill(token)
    page.keyboard.press("Enter")
    expect(page.get_by_role("rowheader", name="event_time")).to_be_visible()
    expect(page.get_by_text("reader")).to_be_visible()
    assert token not in page.content()
    assert page.evaluate("document.cookie") == "", "no script reads the session"
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Access token")).to_be_visible()  # to leave at once might cancel the request
    nobody.go()
    expect(page.get_by_role("status")).to_have_text("1 dataset")


def test_signing_in_with_name_and_password(nobody: Visit) -> None:
    nobody.expect("status of 401")
    page = nobody.go("signin")
    page.get_by_role("button", name="Name and password").click()
    page.get_by_label("Name", exact=True).fill("ann")
    page.get_by_label("Password").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Wrong name or password")
    page.get_by_label("Password").fill("")
    expect(page.get_by_role("alert")).to_have_count(0)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()


def test_signing_in_leads_to_no_other_site(nobody: Visit, served: Site) -> None:
    page = nobody.go("signin?then=//example.com/ui/")
    page.get_by_label("Access token").fill(served.tokens["reader"] or "")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Datasets")).to_be_visible()
    assert urlsplit(page.url).netloc == urlsplit(served.url).netloc


def test_a_session_that_ends_under_an_open_page(browser: Browser, served: Site) -> None:
    tokens = Tokens(served.workspace.odf)
    with visiting(browser, served.url, tokens.new("short", Scope.READ)) as visit:
        visit.expect("status of 401")
        page = visit.go("?search=com.example")
        expect(page.get_by_role("status")).to_contain_text("3 datasets")
        tokens.revoke("short")
        page.get_by_role("searchbox").fill(STATIONS)
        expect(page.get_by_role("alert").filter(has_text="Your session has expired")).to_be_visible()
        page.get_by_role("link", name="Sign in again").click()
        page.get_by_label("Access token").fill(served.tokens["reader"] or "")
        page.keyboard.press("Enter")
        expect(page.get_by_role("searchbox")).to_have_value(STATIONS)
        expect(page.get_by_role("status")).to_contain_text("1 dataset")


def test_a_cookie_that_is_not_good_any_more_shows_what_is_public(browser: Browser, served: Site) -> None:
    with visiting(browser, served.url, "odf_gone") as visit:
        visit.expect("status of 401")
        page = visit.go()
        expect(page.get_by_role("status")).to_have_text("1 dataset")
        expect(page.get_by_role("alert")).to_contain_text("Your session has expired")


def test_a_server_that_goes_away_under_an_open_page_and_comes_back(browser: Browser, tmp_path: Path) -> None:
    workspace = small_workspace(tmp_path / "workspace")
    with ExitStack() as stack:
        with site(workspace, grace=0) as served:
            visit = stack.enter_context(visiting(browser, served.url, served.tokens["reader"]))
            visit.expect(GONE)
            page = visit.go()
            expect(page.get_by_role("status")).to_contain_text("3 datasets")
            other = page.context.new_page()
            other.goto(f"{served.url}/ui/datasets/{PUBLIC}")
            expect(other.get_by_text("Is it fresh?")).to_be_visible()
        page.get_by_role("searchbox").fill("stations")
        for one in (page, other):
            expect(one.get_by_role("alert").filter(has_text="The server does not answer").first).to_be_visible()
        stack.enter_context(serving(workspace, port=urlsplit(served.url).port or 0))
        expect(page.get_by_role("status")).to_have_text("1 dataset for “stations”")
        for one in (page, other):
            expect(one.get_by_role("alert")).to_have_count(0)
