"""The pages of administration, by what a person does on them, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from support.browser.chromium import Profiles
from support.servers.administered import NAME, Administered, administered
from support.servers.serving import ask


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Administered]:
    with administered(tmp_path_factory.mktemp("administered")) as found:
        yield found


@pytest.fixture
def page(profiles: Profiles, served: Administered) -> Iterator[Page]:
    """A page of a browser without a session; whatever it complains of fails the test, but for refused requests."""
    with profiles.visiting(served.url) as visit:
        visit.expect("^console [a-z]+: (?!.*Content Security)", "^request failed")
        yield visit.page


def enter(page: Page, served: Administered, path: str = "admin", who: str = "admin") -> None:
    """Sign in, and go to a page."""
    page.goto(f"{served.url}/ui/signin?then=/ui/{path}")
    page.get_by_label("Access token", exact=True).fill(served.tokens[who])
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("button", name="Sign out")).to_be_visible()
    expect(page).to_have_url(re.compile(f"/ui/{path}$"))


def test_who_is_no_admin_sees_no_link_and_a_friendly_page(page: Page, served: Administered) -> None:
    page.goto(f"{served.url}/ui/admin")
    expect(page.get_by_role("heading", name="Administration needs an admin")).to_be_visible()
    expect(page.locator("main").get_by_role("link", name="Sign in")).to_be_visible()
    enter(page, served, "admin/audit", "reader")
    expect(page.get_by_role("heading", name="Administration needs an admin")).to_be_visible()
    expect(page.get_by_role("link", name="Administration", exact=True)).to_have_count(0)
    page.goto(f"{served.url}/ui/datasets/{NAME}")
    page.get_by_role("link", name="Access", exact=True).click()
    expect(page.get_by_text("Only administrators see").first).to_be_visible()
    expect(page.get_by_text("acme")).to_have_count(0)
    page.get_by_role("main").get_by_role("link", name="Get it", exact=True).last.click()
    expect(page.locator(".snippet", has_text="Python: pandas")).to_contain_text('"profile.share#sales.eu.orders"')


def test_a_table_is_shared_with_a_recipient_who_reads_it(page: Page, served: Administered) -> None:
    """From a new share to rows in the hands of somebody, without a command line."""
    enter(page, served)
    page.get_by_role("button", name="Add a share").click()
    page.get_by_label("Name").fill("demo")
    page.get_by_role("button", name="Add the share").click()
    expect(page.get_by_text("The share demo is created.")).to_be_focused()
    page.get_by_role("link", name="demo").click()
    page.get_by_role("button", name="Add a table").click()
    page.get_by_label("Schema").fill("main")
    page.get_by_label("Name of the table").fill("orders")
    page.get_by_label("Dataset", exact=True).fill(NAME)
    page.get_by_role("button", name="Add the table").click()
    page.get_by_role("link", name="Recipients").click()
    page.get_by_role("button", name="Add a recipient").click()
    page.get_by_label("Name").fill("newcomer")
    page.get_by_label("Attributes").fill("country=FR")
    page.get_by_role("button", name="Add the recipient").click()
    expect(page.get_by_role("heading", name="newcomer")).to_be_visible()
    page.get_by_role("button", name="Add a grant").click()
    page.get_by_label("Object").fill("demo")
    page.get_by_label("Only rows that match this condition").fill("country = recipient('country')")
    page.get_by_role("button", name="Add the grant").click()
    page.get_by_role("button", name="New profile file").click()
    page.get_by_role("button", name="Create the file").click()
    found = re.search(r'"bearerToken": "(\S+)"', page.locator("pre.secret").inner_text())
    assert found is not None
    page.get_by_role("button", name="Done").click()
    expect(page.locator("pre.secret")).to_have_count(0)
    shares = ask(f"{served.url}/delta-sharing/shares", token=found[1]).json
    assert [one["name"] for one in shares["items"]] == ["demo"]
    page.get_by_role("link", name="See as newcomer").click()
    expect(page.get_by_text("This is what newcomer sees")).to_be_visible()
    expect(page.get_by_role("columnheader", name="Restrictions")).to_be_visible()
    page.get_by_role("link", name="demo.main.orders").click()
    expect(page.get_by_text("1 row in 5 columns")).to_be_visible()
    expect(page.get_by_role("cell", name="Bob")).to_be_visible()


def test_problems_are_under_their_field_which_gets_the_focus(page: Page, served: Administered) -> None:
    enter(page, served, "admin/grants")
    page.get_by_role("button", name="Add a grant").click()
    expect(page.get_by_label("Principal")).to_be_focused()
    page.get_by_role("button", name="Add the grant").click()
    expect(page.get_by_text("Principal is missing.")).to_be_visible()
    page.get_by_label("Principal").fill("acme")
    page.get_by_label("Object").fill("sales.eu.orders")
    rows = page.get_by_label("Only rows that match this condition")
    rows.fill("price > 1")
    page.get_by_role("button", name="Add the grant").click()
    expect(rows).to_have_accessible_description(re.compile("The table has no column 'price'"))
    expect(rows).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Add a grant")).to_be_focused()


def test_what_cannot_be_undone_is_confirmed_by_name(page: Page, served: Administered) -> None:
    served.done("POST", "platform/tokens", {"name": "doomed"})
    enter(page, served, "admin/tokens")
    page.get_by_role("button", name="Revoke the token doomed").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Enter")
    assert served.get("platform/tokens?search=doomed")
    page.get_by_role("button", name="Revoke the token doomed").click()
    page.get_by_role("button", name="Revoke doomed").click()
    expect(page.get_by_text("The token doomed is revoked.")).to_be_focused()
    assert served.get("platform/tokens?search=doomed") == []


def test_somebody_is_kept_out_and_let_in(page: Page, served: Administered) -> None:
    enter(page, served, "admin/users/user")
    page.get_by_role("button", name="Disable").click()
    page.get_by_role("button", name="Disable user").click()
    expect(page.get_by_text("disabled", exact=True)).to_be_visible()
    assert served.ask("GET", "token", who="user").status == 401
    page.get_by_role("button", name="Enable").click()
    page.get_by_role("button", name="Enable user").click()
    expect(page.get_by_role("button", name="Disable")).to_be_visible()
    assert served.ask("GET", "token", who="user").status == 200


def test_two_clicks_tell_who_may_read_a_dataset(page: Page, served: Administered) -> None:
    enter(page, served, f"datasets/{NAME}")
    page.get_by_role("link", name="Access", exact=True).click()
    expect(page.get_by_role("heading", name="Who may read this dataset?")).to_be_visible()
    reader = page.get_by_role("row", name=re.compile("^acme"))
    expect(reader).to_contain_text("columns country, total of rows where country = recipient('country')")
    expect(reader).to_contain_text("by the group partners")


def test_the_audit_log_is_looked_through(page: Page, served: Administered) -> None:
    served.ask("DELETE", "platform/shares/sales", who="writer")
    enter(page, served, "admin/audit")
    page.get_by_label("Principal").fill("writer")
    page.get_by_role("button", name="Refused").click()
    row = page.get_by_role("row", name=re.compile("writer remove share"))
    expect(row.first).to_contain_text("refused 403")
    expect(page.get_by_role("row", name=re.compile("admin"))).to_have_count(0)
    expect(page).to_have_url(re.compile("who=writer"))


def test_names_made_of_html_are_names(page: Page, served: Administered) -> None:
    name = "<img.src=x.onerror=alert(1)>"
    served.done("POST", "platform/shares", {"name": name, "comment": "<script>alert(1)</script>"})
    enter(page, served)
    expect(page.get_by_role("link", name=name)).to_be_visible()
    page.get_by_role("button", name=f"Remove the share {name}").click()
    page.get_by_role("button", name=f"Remove {name}", exact=True).click()
    expect(page.get_by_role("link", name=name)).to_have_count(0)


def test_settings_and_the_machine(page: Page, served: Administered) -> None:
    enter(page, served, "admin/system")
    page.get_by_label("Search settings").fill("idleTimeout")
    expect(page.get_by_role("row", name=re.compile(r"engine\.idleTimeout 600 default"))).to_be_visible()
    page.get_by_role("button", name="Check the installation").click()
    expect(page.get_by_text(re.compile("All checks passed|checks failed"))).to_be_visible(timeout=60_000)


@pytest.mark.parametrize("part", ["shares", "grants", "tokens", "recipients/acme", "system"])
def test_no_part_is_wider_than_a_phone(page: Page, served: Administered, part: str) -> None:
    page.set_viewport_size({"width": 390, "height": 780})
    enter(page, served, f"admin/{part}")
    expect(page.get_by_role("table").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") == 390


def test_an_expired_session_says_so(page: Page, served: Administered) -> None:
    served.tokens["passing"] = served.done("POST", "platform/tokens", {"name": "passing", "scope": "admin"})[
        "accessToken"
    ]
    enter(page, served, "admin/grants", "passing")
    served.done("DELETE", "platform/tokens/passing")
    page.get_by_role("link", name="Access tokens").click()
    expect(page.get_by_text("Your session has expired.")).to_be_visible()
