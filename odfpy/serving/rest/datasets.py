"""Endpoints for the datasets of the server, and for the caller's own token."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, Final

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import RedirectResponse
from pydantic import BaseModel, ConfigDict, Field

from odfpy import __version__
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.timestamp import Timestamp
from odfpy.dataset.kind import DatasetKind
from odfpy.dataset.names import matches_search
from odfpy.repository.locations.node import TAKES_REFERENCES, TAKES_REVOCATIONS, TAKES_SIGNATURES
from odfpy.serving.callers.access import Administered, AnyCaller, Caller, Readable, unauthorized_error
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.callers.visibility import Visibility, set_visibility
from odfpy.serving.rest.catalog import Catalog, CatalogEntry, entry_of
from odfpy.serving.rest.models import HASH, ID, Records

server = APIRouter(tags=["server"])
dataset = APIRouter(tags=["datasets"])

TOTAL: Final = "X-Total-Count"
_MAX_IDS: Final = 100
_LONG_AGO: Final = Timestamp(-(2**62))

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
    "dataSize": 1830,
    "linkedFiles": 0,
    "linkedSize": 0,
    "updatedAt": "2024-03-15T03:00:12Z",
    "signedBy": ["owner"],
    "verification": {"time": "2024-03-16T08:00:00Z", "head": HASH, "ok": True, "isCurrent": True, "isReplayed": True},
    "failure": None,
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
    404: {"description": "Dataset not found, or this token may not read it."},
}


class VerificationModel(BaseModel):
    """The last verification of a dataset on this server."""

    time: str
    head: Annotated[str, Field(description="The last block that was verified.")]
    ok: bool
    isCurrent: Annotated[bool, Field(description="Whether that block is still the last one.")]  # noqa: N815
    isReplayed: Annotated[bool, Field(description="Whether transforms were replayed.")]  # noqa: N815


class FailureModel(BaseModel):
    """A failed last pull of a dataset."""

    time: str
    code: str
    message: Annotated[
        str, Field(description="Only for callers who may read the whole workspace: it may name files and hosts.")
    ]


class DatasetInfo(BaseModel):
    """A summary of a dataset."""

    model_config = _like(**_DATASET)

    id: str
    name: str
    kind: str
    visibility: str
    head: str
    numBlocks: int  # noqa: N815
    numRecords: Records  # noqa: N815
    watermark: str | None
    description: str | None
    keywords: tuple[str, ...]
    dataSize: Annotated[int, Field(description="Bytes of all slices.")]  # noqa: N815
    linkedFiles: Annotated[int, Field(description="Number of links of rows to files; a file counts once per link.")]  # noqa: N815
    linkedSize: Annotated[int, Field(description="Size of these files in bytes; a file counts once per link.")]  # noqa: N815
    updatedAt: Annotated[str | None, Field(description="When rows were last added.")]  # noqa: N815
    signedBy: Annotated[  # noqa: N815
        tuple[str, ...], Field(description="Names of the signers of the last block with valid signatures.")
    ]
    verification: VerificationModel | None
    failure: FailureModel | None
    maxAge: Annotated[  # noqa: N815
        str | None, Field(description="The maximum age of its last rows that its schedule promises.", examples=["2d"])
    ] = None
    isLate: Annotated[bool, Field(description="Whether its last rows are older than promised.")] = False  # noqa: N815
    isPaused: Annotated[bool, Field(description="Whether its schedule is paused.")] = False  # noqa: N815
    isArchive: Annotated[bool, Field(description="Whether it is an archive of files.")] = False  # noqa: N815


class Order(Enum):
    """An order of datasets; `-` is descending."""

    NAME = "name"
    NAME_DOWN = "-name"
    RECORDS = "numRecords"
    RECORDS_DOWN = "-numRecords"
    SIZE = "dataSize"
    SIZE_DOWN = "-dataSize"
    UPDATED = "updatedAt"
    UPDATED_DOWN = "-updatedAt"
    WATERMARK = "watermark"
    WATERMARK_DOWN = "-watermark"


_KEYS: Final[dict[str, Callable[[CatalogEntry], Any]]] = {
    "name": lambda entry: entry.name.lower(),
    "numRecords": lambda entry: entry.num_records,
    "dataSize": lambda entry: entry.data_size,
    "updatedAt": lambda entry: entry.updated_at or _LONG_AGO,
    "watermark": lambda entry: entry.watermark or _LONG_AGO,
}


class DatasetSummary(DatasetInfo):
    """The same, with the protocols that clients may use."""

    model_config = _like(**_DATASET, takes=[TAKES_SIGNATURES, TAKES_REFERENCES, TAKES_REVOCATIONS])

    takes: tuple[str, ...] = (TAKES_SIGNATURES, TAKES_REFERENCES, TAKES_REVOCATIONS)


@server.get("/", include_in_schema=False)
async def front() -> RedirectResponse:
    """Redirect browsers to the web interface."""
    return RedirectResponse("ui/")


@server.get("/health/", include_in_schema=False)
@server.get("/health")
async def health() -> Health:
    """Return the health and the release of the server."""
    return Health()


@server.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"example": "odf_event_streams 0.0\n"}}}},
)
def metrics(request: Request) -> Response:
    """Return Prometheus metrics of the server, without names of datasets."""
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@server.get("/token", responses={401: {"description": "Unknown or expired access token."}})
def token(caller: AnyCaller) -> TokenInfo:
    """Return name and scope of the token of the request."""
    if caller.token is None:
        raise unauthorized_error("There is no access token in the request")
    end = caller.token.expires_at
    return TokenInfo(name=caller.token.name, scope=caller.token.scope.value, expiresAt=str(end) if end else None)


@server.get(
    "/datasets",
    responses={
        200: {"headers": {TOTAL: {"description": "Number of datasets on all pages.", "schema": {"type": "integer"}}}},
        401: {"description": "Unknown or expired access token."},
    },
)
def datasets(
    request: Request,
    response: Response,
    caller: AnyCaller,
    search: Annotated[
        str,
        Query(
            max_length=200,
            description="Words that must all occur in name, description or keywords, in any order and case.",
            examples=["flight delay"],
        ),
    ] = "",
    kind: Annotated[DatasetKind | None, Query(description="Only those of this kind.")] = None,
    ids: Annotated[
        list[str] | None,
        Query(alias="id", max_length=_MAX_IDS, description="Only those with these ids; repeatable."),
    ] = None,
    sort: Annotated[Order, Query(description="Order; a hyphen before it for descending.")] = Order.NAME,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of datasets.")] = 100,
    offset: Annotated[int, Query(ge=0, le=1_000_000, description="Number of datasets to skip.")] = 0,
) -> list[DatasetInfo]:
    """List the datasets that the caller may read. A header has the number on all pages."""
    served: Catalog = request.app.state.catalog
    chosen = None if ids is None else set(ids)
    wanted = [
        entry
        for entry in served.visible_to(caller)
        if kind in (None, entry.kind)
        and (chosen is None or str(entry.dataset.handle.id) in chosen)
        and (not search or matches_search(search, entry.dataset.handle.alias, entry.description, entry.keywords))
    ]
    if sort is not Order.NAME:
        wanted.sort(key=_KEYS[sort.value.lstrip("-")], reverse=sort.value.startswith("-"))
    response.headers[TOTAL] = str(len(wanted))
    return [_info(entry, caller) for entry in wanted[offset : offset + limit]]


@dataset.get("", responses=_ANSWERS)
def summary(caller: AnyCaller, dataset: Readable) -> DatasetSummary:
    """Return a summary of the dataset."""
    return DatasetSummary(**_described(dataset, caller).model_dump())


@dataset.put("/visibility", responses={**_ANSWERS, 403: {"description": "Requires a token with the scope admin."}})
def visibility(
    caller: AnyCaller,
    dataset: Administered,
    value: Annotated[Visibility, Query(description="Whether anyone may read it.")],
) -> DatasetInfo:
    """Make the dataset public or private; needs the scope admin."""
    set_visibility(dataset.folder, value)
    return _described(dataset, caller)


def _described(dataset: StoredDataset, caller: Caller) -> DatasetInfo:
    entry = entry_of(dataset.reloaded())
    if entry is None:
        raise HTTPException(404, "There is no dataset of that name yet")
    return _info(entry, caller)


def _info(entry: CatalogEntry, caller: Caller) -> DatasetInfo:
    verified, failed = entry.verification, entry.failure
    is_own = caller.may(Scope.READ, entry.dataset.workspace_folder)
    return DatasetInfo(
        id=str(entry.dataset.handle.id),
        name=entry.name,
        kind=entry.kind.value,
        visibility=entry.visibility.value,
        head=str(entry.head),
        numBlocks=entry.num_blocks,
        numRecords=entry.num_records,
        watermark=str(entry.watermark) if entry.watermark is not None else None,
        description=entry.description,
        keywords=entry.keywords,
        dataSize=entry.data_size,
        linkedFiles=entry.linked_files,
        linkedSize=entry.linked_size,
        updatedAt=str(entry.updated_at) if entry.updated_at is not None else None,
        signedBy=entry.signed_by,
        verification=None
        if verified is None
        else VerificationModel(
            time=str(verified.time),
            head=str(verified.head),
            ok=verified.ok,
            isCurrent=verified.head == entry.head,
            isReplayed=not verified.integrity_only,
        ),
        maxAge=str(promise) if (promise := entry.schedule and entry.schedule.max_age) else None,
        isLate=entry.is_late(Timestamp.now()),
        isPaused=entry.schedule is not None and entry.schedule.is_paused,
        isArchive=entry.is_archive,
        failure=None
        if failed is None
        else FailureModel(time=str(failed.time), code=failed.code, message=failed.message if is_own else ""),
    )
