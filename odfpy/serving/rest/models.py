"""Request and response models for the OpenAPI; the names of fields follow the reference implementation."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from odfpy.query.wire.layouts import DataFormat
from odfpy.query.wire.request import DEFAULT_LIMIT, MAX_ROWS, Include
from odfpy.query.wire.schema_formats import SchemaFormat

QUERY = 'select "offset", op, event_time, rate from "com.example.rates" order by "offset" limit 2'
DIALECTS = "SqlDataFusion or SqlSpark."
ID = "did:odf:fed01b731c71002a4d1bf1fe3d45aea07c2ac084d5c86b3d30ee05e39394e0edd7207"
HASH = "f1620aad0b89382da51b81720cb571e26ee3aa8ec41b9d6b6525740bffcd511f6dd65"
_MAX_DATASETS = 1000
_MAX_QUERY_LENGTH = 1_000_000


def _spelled(kind: type[Enum]) -> BeforeValidator:
    """Accept values in any case, and with hyphens, like the reference implementation."""
    known = {member.value.lower(): member for member in kind}

    def find(value: Any) -> Any:
        return known.get(value.lower().replace("-", ""), value) if isinstance(value, str) else value

    return BeforeValidator(find)


AnyInclude = Annotated[Include, _spelled(Include)]
AnyDataFormat = Annotated[
    DataFormat, _spelled(DataFormat), Field(description="Rows as objects, an object of lists, or lists.")
]
AnySchemaFormat = Annotated[SchemaFormat, _spelled(SchemaFormat), Field(description="How the schema is written.")]
MaybeSchemaFormat = Annotated[AnySchemaFormat | None, Field(description="How the schema is written, if it is wanted.")]
Records = Annotated[int, Field(description="Rows of the changelog, corrections among them.")]
Skipped = Annotated[int, Field(ge=0, le=MAX_ROWS, description="Rows to leave out first.")]
Rows = Annotated[int, Field(ge=0, le=MAX_ROWS, description="Maximum number of rows.")]


class DatasetStateModel(BaseModel):
    """A dataset by the name that the query gives it, and as of which block."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(max_length=200, examples=[ID])]
    alias: Annotated[str, Field(max_length=200, examples=["com.example.rates"])]
    blockHash: Annotated[str | None, Field(max_length=200, examples=[HASH])] = None  # noqa: N815


