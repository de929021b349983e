"""The catalog that a relay answers from: entities, where their rows are, who may see what, what it has answered.

Planning asks for it by this interface, so that a hundred relays run in one process in tests.
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
    """The cells that are in each of several views; None if there are none.

    Args:
        views: at least one, of the same table.
    """
    found, *others = views
    for other in others:
        if found is None or other is None:
            return None
        parts = {_both(one, two) for one in found.parts for two in other.parts}
        found = View(tuple(sorted(parts, key=repr)))
    return found


def _both(one: VisiblePart, other: VisiblePart) -> VisiblePart:
    if one.columns is None or other.columns is None:
        columns = one.columns if other.columns is None else other.columns
    else:
        shown = {folded(name) for name in other.columns}
        columns = tuple(name for name in one.columns if folded(name) in shown)
    rows = [part.rows for part in (one, other) if part.rows is not None]
    return VisiblePart(columns, " AND ".join(f"({text})" for text in dict.fromkeys(rows)) or None)


@dataclass(frozen=True, slots=True)
class LocalRows:
    """A data source that has rows of an entity.

    Attributes:
        source: names it; the same source under two entities has the same name.
        expressions: each piece of information, made of its fields.
    """

    source: str
    expressions: Mapping[str, Expression]


@dataclass(frozen=True, slots=True)
class RemoteRows:
    """An entity of a peer that has rows of an entity.

    Attributes:
        peer: name of the relay.
        entity: its name there.
        expressions: each piece of information, made of what the peer has.
    """

    peer: str
    entity: str
    expressions: Mapping[str, Expression]


class Catalog(ABC):
    """All that a relay knows, as it is now."""

    @abstractmethod
    def columns(self, entity: str) -> pa.Schema | None:
        """The columns of an entity, None if there is none of that name."""

    @abstractmethod
    def local(self, entity: str) -> Sequence[LocalRows]:
        """The data sources that have rows of an entity."""

    @abstractmethod
    def remote(self, entity: str) -> Sequence[RemoteRows]:
        """The peers that have rows of an entity."""

    @abstractmethod
    def peers(self) -> Sequence[str]:
        """The names of all peers that have rows of some entity."""

    @abstractmethod
    def view(self, source: str, requester: Identity) -> View | None:
        """The cells of a data source that somebody may see, None if there are none.

        Conditions on rows have the attributes of the requester as constants.

        Args:
            source: its name.
            requester: who asks.
        """

    @abstractmethod
    def is_first(self, key: str, seconds: float) -> bool:
        """Return whether a key was never seen before, and remember it; of several that ask at once, one is the first.

        Args:
            key: what is remembered.
            seconds: for how long at least.
        """
