"""`/{dataset}/log`, `/{dataset}/activity` and `/{dataset}/manifest`: the history of a dataset, and its manifest."""

from __future__ import annotations

from itertools import islice
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from odfpy import __version__
from odfpy.chain.encoding import dump_snapshot, snapshot_document
from odfpy.coordinator.manifests import snapshot_of
from odfpy.coordinator.reading.history import block_tree, days_of
from odfpy.coordinator.storage.signers import Signers
from odfpy.serving.callers.access import Readable
from odfpy.serving.http.json_responses import not_modified, reply, tag_of
from odfpy.serving.rest.dataset import AsOfBlock, dataset_as_of
from odfpy.serving.rest.models import HASH, NOT_MODIFIED, Records, answers, with_headers

router = APIRouter(tags=["datasets"])

_TAG = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_ANSWERS = {**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(400, 401, 404, 422)}


class SignatureModel(BaseModel):
    """A signature of a block, or the error in its signatures."""

    signer: Annotated[str | None, Field(examples=["did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN"])] = None
    name: str | None = None
    time: str | None = None
    error: str | None = None
    code: str | None = None
    hint: str | None = None


class BlockModel(BaseModel):
    """A metadata block."""

    blockHash: Annotated[str, Field(examples=[HASH])]  # noqa: N815
    kind: str = "MetadataBlock"
    version: int
    content: Annotated[Any, Field(description="The block, with field names of the specification.")]
    signatures: list[SignatureModel]
    aheadOfClock: Annotated[float | None, Field(description="Seconds by which its time is in the future.")] = None  # noqa: N815


class DayModel(BaseModel):
    """A day of system time with blocks that add rows or move the watermark."""

    day: Annotated[str, Field(examples=["2024-03-15"])]
    numCommits: int  # noqa: N815
    numRecords: Records  # noqa: N815
    dataSize: int  # noqa: N815
    watermark: str | None
    lagSeconds: Annotated[  # noqa: N815
        float | None, Field(description="Lag of the last watermark of the day behind the time of its block.")
    ]


class ManifestModel(BaseModel):
    """A manifest that would create a dataset like this one."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"manifest": {"kind": "DatasetSnapshot"}, "yaml": "kind: DatasetSnapshot\n..."}]
        }
    )

    manifest: Any
    yaml: str


@router.get(
    "/log",
    response_model=list[BlockModel],
    responses={**with_headers(Link='<log?limit=50&asOfBlockHash=...>; rel="next"'), **answers(400, 401, 404, 422)},
)
def log(
    request: Request,
    dataset: Readable,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of blocks.")] = 50,
    as_of: AsOfBlock = None,
) -> Response:
    """List the blocks of the chain, newest first, with their signatures. The header `Link` refers to older ones."""
    seen = dataset_as_of(request, dataset, as_of)
    signers = Signers(dataset)
    blocks = list(islice(seen.chain.iter_blocks(), limit))
    older = blocks[-1].block.prev_block_hash if blocks else None
    link = {} if older is None else {"Link": f'<log?limit={limit}&asOfBlockHash={older}>; rel="next"'}
    return reply(request, [block_tree(hashed, signers.get(hashed)) for hashed in blocks], None, link)


@router.get("/activity", response_model=list[DayModel], responses=_ANSWERS)
def activity(
    request: Request,
    dataset: Readable,
    days: Annotated[
        int, Query(ge=1, le=10_000, description="Maximum number of days; the last ones are returned.")
    ] = 400,
) -> Response:
    """Return the rows and the watermark lag of each day. Days without commits are omitted."""
    tag = tag_of(__version__, "activity", str(dataset.state.head), days)
    known = not_modified(request, tag)
    if known is not None:
        return known
    tree = [
        DayModel(
            day=day.day,
            numCommits=day.num_commits,
            numRecords=day.num_records,
            dataSize=day.data_size,
            watermark=str(day.watermark) if day.watermark is not None else None,
            lagSeconds=day.lag_seconds,
        ).model_dump()
        for day in days_of(dataset.chain.iter_blocks(dataset.state.head), days)
    ]
    return reply(request, tree, tag)


@router.get("/manifest", response_model=ManifestModel, responses=_ANSWERS)
def manifest(request: Request, dataset: Readable, as_of: AsOfBlock = None) -> Response:
    """Return a manifest that would create a dataset like this one: source or query, schema, texts."""
    seen = dataset_as_of(request, dataset, as_of)
    tag = tag_of(__version__, "manifest", str(seen.state.head), str(dataset.handle))
    known = not_modified(request, tag)
    if known is not None:
        return known
    snapshot = snapshot_of(dataset.handle.alias, seen.state)
    return reply(request, {"manifest": snapshot_document(snapshot), "yaml": dump_snapshot(snapshot)}, tag)
