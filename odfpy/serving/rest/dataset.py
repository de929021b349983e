"""`/{dataset}/tail` and `/{dataset}/metadata`: one dataset, read without an engine."""

from __future__ import annotations

from contextlib import closing
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy import __version__
from odfpy.codec.tree import to_tree
from odfpy.coordinator.reading.read import tail_scan
from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.data.multihash import Multihash
from odfpy.data.schemas.arrow import to_arrow
from odfpy.data.schemas.schema import DataSchema
from odfpy.engine.cancellation import CancellationToken
from odfpy.engine.registry import EngineRegistry
from odfpy.engine.scans import ScanRequest
from odfpy.errors import InvalidValue
from odfpy.query.wire.layouts import DataFormat, laid_out
from odfpy.query.wire.request import DEFAULT_LIMIT
from odfpy.query.wire.response import ResponseLimits, too_many_rows
from odfpy.query.wire.schema_formats import SchemaFormat, write_schema
from odfpy.serving.callers.access import AnyCaller, Readable
from odfpy.serving.http.errors import Refused
from odfpy.serving.http.json_responses import limits_of, not_modified, reply, tag_of
from odfpy.serving.rest.models import (
    NOT_MODIFIED,
    AnyDataFormat,
    AnySchemaFormat,
    MaybeSchemaFormat,
    OutputModel,
    Rows,
    Skipped,
    answers,
    with_headers,
)

if TYPE_CHECKING:
    import pyarrow as pa

router = APIRouter(tags=["queries"])

AsOfBlock = Annotated[
    str | None,
    Query(
        alias="asOfBlockHash", max_length=200, description="The dataset as of this block; by default the current one."
    ),
]


_TAG = 'W/"f1620566002562203fa5af2732a888ccdf6a254c4b2652cf5b34ff1631cb0c1635741"'
_TAIL = {**with_headers(ETag=_TAG, Link='<tail?skip=100&limit=100&asOfBlockHash=...>; rel="next"'), **NOT_MODIFIED}


@router.get("/tail", response_model=OutputModel, responses={**_TAIL, **answers(400, 401, 404, 422, 429, 503)})
async def tail(
    request: Request,
    caller: AnyCaller,
    dataset: Readable,
    skip: Skipped = 0,
    limit: Rows = DEFAULT_LIMIT,
    dataFormat: AnyDataFormat = DataFormat.ARRAY_OF_STRUCTURES,  # noqa: N803
    schemaFormat: MaybeSchemaFormat = None,  # noqa: N803
    as_of: AsOfBlock = None,
) -> Response:
    """Return the last rows, in order of offset. The header `Link` refers to earlier rows, as of the same block."""
    limits = limits_of(request)
    most = request.app.state.settings.max_rows

    def work(control: CancellationToken) -> Response:
        seen = dataset_as_of(request, dataset, as_of)
        state = seen.state
        tag = tag_of(
            __version__, "tail", str(state.head), dataFormat.value, schemaFormat and schemaFormat.value, skip, limit
        )
        known = not_modified(request, tag)
        if known is not None:
            return known
        if min(limit, state.num_records - skip) > most:
            raise too_many_rows(most)
        tree: dict[str, Any] = {"data": {} if dataFormat is DataFormat.STRUCTURE_OF_ARRAYS else []}
        if state.schema is not None:
            wanted = tail_scan(seen, limit, skip, limits.bytes)
            tree = {"data": laid_out(_read(request.app.state.engines.get(caller), wanted, control, limits), dataFormat)}
        tree["dataFormat"] = dataFormat.value
        if schemaFormat is not None:
            schema = to_arrow(state.schema or DataSchema(()))
            tree |= {"schema": write_schema(schema, schemaFormat), "schemaFormat": schemaFormat.value}
        return reply(request, tree, tag, _link(request, str(state.head), skip, limit, state.num_records))

    response: Response = await request.app.state.gate.run(request, caller, work)
    return response


def _read(engines: EngineRegistry, wanted: ScanRequest, control: CancellationToken, limits: ResponseLimits) -> pa.Table:
    """Return the rows, read in a separate process."""
    import pyarrow as pa

    rows = engines.scan(wanted, control)
    assert rows is not None  # noqa: S101 - queries of servers run in a separate process
    with closing(rows):
        table = pa.Table.from_batches(rows, wanted.arrow_schema())
    limits.check_values(table)
    return table


