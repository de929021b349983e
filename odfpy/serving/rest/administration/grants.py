"""`/platform/grants`: which columns and rows of shared tables principals may read."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import PAGED, APage, IsText, Long, Name, Number, like, refusals
from odfpy.serving.sharing.audited import note
from odfpy.sharing.checked import check_grant
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.model import Grant
from odfpy.sharing.names import SharePath

router = APIRouter(prefix="/platform/grants", tags=["administration"], route_class=AdministrationRoute)

_GRANT = {
    "principal": "acme",
    "path": "sales.eu.orders",
    "columns": ["day", "total"],
    "rows": "country = recipient('country')",
}
_WORDS = "columns day, total of rows where country = recipient('country')"


class NewGrantModel(BaseModel):
    """A new grant."""

    model_config = like(_GRANT)

    principal: Annotated[Name, Field(description="Name of a recipient, user or group.")]
    path: Annotated[Name, Field(description="SHARE, SHARE.SCHEMA or SHARE.SCHEMA.TABLE.")]
    columns: Annotated[
        list[Name] | None, Field(max_length=10_000, description="Only these columns; all if absent.")
    ] = None
    rows: Annotated[Long | None, Field(description="Only rows for which this SQL condition is true.")] = None


class GrantModel(BaseModel):
    """A grant."""

    model_config = like({"number": 3, **_GRANT, "words": _WORDS})

    number: int
    principal: str
    path: str
    columns: tuple[str, ...] | None
    rows: str | None
    words: Annotated[str, Field(description="Description for people.")]


@router.get("", responses={**PAGED, **refusals(404)})
def grants(
    response: Response,
    admin: AnAdmin,
    page: APage,
    principal: Annotated[
        str | None,
        Query(max_length=255, description="Only grants of this principal itself, not of its groups."),
        IsText,
    ] = None,
    path: Annotated[
        str | None, Query(max_length=800, description="Only those on this share, schema or table itself."), IsText
    ] = None,
) -> list[GrantModel]:
    """List the grants, oldest first."""
    found = admin.sharing.grants.all(principal, None if path is None else SharePath.parse(path))
    wanted = page.of(response, found, lambda one: (one.principal, str(one.path), one.rows, *(one.columns or ())))
    return [grant_model(one) for one in wanted]


@router.post("", responses=refusals(400, 404, 409))
def add_grant(request: Request, admin: AnAdmin, body: NewGrantModel) -> GrantModel:
    """Grant read access to a share, a schema or a table, from the next request on. A repeated grant changes nothing."""
    path = SharePath.parse(body.path)
    note(request.scope, path=str(path))
    if body.rows is not None:
        check_condition(body.rows)
    tables = request.app.state.sharing.tables
    check_grant(path, admin.sharing.shares.sources(path), tables.open, body.columns, body.rows)
    return grant_model(admin.sharing.grants.add(body.principal, path, columns=body.columns, rows=body.rows))


@router.delete("/{number}", responses=refusals(404))
def remove_grant(request: Request, admin: AnAdmin, number: Number) -> GrantModel:
    """Remove a grant, from the next request on; URLs of its files become invalid, too."""
    found = admin.sharing.grants.remove(number)
    note(request.scope, path=str(found.path))
    return grant_model(found)


def grant_model(one: Grant) -> GrantModel:
    """Convert a grant for a response."""
    return GrantModel(
        number=one.id,
        principal=one.principal,
        path=str(one.path),
        columns=one.columns,
        rows=one.rows,
        words=words_of(one),
    )


def words_of(one: Grant) -> str:
    """Describe the columns and rows of a grant in words."""
    columns = "all columns" if one.columns is None else f"columns {', '.join(one.columns)}"
    rows = "all rows" if one.rows is None else f"rows where {one.rows}"
    return "everything" if one.columns is None and one.rows is None else f"{columns} of {rows}"
