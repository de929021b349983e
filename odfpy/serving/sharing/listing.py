"""Lists of shares, schemas and tables, paginated (Delta Sharing protocol, "List Shares" and the following)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query, Request

from odfpy.serving.sharing.callers import AnyCaller, SharingCaller
from odfpy.serving.sharing.errors import SharingError, missing
from odfpy.serving.sharing.state import SharingState, state_of
from odfpy.sharing.model import Share, SharedTable
from odfpy.sharing.names import SharePath, folded

router = APIRouter()

_MAX_PAGE_SIZE: Final = 500
_AT_ONCE: Final = 501

_Most = Annotated[int, Query(ge=0, le=_MAX_PAGE_SIZE)]
_Page = Annotated[str | None, Query(max_length=8192)]


class _Paging:
    """The requested page: maximum number of items, and the token of the previous page."""

    def __init__(self, maxResults: _Most = _MAX_PAGE_SIZE, pageToken: _Page = None) -> None:  # noqa: N803
        self.most = maxResults
        self.token = pageToken


_AnyPaging = Annotated[_Paging, Depends()]


@router.get("/shares")
def shares(request: Request, caller: AnyCaller, paging: _AnyPaging) -> Any:
    """List the shares with tables that the caller may read."""
    found = [one for one in state_of(request).sharing.shares.shares() if caller.reach.sees_share(one.name)]
    return _page(request, [(one.name, _share(one)) for one in found], paging)


@router.get("/shares/{share}")
def share(request: Request, caller: AnyCaller, share: str) -> Any:
    """Return a share."""
    return {"share": _share(_visible_share(request, caller, share))}


@router.get("/shares/{share}/schemas")
def schemas(
    request: Request,
    caller: AnyCaller,
    share: str,
    paging: _AnyPaging,
) -> Any:
    """List the schemas of a share with tables that the caller may read."""
    found = _visible_share(request, caller, share)
    names = state_of(request).sharing.shares.schemas(found.name)
    visible = [name for name in names if caller.reach.sees_schema(found.name, name)]
    return _page(request, [(name, {"name": name, "share": found.name}) for name in visible], paging)


@router.get("/shares/{share}/schemas/{schema}/tables")
def tables(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    paging: _AnyPaging,
) -> Any:
    """List the tables of a schema."""
    found = _visible_share(request, caller, share)
    if not caller.reach.sees_schema(found.name, schema):
        raise missing()
    return _tables(request, caller, SharePath(found.name, schema), paging)


@router.get("/shares/{share}/all-tables")
def all_tables(
    request: Request,
    caller: AnyCaller,
    share: str,
    paging: _AnyPaging,
) -> Any:
    """List the tables of all schemas of a share."""
    found = _visible_share(request, caller, share)
    return _tables(request, caller, SharePath(found.name), paging)


def _visible_share(request: Request, caller: SharingCaller, name: str) -> Share:
    found = state_of(request).sharing.shares.find_share(name)  # the same work whether it is missing or hidden
    if found is None or not caller.reach.sees_share(found.name):
        raise missing()
    return found


def _tables(request: Request, caller: SharingCaller, path: SharePath, paging: _Paging) -> dict[str, Any]:
    state = state_of(request)
    after = _after(request, state, paging.token, parts=2)
    items: list[tuple[tuple[str, ...], dict[str, Any]]] = []
    for table in _visible_tables(state, caller, path, (after[0], after[1]) if after else ("", "")):
        items.append(((folded(table.path.schema or ""), folded(table.path.table or "")), _table(table)))
        if len(items) > paging.most:
            break
    return _cut(request, state, items, paging.most, after)


def _visible_tables(
    state: SharingState, caller: SharingCaller, path: SharePath, after: tuple[str, str]
) -> Iterator[SharedTable]:
    within = caller.reach.few_paths
    while True:
        found = state.sharing.shares.tables(path, after=after, limit=_AT_ONCE, within=within)
        yield from (table for table in found if caller.reach.view(table) is not None)
        if len(found) < _AT_ONCE:
            return
        after = (folded(found[-1].path.schema or ""), folded(found[-1].path.table or ""))


def _page(request: Request, items: Sequence[tuple[str, Any]], paging: _Paging) -> dict[str, Any]:
    """Return a page of a complete list, which is sorted by name."""
    state = state_of(request)
    after = _after(request, state, paging.token, parts=1)
    left = [((folded(name),), item) for name, item in items if not after or (folded(name),) > after]
    return _cut(request, state, left, paging.most, after)


def _cut(
    request: Request,
    state: SharingState,
    items: Sequence[tuple[tuple[str, ...], Any]],
    most: int,
    after: tuple[str, ...],
) -> dict[str, Any]:
    page: dict[str, Any] = {"items": [item for _, item in items[:most]]}
    if len(items) > most:
        last = items[most - 1][0] if most else after
        page["nextPageToken"] = state.seal.close(list(last), _use(request))
    return page


def _after(request: Request, state: SharingState, token: str | None, *, parts: int) -> tuple[str, ...]:
    """Return the key after which a page starts; empty for the first page."""
    if not token:
        return ()
    found = state.seal.open(token, _use(request))
    if not isinstance(found, list) or len(found) not in (0, parts):
        raise SharingError(400, "pageToken was not issued by this server for this list")
    return tuple(map(str, found))


def _use(request: Request) -> str:
    return f"page of {request.url.path.lower()}"


def _share(one: Share) -> dict[str, Any]:
    return {"name": one.name, "id": one.id, **({"comment": one.comment} if one.comment else {})}


def _table(one: SharedTable) -> dict[str, Any]:
    names = {"name": one.path.table, "schema": one.path.schema, "share": one.path.share}
    return {**names, "shareId": one.share_id, "id": one.id, "accessModes": ["url"]}
