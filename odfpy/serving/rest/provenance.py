"""`/{dataset}/provenance`: the rows that a row was computed from, down to the files of sources."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Final, TypeAlias

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy import __version__
from odfpy.coordinator.provenance.guarded_rows import RowGuard
from odfpy.coordinator.provenance.trace import row_provenance
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.transform.intervals import InputDiverged
from odfpy.dataset.identity import DatasetId
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import DatasetNotFound, OdfError
from odfpy.provenance.errors import UnknownProvenance
from odfpy.provenance.report import tree
from odfpy.serving.callers.access import AnyCaller, Caller, Readable, is_readable, registry_of
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.http.query_limiter import refusal
from odfpy.serving.rest.models import HASH, ID, NOT_MODIFIED, answers, with_headers
from odfpy.serving.settings import ServeSettings

router = APIRouter(tags=["queries"])

_TAG: Final = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_Cited: TypeAlias = Annotated[
    dict[str, list[int]], Field(description="Offsets by the ids of the inputs.", examples=[{ID: [0, 3]}])
]


class OriginModel(BaseModel):
    """The origin of a row of a root dataset."""

    block: Annotated[str, Field(examples=[HASH])]
    sequenceNumber: int  # noqa: N815
    systemTime: str  # noqa: N815
    source: Annotated[str | None, Field(description="A URL, a path, or the name of a push source.")]
    file: str | None
    stateKind: Annotated[str | None, Field(description="Kind of the source state, such as odf/etag.")]  # noqa: N815
    state: str | None


class TracedRowModel(BaseModel):
    """A row, and the rows that it was computed from."""

    offset: int
    op: Annotated[str, Field(description="+A, -R, -C or +C.", examples=["+A"])]
    values: dict[str, Any]
    madeOf: _Cited  # noqa: N815
    becauseOf: Annotated[_Cited, Field(description="For a correction: the rows that caused it.")]  # noqa: N815
    takesBack: Annotated[int | None, Field(description="The row of the same dataset that it retracts.")]  # noqa: N815
    ways: Annotated[int, Field(description="Number of ways in which the same row results; this is one of them.")]
    problem: Annotated[str | None, Field(description="Why its provenance is unknown.")]
    origin: OriginModel | None = None


class StepModel(BaseModel):
    """A step of the query."""

    model_config = {"populate_by_name": True}

    alias: str | None
    query_class: Annotated[str, Field(alias="class")]
    reason: str
    query: str


class ColumnSourceModel(BaseModel):
    """A column from which another one is computed."""

    column: str
    input: str
    inputName: str  # noqa: N815
    source: str | None
    copied: bool
    through: list[str]


class TracedDatasetModel(BaseModel):
    """A dataset of the trace, with the rows that belong to it."""

    id: str
    name: str
    kind: str
    followed: Annotated[bool, Field(description="Whether its rows are traced to its inputs.")]
    check: Annotated[str | None, Field(description="Result of a replay of only the cited rows.")]
    remark: str | None
    steps: list[StepModel]
    columns: list[ColumnSourceModel]
    hidden: Annotated[list[str], Field(description="Ids of inputs whose rows the caller may not read.")]
    rows: list[TracedRowModel]


class NamedModel(BaseModel):
    """A dataset, by id and name."""

    id: Annotated[str, Field(examples=[ID])]
    name: Annotated[str, Field(examples=["com.example.daily"])]


class ProvenanceModel(BaseModel):
    """The requested dataset, then those that it is derived from, each before its own inputs."""

    dataset: NamedModel
    offset: int
    column: str | None
    check: Annotated[str, Field(examples=["checked"], description="The worst result of all replays.")]
    datasets: list[TracedDatasetModel]


@router.get(
    "/provenance",
    response_model=ProvenanceModel,
    responses={**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(400, 401, 404, 422, 429, 503)},
)
async def provenance(
    request: Request,
    caller: AnyCaller,
    dataset: Readable,
    offset: Annotated[int, Query(ge=0, le=2**62, description="Offset of the row.")],
    column: Annotated[str | None, Query(max_length=1000, description="Trace only this column.")] = None,
    depth: Annotated[
        int | None, Query(ge=0, le=10_000, description="Follow at most this many levels of derivatives.")
    ] = None,
    check: Annotated[bool, Query(description="Whether to check the result by a replay of the cited rows.")] = True,
) -> Response:
    """Return the rows that a row was computed from, down to its sources, as `odf provenance -o json` does.

    For inputs that the caller may not read, it only returns the ids.
    """
    settings: ServeSettings = request.app.state.settings
    storage = registry_of(request).storage_of(dataset)

    def work(control: CancellationToken) -> Response:
        guard = RowGuard(_visibility(storage, caller), settings.max_rows, settings.max_answer, control)
        engines = request.app.state.own_engines[storage.root].get(caller).with_cancellation(control)
        try:
            answer = row_provenance(
                storage,
                engines,
                str(dataset.handle.id),
                offset,
                column=column,
                depth=depth,
                check=check,
                guard=guard,
            )
        except OdfError as error:
            raise _refused(error) from error
        traced = tree(answer)
        tag = tag_of(__version__, "provenance", traced)
        return not_modified(request, tag) or reply(request, traced, tag)

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _visibility(storage: Storage, caller: Caller) -> Callable[[DatasetId], bool] | None:
    """Return a check of whether a caller may read a dataset; None for a caller who may read all."""
    if caller.may(Scope.READ, storage):
        return None

    def may_read(dataset_id: DatasetId) -> bool:
        try:
            return is_readable(storage.get(dataset_id), caller)
        except OdfError:  # it is not in this workspace, or is damaged
            return False

    return may_read


def _refused(error: OdfError) -> OdfError | Refused:
    """Return the error response if the request or the dataset's inputs are at fault; else the error itself."""
    if isinstance(error, DatasetNotFound):  # its message contains folders of the server
        return Refused(400, "An input of the dataset is not on this server, so its rows cannot be traced")
    if isinstance(error, (UnknownProvenance, InputDiverged)):
        return Refused.of(400, error)
    return refusal(error) or error
