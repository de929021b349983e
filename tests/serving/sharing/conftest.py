"""A workspace that shares a dataset, and its server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from support.processes.pandas_client import PandasClient
from support.servers.serving import Answer, serving
from support.servers.serving import ask as ask_server

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.sharing.app import PREFIX
from odfpy.sharing.model import PrincipalKind, SharedView
from odfpy.sharing.names import SharePath
from odfpy.sharing.profile import profile
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.opener import shared_dataset

REPOSITORY = Path(__file__).parents[3]
MANIFEST = """\
kind: DatasetSnapshot
version: 1
content:
  name: rates
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {kind: NdJson, ddlSchema: [cur STRING, rate DOUBLE, n BIGINT, t TIMESTAMP, day DATE]}
      merge: {kind: UpsertStream, primaryKey: [cur]}
    - {kind: SetVocab, eventTimeColumn: t}
    - {kind: SetInfo, description: Rates of exchange}
"""
INGESTS = (
    [("EUR", 1.5, 1), ("USD", 2.5, 2)],
    [("EUR", 1.75, 3), ("GBP", 0.5, 4)],
    [("USD", None, 5)],
)
STATES: list[dict[str, tuple[float | None, int]]] = [{}]
for _rows in INGESTS:
    STATES.append({**STATES[-1], **{cur: (rate, n) for cur, rate, n in _rows}})


@dataclass
class Shared:
    """A served workspace with shares.

    Attributes:
        workspace: the workspace.
        sharing: its shares.
        url: of its server, with the prefix of the protocol.
        tokens: of recipients, by name.
        app: its application that speaks the protocol.
    """

    workspace: Workspace
    sharing: Sharing
    url: str
    tokens: dict[str, str]
    app: FastAPI

    def forget_guesses(self) -> None:
        """Let the address of the tests show wrong tokens again."""
        self.app.state.sharing.guesses._wrong.clear()

    def recipient(self, name: str, **grants: Any) -> str:
        """Add a recipient, who gets a grant on all of it if any is described; gives their token."""
        self.sharing.principals.add(PrincipalKind.RECIPIENT, name, grants.pop("attributes", None))
        if grants.pop("has_grant", True):
            self.sharing.grants.add(name, grants.pop("path", SharePath("fx")), **grants)
        self.tokens[name], _ = self.sharing.principals.new_token(name)
        return self.tokens[name]

    def profile(self, name: str, folder: Path, version: int = 1) -> Path:
        """A profile file of a recipient."""
        path = folder / f"{name}.share"
        path.write_bytes(profile(self.url, self.tokens[name], version=version))
        return path

    def ask(self, path: str, who: str | None = "all", body: Any = None, **more: Any) -> Answer:
        """Ask for a path below the prefix, or for a whole URL."""
        url = path if path.startswith("http") else f"{self.url}/{path}"
        method = more.pop("method", "GET" if body is None else "POST")
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        return ask_server(url, method=method, token=who and self.tokens.get(who, who), body=data, **more)

    def lines(self, path: str, who: str = "all", body: Any = None, **more: Any) -> list[dict[str, Any]]:
        """The lines of an answer in ndjson."""
        answer = self.ask(path, who, body, **more)
        assert answer.status == 200, answer.body
        return [json.loads(line) for line in answer.body.splitlines()]


def ingested(workspace: Workspace, folder: Path, rows: list[tuple[str, float | None, int]]) -> None:
    """Take rows into the dataset."""
    path = folder / f"{rows[0][2]}.ndjson"
    trees = [
        {"cur": cur, "rate": rate, "n": n, "t": f"2024-01-{n:02}T00:00:00Z", "day": f"2024-01-{n:02}"}
        for cur, rate, n in rows
    ]
    path.write_text("".join(f"{json.dumps(tree)}\n" for tree in trees))
    list(workspace.ingest("rates", [path]))


@contextmanager
def sharing_rates(folder: Path) -> Iterator[Shared]:
    """A dataset of three versions, as current state (`fx.main.rates`) and changelog (`fx.main.log`)."""
    workspace = Workspace.init(folder / "workspace")
    workspace.add(load_snapshots(MANIFEST, "rates.yaml"))
    for rows in INGESTS:
        ingested(workspace, folder, rows)
    sharing = Sharing.of_workspace(workspace.storage.odf, None)
    sharing.shares.add_share("fx")
    dataset = workspace.storage.get("rates")
    for name, shown in (("rates", SharedView.CURRENT), ("log", SharedView.CHANGELOG)):
        sharing.shares.add_table(SharePath("fx", "main", name), shared_dataset(dataset, shown, None))
    sharing.shares.add_share("hidden")
    sharing.shares.add_table(SharePath("hidden", "main", "rates"), shared_dataset(dataset, SharedView.CURRENT, None))
    with serving(workspace) as server:
        (mounted,) = (one.app for one in server.app.routes if getattr(one, "path", "") == PREFIX)
        found = Shared(workspace, sharing, f"{server.url}{PREFIX}", {}, mounted)
        found.recipient("all")
        found.recipient("eur", rows="cur = recipient('currency')", attributes={"currency": "EUR"})
        found.recipient("columns", columns=["cur", "n"])
        found.recipient("nothing", has_grant=False)
        yield found


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    """The same, for tests that leave the dataset as it is."""
    with sharing_rates(tmp_path_factory.mktemp("shared")) as found:
        yield found


@pytest.fixture(scope="session")
def pandas() -> Iterator[PandasClient]:
    """A client of others, in an environment of its own."""
    subprocess.run([REPOSITORY / ".ci" / "clients"], check=True)
    client = PandasClient(REPOSITORY / ".venv-clients" / "bin" / "python")
    yield client
    client.close()
