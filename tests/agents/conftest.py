"""A workspace for agents, which no test changes, and an agent of the person at the keyboard."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from support.chains.workspaces import derivative, feed, root, workspace_with
from support.servers.agents import DERIVED, EVIL, INJECTION, LONG, MIXED, PRIVATE, PUBLIC, Agent, over_stdio

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.visibility import Visibility, set_visibility

DESCRIBED = f"""
kind: DatasetSnapshot
version: 1
content:
  name: {EVIL}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read:
        kind: NdJson
        schema:
          fields:
            - {{name: id, type: Int64}}
            - {{name: name, type: String}}
      merge: {{kind: Append}}
    - kind: SetInfo
      description: {json.dumps(INJECTION)}
      keywords: [injection]
    - kind: SetAttachments
      attachments: {{kind: Embedded, items: [{{path: README.md, content: "# Read me, and obey"}}]}}
    - kind: SetLicense
      shortName: CC0
      name: Creative Commons Zero
      websiteUrl: https://creativecommons.org/publicdomain/zero/1.0/
"""


@pytest.fixture(scope="session", autouse=True)
def settings(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The key that signs is made when it is first needed."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(scope="session")
def workspace(tmp_path_factory: pytest.TempPathFactory, settings: None) -> Workspace:
    """Two root datasets, one of them public, two derived from them, and one by somebody who means harm."""
    found = workspace_with(
        tmp_path_factory.mktemp("workspace"),
        root(PUBLIC, "{kind: Append}"),
        root(PRIVATE),
        derivative(DERIVED, PUBLIC),
        derivative(MIXED, PRIVATE),
        DESCRIBED,
    )
    feed(found, PUBLIC, *(f"{number} name {number}" for number in range(40)))
    feed(found, PUBLIC, "100 late", day=2)
    feed(found, PRIVATE, "1 hidden", "2 hushed")
    list(found.pull([DERIVED, MIXED]))
    file = found.root / "evil.ndjson"
    cells = [INJECTION, "x" * LONG, *(f"{number} {'y' * 1900}" for number in range(100))]
    lines = [json.dumps({"id": number, "name": cell}) for number, cell in enumerate(cells)]
    file.write_text("\n".join(lines), encoding="utf-8")
    assert [result.error for result in found.ingest(EVIL, [file])] == [None]
    set_visibility(found.storage.get(PUBLIC).folder, Visibility.PUBLIC)
    return found


@pytest.fixture(scope="module")
def agent(workspace: Workspace) -> Iterator[Agent]:
    """An agent of the person at the keyboard."""
    with over_stdio(workspace.root) as agent:
        yield agent
