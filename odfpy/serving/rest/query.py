"""`/query` and `/verify`: SQL over all datasets that the caller may read, and signed answers."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from odfpy import __version__
from odfpy.codec.exact_json import AmbiguousJson, load_exact
from odfpy.codec.tree import TreeError
from odfpy.coordinator.storage.keys import UserKeys
from odfpy.dataset.proof import Proof
from odfpy.engine.cancellation import CancellationToken
from odfpy.errors import InvalidValue
from odfpy.query.plan import plan
from odfpy.query.service import QueryService
from odfpy.query.wire.commitments import InvalidCommitment
from odfpy.query.wire.layouts import DataFormat
from odfpy.query.wire.reproducible import depends_on_more
from odfpy.query.wire.request import DEFAULT_LIMIT, Include, QueryRequest
from odfpy.query.wire.response import ask, require_datasets
from odfpy.query.wire.verification import CommittedAnswer, VerificationFailed, verify_answer
from odfpy.serving.callers.access import AnyCaller, Caller, registry_of
from odfpy.serving.callers.resolver import CallerResolver
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import limits_of, not_modified, reply, tag_of
from odfpy.serving.rest.models import (
    DIALECTS,
    NOT_MODIFIED,
    QUERY,
    AnswerModel,
    AnyDataFormat,
    MaybeSchemaFormat,
    QueryModel,
    RefusalModel,
    Rows,
    Skipped,
    VerdictModel,
    VerifyModel,
    answers,
    with_headers,
)

router = APIRouter(tags=["queries"])

_TAG = 'W/"f16209cf870968515d524db8f832b29551fe96d79d3cbd972dcfc6bae1f89be6bdfca"'
_ANSWERS = {
    **with_headers(ETag=_TAG, Link='<query?query=...&skip=100&limit=100>; rel="next"'),
    **NOT_MODIFIED,
    **answers(400, 401, 404, 413, 422, 429, 503),
}
_NOT_OK: dict[str, Any] = {
    "description": "The proof is not valid, or cannot be reproduced; or the request is invalid (`message`).",
    "model": VerdictModel | RefusalModel,
}


@router.post("/query", response_model=AnswerModel, responses=_ANSWERS)
async def post_query(request: Request, caller: AnyCaller, body: QueryModel) -> Response:
    """Run a SQL query over any number of datasets.

    If an answer includes `Input`, send its `datasets` with the next query to read the same blocks: then pages (`skip`
    and `limit`) are consistent, even if data is added in between.
    """
    return await _answer(request, caller, _request_of(body))


@router.get("/query", response_model=AnswerModel, responses=_ANSWERS)
async def get_query(
    request: Request,
    caller: AnyCaller,
    query: Annotated[str, Query(max_length=10_000, description="SQL.", examples=[QUERY])],
    queryDialect: Annotated[str, Query(max_length=100, description=DIALECTS)] = "SqlDataFusion",  # noqa: N803
    dataFormat: AnyDataFormat = DataFormat.ARRAY_OF_STRUCTURES,  # noqa: N803
    format_: Annotated[AnyDataFormat | None, Query(alias="format", description="The same as dataFormat.")] = None,
    schemaFormat: MaybeSchemaFormat = None,  # noqa: N803
    include: Annotated[str, Query(max_length=100, description="Input, Proof, Schema; comma-separated.")] = "",
    datasets: Annotated[
        str | None, Query(max_length=10_000, description="As in the body of the POST, as JSON; see the header Link.")
    ] = None,
    skip: Skipped = 0,
    limit: Rows = DEFAULT_LIMIT,
) -> Response:
    """The same with URL parameters. The header `Link` refers to the next page, of the same blocks."""
    tree = {
        "query": query,
        "queryDialect": queryDialect,
        "dataFormat": (format_ or dataFormat).value,
        "include": [part.strip() for part in include.split(",") if part.strip()],
        "skip": skip,
        "limit": limit,
    }
    tree |= {} if schemaFormat is None else {"schemaFormat": schemaFormat.value}
    tree |= {} if datasets is None else {"datasets": _json(datasets)}
    return await _answer(request, caller, _parsed(tree), with_link=True)


@router.post("/verify", response_model=VerdictModel, responses={**answers(401, 404, 413, 422, 429, 503), 400: _NOT_OK})
async def verify(
    request: Request,
    caller: AnyCaller,
    body: VerifyModel,
    include: Annotated[
        str, Query(max_length=100, description="Signer: also return the signer that the proof names.")
    ] = "",
) -> Response:
    """Verify an answer with a proof, of this node or another one: check the signature, and run the query again."""
    del body  # only declared for the OpenAPI; the body is parsed like on the command line
    text = await request.body()
    service, limits = _service(request, caller), limits_of(request)

    def work(control: CancellationToken) -> Response:
        document = CommittedAnswer.load(text, sub_queries=[])
        named = {"signer": _signer_of(request, document.proof)} if include.lower() == "signer" else {}
        try:
            verify_answer(service, document, revoked=UserKeys().revoked, control=control, limits=limits)
        except (InvalidCommitment, VerificationFailed) as error:
            details = error.details if isinstance(error, VerificationFailed) else {}
            problem = {"kind": error.kind, "message": error.message, **details}
            verdict = {"ok": False, **named, "error": problem}
            return Response(json.dumps(verdict), 400, media_type="application/json")
        return reply(request, {"ok": True, **named})

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _signer_of(request: Request, proof: Proof) -> dict[str, str] | None:
    try:
        key = proof.signer
    except InvalidValue:  # so it cannot have been signed
        return None
    return {"id": str(key), "name": request.app.state.node_keys().name_of(key)}


async def _answer(request: Request, caller: Caller, asked: QueryRequest, *, with_link: bool = False) -> Response:
    service, limits = _service(request, caller), limits_of(request)

    def work(control: CancellationToken) -> Response:
        require_datasets(service, asked)
        planned = plan(service.resolver, asked.to_query())
        is_lasting = not depends_on_more(planned)
        tag = _tag(asked.bound_to(planned.inputs)) if is_lasting else None
        known = not_modified(request, tag)
        if known is not None:
            return known
        key = request.app.state.node_keys().own() if Include.PROOF in asked.include else None
        answer = ask(service, asked, control=control, limits=limits)
        tree, bound = answer.tree(key), answer.request
        more = _link(bound, tree) if with_link else {}
        return reply(request, tree, _tag(bound) if is_lasting else None, more)

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _service(request: Request, caller: Caller) -> QueryService:
    state = request.app.state
    return QueryService(CallerResolver(registry_of(request), state.reaches, caller), state.engines.get(caller))


def _tag(bound: QueryRequest) -> str:
    return tag_of(__version__, bound.tree())


def _link(bound: QueryRequest, tree: dict[str, Any]) -> dict[str, str]:
    """Return the URL of the next page, if this one is full."""
    data = tree["output"]["data"]
    columns = list(data.values()) if isinstance(data, dict) else [data]
    if not columns or len(columns[0]) < bound.limit or not bound.limit:
        return {}
    asked = bound.tree()
    asked["include"] = ",".join(asked["include"])
    asked["datasets"] = json.dumps(asked["datasets"], separators=(",", ":"))
    asked["skip"] += bound.limit
    return {"Link": f'<query?{urlencode({name: value for name, value in asked.items() if value != ""})}>; rel="next"'}


def _request_of(body: QueryModel) -> QueryRequest:
    return _parsed(body.model_dump(mode="json", exclude_none=True))


def _parsed(tree: Any) -> QueryRequest:
    try:
        return QueryRequest.parse(tree)
    except TreeError as error:
        raise Refused.of(400, error) from error


def _json(text: str) -> Any:
    try:
        return load_exact(text)
    except AmbiguousJson as error:
        raise Refused(400, f"datasets: {error}") from error
    except (ValueError, RecursionError) as error:
        raise Refused(400, "datasets is not JSON") from error
