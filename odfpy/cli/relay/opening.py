"""Helpers shared by the relay commands."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from odfpy.cli.grammar import session_of
from odfpy.cli.user import user_name
from odfpy.errors import did_you_mean

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.federation.authority import Issued
    from odfpy.federation.identity import RelayIdentity
    from odfpy.federation.model.documents import PeerRelay, User
    from odfpy.federation.store.store import WebStore


@dataclass(frozen=True, slots=True)
class OpenedRelay:
    """The relay of a workspace.

    Attributes:
        workspace: the workspace.
        identity: identity of the relay.
        store: state of the relay.
    """

    workspace: Workspace
    identity: RelayIdentity
    store: WebStore

    def known(self, name: str) -> User | PeerRelay:
        """Return the user or peer with a name, ignoring case.

        Raises:
            WebObjectNotFound: there is none; the message has a suggestion.
        """
        from odfpy.federation.errors import WebObjectNotFound

        web = self.store.applies.state().web
        known: list[User | PeerRelay] = [*web.peers.values(), *web.users.values()]
        there = {one.name.lower(): one for one in known}
        if name.lower() not in there:
            hint = did_you_mean(name, there, otherwise=f"`odf relay user add {name}`, or declare a peer.")
            raise WebObjectNotFound(f"No user or peer {name!r}", hint=hint)
        return there[name.lower()]


@contextmanager
def relay_of(context: typer.Context) -> Iterator[OpenedRelay]:
    """Open the relay of a command's workspace. Record changes on exit.

    Raises:
        NoRelay: the workspace has no relay.
        SharingDatabaseError: the database cannot be used.
    """
    from odfpy.federation.applying import record
    from odfpy.federation.identity import RelayIdentity
    from odfpy.federation.store.store import WebStore
    from odfpy.settings.sections import SharingSection

    workspace = session_of(context).workspace
    identity = RelayIdentity.open(workspace.odf)
    store = WebStore.of_workspace(workspace.odf, workspace.config.section(SharingSection).database)
    try:
        yield OpenedRelay(workspace, identity, store)
        record(workspace, store, identity.name)
    finally:
        store.database.close()


def who() -> str:
    """Return the acting user: user name and machine."""
    return f"{user_name() or 'unknown'}@{socket.gethostname()}"


@contextmanager
def written(issued: Issued, name: str, to: str | None) -> Iterator[str]:
    """Write a certificate and its key to new files; remove them if the body fails. Yield the name of the certificate.

    Args:
        issued: certificate and key.
        name: name of the holder.
        to: target folder; the current one by default.

    Raises:
        AlreadyExists: a file exists.
        OdfError: the files cannot be written.
    """
    stem = Path(to or ".") / f"{name}-{issued.facts.fingerprint[:8]}"
    certificate, key = Path(f"{stem}.pem"), Path(f"{stem}.key")
    issued.write(certificate, key)
    try:
        yield str(certificate)
    except BaseException:
        certificate.unlink(missing_ok=True)
        key.unlink(missing_ok=True)
        raise
