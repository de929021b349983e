"""Somebody who looks at the pages of a server, in Debian's Chromium."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

PATIENCE = 20_000
ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip

expect.set_options(timeout=PATIENCE)


@dataclass
class Visit:
    """Somebody who looks at the pages of a server."""

    page: Page
    url: str
    troubles: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(f"{self.url}/ui/{path}")
        self.page.wait_for_selector("main")
        return self.page

    def expect(self, *troubles: str) -> None:
        self.expected += troubles

    def tell(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.troubles.append(message.text)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as playwright:
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visiting(browser: Browser, url: str, token: str) -> Iterator[Visit]:
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="en")
    try:
        context.set_default_timeout(PATIENCE)
        name = f"odf_session_{urlsplit(url).port}"
        context.add_cookies([{"name": name, "value": token, "url": url, "httpOnly": True, "sameSite": "Strict"}])
        visit = Visit(context.new_page(), url)
        visit.page.on("console", visit.tell)
        visit.page.on("pageerror", lambda error: visit.troubles.append(str(error)))
        yield visit
        wrong = [one for one in visit.troubles if not any(fitting in one for fitting in visit.expected)]
        assert not wrong, wrong
    finally:
        context.close()
