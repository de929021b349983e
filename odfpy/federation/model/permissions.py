"""Permissions: which cells of a data source a requester sees, by grants of their own or by default."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from odfpy.federation.model.documents import PeerRelay, Permission, User
from odfpy.federation.model.relay_objects import RelayObjects
from odfpy.sharing.conditions import condition_sql
from odfpy.sharing.decisions import View, VisiblePart

_REMEMBERED: Final = 1024
"""Conditions with the attributes of somebody: what may be seen is looked up at each batch."""


def view_of(
    web: RelayObjects, who: User | PeerRelay | None, data: str, source: str, attributes: Mapping[str, str] | None = None
) -> View | None:
    """The cells of a data source that somebody may see.

    Args:
        web: the objects of the relay.
        who: the requester, None for one who is only known to be trusted.
        data: name of the local data.
        source: name of its data source.
        attributes: of the requester, beside those that the relay gives them: the fields of their certificate. What the
            relay says counts more.

    Returns:
        Pairs of columns and rows in the words of the data source; None for nothing at all.
    """
    found = web.data_source(data, source)
    if found is None:
        return None
    granted = [one for one in who.permissions if (one.data, one.source) == (data, source)] if who is not None else []
    known = {**(attributes or {}), **(who.attributes if who is not None else {})}
    return _view(granted or [one for one in (found.default_permission,) if one is not None], known)


def _view(pairs: Sequence[Permission], attributes: Mapping[str, str]) -> View | None:
    parts = {_part(one, attributes): None for one in pairs if one.allowed_columns}
    return View(tuple(parts)) if parts else None


def _part(permission: Permission, attributes: Mapping[str, str]) -> VisiblePart:
    columns = None if permission.allowed_columns == "*" else tuple(permission.allowed_columns)
    is_all = permission.allowed_rows.strip().lower() == "true"
    return VisiblePart(columns, None if is_all else _condition(permission.allowed_rows, frozenset(attributes.items())))


@lru_cache(_REMEMBERED)
def _condition(text: str, attributes: frozenset[tuple[str, str]]) -> str:
    return condition_sql(text, dict(attributes))
