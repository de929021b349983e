"""Permissions: which cells of a data source a requester may see, by their own grants or by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from odfpy.federation.model.documents import PeerRelay, Permission, User
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.sharing.conditions import condition_sql
from odfpy.sharing.decisions import View, VisiblePart

_REMEMBERED: Final = 1024
"""Size of the cache of conditions with a requester's attributes: visibility is checked at each batch."""


def view_of(
    web: RelayObjects, who: User | PeerRelay | None, data: str, source: str, attributes: Mapping[str, str] | None = None
) -> View | None:
    """Return the cells of a data source that a requester may see.

    Args:
        web: the objects of the relay.
        who: the requester, None for one of whom only the trusted certificate is known.
        data: name of the LocalData.
        source: name of one of its data sources.
        attributes: fields of the requester's certificate. Attributes that the relay itself assigns to the requester
            take precedence.

    Returns:
        Pairs of columns and rows, in the names of the data source; None if nothing is visible.
    """
    data_source = web.data_source(data, source)
    if data_source is None:
        return None
    granted = (
        [permission for permission in who.permissions if (permission.data, permission.source) == (data, source)]
        if who is not None
        else []
    )
    known = {**(attributes or {}), **(who.attributes if who is not None else {})}
    return _view(granted or [default for default in (data_source.default_permission,) if default is not None], known)


def _view(pairs: Sequence[Permission], attributes: Mapping[str, str]) -> View | None:
    parts = {_part(pair, attributes): None for pair in pairs if pair.allowed_columns}
    return View(tuple(parts)) if parts else None


def _part(permission: Permission, attributes: Mapping[str, str]) -> VisiblePart:
    columns = None if permission.allowed_columns == "*" else tuple(permission.allowed_columns)
    is_all = permission.allowed_rows.strip().lower() == "true"
    return VisiblePart(columns, None if is_all else _condition(permission.allowed_rows, frozenset(attributes.items())))


@lru_cache(_REMEMBERED)
def _condition(text: str, attributes: frozenset[tuple[str, str]]) -> str:
    return condition_sql(text, dict(attributes))
