"""One-time events: a relay answers the id of a query once, and a single-use ticket is redeemed once.

Of several concurrent processes, exactly one is the first: the database decides. Entries are removed after the time in
which the requests themselves expire.
"""

from __future__ import annotations

import threading
from functools import cache
from typing import Any, Final

import sqlalchemy as sa

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.federation.store.tables import QUERIES, TICKETS
from odfpy.sharing.store.database import Database

_MAX_LENGTH: Final = 128
_BETWEEN: Final = 60 * 1_000_000_000
"""Minimum nanoseconds between two removals of expired entries."""


class SingleUse:
    """The seen queries and redeemed tickets in a database; thread-safe."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self._cleaned = 0

    def is_first(self, query_id: str, until: Timestamp) -> bool:
        """Return whether a query is seen for the first time, and remember it.

        Args:
            query_id: id of the query.
            until: how long to remember it: longer than the query may take.

        Raises:
            InvalidValue: not a valid id.
        """
        return self._insert(QUERIES, query_id, until)

    def redeem(self, ticket_id: str, until: Timestamp) -> bool:
        """Return whether a ticket is redeemed for the first time, and remember it.

        Args:
            ticket_id: id of the ticket.
            until: expiry of the ticket.

        Raises:
            InvalidValue: not a valid id.
        """
        return self._insert(TICKETS, ticket_id, until)

    def forget_old(self, now: Timestamp | None = None) -> int:
        """Remove expired entries; returns the numbers of queries and tickets."""
        when = (now or Timestamp.now()).nanos
        with self._database.writing() as connection:
            return sum(
                connection.execute(sa.delete(table).where(table.c.expires_at < when)).rowcount
                for table in (QUERIES, TICKETS)
            )

    def _insert(self, table: sa.Table, name: str, until: Timestamp) -> bool:
        if not name or len(name) > _MAX_LENGTH or not name.isascii() or not name.isprintable():
            raise InvalidValue(
                f"Not an id: {name[:40]!r}", hint=f"It has 1 to {_MAX_LENGTH} printable ASCII characters."
            )
        self._clean_now_and_then()
        with self._database.writing() as connection:
            insert = _insert_of(connection.dialect.name, table)
            return connection.execute(insert, {"id": name, "expires_at": until.nanos}).first() is not None

    def _clean_now_and_then(self) -> None:
        now = Timestamp.now()
        with self._lock:
            if now.nanos - self._cleaned < _BETWEEN:
                return
            self._cleaned = now.nanos
        self.forget_old(now)


@cache
def _insert_of(dialect: str, table: sa.Table) -> sa.Executable:
    """Return an INSERT that returns the id, or no row if it exists; only the database's own dialect is imported."""
    insert: Any
    if dialect == "postgresql":
        from sqlalchemy.dialects.postgresql import insert
    else:
        from sqlalchemy.dialects.sqlite import insert
    statement: sa.Executable = insert(table).on_conflict_do_nothing().returning(table.c.id)
    return statement
