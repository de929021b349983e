"""The server as an ASGI application.

    /health                             alive, and of which release
    /docs, /openapi.json                what there is, for people and for programs
    /{name}/..., /{account}/{name}/...  a dataset

A dataset's routers are mounted under both forms of its name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Path

from odfpy import __version__
from odfpy.coordinator.storage import Storage
from odfpy.coordinator.workspace import Workspace
from odfpy.serving import health
from odfpy.serving.datasets import ServedDatasets
from odfpy.serving.settings import ServeSettings

_Segment = Annotated[str, Path(max_length=200, description="Name of the dataset.")]
_Account = Annotated[str, Path(max_length=200, description="Account that the dataset belongs to.")]

DATASET_ROUTERS: Sequence[APIRouter] = ()
"""What there is of each dataset."""


def create_app(workspaces: Sequence[Workspace], settings: ServeSettings | None = None) -> FastAPI:
    """The application that serves the datasets of some workspaces.

    Args:
        workspaces: of several datasets of the same name, that of the first workspace is served.
        settings: limits and times.
    """
    app = FastAPI(title="Open Data Fabric node", version=__version__, redoc_url=None)
    app.state.settings = settings or ServeSettings()
    app.state.datasets = ServedDatasets([_storage(workspace) for workspace in workspaces])
    app.include_router(health.router)
    for router in DATASET_ROUTERS:
        app.include_router(router, prefix="/{name}", dependencies=[Depends(_by_name)])
        app.include_router(router, prefix="/{account}/{name}", dependencies=[Depends(_by_account)])
    return app


def _by_name(name: _Segment) -> None:
    """Declares the path of a dataset without an account."""
    del name


def _by_account(account: _Account, name: _Segment) -> None:
    """Declares the path of a dataset of an account."""
    del account, name


def _storage(workspace: Workspace) -> Storage:
    return workspace.storage
