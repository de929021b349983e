"""Signed statements of what a caller reads of a table, checked by `odf verify-result`: an extension of the protocol.

POST /shares/{share}/schemas/{schema}/tables/{table}/proof     body as of a query: `version` or `timestamp`, or nothing
"""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from odfpy.codec.tree import to_tree
from odfpy.coordinator.storage.keys import answer_key
from odfpy.data.multihash import Multihash
from odfpy.dataset.identity import DatasetId
from odfpy.query.wire.commitments import Commitment
from odfpy.query.wire.request import DatasetState
from odfpy.query.wire.verification import CommittedAnswer
from odfpy.serving.sharing.actions import ResponseFormat
from odfpy.serving.sharing.answers import version_asked
from odfpy.serving.sharing.bodies import QueryBody, query_body
from odfpy.serving.sharing.callers import AnyCaller
from odfpy.serving.sharing.errors import SharingError
from odfpy.serving.sharing.question import TableQuestion, question_of
from odfpy.sharing.model import SourceKind
from odfpy.sharing.names import SharePath
from odfpy.sharing.statements import ReadTable
from odfpy.sharing.tables.contract import TableVersion

_WHOLE: Final = {"version", "timestamp"}

router = APIRouter()


@router.post("/shares/{share}/schemas/{schema}/tables/{table}/proof")
def proof(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    table: str,
    body: Annotated[QueryBody, Depends(query_body)],
) -> Response:
    """Return a signed proof of the rows that the caller reads of a version."""
    question = question_of(request, caller, SharePath(share, schema, table), None)
    other = sorted(body.model_fields_set - _WHOLE)
    if other:
        raise SharingError(400, f"A proof is about a whole version, without {other[0]}")
    version = version_asked(question.table, body.version, body.timestamp)
    headers = question.headers(version, ResponseFormat.PARQUET)
    rows = to_tree(question.state.row_hashes.get(question.table, version, question.schema(version), question.view))
    asked = to_tree(_read(question, version))
    commitment = Commitment.to(asked, rows)
    signature = commitment.signed_by(answer_key(question.state.storages[0].root))
    document = CommittedAnswer(asked, (), commitment, signature, rows)
    return JSONResponse(document.tree(), headers=headers)


def _read(question: TableQuestion, version: TableVersion) -> ReadTable:
    path, source = str(question.shared.path), question.shared.source
    is_dataset = source.kind is SourceKind.DATASET
    dataset: DatasetState | None = None
    if is_dataset and version.block is not None and question.view.is_all:
        # As in response headers: the hash of a block covers all rows, and would reveal changes of hidden ones.
        dataset = DatasetState(DatasetId.parse(source.location), path, Multihash.parse(version.block))
    return ReadTable(
        path,
        question.shared.id,
        question.caller.name,
        version.number,
        str(version.time),
        source.shown if is_dataset else None,
        dataset,
    )
