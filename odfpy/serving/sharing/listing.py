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
    visible = [share for share in state_of(request).sharing.shares.shares() if caller.reach.sees_share(share.name)]
    return _page(request, [(share.name, _share(share)) for share in visible], paging)


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
    visible_share = _visible_share(request, caller, share)
    names = state_of(request).sharing.shares.schemas(visible_share.name)
    visible = [name for name in names if caller.reach.sees_schema(visible_share.name, name)]
    return _page(request, [(name, {"name": name, "share": visible_share.name}) for name in visible], paging)


@router.get("/shares/{share}/schemas/{schema}/tables")
def tables(
    request: Request,
    caller: AnyCaller,
    share: str,
    schema: str,
    paging: _AnyPaging,
) -> Any:
    """List the tables of a schema."""
    visible_share = _visible_share(request, caller, share)
    if not caller.reach.sees_schema(visible_share.name, schema):
        raise missing()
    return _tables(request, caller, SharePath(visible_share.name, schema), paging)


@router.get("/shares/{share}/all-tables")
def all_tables(
    request: Request,
    caller: AnyCaller,
    share: str,
    paging: _AnyPaging,
) -> Any:
    """List the tables of all schemas of a share."""
    visible_share = _visible_share(request, caller, share)
    return _tables(request, caller, SharePath(visible_share.name), paging)


def _visible_share(request: Request, caller: SharingCaller, name: str) -> Share:
    known_share = state_of(request).sharing.shares.find_share(name)  # the same work whether it is missing or hidden
    if known_share is None or not caller.reach.sees_share(known_share.name):
        raise missing()
    return known_share


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
        batch = state.sharing.shares.tables(path, after=after, limit=_AT_ONCE, within=within)
        yield from (table for table in batch if caller.reach.view(table) is not None)
        if len(batch) < _AT_ONCE:
            return
        after = (folded(batch[-1].path.schema or ""), folded(batch[-1].path.table or ""))


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
    opened = state.seal.open(token, _use(request))
    if not isinstance(opened, list) or len(opened) not in (0, parts):
        raise SharingError(400, "pageToken was not issued by this server for this list")
    return tuple(map(str, opened))


def _use(request: Request) -> str:
    return f"page of {request.url.path.lower()}"


def _share(share: Share) -> dict[str, Any]:
    return {"name": share.name, "id": share.id, **({"comment": share.comment} if share.comment else {})}


def _table(table: SharedTable) -> dict[str, Any]:
    names = {"name": table.path.table, "schema": table.path.schema, "share": table.path.share}
    return {**names, "shareId": table.share_id, "id": table.id, "accessModes": ["url"]}
