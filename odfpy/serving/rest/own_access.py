"""`/{dataset}/access`: why the caller may read a dataset, and as which shared tables."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Final

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.serving.callers.access import AnyCaller, Caller, Readable
from odfpy.serving.callers.principals import sharing_of
from odfpy.serving.callers.tokens import Scope
from odfpy.serving.callers.visibility import Visibility, visibility_of
from odfpy.serving.rest.models import answers
from odfpy.serving.sharing.callers import find
from odfpy.serving.sharing.state import SharingState
from odfpy.sharing.model import SharedTable, SharedView

router = APIRouter(tags=["datasets"])

_MAX_TABLES: Final = 100
_TABLE: Final[dict[str, Any]] = {
    "path": "sales.eu.orders",
    "names": ["sales", "eu", "orders"],
    "shown": "current",
    "at": None,
}


class Right(Enum):
    """The right that gives a caller access to a dataset."""

    TOKEN = "token"  # noqa: S105 - no secret
    GRANTS = "grants"
    PUBLIC = "public"


class OwnTableModel(BaseModel):
    """A shared table that shows the dataset, and that the caller may read."""

    model_config = ConfigDict(json_schema_extra={"examples": [_TABLE]})

    path: str
    names: Annotated[tuple[str, str, str], Field(description="Share, schema, table: the parts of the path.")]
    shown: Annotated[SharedView, Field(description="The current state, or the changelog.")]
    at: Annotated[str | None, Field(description="A tag or branch; null for the head.")]


class OwnAccessModel(BaseModel):
    """The access of the caller to a dataset; nothing about other callers."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "ann",
                    "visibility": "private",
                    "right": "token",
                    "scope": "read",
                    "numTables": 1,
                    "tables": [_TABLE],
                }
            ]
        }
    )

    name: Annotated[str | None, Field(description="The caller, null without a token.")]
    visibility: Visibility
    right: Annotated[
        Right,
        Field(
            description="token: an access token of the workspace can read all of its datasets. grants: grants on shares"
            " cover the whole changelog. public: everyone can read it."
        ),
    ]
    scope: Annotated[str | None, Field(description="Scope of the access token; null for the other rights.")]
    numTables: int  # noqa: N815
    tables: Annotated[
        list[OwnTableModel],
        Field(description=f"Its shared tables that the caller can read: the first {_MAX_TABLES}, by path."),
    ]


@router.get("/access", responses=answers(401, 404, 422))
def own_access(request: Request, response: Response, caller: AnyCaller, dataset: Readable) -> OwnAccessModel:
    """Return why you may read the dataset, and as which shared tables. Admins use `readers` for all readers."""
    response.headers["Cache-Control"] = "no-store"
    right = _right(caller, dataset)
    tables = _tables(request.app.state.sharing, caller, dataset)
    return OwnAccessModel(
        name=caller.token.name if caller.token else None,
        visibility=visibility_of(dataset.folder),
        right=right,
        scope=caller.scope.value if right is Right.TOKEN and caller.scope else None,
        numTables=len(tables),
        tables=[
            OwnTableModel(
                path=str(table.path),
                names=(table.path.share, table.path.schema or "", table.path.table or ""),
                shown=table.source.shown,
                at=table.source.at,
            )
            for table in tables[:_MAX_TABLES]
        ],
    )


def _right(caller: Caller, dataset: StoredDataset) -> Right:
    if caller.may(Scope.READ, dataset.workspace_folder):
        return Right.TOKEN
    return Right.GRANTS if caller.is_granted(dataset) else Right.PUBLIC


def _tables(state: SharingState, caller: Caller, dataset: StoredDataset) -> list[SharedTable]:
    """Return the tables that Delta Sharing would offer the caller; it always requires a token."""
    sharing = sharing_of(state.storages[0])
    known = None if sharing is None or caller.token is None else find(state, caller.text)
    if sharing is None or known is None:
        return []
    return [table for table in sharing.shares.tables_of(str(dataset.handle.id)) if known.reach.sees(table)]
