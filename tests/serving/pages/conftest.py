"""A browser, a server, and visitors of each role; whatever a page does that it must not do fails its test.

A module with a workspace of its own has a fixture `workspace` of the scope of modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from support.browser.chromium import Profiles, Visit, chromium, visiting
from support.browser.site import Site, site, small_workspace

from odfpy.coordinator.workspace import Workspace
from odfpy.repository.credentials import VARIABLE


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where the user's settings and keys are: whoever has made the workspace of a module serves it, too."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(folder / "config"))
        patch.delenv(VARIABLE, raising=False)
        yield folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    return small_workspace(tmp_path_factory.mktemp("pages") / "workspace")


@pytest.fixture(scope="module")
def served(workspace: Workspace) -> Iterator[Site]:
    with site(workspace) as found:
        yield found


@pytest.fixture(scope="module")
def profiles(browser: Browser) -> Profiles:
    return Profiles(browser)


@pytest.fixture
def visit(served: Site, browser: Browser, profiles: Profiles) -> Iterator[Callable[..., Visit]]:
    """Makes visitors: `visit("reader", viewport=...)`; the options are those of Playwright's contexts."""
    with ExitStack() as stack:

        def new(role: str = "reader", **options: Any) -> Visit:
            url, token = served.url, served.tokens[role]
            made = visiting(browser, url, token, **options) if options else profiles.visiting(url, token)
            return stack.enter_context(made)

        yield new


@pytest.fixture
def nobody(visit: Callable[..., Visit]) -> Visit:
    return visit("nobody")


@pytest.fixture
def reader(visit: Callable[..., Visit]) -> Visit:
    return visit("reader")


@pytest.fixture
def writer(visit: Callable[..., Visit]) -> Visit:
    return visit("writer")


@pytest.fixture
def admin(visit: Callable[..., Visit]) -> Visit:
    return visit("admin")