class QueryModel(BaseModel):
    """A question."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"query": QUERY, "include": ["Proof"]}]})

    query: Annotated[str, Field(max_length=_MAX_QUERY_LENGTH, description="SQL.", examples=[QUERY])]
    queryDialect: Annotated[  # noqa: N815
        str, Field(max_length=100, description=DIALECTS, examples=["SqlSpark"])
    ] = "SqlDataFusion"
    dataFormat: AnyDataFormat = DataFormat.ARRAY_OF_STRUCTURES  # noqa: N815
    include: Annotated[
        list[AnyInclude], Field(max_length=10, description="Proof takes Input along, schemaFormat takes Schema.")
    ] = []
    schemaFormat: MaybeSchemaFormat = None  # noqa: N815
    datasets: Annotated[
        list[DatasetStateModel] | None,
        Field(max_length=_MAX_DATASETS, description="Names of the query; those with a block are read as of it."),
    ] = None
    skip: Skipped = 0
    limit: Rows = DEFAULT_LIMIT


class OutputModel(BaseModel):
    """The rows of an answer."""

    data: Annotated[Any, Field(description="As dataFormat says.", examples=[[{"offset": 0, "rate": "1.25"}]])]
    dataFormat: DataFormat  # noqa: N815
    schema_: Annotated[Any, Field(alias="schema", description="As schemaFormat says.")] = None
    schemaFormat: SchemaFormat | None = None  # noqa: N815


class CommitmentModel(BaseModel):
    """The signed part of an answer: hashes of canonical JSON, sha3-256."""

    inputHash: Annotated[str, Field(max_length=200, examples=[HASH])]  # noqa: N815
    outputHash: Annotated[str, Field(max_length=200, examples=[HASH])]  # noqa: N815
    subQueriesHash: Annotated[str, Field(max_length=200, examples=[HASH])]  # noqa: N815


class ProofModel(BaseModel):
    """The signature of a commitment."""

    type: Annotated[str, Field(max_length=100, examples=["Ed25519Signature2020"])]
    verificationMethod: Annotated[  # noqa: N815
        str, Field(max_length=200, examples=["did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN"])
    ]
    proofValue: Annotated[str, Field(max_length=200, examples=["uTfyiK1fq1wVnaDDx1wmuNz_pC4YNR5DeMQ..."])]  # noqa: N815


class AnswerModel(BaseModel):
    """An answer; all but `output` where it was asked for."""

    input: QueryModel | None = None
    output: OutputModel
    subQueries: list[Any] | None = None  # noqa: N815
    commitment: CommitmentModel | None = None
    proof: ProofModel | None = None


class VerifyModel(BaseModel):
    """An answer with a proof, as `/query` gave it; with or without its rows."""

    model_config = ConfigDict(extra="forbid")

    input: Annotated[Any, Field(description="The question, as it was signed.", examples=[{"query": QUERY}])]
    subQueries: list[Any] = []  # noqa: N815
    commitment: CommitmentModel
    proof: ProofModel
    output: Any = None
    version: int = 1


class ProblemModel(BaseModel):
    """Why an answer cannot be relied on."""

    kind: Annotated[str, Field(examples=["VerificationFailed::OutputMismatch"])]
    message: str
    expected_hash: str | None = None
    actual_hash: str | None = None
    dataset_id: str | None = None
    block_hash: str | None = None


class SignerModel(BaseModel):
    """Somebody who has signed; the name is what their key is called here, and `me` that of this server."""

    id: Annotated[str, Field(examples=["did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN"])]
    name: Annotated[str, Field(examples=["me"])]


class VerdictModel(BaseModel):
    """The verdict on an answer: it is what was signed and comes out again, or not."""

    ok: bool
    signer: Annotated[
        SignerModel | None, Field(description="Whom the proof names, if asked for; null if that is not a key.")
    ] = None
    error: ProblemModel | None = None


class RefusalModel(BaseModel):
    """The fault of a request, and what to try."""

    message: Annotated[str, Field(examples=["No dataset 'com.example.rate'\nDid you mean com.example.rates?"])]
    detail: Annotated[Any, Field(description="The same for other clients: a text, or a list of problems.")] = None
    code: Annotated[str | None, Field(description="For programs, such as NoSuchFile.")] = None


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return error responses for the OpenAPI."""
    why = {
        400: "The request is invalid; the message has the reason.",
        401: "An access token is needed, or the token has expired.",
        403: "Not allowed for this token.",
        404: "Dataset or block not found, or this token may not read it.",
        408: "Timed out waiting for the request body.",
        409: "Another process is writing to the dataset.",
        413: "This is too large.",
        415: "The content type or encoding is not supported.",
        422: "The request is not valid, or the idempotency key was used for other data.",
        429: "You have too many running queries.",
        503: "The server is busy, or the query took too long.",
    }
    found: dict[int | str, dict[str, Any]] = {
        status: {"description": why[status], "model": RefusalModel} for status in statuses
    }
    return found


NOT_MODIFIED: dict[int | str, dict[str, Any]] = {304: {"description": "The client has it (`If-None-Match`)."}}


def with_example(example: Any, kind: str = "application/json") -> dict[str, Any]:
    """Return a response with an example."""
    return {"description": "The answer.", "content": {kind: {"example": example}}}


def with_headers(**examples: str) -> dict[int | str, dict[str, Any]]:
    """Return a response with headers, each with an example; `_` stands for a hyphen."""
    why = {
        "ETag": "Follows from the question and the blocks; not there if the answer does not.",
        "Link": "The next page, of the same blocks, as long as there may be one.",
        "Idempotent-Replayed": "This was ingested before; the answer is that of then.",
    }
    headers = {
        name: {"description": why[name], "schema": {"type": "string"}, "example": example}
        for name, example in ((key.replace("_", "-"), text) for key, text in examples.items())
    }
    return {200: {"description": "The answer.", "headers": headers}}
