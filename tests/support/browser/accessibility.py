"""The rules of axe-core, which the package axe-playwright-python ships: no Node is needed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from playwright.sync_api import Page

_SERIOUS = ("serious", "critical")
_COLOURS = ("color-contrast", "link-in-text-block")
"""Rules that look at colours, the only ones that a theme makes a difference to."""
_RUN = "async (rules) => (await axe.run(document, {resultTypes: ['violations'], ...rules})).violations"


def barriers(page: Page, rules: Sequence[str] = ()) -> list[str]:
    """Return all barriers for users of the page as shown, with the elements concerned.

    Args:
        page: the page as shown now.
        rules: only these; none for all.
    """
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    only = {"runOnly": {"type": "rule", "values": list(rules)}} if rules else {}
    found: list[dict[str, Any]] = page.evaluate(_RUN, only)
    return [
        f"{one['impact']}: {one['id']}: {one['help']}: {node['html'][:200]}: {node['failureSummary']}"
        for one in found
        if one["impact"] in _SERIOUS
        for node in one["nodes"]
    ]


def check_for_everybody(page: Page) -> None:
    """Fail if axe finds anything serious on the page as it is shown, in either theme."""
    for scheme, rules in (("light", ()), ("dark", _COLOURS)):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        found = barriers(page, rules)
        assert not found, f"{page.url}, {scheme}:\n" + "\n".join(found)
