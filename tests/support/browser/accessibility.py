"""The rules of axe-core, which the package axe-playwright-python ships: no Node is needed."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_SERIOUS = ("serious", "critical")
_RUN = "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"


def barriers(page: Page) -> list[str]:
    """Return all barriers for users of the page as shown, with the elements concerned.

    Args:
        page: the page as shown now.
    """
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = page.evaluate(_RUN)
    return [
        f"{one['impact']}: {one['id']}: {one['help']}: {node['html'][:200]}: {node['failureSummary']}"
        for one in found
        if one["impact"] in _SERIOUS
        for node in one["nodes"]
    ]


def check_for_everybody(page: Page) -> None:
    """Fail if axe finds anything serious on the page as it is shown, in either theme."""
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = barriers(page)
        assert not found, f"{page.url}, {scheme}:\n" + "\n".join(found)
