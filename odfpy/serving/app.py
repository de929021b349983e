"""The server as an ASGI application.

    /health, /metrics, /token           the server itself
    /metrics/datasets                   freshness of its datasets
    /datasets                           list of its datasets
    /query, /verify                     SQL queries, and answers that can be verified
    /ui/...                             web pages
    /docs, /openapi.json                documentation of the API, for people and for programs
    /platform/...                       sessions, logins and administration
    /delta-sharing/...                  the Delta Sharing protocol, a separate application
    /v0/archive/...                     the archive of files, if one is configured or only one exists
    /mcp                                the Model Context Protocol, with `odf serve --mcp`: a mounted application
    /{name}/..., /{account}/{name}/...  a dataset

A dataset's routers are mounted under both forms of its name.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from functools import cache, partial
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Path
from starlette.routing import BaseRoute

from odfpy.coordinator.storage.keys import answer_keys
from odfpy.coordinator.workspace import Workspace
from odfpy.data.duration import Duration
from odfpy.errors import OdfError
from odfpy.repository.smart_transfer.signed_urls import UrlSigner
from odfpy.serving.archive import browsing as archive_browsing
from odfpy.serving.archive import details as archive_details
from odfpy.serving.archive import previewing as archive_previewing
from odfpy.serving.archive import reading as archive_reading
from odfpy.serving.archive import writing as archive_writing
from odfpy.serving.archive.served import Archives
from odfpy.serving.callers.engines import ServedEngines
from odfpy.serving.callers.reachable_objects import ReachableObjectsCache
from odfpy.serving.callers.registry import ServedRegistry
from odfpy.serving.callers.sessions import SignInTickets
from odfpy.serving.http.budget import MemoryBudget
from odfpy.serving.http.errors import add_handlers
from odfpy.serving.http.limits import BoundedBodies
from odfpy.serving.http.metrics import Metrics, Observed
from odfpy.serving.http.mounted_apps import MountedAppFactory, mount_apps
from odfpy.serving.http.query_limiter import QueryGate
from odfpy.serving.notifications import events
from odfpy.serving.notifications.delivery import Deliveries
from odfpy.serving.notifications.heads import Heads
from odfpy.serving.pages import ui
from odfpy.serving.rest import (
    analysis,
    comparison,
    dataset_metrics,
    docs_page,
    explanations,
    history,
    lineage,
    own_access,
    provenance,
    verification,
)
from odfpy.serving.rest import dataset as rest_dataset
from odfpy.serving.rest import datasets as datasets_api
from odfpy.serving.rest import ingest as rest_ingest
from odfpy.serving.rest import login as rest_login
from odfpy.serving.rest import query as rest_query
from odfpy.serving.rest import session as rest_session
from odfpy.serving.rest.administration import ROUTERS as ADMINISTRATION
from odfpy.serving.rest.administration import readers
from odfpy.serving.rest.automation import overview as automation_overview
from odfpy.serving.rest.automation import schedule as dataset_schedule
from odfpy.serving.rest.automation.schedulers import Automations
from odfpy.serving.rest.catalog import Catalog
from odfpy.serving.rest.ingest import Ingests
from odfpy.serving.rest.login import Logins
from odfpy.serving.rest.openapi import DescribedApp
from odfpy.serving.rest.verification_jobs import Verifications
from odfpy.serving.settings import ServeSettings
from odfpy.serving.sharing.app import PREFIX, SharingMount, create_sharing_app
from odfpy.serving.transfer import signatures_api as beside
from odfpy.serving.transfer import simple, smart
from odfpy.settings.sections import SharingSection

_Segment = Annotated[str, Path(max_length=200, description="Name of the dataset.")]
_Account = Annotated[str, Path(max_length=200, description="Account that the dataset belongs to.")]

ARCHIVE_ROUTERS: Sequence[APIRouter] = (archive_reading.router, archive_writing.router)
"""Routers of each archive of files, and of the default one."""

DATASET_ROUTERS: Sequence[APIRouter] = (
    simple.router,
    beside.router,
    smart.router,
    events.router,
    rest_dataset.router,
    history.router,
    lineage.router,
    dataset_schedule.router,
    provenance.router,
    analysis.router,
    comparison.router,
    verification.router,
    rest_ingest.router,
    readers.router,
    own_access.router,
    *ARCHIVE_ROUTERS,
    archive_browsing.router,
    archive_details.router,
    archive_previewing.router,
    datasets_api.dataset,
)
"""Routers of each dataset. The last one takes `/{account}/{name}`, any two words, so others go before it."""


def create_app(
    workspaces: Sequence[Workspace],
    settings: ServeSettings | None = None,
    budget: MemoryBudget | None = None,
    tickets: SignInTickets | None = None,
    mounted_apps: Mapping[str, MountedAppFactory] | None = None,
) -> FastAPI:
    """Create the application that serves the datasets of some workspaces.

    Args:
        workspaces: the workspaces; if several have a dataset of the same name, the first workspace's is served.
        settings: limits and timeouts.
        budget: memory for data sent by clients, if shared with other servers of this process.
        tickets: tickets that browsers exchange for a session.
        mounted_apps: additional ASGI applications, by the path they are mounted at.
    """
    settings = settings or ServeSettings()
    app = DescribedApp(lifespan=_lifespan)
    app.state.settings = settings
    app.state.workspaces = tuple(workspaces)
    app.state.datasets = ServedRegistry([workspace.storage for workspace in workspaces])
    app.state.archives = Archives(workspaces, app.state.datasets, settings.max_object)
    app.state.catalog = Catalog(app.state.datasets.storages)
    app.state.automations = Automations(workspaces)
    app.state.lineages = lineage.Lineages(app.state.datasets.storages)
    app.state.tickets = tickets or SignInTickets()
    app.state.reaches = ReachableObjectsCache()
    app.state.heads = Heads(settings.poll)
    app.state.num_streams = 0
    app.state.signer = UrlSigner()
    app.state.limiters = {}
    app.state.metrics = Metrics()
    app.state.budget = budget or MemoryBudget(settings)
    app.state.gate = QueryGate(settings)
    app.state.engines = ServedEngines(workspaces[0], settings.query_memory, settings.query_timeout)
    limits = (settings.query_memory, settings.ingest_timeout)
    app.state.own_engines = {served.storage.root: ServedEngines(served, *limits) for served in workspaces}
    app.state.ingests = Ingests(
        {served.storage.root: served.engines.registry.with_limits(*limits) for served in workspaces}
    )
    app.state.verifications = Verifications(workspaces)
    app.state.node_keys = partial(answer_keys, workspaces[0].root)
    app.add_middleware(BoundedBodies, settings=settings, budget=app.state.budget, storages=app.state.datasets.storages)
    app.add_middleware(Observed, metrics=app.state.metrics)
    add_handlers(app)
    sharing = create_sharing_app(workspaces, settings)
    app.state.sharing = sharing.state.sharing
    lifetime = workspaces[0].config.section(SharingSection).login_lifetime
    app.state.logins = Logins(app.state.sharing.guesses, Duration(lifetime))
    app.router.routes.append(SharingMount(PREFIX, sharing))
    app.state.mounted_apps = mount_apps(app, mounted_apps or {})
    app.router.routes.extend(_routes())
    return app


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return the routes of each application of this process.

    FastAPI prepares them when the first request comes, which takes a fifth of a second.
    """
    router = APIRouter()
    router.include_router(datasets_api.server)
    router.include_router(dataset_metrics.server)
    router.include_router(docs_page.router)
    router.include_router(explanations.router)
    router.include_router(rest_query.router)
    router.include_router(rest_login.router)
    router.include_router(rest_session.router)
    for routed in ADMINISTRATION:
        router.include_router(routed)
    router.include_router(lineage.server)
    router.include_router(automation_overview.router)
    router.include_router(ui.router)
    for routed in ARCHIVE_ROUTERS:
        router.include_router(routed)
    for routed in DATASET_ROUTERS:
        router.include_router(routed, prefix="/{name}", dependencies=[Depends(_by_name)])
        router.include_router(routed, prefix="/{account}/{name}", dependencies=[Depends(_by_account)])
    return router.routes


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Run webhooks and mounted apps during the server's lifetime; at its start, read datasets ahead."""
    state = app.state
    deliveries = Deliveries(state.datasets.storages, state.settings, state.metrics)
    task = asyncio.create_task(deliveries.run())
    is_over = threading.Event()
    reading = threading.Thread(target=_read_ahead, args=(app, is_over), name="catalog", daemon=True)
    reading.start()
    try:
        async with AsyncExitStack() as stack:
            for mounted in state.mounted_apps:
                await stack.enter_async_context(mounted.running())
            yield
    finally:
        is_over.set()
        await asyncio.to_thread(reading.join)
        await asyncio.to_thread(state.sharing.stop)
        await asyncio.to_thread(state.verifications.stop, state.settings.grace)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _read_ahead(app: FastAPI, stop: threading.Event) -> None:
    """Read ahead what takes long with many thousands of datasets, so that the first request need not wait."""
    with suppress(OdfError):  # reported to the caller
        app.state.datasets.refresh()
        app.state.archives.sweep()
    app.state.catalog.warm_up(stop)


async def _by_name(name: _Segment) -> None:
    """Declare the path of a dataset without an account."""
    del name


async def _by_account(account: _Account, name: _Segment) -> None:
    """Declare the path of a dataset of an account."""
    del account, name
