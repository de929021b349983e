"""A served workspace to administer, and one caller of each kind."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

from support.servers.serving import Answer, serving
from support.servers.serving import ask as ask_server

from odfpy.chain.encoding import load_snapshots
from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.sharing.model import PrincipalKind, SharedView
from odfpy.sharing.names import SharePath
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.opener import shared_dataset

NAME = "com.example.orders"
MANIFEST = f"""\
kind: DatasetSnapshot
version: 1
content:
  name: {NAME}
  kind: Root
  metadata:
    - kind: AddPushSource
      sourceName: default
      read: {{kind: NdJson, ddlSchema: [country STRING, who STRING, total BIGINT, t TIMESTAMP]}}
      merge: {{kind: Append}}
    - {{kind: SetVocab, eventTimeColumn: t}}
"""
ROWS = [("DE", "Ann", 1), ("FR", "Bob", 2), ("DE", "Cid", 3), ("IT", "Dan", 4)]


@dataclass
class Administered:
    """A served workspace.

    Attributes:
        workspace: the workspace.
        sharing: shares of the workspace.
        url: URL of the server.
        tokens: tokens by caller: reader, writer, admin, user, chief (a user who is an admin), acme (a recipient).
    """

    workspace: Workspace
    sharing: Sharing
    url: str
    tokens: dict[str, str]

    def ask(self, method: str, path: str, body: Any = None, *, who: str | None = "admin", **headers: str) -> Answer:
        """Make a call, with the token of a caller, or anonymously."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        token = self.tokens[who] if who else None
        more = {"content_type": "application/json"} if data is not None else {}
        return ask_server(f"{self.url}/{path}", method=method, token=token, body=data, **more, **headers)

    def get(self, path: str, who: str | None = "admin") -> Any:
        """Return the JSON of an answer."""
        answer = self.ask("GET", path, who=who)
        assert answer.status == 200, answer.body
        return answer.json

    def done(self, method: str, path: str, body: Any = None, **more: Any) -> Any:
        """Return the same for a change."""
        answer = self.ask(method, path, body, **more)
        assert answer.status in (200, 204), answer.body
        return answer.json if answer.body else None

    def session(self, who: str) -> Mapping[str, str]:
        """Return the headers of a signed-in browser; without the one that changes require."""
        body = json.dumps({"accessToken": self.tokens[who]}).encode()
        answer = ask_server(f"{self.url}/platform/session", method="POST", body=body, content_type="application/json")
        [(name, morsel)] = SimpleCookie(answer.headers["set-cookie"]).items()
        return {"cookie": f"{name}={morsel.value}"}


@contextmanager
def administered(folder: Path) -> Iterator[Administered]:
    """A served workspace that shares a dataset: acme sees countries and totals of Germany, by a group.

    Args:
        folder: an empty folder.
    """
    workspace = Workspace.init(folder / "workspace")
    workspace.add(load_snapshots(MANIFEST, "orders.yaml"))
    rows = [{"country": c, "who": w, "total": n, "t": f"2024-01-0{n}T00:00:00Z"} for c, w, n in ROWS]
    (folder / "rows.ndjson").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    list(workspace.ingest(NAME, [folder / "rows.ndjson"]))
    sharing = Sharing.of_workspace(workspace.storage.odf, None)
    sharing.shares.add_share("sales")
    dataset = workspace.storage.get(NAME)
    for name, shown in (("orders", SharedView.CURRENT), ("log", SharedView.CHANGELOG)):
        sharing.shares.add_table(SharePath("sales", "eu", name), shared_dataset(dataset, shown, None))
    principals, tokens = sharing.principals, Tokens(workspace.odf)
    principals.add(PrincipalKind.RECIPIENT, "acme", {"country": "DE"})
    principals.add(PrincipalKind.USER, "user")
    principals.add(PrincipalKind.USER, "chief")
    principals.change("chief", is_admin=True)
    principals.add(PrincipalKind.GROUP, "partners")
    principals.join("partners", "acme")
    rows_of_theirs = "country = recipient('country')"
    sharing.grants.add(
        "partners", SharePath("sales", "eu", "orders"), columns=["country", "total"], rows=rows_of_theirs
    )
    known = {"reader": Scope.READ, "writer": Scope.WRITE, "admin": Scope.ADMIN}
    texts = {name: tokens.new(name, scope) for name, scope in known.items()}
    texts |= {name: principals.new_token(name)[0] for name in ("acme", "user", "chief")}
    with serving(workspace) as server:
        yield Administered(workspace, sharing, server.url, texts)
