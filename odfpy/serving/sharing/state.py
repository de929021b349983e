"""The state that all requests over Delta Sharing have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from threading import Lock
from typing import Final

from starlette.requests import HTTPConnection, Request

from odfpy.coordinator.storage.storage import Storage
from odfpy.serving.sharing.guesses import Guesses
from odfpy.serving.sharing.seal import Seal
from odfpy.sharing.audit import AuditLog
from odfpy.sharing.files.maker import FileMaker
from odfpy.sharing.files.shown import ShownFiles
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.opener import TableOpener

LONGEST_LIFETIME: Final = 7 * 24 * 3600
"""Seconds that the url of a file can be good for: no store signs for longer."""


@dataclass(frozen=True)
class SharingState:
    """The state of the application.

    Attributes:
        opening: opens shares, principals and grants; most servers share nothing, and start the sooner.
        storages: the workspaces.
        tables: opens tables.
        files: makes files.
        shown: in which files somebody sees a row.
        audit: takes down who has read what.
        url_lifetime: seconds that the url of a file is good for.
        is_presigned: whether files in buckets go out by urls of their store, if nothing of them is hidden.
        base_url: how clients reach the server, None to take it from each request.
        seal: of page tokens and urls.
        guesses: wrong tokens.
    """

    opening: Callable[[], Sharing]
    storages: Sequence[Storage]
    tables: TableOpener
    files: FileMaker
    shown: ShownFiles
    audit: AuditLog
    url_lifetime: int
    is_presigned: bool = True
    base_url: str | None = None
    seal: Seal = field(default_factory=Seal)
    guesses: Guesses = field(default_factory=Guesses)
    _lock: Lock = field(default_factory=Lock)

    @property
    def sharing(self) -> Sharing:
        """Shares, principals, grants.

        Raises:
            SharingDatabaseError: their database cannot be used.
        """
        with self._lock:
            return self._opened

    @cached_property
    def _opened(self) -> Sharing:
        return self.opening()


def state_of(connection: HTTPConnection) -> SharingState:
    """Return the state of the application that a request is for."""
    state = connection.app.state.sharing
    assert isinstance(state, SharingState)  # noqa: S101 - `create_sharing_app` puts it there
    return state


def base_of(request: Request) -> str:
    """The URL of the server, without the prefix of the protocol."""
    return state_of(request).base_url or str(request.base_url).rstrip("/").removesuffix("/delta-sharing")
