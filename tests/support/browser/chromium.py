"""Debian's Chromium, driven by Playwright, and conditions that pages must always satisfy."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

PATIENCE = 60_000
"""Milliseconds that a test waits for something on a page."""

expect.set_options(timeout=PATIENCE)

VIEWPORT: ViewportSize = {"width": 1280, "height": 800}

ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window.

    While it runs, nothing else in this thread may run an event loop: so it belongs to one module of tests.
    """
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert program, "There is no Chromium: .ci/packages installs it"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Visit:
    """A visit to the pages of a server.

    Attributes:
        page: the tab of the browser.
        url: the server.
        troubles: errors in the console, violations of the policy, requests that failed or went to other hosts.
        expected: regular expressions of expected troubles.
    """

    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def go(self, path: str = "") -> Page:
        """Open a page by its path below `/ui/`; its data may still be loading."""
        self.page.goto(f"{self.url}/ui/{path}")
        self.page.wait_for_selector("main")
        return self.page

    def expect(self, *troubles: str) -> None:
        """Expect troubles that match a regular expression."""
        self.expected += troubles

    def check(self) -> None:
        """Fail if the page had unexpected troubles."""
        wrong = [one for one in self.troubles if not any(re.search(fitting, one) for fitting in self.expected)]
        assert not wrong, "the page has troubles:\n" + "\n".join(wrong)


@contextmanager
def visiting(browser: Browser, url: str, token: str | None = None, **options: Any) -> Iterator[Visit]:
    """Visit with a new browser profile; at the end, the page must not have had unexpected troubles.

    Args:
        browser: the browser.
        url: the server.
        token: access token of the session; None to visit without signing in.
        options: those of a Playwright context: viewport, color_scheme and the like.
    """
    visit = _profile(browser, url, **options)
    try:
        if token is not None:
            sign_in(visit.page.context, url, token)
        yield visit
        visit.check()
    finally:
        visit.page.context.close()


class Profiles:
    """Profiles of a browser that are used again, emptied: a new one takes three times as long as to load a page.

    Listeners that a visit adds to the page stay.
    """

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._free: dict[str, list[Visit]] = {}

    @contextmanager
    def visiting(self, url: str, token: str | None = None) -> Iterator[Visit]:
        """Visit with a profile without cookies and stored values, as `visiting` does.

        Args:
            url: the server.
            token: access token of the session; None to visit without signing in.
        """
        free = self._free.setdefault(url, [])
        visit = free.pop() if free else _profile(self._browser, url)
        try:
            if token is not None:
                sign_in(visit.page.context, url, token)
            yield visit
            visit.check()
            _empty(visit)
        except BaseException:
            visit.page.context.close()
            raise
        free.append(visit)


def _profile(browser: Browser, url: str, **options: Any) -> Visit:
    context = browser.new_context(**{"viewport": VIEWPORT, "locale": "en", **options})
    context.set_default_timeout(PATIENCE)
    visit = Visit(context.new_page(), url)
    _watch(visit)
    return visit


def _empty(visit: Visit) -> None:
    """Make a profile as good as new, but for what it has cached of the pages' files."""
    page, context = visit.page, visit.page.context
    for other in context.pages:
        if other is not page:
            other.close()
    page.unroute_all(behavior="ignoreErrors")
    page.goto("about:blank")
    page.set_viewport_size(VIEWPORT)
    page.emulate_media(media="null", color_scheme="null", reduced_motion="null")
    context.clear_cookies()
    context.clear_permissions()
    session = context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": visit.url, "storageTypes": "all"})
    session.detach()
    visit.troubles.clear()
    visit.expected.clear()


def sign_in(context: BrowserContext, url: str, token: str) -> None:
    """Set the cookie of a session, as signing in does."""
    name = f"odf_session_{urlsplit(url).port}"
    context.add_cookies([{"name": name, "value": token, "url": url, "httpOnly": True, "sameSite": "Strict"}])


def _watch(visit: Visit) -> None:
    host = urlsplit(visit.url).netloc

    def on_console(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            place = message.location.get("url", "")
            visit.troubles.append(f"console {message.type}: {message.text} ({place})")

    def on_request(request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("data", "blob") and parts.netloc != host:
            visit.troubles.append(f"request to another host: {request.url}")

    def on_failure(request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # leaving a page cancels its requests
            visit.troubles.append(f"request failed: {request.url}: {request.failure}")

    visit.page.on("console", on_console)
    visit.page.on("pageerror", lambda error: visit.troubles.append(f"uncaught: {error}"))
    visit.page.on("request", on_request)
    visit.page.on("requestfailed", on_failure)
