"""The catalog for planning in a relay: entities, locations of their rows, permissions, and answered questions.

Planning only depends on this interface, so that tests can run a hundred relays in one process.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from odfpy.federation.relay.requesters import Identity
from odfpy.federation.sql.expressions import Expression
from odfpy.sharing.decisions import View, VisiblePart
from odfpy.sharing.names import folded


def seen_by_all(views: Sequence[View | None]) -> View | None:
    """Return the cells that several views have in common; None if there are none.

    Args:
        views: at least one view, all of the same table.
    """
    view, *others = views
    for other in others:
        if view is None or other is None:
            return None
        parts = {_both(part, other_part) for part in view.parts for other_part in other.parts}
        view = View(tuple(sorted(parts, key=repr)))
    return view


def _both(left: VisiblePart, right: VisiblePart) -> VisiblePart:
    if left.columns is None or right.columns is None:
        columns = left.columns if right.columns is None else right.columns
    else:
        shown = {folded(name) for name in right.columns}
        columns = tuple(name for name in left.columns if folded(name) in shown)
    rows = [part.rows for part in (left, right) if part.rows is not None]
    return VisiblePart(columns, " AND ".join(f"({text})" for text in dict.fromkeys(rows)) or None)


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A local data source that has rows of an entity.

    Attributes:
        source: its name; the same source under two entities has the same name.
        expressions: for each column of the entity, an expression over the source's fields.
    """

    source: str
    expressions: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class RemoteRows:
    """A peer's entity that has rows of an entity.

    Attributes:
        peer: name of the relay.
        entity: its name there.
        expressions: for each column of the entity, an expression over the peer's columns.
    """

    peer: str
    entity: str
    expressions: Mapping[str, Expression]


class Catalog(ABC):
    """The current state of everything that a relay plans with."""

    @abstractmethod
    def columns(self, entity: str) -> pa.Schema | None:
        """Return the columns of an entity, None if it does not exist."""

    @abstractmethod
    def local(self, entity: str) -> Sequence[LocalRows]:
        """Return the data sources that have rows of an entity."""

    @abstractmethod
    def remote(self, entity: str) -> Sequence[RemoteRows]:
        """Return the peers that have rows of an entity."""

    @abstractmethod
    def peers(self) -> Sequence[str]:
        """Return the names of all peers that have rows of any entity."""

    @abstractmethod
    def view(self, source: str, requester: Identity) -> View | None:
        """Return the cells of a data source that a requester may see, None if there are none.

        Row conditions contain the attributes of the requester as constants.

        Args:
            source: name of the source.
            requester: the requester.
        """

    @abstractmethod
    def is_first(self, key: str, seconds: float) -> bool:
        """Remember a key; return whether it was new. Of several concurrent calls, exactly one is the first.

        Args:
            key: the key to remember.
            seconds: minimum time to remember it.
        """
