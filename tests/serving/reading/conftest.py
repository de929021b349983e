"""A browser, and visitors of each role, for the pages that show what these calls tell.

A module has a fixture `workspace` of the scope of modules. Whatever a page does that it must not do fails its test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Browser
from support.browser.chromium import Profiles, Visit, chromium
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.server import DatasetServer


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as browser:
        yield browser


@pytest.fixture(scope="module")
def profiles(browser: Browser) -> Profiles:
    return Profiles(browser)


@pytest.fixture(scope="module")
def served(workspace: Workspace) -> Iterator[DatasetServer]:
    with serving(workspace) as server:
        yield server


@pytest.fixture
def visit(served: DatasetServer, workspace: Workspace, profiles: Profiles) -> Iterator[Callable[[Scope], Visit]]:
    """Makes visitors with tokens of a scope."""
    with ExitStack() as stack:

        def new(scope: Scope) -> Visit:
            tokens = Tokens(workspace.odf)
            name = f"{scope.value}-{len(tokens.list())}"
            return stack.enter_context(profiles.visiting(served.url, tokens.new(name, scope)))

        yield new


@pytest.fixture
def reader(visit: Callable[[Scope], Visit]) -> Visit:
    return visit(Scope.READ)


@pytest.fixture
def writer(visit: Callable[[Scope], Visit]) -> Visit:
    return visit(Scope.WRITE)
