"""A workspace that is served with its pages, and tokens of all roles."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.serving import serving

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.server import DatasetServer

NOBODY = "nobody"
ROLES = (NOBODY, "reader", "writer", "admin")
STATIONS, LOUD, PUBLIC = "com.example.stations", "com.example.loud", "com.example.public"
README = "# Stations\n\nRead *this* first.\n\n| unit | meaning |\n|---|---|\n| m | metre |\n\n<b>not bold</b>\n"


@dataclass(frozen=True)
class Site:
    """A served workspace, and the tokens of roles; that of an anonymous visitor is None."""

    workspace: Workspace
    server: DatasetServer
    tokens: Mapping[str, str | None]

    @property
    def url(self) -> str:
        return self.server.url


def tokens_of(workspace: Workspace) -> dict[str, str | None]:
    """New tokens, by role."""
    tokens = Tokens(workspace.odf)
    scopes = {"reader": Scope.READ, "writer": Scope.WRITE, "admin": Scope.ADMIN}
    return {NOBODY: None, **{role: tokens.new(role, scope) for role, scope in scopes.items()}}


@contextmanager
def site(workspace: Workspace, **settings: Any) -> Iterator[Site]:
    """A workspace with its server; settings are those of the server."""
    with serving(workspace, **settings) as server:
        yield Site(workspace, server, tokens_of(workspace))


def small_workspace(folder: Path) -> Workspace:
    """Create a root dataset with corrections and a README, another that is public, and one derived from the first."""
    workspace = workspace_with(
        folder, _described(root(STATIONS)), root(PUBLIC, "{kind: Append}"), derivative(LOUD, STATIONS)
    )
    feed(workspace, STATIONS, "1 Bern", "2 Chur", "3 Davos")
    feed(workspace, STATIONS, "1 Bern", "2 Chur (GR)", "4", day=3)
    feed(workspace, PUBLIC, *(f"{number} p{number}" for number in range(5)))
    assert [one.error for one in workspace.pull([LOUD])] == [None]
    assert all(report.ok for report in workspace.verify([STATIONS]))
    set_visibility(workspace.storage.get(PUBLIC).folder, Visibility.PUBLIC)
    return workspace


def _described(manifest: str) -> str:
    info = {"kind": "SetInfo", "description": "Weather stations, as they are known", "keywords": ["weather", "names"]}
    attachments = {
        "kind": "SetAttachments",
        "attachments": {"kind": "Embedded", "items": [{"path": "README.md", "content": README}]},
    }
    license_ = {
        "kind": "SetLicense", "shortName": "CC0", "name": "Creative Commons Zero", "spdxId": "CC0-1.0",
        "websiteUrl": "https://creativecommons.org/publicdomain/zero/1.0/",
    }  # fmt: skip
    return manifest + "".join(f"    - {json.dumps(one)}\n" for one in (info, attachments, license_))
