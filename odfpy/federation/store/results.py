"""The states of deferred results, until they expire."""

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
        """Return whether it is final."""
        return self in (ResultState.DONE, ResultState.FAILED, ResultState.CANCELLED)


@dataclass(frozen=True, slots=True)
class Result:
    """A deferred result.

    Attributes:
        id: id of the result.
        owner: fingerprint of the certificate of the requester.
        state: its state.
        detail: files, hashes, errors: whatever its maker records, a JSON tree.
        created_at: time of the request.
        changed_at: time of the latest change of its state.
        expires_at: when it is removed.
    """

    id: str
    owner: str
    state: ResultState
    detail: Mapping[str, Any]
    created_at: Timestamp
    changed_at: Timestamp
    expires_at: Timestamp


class Results:
    """The results in a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, result_id: str, owner: str, detail: Mapping[str, Any], until: Timestamp) -> tuple[Result, bool]:
        """Record that a result was requested, and return whether that is new. The same id refers to the same result.

        Args:
            result_id: id of the result.
            owner: fingerprint of the caller.
            detail: a JSON tree.
            until: when it expires.

        Raises:
            WebObjectNotFound: the id belongs to another user's result.
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
        """Return a result of an owner. Results of others do not exist for it.

        Raises:
            WebObjectNotFound: the owner has no such result.
        """
        query = sa.select(RESULTS).where(RESULTS.c.id == result_id, RESULTS.c.owner == owner)
        with self._database.reading() as connection:
            row = connection.execute(query).first()
        if row is None:
            raise WebObjectNotFound(
                "There is no such result", hint="Results expire after some time; run the query again."
            )
        return _result(row)

    def owned_by(self, owner: str) -> list[Result]:
        """Return all results of an owner, newest first."""
        query = sa.select(RESULTS).where(RESULTS.c.owner == owner).order_by(RESULTS.c.created_at.desc())
        with self._database.reading() as connection:
            return [_result(row) for row in connection.execute(query)]

    def count(self, owner: str, prefix: str = "") -> int:
        """Return the number of an owner's results.

        Args:
            owner: fingerprint of the owner's certificate.
            prefix: prefix of their ids.
        """
        is_own = RESULTS.c.id.startswith(prefix, autoescape=True) & (RESULTS.c.owner == owner)
        with self._database.reading() as connection:
            return int(connection.execute(sa.select(sa.func.count()).where(is_own)).scalar_one())

    def state_of(self, result_id: str) -> ResultState | None:
        """Return the state of a result, None if it was removed."""
        with self._database.reading() as connection:
            state = connection.execute(sa.select(RESULTS.c.state).where(RESULTS.c.id == result_id)).scalar()
        return None if state is None else ResultState(state)

    def move(self, result_id: str, to: ResultState, detail: Mapping[str, Any] | None = None) -> bool:
        """Move a result to another state; returns whether it was unfinished. Final states never change.

        Args:
            result_id: id of the result.
            to: the new state.
            detail: a JSON tree that replaces the previous one; None to leave that.
        """
        final = [state.value for state in ResultState if state.is_final]
        values = {"state": to.value, "changed_at": Timestamp.now().nanos}
        change = sa.update(RESULTS).where(RESULTS.c.id == result_id, RESULTS.c.state.not_in(final))
        with self._database.writing() as connection:
            more = {} if detail is None else {"detail": dict(detail)}
            return connection.execute(change.values({**values, **more})).rowcount == 1

    def unfinished(self) -> list[Result]:
        """Return all results that are waiting or running, oldest first."""
        under_way = [state.value for state in ResultState if not state.is_final]
        return self._found(sa.select(RESULTS).where(RESULTS.c.state.in_(under_way)).order_by(RESULTS.c.created_at))

    def old(self, now: Timestamp | None = None) -> list[Result]:
        """Return all expired results. Remove their files first, then their rows."""
        when = (now or Timestamp.now()).nanos
        return self._found(sa.select(RESULTS).where(RESULTS.c.expires_at < when))

    def remove(self, result_id: str) -> None:
        """Remove the row of a result.

        Args:
            result_id: id of the result.
        """
        with self._database.writing() as connection:
            connection.execute(sa.delete(RESULTS).where(RESULTS.c.id == result_id))

    def _found(self, query: sa.Select[Any]) -> list[Result]:
        with self._database.reading() as connection:
            return [_result(row) for row in connection.execute(query)]


def _result(row: sa.Row[tuple[object, ...]]) -> Result:
    times = (Timestamp(nanos) for nanos in (row.created_at, row.changed_at, row.expires_at))
    return Result(row.id, row.owner, ResultState(row.state), row.detail, *times)
