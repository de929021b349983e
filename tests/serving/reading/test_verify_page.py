"""The tab that verifies a dataset: run it, watch it, stop it, read the report."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect
from support.browser.chromium import Visit
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.engine.datafusion.isolated import fork_server
from odfpy.serving.server import DatasetServer

DERIVED, DAMAGED = "com.derived", "com.damaged"
MEMORY = 300 * 1024**2


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    manifests = [root("com.b", "{kind: Append}"), derivative(DERIVED, "com.b"), derivative(DAMAGED, "com.b")]
    found = workspace_with(tmp_path_factory.mktemp("pages"), *manifests)
    feed(found, "com.b", *(f"{number} b" for number in range(9)))
    assert {one.error for one in found.pull(all=True)} == {None}
    [file] = (found.storage.get(DAMAGED).folder / "data").iterdir()
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(bytes(data))
    return found


@pytest.fixture(scope="module")
def served(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace, query_memory=MEMORY) as server:
        yield server


def test_it_is_watched_and_stopped_and_then_run_to_the_end(writer: Visit) -> None:
    page = writer.go(f"datasets/{DERIVED}/-/verify")
    expect(page.get_by_role("heading", name="Not verified here yet")).to_be_visible()
    processes = fork_server(MEMORY)
    processes.begin()
    assert processes.pid is not None
    os.kill(processes.pid, signal.SIGSTOP)  # no query is begun as long as this lasts
    try:
        page.get_by_role("button", name="Verify").press("Enter")
        expect(page.get_by_text("Replaying: 4 of 5 blocks")).to_be_visible()
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "4")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text("The verification was stopped")).to_be_visible()
    finally:
        os.kill(processes.pid, signal.SIGCONT)
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("heading", name="✓ Verified")).to_be_visible()
    expect(page.get_by_text("All files are intact, all rules hold")).to_be_visible()
    expect(page.get_by_text("The verification was stopped")).to_have_count(0)
    facts = page.locator(".facts")
    expect(facts).to_contain_text("Replayed transforms1")
    expect(facts).to_contain_text("owner")


def test_a_finding_says_what_it_means_and_what_to_try(writer: Visit) -> None:
    page = writer.go(f"datasets/{DAMAGED}/-/verify")
    page.get_by_label("only files and rules").check()
    page.get_by_role("button", name="Verify").click()
    expect(page.get_by_role("heading", name="✗ Not valid")).to_be_visible()
    found = page.locator(".findings > li")
    expect(found).to_have_count(1)
    expect(found).to_contain_text("Damaged slice")
    expect(found).to_contain_text("A data slice is missing, or does not match the history.")
    expect(found).to_contain_text("--repair fetches it")
    found.get_by_role("button", name="E221").click()
    explanation = page.get_by_role("dialog", name="E221")
    expect(explanation).to_contain_text("a hash does not match")
    expect(explanation).to_contain_text("The file was changed")
    page.keyboard.press("Escape")
    expect(found.get_by_role("button", name="E221")).to_be_focused()
    found.get_by_role("link", name="block 4").click()
    expect(page.locator(".blocks > li").first).to_contain_text("Transform executed")


def test_who_may_not_begin_one_is_told_how_to_verify_a_copy(reader: Visit) -> None:
    page = reader.go(f"datasets/{DERIVED}/-/verify")
    expect(page.get_by_text("You can verify your own copy")).to_be_visible()
    expect(page.get_by_role("button", name="Verify")).to_have_count(0)
