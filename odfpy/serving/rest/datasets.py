"""Endpoints for the datasets of the server, and for the caller's own token."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict

from odfpy import __version__
from odfpy.chain.events import SetInfo
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.errors import OdfError
from odfpy.repository.places.listing import speaks_of
from odfpy.repository.places.node import TAKES_REFERENCES, TAKES_REVOCATIONS, TAKES_SIGNATURES
from odfpy.serving.callers.access import Administered, AnyCaller, Readable, is_readable, unauthorized_error
from odfpy.serving.callers.visibility import Visibility, set_visibility, visibility_of
from odfpy.serving.rest.models import HASH, ID

server = APIRouter(tags=["server"])
dataset = APIRouter(tags=["datasets"])


_DATASET = {
    "id": ID,
    "name": "com.example.rates",
    "kind": "Root",
    "visibility": "public",
    "head": HASH,
    "numBlocks": 4,
    "numRecords": 50,
    "watermark": "2024-03-15T03:00:00Z",
    "description": "Exchange rates, daily",
    "keywords": ["currency"],
}


def _like(**example: Any) -> ConfigDict:
    return ConfigDict(json_schema_extra={"examples": [example]})


class Health(BaseModel):
    """The health of a server."""

    model_config = _like(status="ok", version=__version__)

    status: str = "ok"
    version: str = __version__


class TokenInfo(BaseModel):
    """The facts about a token that its holder may see."""

    model_config = _like(name="ci", scope="write", expiresAt="2027-01-01T00:00:00Z")

    name: str
    scope: str
    expiresAt: str | None  # noqa: N815 - as everywhere in the specification


_ANSWERS: dict[int | str, dict[str, Any]] = {
    401: {"description": "An access token is needed."},
    404: {"description": "There is no such dataset, or not for this token."},
}


class DatasetInfo(BaseModel):
    """A dataset, in short."""

    model_config = _like(**_DATASET)

    id: str
    name: str
    kind: str
    visibility: str
    head: str
    numBlocks: int  # noqa: N815
    numRecords: int  # noqa: N815
    watermark: str | None
    description: str | None
    keywords: tuple[str, ...]


class DatasetSummary(DatasetInfo):
    """The same, and what clients may bring beside the Smart Transfer Protocol."""

    model_config = _like(**_DATASET, takes=[TAKES_SIGNATURES, TAKES_REFERENCES, TAKES_REVOCATIONS])

    takes: tuple[str, ...] = (TAKES_SIGNATURES, TAKES_REFERENCES, TAKES_REVOCATIONS)


@server.get("/", include_in_schema=False)
async def front() -> RedirectResponse:
    """Whoever comes with a browser sees what there is to ask for."""
    return RedirectResponse("/docs")


@server.get("/health")
async def health() -> Health:
    """Alive, and of which release."""
    return Health()


@server.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"example": "odf_event_streams 0.0\n"}}}},
)
def metrics(request: Request) -> Response:
    """Numbers for Prometheus; they name no datasets."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@server.get("/token", responses={401: {"description": "The token is none, or not any more."}})
def token(caller: AnyCaller) -> TokenInfo:
    """Return what the token of the request is good for."""
    if caller.token is None:
        raise unauthorized_error("There is no access token in the request")
    end = caller.token.expires_at
    return TokenInfo(name=caller.token.name, scope=caller.token.scope.value, expiresAt=str(end) if end else None)


@server.get("/datasets", responses={401: {"description": "The token is none, or not any more."}})
def datasets(
    request: Request,
    caller: AnyCaller,
    search: Annotated[
        str, Query(max_length=200, description="Part of name, description or a keyword, whatever the case.")
    ] = "",
    limit: Annotated[int, Query(ge=1, le=1000, description="Datasets at most.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Datasets to leave out first.")] = 0,
) -> list[DatasetInfo]:
    """The datasets that the caller may read, by name."""
    served = request.app.state.datasets
    visible = (item for item in served.all() if served.is_first(item) and is_readable(item, caller))
    infos = ((item.handle.alias, info) for item in visible if (info := _info(item)) is not None)
    wanted = (info for alias, info in infos if speaks_of(search, alias, info.description, info.keywords))
    return list(islice(wanted, offset, offset + limit))


@dataset.get("", responses=_ANSWERS)
def summary(dataset: Readable) -> DatasetSummary:
    """The dataset, in short."""
    return DatasetSummary(**_described(dataset).model_dump())


@dataset.put("/visibility", responses={**_ANSWERS, 403: {"description": "It needs the scope admin."}})
def visibility(
    dataset: Administered, value: Annotated[Visibility, Query(description="Whether anybody may read it.")]
) -> DatasetInfo:
    """Make the dataset public or private; needs the scope admin."""
    set_visibility(dataset.folder, value)
    return _described(dataset)


def _info(dataset: StoredDataset) -> DatasetInfo | None:
    try:
        return _described(dataset)
    except OdfError:  # damaged, or being made
        return None


def _described(dataset: StoredDataset) -> DatasetInfo:
    state = dataset.reloaded().state
    info = state.info or SetInfo()
    return DatasetInfo(
        id=str(dataset.handle.id),
        name=str(dataset.handle.alias),
        kind=state.kind.value,
        visibility=visibility_of(dataset.folder).value,
        head=str(state.head),
        numBlocks=state.sequence_number + 1,
        numRecords=state.num_records,
        watermark=str(state.watermark) if state.watermark is not None else None,
        description=info.description,
        keywords=info.keywords or (),
    )
