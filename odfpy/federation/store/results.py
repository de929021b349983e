"""Results that are written while nobody waits: what became of them, until they end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import sqlalchemy as sa

from odfpy.data.timestamp import Timestamp
from odfpy.federation.errors import WebObjectNotFound
from odfpy.federation.store.tables import RESULTS
from odfpy.sharing.store.database import Database


class ResultState(Enum):
    """The states of a result."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_final(self) -> bool:
        """Return whether nothing comes after it."""
        return self in (ResultState.DONE, ResultState.FAILED, ResultState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Result:
    """A result.

    Attributes:
        id: of it.
        owner: fingerprint of the certificate of whoever has asked.
        state: where it is.
        detail: files, hashes, errors: whatever its maker notes, a tree of JSON.
        created_at: when it was asked for.
        changed_at: when its state has changed last.
        expires_at: when it goes.
    """

    id: str
    owner: str
    state: ResultState
    detail: Mapping[str, Any]
    created_at: Timestamp
    changed_at: Timestamp
    expires_at: Timestamp


class Results:
    """The results of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, result_id: str, owner: str, detail: Mapping[str, Any], until: Timestamp) -> tuple[Result, bool]:
        """Note that a result is wanted, and say whether that is new. The same id again is the result that is there.

        Args:
            result_id: of the result.
            owner: fingerprint of whoever asks.
            detail: a tree of JSON.
            until: when it goes.

        Raises:
            WebObjectNotFound: the id is that of somebody else's result.
        """
        now = Timestamp.now().nanos
        values = {
            "id": result_id,
            "owner": owner,
            "state": ResultState.WAITING.value,
            "detail": dict(detail),
            "created_at": now,
            "changed_at": now,
            "expires_at": until.nanos,
        }
        with self._database.writing() as connection:
            row = connection.execute(sa.select(RESULTS).where(RESULTS.c.id == result_id)).first()
            if row is None:
                connection.execute(sa.insert(RESULTS).values(values))
        return self.get(result_id, owner), row is None

    def get(self, result_id: str, owner: str) -> Result:
        """A result of somebody; those of others are not there for them.

        Raises:
            WebObjectNotFound: there is none of theirs.
        """
        query = sa.select(RESULTS).where(RESULTS.c.id == result_id, RESULTS.c.owner == owner)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise WebObjectNotFound("There is no such result", hint="Results go after some time; ask again.")
        return _result(row)

    def owned_by(self, owner: str) -> list[Result]:
        """All results of somebody, the newest first."""
        query = sa.select(RESULTS).where(RESULTS.c.owner == owner).order_by(RESULTS.c.created_at.desc())
        with self._database.reading() as connection:
            return [_result(row) for row in connection.execute(query)]

    def count(self, owner: str, prefix: str = "") -> int:
        """Return how many results somebody has.

        Args:
            owner: fingerprint of their certificate.
            prefix: with what their ids begin.
        """
        mine = RESULTS.c.id.startswith(prefix, autoescape=True) & (RESULTS.c.owner == owner)
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).where(mine)).scalar_one())

    def state_of(self, result_id: str) -> ResultState | None:
        """Return the state of a result, None if it is forgotten."""
        with self._database.reading() as connection:
            found = connection.execute(sa.select(RESULTS.c.state).where(RESULTS.c.id == result_id)).scalar()
        return None if found is None else ResultState(found)

    def move(self, result_id: str, to: ResultState, detail: Mapping[str, Any] | None = None) -> bool:
        """Bring a result to another state; gives whether it was still on its way. What is final stays.

        Args:
            result_id: of the result.
            to: the state.
            detail: a tree of JSON in the place of the one before; None leaves that.
        """
        final = [state.value for state in ResultState if state.is_final]
        values = {"state": to.value, "changed_at": Timestamp.now().nanos}
        change = sa.update(RESULTS).where(RESULTS.c.id == result_id, RESULTS.c.state.not_in(final))
        with self._database.writing() as connection:
            more = {} if detail is None else {"detail": dict(detail)}
            return connection.execute(change.values({**values, **more})).rowcount == 1

    def unfinished(self) -> list[Result]:
        """All that are waiting or running, the oldest first."""
        under_way = [state.value for state in ResultState if not state.is_final]
        return self._found(sa.select(RESULTS).where(RESULTS.c.state.in_(under_way)).order_by(RESULTS.c.created_at))

    def old(self, now: Timestamp | None = None) -> list[Result]:
        """All that are over: their files go first, then they."""
        when = (now or Timestamp.now()).nanos
        return self._found(sa.select(RESULTS).where(RESULTS.c.expires_at < when))

    def remove(self, result_id: str) -> None:
        """Forget a result.

        Args:
            result_id: of the result.
        """
        with self._database.writing() as connection:
            connection.execute(sa.delete(RESULTS).where(RESULTS.c.id == result_id))

    def _found(self, query: sa.Select[Any]) -> list[Result]:
        with self._database.reading() as connection:
            return [_result(row) for row in connection.execute(query)]


def _result(row: sa.Row[tuple[object, ...]]) -> Result:
    times = (Timestamp(nanos) for nanos in (row.created_at, row.changed_at, row.expires_at))
    return Result(row.id, row.owner, ResultState(row.state), row.detail, *times)
