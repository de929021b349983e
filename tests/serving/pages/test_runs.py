"""Runs and schedules: whether a scheduler is running, what is late, why a run failed, and changes by those who may."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Route, expect
from support.browser.accessibility import check_for_everybody
from support.browser.chromium import Visit
from support.browser.site import LOUD, STATIONS, small_workspace
from support.chains.workspaces import feed
from support.servers.serving import wait_until

from odfpy.automation.background import scheduling
from odfpy.automation.history import RunFilter, last_runs
from odfpy.coordinator.schedules.keeping import keep_schedule, parse_schedule
from odfpy.coordinator.storage.last_failure import remember
from odfpy.coordinator.workspace import Workspace
from odfpy.errors import OdfError

PLACE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A workspace in which a pull was good, and a push failed, for want of the place that it names."""
    found = small_workspace(tmp_path_factory.mktemp("runs") / "workspace")
    keep(found, LOUD, "schedule: {pull: {every: 30d}, push: {every: 30d, to: '" + PLACE + "'}, retry: {attempts: 1}}")
    keep(found, STATIONS, "schedule: {verify: {cron: '0 3 * * sun', timezone: Europe/Berlin}, maxAge: 1s}")
    feed(found, STATIONS, "1 Bern", "2 Chur (GR)", "4", "5 Eich", day=4)
    with scheduling(found):
        wait_until(
            lambda: len([one for one in last_runs(found, RunFilter(), num=9) if one["outcome"] != "running"]) == 2
        )
    return found


def keep(workspace: Workspace, name: str, text: str) -> None:
    keep_schedule(workspace.storage.get(name), parse_schedule(text))


def test_one_look_says_what_is_late_and_failing(writer: Visit) -> None:
    page = writer.go("runs")
    cards = page.locator(".card")
    expect(cards.nth(0)).to_contain_text("no scheduler is running")
    expect(cards.nth(0)).to_contain_text("2 datasets with a schedule")
    expect(cards.nth(1)).to_contain_text(STATIONS)
    expect(cards.nth(1)).to_contain_text("promised at least every 1s")
    expect(cards.nth(2)).to_contain_text("push failed")
    expect(page.get_by_role("row")).to_have_count(3)
    check_for_everybody(page)


def test_runs_stay_where_they_are_when_the_summary_comes(writer: Visit) -> None:
    held: list[Route] = []

    def hold(route: Route) -> None:
        held.append(route)

    writer.page.route("**/platform/automation", hold)
    page = writer.go("runs")
    run = page.get_by_role("row").last
    expect(run).to_be_visible()
    before = run.bounding_box()
    held[-1].continue_()
    expect(page.locator(".card").last).to_contain_text("push failed")
    assert run.bounding_box() == before


def test_a_pull_that_failed_is_asked_for_again_by_those_who_may(
    writer: Visit, reader: Visit, workspace: Workspace
) -> None:
    remember(workspace.storage.get(LOUD), OdfError("The source does not answer"))
    page = reader.go(f"datasets/{LOUD}")
    expect(page.get_by_text("The last pull failed")).to_be_visible()
    expect(page.get_by_role("button", name="Pull now")).to_have_count(0)
    page = writer.go(f"datasets/{LOUD}")
    writer.expect("409")
    page.get_by_role("button", name="Pull now").click()
    expect(page.get_by_role("alert")).to_contain_text("No scheduler is running: start odf run")
    with scheduling(workspace):
        page.get_by_role("button", name="Pull now").click()
        expect(page.get_by_text("The pull has started.")).to_be_visible()


def test_why_a_run_failed_is_two_clicks_away(writer: Visit, reader: Visit) -> None:
    page = writer.go("runs")
    page.get_by_role("button", name="Failed").click()
    expect(page.get_by_role("row")).to_have_count(2)
    page.get_by_role("button", name=f"Details of the push of {LOUD}").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(PLACE)
    expect(dialog).to_contain_text("Reason: scheduled")
    dialog.get_by_role("button", name=re.compile("^E\\d{3}$")).click()
    explanation = page.get_by_role("dialog", name=re.compile("^E\\d{3}$"))
    expect(explanation).to_contain_text("an invalid value")
    expect(explanation).to_contain_text("Try:")
    check_for_everybody(page)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(1)
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    page = reader.go("runs?outcome=failed")
    page.get_by_role("button", name=f"Details of the push of {LOUD}").click()
    expect(page.get_by_role("dialog")).to_contain_text(PLACE)


def test_schedules_are_listed_with_their_next_times(reader: Visit) -> None:
    page = reader.go("runs?view=schedules")
    expect(page.get_by_role("status")).to_have_text("2 datasets with a schedule")
    line = page.get_by_role("row").filter(has_text=STATIONS)
    expect(line).to_contain_text("0 3 * * sun (Europe/Berlin) next")
    expect(line).to_contain_text("new rows at least every 1s late")
    page.get_by_role("searchbox").fill("loud")
    expect(page.get_by_role("status")).to_have_text("1 dataset with a schedule")
    check_for_everybody(page)


def test_a_schedule_is_changed_by_those_who_may_write(writer: Visit, reader: Visit, workspace: Workspace) -> None:
    page = writer.go(f"datasets/{STATIONS}/-/runs")
    expect(page.get_by_text("0 3 * * sun (Europe/Berlin)").first).to_be_visible()
    page.get_by_role("button", name="Change the schedule").click()
    field = page.get_by_role("textbox", name="Schedule, as YAML of a manifest")
    field.fill("schedule:\n  verify: {cron: '61 3 * * sun'}\n")
    writer.expect("400")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("Line 2, column 12")
    expect(field).to_have_value("schedule:\n  verify: {cron: '61 3 * * sun'}\n")
    field.fill("schedule:\n  verify: {every: 2d}\n")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("status")).to_have_text("The schedule is saved.")
    expect(page.get_by_text("every 2d").first).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    writer.expect("409")
    page.get_by_role("button", name="Verify now").click()
    expect(page.get_by_role("alert")).to_contain_text("No scheduler is running")
    with scheduling(workspace):
        page.get_by_role("button", name="Verify now").click()
        expect(page.get_by_role("status")).to_have_text("The verify has started.")
        expect(page.get_by_role("row").filter(has_text="up to date").first).to_be_visible()
    page = reader.go(f"datasets/{STATIONS}/-/runs")
    expect(page.get_by_text("every 2d").first).to_be_visible()
    expect(page.get_by_role("button", name="Pause")).to_have_count(0)
    check_for_everybody(page)


def test_a_dataset_without_a_schedule_gets_one(writer: Visit) -> None:
    page = writer.go("datasets/com.example.public/-/runs")
    expect(page.get_by_text("No schedule:")).to_be_visible()
    expect(page.get_by_text("No runs yet")).to_be_visible()
    page.get_by_role("button", name="Add a schedule").click()
    page.get_by_role("textbox").fill("schedule: {verify: {every: 30d}, maxAge: 300w}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("New rows are promised at least every 300w")).to_be_visible()
    page.get_by_role("button", name="Change the schedule").click()
    page.get_by_role("button", name="Remove the schedule").click()
    expect(page.get_by_text("No schedule:")).to_be_visible()