def _link(request: Request, head: str, skip: int, limit: int, count: int) -> dict[str, str]:
    """Return the URL of the previous page, if there is one."""
    if not limit or skip + limit >= count:
        return {}
    url = request.url.include_query_params(skip=skip + limit, limit=limit, asOfBlockHash=head)
    return {"Link": f'<tail?{url.query}>; rel="next"'}


class Aspect(Enum):
    """An aspect of the metadata of a dataset."""

    ATTACHMENTS = "Attachments"
    INFO = "Info"
    LICENSE = "License"
    REFS = "Refs"
    SCHEMA = "Schema"
    SEED = "Seed"
    VOCAB = "Vocab"


class MetadataModel(BaseModel):
    """The requested aspects that the dataset has."""

    attachments: Any = None
    info: Any = None
    license: Any = None
    refs: Annotated[list[dict[str, str]] | None, Field(examples=[[{"name": "head", "blockHash": "f1620..."}]])] = None
    schema_: Annotated[Any, Field(alias="schema")] = None
    schemaFormat: SchemaFormat | None = None  # noqa: N815
    seed: Any = None
    vocab: Any = None


class MetadataAnswer(BaseModel):
    """The same, in the form of the reference."""

    output: MetadataModel


@router.get(
    "/metadata",
    response_model=MetadataAnswer,
    responses={**with_headers(ETag=_TAG), **NOT_MODIFIED, **answers(400, 401, 404, 422)},
)
def metadata(
    request: Request,
    dataset: Readable,
    include: Annotated[
        str,
        Query(max_length=200, description="attachments, info, license, refs, schema, seed, vocab; comma-separated."),
    ] = "seed",
    schemaFormat: AnySchemaFormat = SchemaFormat.ARROW_JSON,  # noqa: N803
    as_of: AsOfBlock = None,
) -> Response:
    """Return metadata of the dataset from its chain."""
    parts = _parts(include)
    seen = dataset_as_of(request, dataset, as_of)
    state = seen.state
    refs = [{"name": "head", "blockHash": str(state.head)}]
    known = [refs, sorted(part.value for part in parts), schemaFormat.value]
    tag = tag_of(__version__, "metadata", known)
    same = not_modified(request, tag)
    if same is not None:
        return same
    events = {
        Aspect.ATTACHMENTS: state.attachments,
        Aspect.INFO: state.info,
        Aspect.LICENSE: state.license,
        Aspect.SEED: state.seed,
        Aspect.VOCAB: state.vocab,
    }
    output = {
        part.value.lower(): to_tree(event) for part, event in events.items() if part in parts and event is not None
    }
    if Aspect.REFS in parts:
        output["refs"] = refs
    if Aspect.SCHEMA in parts and state.schema is not None:
        output |= {"schema": write_schema(to_arrow(state.schema), schemaFormat), "schemaFormat": schemaFormat.value}
    return reply(request, {"output": output}, tag)


def _parts(text: str) -> frozenset[Aspect]:
    known = {part.value.lower(): part for part in Aspect}
    names = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name.lower() not in known]
    if unknown:
        raise Refused(400, f"include: there is no {unknown[0]!r}\nOne of: {', '.join(known)}")
    return frozenset(known[name.lower()] for name in names)


def dataset_as_of(request: Request, dataset: StoredDataset, block: str | None) -> StoredDataset:
    """Return the dataset as it was at a reachable block; as it is now, if none is given.

    Args:
        request: the request.
        dataset: the dataset.
        block: hash of the block.

    Raises:
        Refused: 400 or 404, it is not a valid hash, or not that of a block of the dataset.
    """
    if block is None:
        return dataset
    try:
        block_hash = Multihash.parse(block)
    except InvalidValue as error:
        raise Refused(400, f"asOfBlockHash: {error.message}\nWrite the whole hash of a block.") from error
    if not request.app.state.reaches.get(dataset.folder).has(dataset.layout, None, block_hash):
        raise Refused(404, f"{dataset.handle} has no block {block}")
    return dataset.at(block_hash)
