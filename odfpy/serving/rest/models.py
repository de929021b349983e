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
AnySchemaFormat = Annotated[SchemaFormat, _spelled(SchemaFormat), Field(description="Format of the schema.")]
MaybeSchemaFormat = Annotated[
    AnySchemaFormat | None, Field(description="Format of the schema, if the answer includes it.")
]
Records = Annotated[int, Field(description="Number of rows of the changelog, including corrections.")]
Skipped = Annotated[int, Field(ge=0, le=MAX_ROWS, description="Number of rows to skip.")]
Rows = Annotated[int, Field(ge=0, le=MAX_ROWS, description="Maximum number of rows.")]


class DatasetStateModel(BaseModel):
    """A dataset under its name in the query, with the block that is read."""

    model_config = ConfigDict(extra="forbid")

    id: Annotated[str, Field(max_length=200, examples=[ID])]
    alias: Annotated[str, Field(max_length=200, examples=["com.example.rates"])]
    blockHash: Annotated[str | None, Field(max_length=200, examples=[HASH])] = None  # noqa: N815


class QueryModel(BaseModel):
    """A query."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"examples": [{"query": QUERY, "include": ["Proof"]}]})

    query: Annotated[str, Field(max_length=_MAX_QUERY_LENGTH, description="SQL.", examples=[QUERY])]
    queryDialect: Annotated[  # noqa: N815
        str, Field(max_length=100, description=DIALECTS, examples=["SqlSpark"])
    ] = "SqlDataFusion"
    dataFormat: AnyDataFormat = DataFormat.ARRAY_OF_STRUCTURES  # noqa: N815
    include: Annotated[
        list[AnyInclude], Field(max_length=10, description="Proof implies Input, and schemaFormat implies Schema.")
    ] = []
    schemaFormat: MaybeSchemaFormat = None  # noqa: N815
    datasets: Annotated[
        list[DatasetStateModel] | None,
        Field(
            max_length=_MAX_DATASETS, description="Datasets named in the query; with a block, they are read as of it."
        ),
    ] = None
    skip: Skipped = 0
    limit: Rows = DEFAULT_LIMIT


class OutputModel(BaseModel):
    """The rows of an answer."""

    data: Annotated[Any, Field(description="In the format of dataFormat.", examples=[[{"offset": 0, "rate": "1.25"}]])]
    dataFormat: DataFormat  # noqa: N815
    schema_: Annotated[Any, Field(alias="schema", description="In the format of schemaFormat.")] = None
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
    """An answer; all fields except `output` only on request."""

    input: QueryModel | None = None
    output: OutputModel
    subQueries: list[Any] | None = None  # noqa: N815
    commitment: CommitmentModel | None = None
    proof: ProofModel | None = None


class VerifyModel(BaseModel):
    """An answer with a proof, as returned by `/query`; with or without its rows."""

    model_config = ConfigDict(extra="forbid")

    input: Annotated[Any, Field(description="The query, as it was signed.", examples=[{"query": QUERY}])]
    subQueries: list[Any] = []  # noqa: N815
    commitment: CommitmentModel
    proof: ProofModel
    output: Any = None
    version: int = 1


class ProblemModel(BaseModel):
    """Why an answer is not valid."""

    kind: Annotated[str, Field(examples=["VerificationFailed::OutputMismatch"])]
    message: str
    expected_hash: str | None = None
    actual_hash: str | None = None
    dataset_id: str | None = None
    block_hash: str | None = None


class SignerModel(BaseModel):
    """A signer; the name is the local name of the key, and `me` the key of this server."""

    id: Annotated[str, Field(examples=["did:key:z6Mko2nqhQ9wYSTS5Giab2j1aHzGnxHimqwmFeEVY8aNsVnN"])]
    name: Annotated[str, Field(examples=["me"])]


class VerdictModel(BaseModel):
    """The result of a verification: whether the signature is valid and the query gives the same answer."""

    ok: bool
    signer: Annotated[
        SignerModel | None, Field(description="The signer that the proof names, on request; null if that is not a key.")
    ] = None
    error: ProblemModel | None = None


class RefusalModel(BaseModel):
    """An error, and what to try."""

    message: Annotated[str, Field(examples=["No dataset 'com.example.rate'\nDid you mean com.example.rates?"])]
    detail: Annotated[Any, Field(description="The same for other clients: a text, or a list of errors.")] = None
    code: Annotated[str | None, Field(description="Machine-readable reason, such as NoSuchFile.")] = None


def answers(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return error responses for the OpenAPI."""
    why = {
        400: "The request is invalid; the message has the reason.",
        401: "An access token is needed, or the token has expired.",
        403: "Not allowed for this token.",
        404: "Dataset or block not found, or this token may not read it.",
        408: "Timed out waiting for the request body.",
        409: "Another process is writing to the dataset.",
        413: "The request is too large.",
        415: "The content type or encoding is not supported.",
        422: "The request is not valid, or the idempotency key was used for other data.",
        429: "You have too many running queries.",
        503: "The server is busy, or the query took too long.",
    }
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": why[status], "model": RefusalModel} for status in statuses
    }
    return responses


NOT_MODIFIED: dict[int | str, dict[str, Any]] = {
    304: {"description": "Not modified: the client has the current version (`If-None-Match`)."}
}


def with_example(example: Any, kind: str = "application/json") -> dict[str, Any]:
    """Return a response with an example."""
    return {"description": "The answer.", "content": {kind: {"example": example}}}


def with_headers(**examples: str) -> dict[int | str, dict[str, Any]]:
    """Return a response with headers, each with an example; `_` stands for a hyphen."""
    why = {
        "ETag": "Depends only on the query and the blocks; absent if the answer is not deterministic.",
        "Link": "The next page, of the same blocks; absent on the last page.",
        "Idempotent-Replayed": "The data was ingested before; this is the earlier answer.",
    }
    headers = {
        name: {"description": why[name], "schema": {"type": "string"}, "example": example}
        for name, example in ((key.replace("_", "-"), text) for key, text in examples.items())
    }
    return {200: {"description": "The answer.", "headers": headers}}
