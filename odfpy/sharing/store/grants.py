"""Grants in the database."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa

from odfpy.data.timestamp import Timestamp
from odfpy.errors import InvalidValue
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.errors import SharedObjectNotFound
from odfpy.sharing.model import Grant
from odfpy.sharing.names import SharePath
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.principals import Principals
from odfpy.sharing.store.shares import Shares
from odfpy.sharing.store.tables import GRANTS, MEMBERS, PRINCIPALS, SCHEMAS, SHARED_TABLES, SHARES

_GRANTS: Final = (
    sa.select(
        GRANTS,
        PRINCIPALS.c.name.label("principal_name"),
        SHARES.c.name.label("share_name"),
        SCHEMAS.c.name.label("schema_name"),
        SHARED_TABLES.c.name.label("table_name"),
    )
    .join(PRINCIPALS, GRANTS.c.principal_id == PRINCIPALS.c.id)
    .join(SHARES, GRANTS.c.share_id == SHARES.c.id)
    .join(SCHEMAS, GRANTS.c.schema_id == SCHEMAS.c.id, isouter=True)
    .join(SHARED_TABLES, GRANTS.c.table_id == SHARED_TABLES.c.id, isouter=True)
    .order_by(GRANTS.c.id)
)


_COUNTS: Final = sa.not_(PRINCIPALS.c.is_disabled)
"""Condition on the principal of a grant: disabled groups grant nothing to their members."""


class Grants:
    """The grants in a database."""

    def __init__(self, database: Database, principals: Principals, shares: Shares) -> None:
        self._database = database
        self._principals = principals
        self._shares = shares

    def add(
        self, principal: str, path: SharePath, *, columns: Sequence[str] | None = None, rows: str | None = None
    ) -> Grant:
        """Grant a principal the right to read a share, schema or table. Repeating a grant has no effect.

        Args:
            principal: name of a user, recipient or group.
            path: share, schema or table; a grant on a share or schema includes tables that are added later.
            columns: only these columns; None for all.
            rows: only rows for which this condition is true; None for all.

        Raises:
            SharedObjectNotFound: the principal or the path does not exist.
            InvalidValue: the list of columns is empty.
            InvalidCondition: the row condition is invalid.
        """
        if columns is not None and not columns:
            raise InvalidValue("A grant without columns allows nothing", hint="Name columns, or omit the option.")
        if rows is not None:
            check_condition(rows)
        who = self._principals.get(principal)
        wanted = None if columns is None else list(dict.fromkeys(columns))
        with self._database.writing() as connection:
            share, schema, table = self._shares.ids(connection, path)
            same = sa.and_(
                GRANTS.c.principal_id == who.id,
                GRANTS.c.share_id == share,
                GRANTS.c.schema_id.is_(None) if schema is None else GRANTS.c.schema_id == schema,
                GRANTS.c.table_id.is_(None) if table is None else GRANTS.c.table_id == table,
            )
            for row in connection.execute(_GRANTS.where(same)):
                if row.columns == wanted and row.rows == rows:
                    return _grant(row)
            new = {
                "principal_id": who.id,
                "share_id": share,
                "schema_id": schema,
                "table_id": table,
                "columns": wanted,
                "rows": rows,
                "created_at": Timestamp.now().nanos,
            }
            key = connection.execute(sa.insert(GRANTS).values(new)).inserted_primary_key
            assert key is not None  # noqa: S101  there is one for one row
            return _grant(connection.execute(_GRANTS.where(GRANTS.c.id == key[0])).one())

    def all(self, principal: str | None = None, path: SharePath | None = None) -> list[Grant]:
        """Return grants, oldest first.

        Args:
            principal: only grants to this principal itself, not to its groups.
            path: only grants on exactly this share, schema or table.

        Raises:
            SharedObjectNotFound: the principal or the path does not exist.
        """
        query = _GRANTS
        if principal is not None:
            query = query.where(GRANTS.c.principal_id == self._principals.get(principal).id)
        with self._database.reading() as connection:
            if path is not None:
                self._shares.ids(connection, path)
            found = map(_grant, connection.execute(query))
            return [grant for grant in found if path is None or str(grant.path).lower() == str(path).lower()]

    def remove(self, number: int) -> Grant:
        """Revoke a grant, effective from the next request.

        Raises:
            SharedObjectNotFound: there is no grant with the number.
        """
        with self._database.writing() as connection:
            row = connection.execute(_GRANTS.where(GRANTS.c.id == number)).first()
            if row is None:
                raise SharedObjectNotFound(f"There is no grant {number}", hint="`odf grant list` shows them.")
            connection.execute(sa.delete(GRANTS).where(GRANTS.c.id == number))
            return _grant(row)

    def get(self, principal_id: int) -> Iterable[Grant]:
        """Return all grants that apply to a principal, including those of its groups."""
        groups = sa.select(MEMBERS.c.group_id).where(MEMBERS.c.member_id == principal_id)
        query = _GRANTS.where(sa.or_(GRANTS.c.principal_id == principal_id, GRANTS.c.principal_id.in_(groups)))
        query = query.where(sa.or_(GRANTS.c.principal_id == principal_id, _COUNTS))
        with self._database.reading() as connection:
            return [_grant(row) for row in connection.execute(query)]

    def of_everybody(self) -> Mapping[int, Sequence[Grant]]:
        """Return the grants that apply to each principal, by its id; principals without grants are missing."""
        found: dict[int, list[Grant]] = defaultdict(list)
        with self._database.reading() as connection:
            members: dict[int, list[int]] = defaultdict(list)
            # Grants to disabled groups are not in effect.
            joined = sa.select(MEMBERS).join(PRINCIPALS, MEMBERS.c.group_id == PRINCIPALS.c.id).where(_COUNTS)
            for row in connection.execute(joined):
                members[row.group_id].append(row.member_id)
            for row in connection.execute(_GRANTS):
                grant = _grant(row)
                for number in (row.principal_id, *members[row.principal_id]):
                    found[number].append(grant)
        return found


def _grant(row: Any) -> Grant:
    path = SharePath(row.share_name, row.schema_name, row.table_name)
    columns = None if row.columns is None else tuple(row.columns)
    return Grant(row.id, row.principal_name, path, columns, row.rows)
