"""The Delta Sharing server as a separate application, mounted below `/delta-sharing`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Mount

from odfpy.coordinator.workspace import Workspace
from odfpy.serving.callers.principals import opened_sharing
from odfpy.serving.settings import ServeSettings
from odfpy.serving.sharing import activation, files, listing, proofs, tables
from odfpy.serving.sharing.audited import Audited
from odfpy.serving.sharing.errors import add_handlers
from odfpy.serving.sharing.state import MAX_LIFETIME, SharingState
from odfpy.settings.sections import SharingSection
from odfpy.sharing.audit import AuditLog
from odfpy.sharing.files.maker import FileMaker
from odfpy.sharing.files.shown import ShownFiles
from odfpy.sharing.tables.numbering import VersionNumbers
from odfpy.sharing.tables.opener import TableOpener

PREFIX = "/delta-sharing"


class SharingMount(Mount):
    """A mount that also matches paths with line breaks: errors must be the protocol's, and accesses audited."""

    def __init__(self, path: str, app: FastAPI) -> None:
        super().__init__(path, app)
        self.path_regex = re.compile(self.path_regex.pattern, re.DOTALL)


def create_sharing_app(workspaces: Sequence[Workspace], settings: ServeSettings) -> FastAPI:
    """Create the application that offers the shares of the first workspace.

    Args:
        workspaces: the first one has shares and grants; datasets are looked up in all.
        settings: limits and timeouts of the server.
    """
    first = workspaces[0]
    section = first.config.section(SharingSection)
    storages = [workspace.storage for workspace in workspaces]
    app = FastAPI(title="Delta Sharing", docs_url=None, redoc_url=None, openapi_url=None)
    audit = AuditLog(first, section.audit_interval)
    numbers = VersionNumbers(lambda: opened_sharing(first.storage).histories)
    app.add_middleware(Audited, record=audit.record)
    app.state.sharing = SharingState(
        storages=storages,
        tables=TableOpener(storages, [workspace.queries.service for workspace in workspaces], numbers),
        files=FileMaker(first.storage.cache / "shared-files", section.cache_size),
        shown=ShownFiles(first.storage.cache / "shared-files"),
        audit=audit,
        url_lifetime=min(section.url_lifetime, MAX_LIFETIME),
        is_presigned=section.presigned,
        base_url=settings.base_url,
    )
    add_handlers(app)
    app.router.routes.extend(_routes())
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return the routes of each application of this process, which FastAPI prepares at the first request."""
    router = APIRouter()
    for routed in (listing.router, tables.router, proofs.router, files.router, activation.router):
        router.include_router(routed)
    return router.routes
