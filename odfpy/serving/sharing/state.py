"""The state shared by all requests over Delta Sharing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from starlette.requests import HTTPConnection, Request

from odfpy.coordinator.storage.storage import Storage
from odfpy.data.lru_cache import LruCache
from odfpy.http.seal import Seal
from odfpy.serving.callers.principals import opened_sharing
from odfpy.serving.sharing.failed_attempts import FailedAttempts
from odfpy.serving.sharing.queries import PendingQueries
from odfpy.serving.sharing.row_hashes import RowHashes
from odfpy.sharing.audit import AuditLog
from odfpy.sharing.files.maker import FileMaker
from odfpy.sharing.files.read_ahead import ReadAheadPool
from odfpy.sharing.files.shown import ShownFiles
from odfpy.sharing.sharing import Sharing
from odfpy.sharing.tables.contract import ReadableTable
from odfpy.sharing.tables.opener import TableOpener
from odfpy.sharing.tables.visible import VisibleTable

MAX_LIFETIME: Final = 7 * 24 * 3600
"""Maximum lifetime of a file URL in seconds: no store signs for longer."""

_MAX_VISIBLE: Final = 1000


@dataclass(frozen=True)
class SharingState:
    """The state of the application, and of its caches.

    Attributes:
        storages: the workspaces; the first one has shares, principals and grants.
        tables: opens tables.
        files: produces files.
        ahead: produces several files concurrently.
        shown: knows in which files a view shows a row.
        visible: tables as seen by callers who may only see some rows.
        audit: the audit log of accesses.
        url_lifetime: lifetime of file URLs, in seconds.
        is_presigned: whether files in buckets are served by presigned URLs, if nothing in them is hidden.
        base_url: URL by which clients reach the server, None to derive it from each request.
        seal: seal of page tokens and URLs.
        guesses: failed authentication attempts.
        queries: asynchronous queries.
        row_hashes: hashes of versions, for proofs.
    """

    storages: Sequence[Storage]
    tables: TableOpener
    files: FileMaker
    shown: ShownFiles
    audit: AuditLog
    url_lifetime: int
    is_presigned: bool = True
    base_url: str | None = None
    seal: Seal = field(default_factory=Seal)
    guesses: FailedAttempts = field(default_factory=FailedAttempts)
    visible: LruCache[tuple[ReadableTable, bytes], VisibleTable] = field(
        default_factory=partial(LruCache, _MAX_VISIBLE)
    )
    ahead: ReadAheadPool = field(default_factory=ReadAheadPool)
    queries: PendingQueries = field(default_factory=PendingQueries)
    row_hashes: RowHashes = field(default_factory=RowHashes)

    @property
    def sharing(self) -> Sharing:
        """Return shares, principals and grants; opened on first use, since most servers share nothing.

        Raises:
            SharingDatabaseError: their database cannot be used.
        """
        return opened_sharing(self.storages[0])

    def stop(self) -> None:
        """Stop background work, and flush the audit log."""
        self.queries.stop()
        self.ahead.stop()
        self.audit.stop()


def state_of(connection: HTTPConnection) -> SharingState:
    """Return the state of the application that handles a request."""
    state = connection.app.state.sharing
    assert isinstance(state, SharingState)  # noqa: S101 - set by `create_sharing_app`
    return state


def base_of(request: Request) -> str:
    """Return the URL of the server, without the prefix of the protocol."""
    return state_of(request).base_url or str(request.base_url).rstrip("/").removesuffix("/delta-sharing")
