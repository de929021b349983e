"""`/platform/audit`: accesses of readers and changes by admins, newest first."""

from __future__ import annotations

from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response
from pydantic import BaseModel, Field

from odfpy.data.timestamp import NANOS_PER_MILLI, Timestamp
from odfpy.query.dialects import dialect_named
from odfpy.serving.rest.administration.admin import AdministrationRoute, AnAdmin
from odfpy.serving.rest.administration.forms import IsText, like, refusals
from odfpy.serving.rest.models import with_headers
from odfpy.sharing.audit import AUDIT, accesses

router = APIRouter(prefix="/platform", tags=["administration"], route_class=AdministrationRoute)

_ACCESS = {
    "number": 4711,
    "at": "2026-01-01T12:00:00.123Z",
    "who": "acme",
    "action": "query",
    "path": "sales.eu.orders",
    "version": 12,
    "block": None,
    "granted": True,
    "status": 200,
    "files": 3,
    "bytes": 2048,
    "address": "192.0.2.7",
    "client": "delta-sharing-python/1.3",
}
_LITERAL: Final = dialect_named("datafusion").literal


class AccessModel(BaseModel):
    """An access."""

    model_config = like(_ACCESS)

    number: Annotated[int, Field(description="Sequence number, in the order of the accesses.")]
    at: str
    who: Annotated[str | None, Field(description="The owner of the token; null without a valid token.")]
    action: str | None
    path: Annotated[str | None, Field(description="The object of the access: a shared table, or a name.")]
    version: int | None
    block: str | None
    granted: bool | None
    status: int | None
    files: int | None
    bytes: int | None
    address: str | None
    client: str | None


@router.get("/audit", responses={**with_headers(Link='<audit?limit=100&before=4711>; rel="next"'), **refusals(400)})
def audit(
    request: Request,
    response: Response,
    admin: AnAdmin,
    who: Annotated[str | None, Query(max_length=255, description="Only accesses by this name."), IsText] = None,
    path: Annotated[
        str | None, Query(max_length=500, description="Part of the object, such as the path of a table."), IsText
    ] = None,
    granted: Annotated[bool | None, Query(description="Only those that were granted, or refused.")] = None,
    since: Annotated[str | None, Query(max_length=100, description="Only those at this time or later.")] = None,
    until: Annotated[str | None, Query(max_length=100, description="Only those before this time.")] = None,
    before: Annotated[
        int | None, Query(ge=0, le=2**62, description="Only those with a smaller number, for the next page.")
    ] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Maximum number of accesses.")] = 100,
) -> list[AccessModel]:
    """List accesses, newest first. The header `Link` refers to older ones."""
    conditions = [
        *([f"lower(who) = {_LITERAL(who.lower())}"] if who else []),
        *([f"strpos(lower(path), {_LITERAL(path.lower())}) > 0"] if path else []),
        *([f"granted = {_LITERAL(granted)}"] if granted is not None else []),
        *([f"at >= {_time(since)}"] if since else []),
        *([f"at < {_time(until)}"] if until else []),
        *([f'"offset" < {before}'] if before is not None else []),
    ]
    if before is None:
        request.app.state.sharing.audit.bring_in()
    condition = " AND ".join(conditions) or None
    entries = [_model(access) for access in accesses(admin.workspace, num=limit, condition=condition, columns=_COLUMNS)]
    if len(entries) == limit:
        older = {**request.query_params, "limit": limit, "before": entries[-1].number}
        response.headers["Link"] = f'<audit?{urlencode(older)}>; rel="next"'
    return entries


_COLUMNS: Final = ("offset", *(name for name in AUDIT.columns if name != "id"))


def _model(row: dict[str, Any]) -> AccessModel:
    at = Timestamp.from_datetime(row.pop("at"))
    return AccessModel(number=row.pop("offset"), at=str(at), **row)


def _time(text: str) -> str:
    """Return a time as an SQL literal.

    Raises:
        InvalidValue: the text is invalid.
    """
    return f"to_timestamp_millis({Timestamp.parse(text).floor_millis().nanos // NANOS_PER_MILLI})"
