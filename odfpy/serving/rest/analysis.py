"""`/{dataset}/analysis`: the engine's analysis of a derivative's query: classes, state, watermark, late rows."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from odfpy import __version__
from odfpy.chain.events import SetTransform
from odfpy.coordinator.storage.storage import Storage
from odfpy.coordinator.transform.analysis import analyze
from odfpy.dataset.identity import DatasetId
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.contract import AnalyzeResponseSuccess
from odfpy.errors import OdfError
from odfpy.serving.callers.access import AnyCaller, Caller, Readable, is_readable, registry_of
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.http.query_limiter import refusal
from odfpy.serving.rest.models import NOT_MODIFIED, answers, with_headers

router = APIRouter(tags=["queries"])

_TAG: Final = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'


class AnalyzedStepModel(BaseModel):
    """A step of a query: a temporary table, or the output."""

    alias: Annotated[str | None, Field(description="Name of the temporary table; null for the output.")]
    queryClass: Annotated[str, Field(examples=["windows"])]  # noqa: N815
    reason: Annotated[str, Field(description="The reason for the class.")]
    state: Annotated[str, Field(description="State that the engine keeps between pulls.")]
    query: str


class AnalysisModel(BaseModel):
    """The analysis of the query of a derivative by its engine."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "engine": "spark",
                    "steps": [
                        {
                            "alias": None,
                            "queryClass": "row by row",
                            "reason": "each row is computed from one row of the input",
                            "state": "none",
                            "query": "select * from rates",
                        }
                    ],
                    "outputColumns": ["offset", "op", "system_time", "event_time", "rate"],
                    "primaryKey": None,
                    "watermark": "that of rates",
                    "late": "passed on",
                    "notes": [],
                }
            ]
        }
    )

    engine: str
    steps: list[AnalyzedStepModel]
    outputColumns: list[str]  # noqa: N815
    primaryKey: Annotated[  # noqa: N815
        list[str] | None,
        Field(description="Empty if there is at most one row; null if it cannot be derived from the query."),
    ]
    watermark: Annotated[str | None, Field(description="How it is computed; null if it does not advance.")]
    late: Annotated[str, Field(description="How late rows are handled.")]
    notes: list[str]


@router.get(
    "/analysis",
    response_model=AnalysisModel,
    responses={**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(400, 401, 404, 422, 429, 503)},
)
async def analysis(request: Request, caller: AnyCaller, dataset: Readable) -> Response:
    """Return the engine's analysis of the query of a derivative; the caller must be allowed to read its inputs, too."""
    storage = registry_of(request).storage_of(dataset)
    state = dataset.state
    transform = state.set_transform
    if transform is None:
        raise Refused(400, "A root dataset has no query")
    tag = tag_of(__version__, "analysis", str(state.head))

    def work(control: CancellationToken) -> Response:
        _require_inputs(storage, caller, dataset.input_ids)
        known = not_modified(request, tag)
        if known is not None:
            return known
        engines = request.app.state.own_engines[storage.root].get(caller).with_cancellation(control)
        try:
            analyzed = analyze(storage, engines, transform, state, lambda item: storage.get(item).state)
        except OdfError as error:
            raise refusal(error) or error from error
        if analyzed is None:
            raise Refused(400, "The schema of an input is not known yet\nPull the inputs first.")
        return reply(request, _model(transform, analyzed).model_dump(), tag)

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _require_inputs(storage: Storage, caller: Caller, ids: list[DatasetId]) -> None:
    """Check that the caller may read all inputs: the analysis of a query reveals their columns.

    Raises:
        Refused: 400, they may not, or an input is not here.
    """
    for dataset_id in ids:
        try:
            is_known = is_readable(storage.get(dataset_id), caller)
        except OdfError:  # it is not here, or is damaged
            is_known = False
        if not is_known:
            raise Refused(400, "An input of the dataset is not on this server, or this token may not read it")


def _model(transform: SetTransform, analyzed: AnalyzeResponseSuccess) -> AnalysisModel:
    return AnalysisModel(
        engine=transform.transform.engine,
        steps=[
            AnalyzedStepModel(
                alias=step.alias, queryClass=step.query_class, reason=step.reason, state=step.state, query=step.query
            )
            for step in analyzed.steps
        ],
        outputColumns=list(analyzed.output_columns),
        primaryKey=None if analyzed.primary_key is None else list(analyzed.primary_key),
        watermark=analyzed.watermark,
        late=analyzed.late,
        notes=list(analyzed.notes),
    )
