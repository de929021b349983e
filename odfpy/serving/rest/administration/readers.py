"""`/{dataset}/readers`: the readers of a dataset, and the part visible to each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Annotated, Final

from fastapi import APIRouter, Depends, HTTPException, Request, Response
from pydantic import BaseModel, Field

from odfpy.coordinator.storage.storage import StoredDataset
from odfpy.coordinator.workspace import Workspace
from odfpy.data.timestamp import Timestamp
from odfpy.serving.callers.access import AnyCaller, alias_in, is_readable, registry_of, unauthorized_error
from odfpy.serving.callers.principals import opened_sharing
from odfpy.serving.callers.tokens import Scope, Tokens
from odfpy.serving.callers.visibility import visibility_of
from odfpy.serving.rest.administration.admin import AdministrationRoute, required_admin
from odfpy.serving.rest.administration.forms import PAGED, APage, like, refusals
from odfpy.serving.rest.administration.grants import words_of
from odfpy.serving.rest.login import is_admin
from odfpy.sharing.decisions import CallerAccess, View
from odfpy.sharing.model import Principal, PrincipalKind, SharedTable, SharedView
from odfpy.sharing.names import SharePath, folded

router = APIRouter(tags=["administration"], route_class=AdministrationRoute)

_MAX_TABLES: Final = 100
_TABLE = {"path": "sales.eu.orders", "shown": "current", "at": None}
_READER = {
    "name": "acme",
    "kind": "recipient",
    "isDisabled": False,
    "readsAll": False,
    "numTables": 1,
    "tables": [
        {
            **_TABLE,
            "isWhole": False,
            "grants": [
                {"number": 3, "principal": "partners", "path": "sales", "words": "columns day, total of all rows"}
            ],
        }
    ],
}


class TokenOfReaderModel(BaseModel):
    """An access token that can read the dataset, since it can read the whole workspace."""

    model_config = like({"name": "ci", "scope": "write", "expiresAt": None})

    name: str
    scope: Scope
    expiresAt: str | None  # noqa: N815


class PathModel(BaseModel):
    """A shared table that shows the dataset."""

    model_config = like(_TABLE)

    path: str
    shown: SharedView
    at: Annotated[str | None, Field(description="A tag or branch; null for the head.")]


class ReachingGrantModel(BaseModel):
    """A grant that gives a reader access to the dataset."""

    model_config = like({"number": 3, "principal": "partners", "path": "sales", "words": "everything"})

    number: int
    principal: Annotated[str, Field(description="The reader, or one of their groups.")]
    path: str
    words: Annotated[str, Field(description="Columns and rows, as a description.")]


class ReadTableModel(PathModel):
    """A shared table that shows the dataset, with the access of one reader."""

    model_config = like({**_TABLE, "isWhole": True, "grants": []})

    isWhole: Annotated[bool, Field(description="Whether they see all columns and rows of the table.")]  # noqa: N815
    grants: list[ReachingGrantModel]


class ReaderModel(BaseModel):
    """A user or recipient with grants on the dataset."""

    model_config = like(_READER)

    name: str
    kind: PrincipalKind
    isDisabled: Annotated[bool, Field(description="Whether they are disabled now.")]  # noqa: N815
    readsAll: Annotated[  # noqa: N815
        bool, Field(description="Whether they see the whole changelog, so that they may also pull and query it.")
    ]
    numTables: int  # noqa: N815
    tables: Annotated[list[ReadTableModel], Field(description=f"The first {_MAX_TABLES}, by path.")]


class ReadersModel(BaseModel):
    """All principals who may read a dataset over the network."""

    model_config = like(
        {
            "visibility": "private",
            "tokens": [{"name": "ci", "scope": "write", "expiresAt": None}],
            "numTables": 1,
            "tables": [_TABLE],
            "readers": [_READER],
        }
    )

    visibility: Annotated[
        str, Field(description="public: everyone; private: only the tokens and principals listed here.")
    ]
    tokens: Annotated[
        list[TokenOfReaderModel], Field(description="Access tokens, which are valid for the whole workspace.")
    ]
    numTables: int  # noqa: N815
    tables: Annotated[
        list[PathModel], Field(description=f"Shared tables of the dataset: the first {_MAX_TABLES}, by path.")
    ]
    readers: Annotated[list[ReaderModel], Field(description="A page of them, by name.")]


def _asked(request: Request, caller: AnyCaller) -> StoredDataset:
    """Return the dataset named in the path, for an admin; others get the same errors as for any dataset."""
    workspace: Workspace = request.app.state.workspaces[0]
    dataset = registry_of(request).find(alias_in(request))
    if dataset is not None and (is_admin(caller, workspace.storage) or is_readable(dataset, caller)):
        required_admin(caller, workspace)
        return dataset
    if caller.token is None:
        raise unauthorized_error("This needs an admin of the workspace")
    raise HTTPException(404, "Dataset not found, or this token may not read it")


@router.get("/readers", responses={**PAGED, **refusals(404)})
def readers(
    request: Request,
    response: Response,
    dataset: Annotated[StoredDataset, Depends(_asked)],
    page: APage,
) -> ReadersModel:
    """List who may read the dataset over the network, and which parts; for admins. A header counts `readers`."""
    sharing = opened_sharing(request.app.state.workspaces[0].storage)
    tables, now = _Tables(sharing.shares.tables_of(str(dataset.handle.id))), Timestamp.now()
    reading = [(who, reach) for who, reach in sharing.reaches() if tables.are_seen(reach)]
    wanted = page.of(response, reading, lambda item: (item[0].name, item[0].kind.value))
    tokens = Tokens(dataset.workspace_folder.odf).list()
    return ReadersModel(
        visibility=visibility_of(dataset.folder).value,
        tokens=[
            TokenOfReaderModel(
                name=token.name, scope=token.scope, expiresAt=str(token.expires_at) if token.expires_at else None
            )
            for token in tokens
            if not token.is_over(now)
        ],
        numTables=len(tables.all),
        tables=[_path(item) for item in tables.all[:_MAX_TABLES]],
        readers=[_reader(who, reach, tables) for who, reach in wanted],
    )


class _Tables:
    """The tables that show a dataset, found via grants: most grants are on other tables."""

    def __init__(self, tables: Sequence[SharedTable]) -> None:
        self.all = tables
        self._places: dict[str, list[SharedTable]] = defaultdict(list)
        for table in tables:
            path = table.path
            for place in (SharePath(path.share), SharePath(path.share, path.schema), path):
                self._places[folded(str(place))].append(table)

    def are_seen(self, reach: CallerAccess) -> bool:
        """Return whether the principal may see a part of any table."""
        return any(map(reach.sees, self._granted(reach)))

    def seen(self, reach: CallerAccess) -> list[tuple[SharedTable, View]]:
        """Return the tables of which a principal may see a part, by path, with that part.

        Args:
            reach: permissions of the principal.
        """
        views = ((table, reach.view(table)) for table in {table.id: table for table in self._granted(reach)}.values())
        visible = [(table, view) for table, view in views if view is not None]
        return sorted(visible, key=lambda each: folded(str(each[0].path)))

    def _granted(self, reach: CallerAccess) -> Iterator[SharedTable]:
        for path in reach.paths or ():
            yield from self._places.get(folded(str(path)), ())


def _reader(who: Principal, reach: CallerAccess, tables: _Tables) -> ReaderModel:
    seen = tables.seen(reach)
    whole_tables = (table for table, view in seen if view.is_all)
    return ReaderModel(
        name=who.name,
        kind=who.kind,
        isDisabled=who.is_disabled,
        readsAll=any(table.source.shown is SharedView.CHANGELOG and table.source.at is None for table in whole_tables),
        numTables=len(seen),
        tables=[
            ReadTableModel(
                **_path(table).model_dump(),
                isWhole=view.is_all,
                grants=[
                    ReachingGrantModel(
                        number=grant.id, principal=grant.principal, path=str(grant.path), words=words_of(grant)
                    )
                    for grant in reach.grants_on(table)
                ],
            )
            for table, view in seen[:_MAX_TABLES]
        ],
    )


def _path(table: SharedTable) -> PathModel:
    return PathModel(path=str(table.path), shown=table.source.shown, at=table.source.at)
