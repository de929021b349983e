"""Shares, schemas and tables in the database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any, Final

import sqlalchemy as sa

from odfpy.errors import AlreadyExists, InvalidValue, did_you_mean
from odfpy.sharing.errors import SharedObjectNotFound
from odfpy.sharing.model import Share, SharedTable, SharedView, SourceKind, TableSource
from odfpy.sharing.names import SharePath, check_name, folded
from odfpy.sharing.store.database import Database
from odfpy.sharing.store.tables import SCHEMAS, SHARED_TABLES, SHARES

_TABLES: Final = (
    sa.select(
        SHARED_TABLES,
        SCHEMAS.c.name.label("schema_name"),
        SHARES.c.name.label("share_name"),
        SHARES.c.id.label("share_id"),
    )
    .join(SCHEMAS, SHARED_TABLES.c.schema_id == SCHEMAS.c.id)
    .join(SHARES, SCHEMAS.c.share_id == SHARES.c.id)
)


class Shares:
    """The shares in a database. Names are case-insensitive."""

    def __init__(self, database: Database) -> None:
        self._database = database

    # --- Changes ---

    def add_share(self, name: str, comment: str = "") -> Share:
        """Add a share without schemas.

        Raises:
            InvalidValue: the name is invalid.
            AlreadyExists: the name is taken.
        """
        check_name("share", name, dots=True)
        share = Share(str(uuid.uuid4()), name, comment)
        with self._database.writing() as connection:
            known = connection.scalar(sa.select(SHARES.c.name).where(SHARES.c.folded == folded(name)))
            if known is not None:
                raise AlreadyExists(f"The share {known!r} already exists", hint="`odf share show` shows what is in it.")
            row = {"id": share.id, "name": name, "folded": folded(name), "comment": comment}
            connection.execute(sa.insert(SHARES).values(row))
        return share

    def add_schema(self, path: SharePath) -> None:
        """Add a schema without tables.

        Raises:
            InvalidValue: the path is not that of a schema.
            SharedObjectNotFound: the share does not exist.
            AlreadyExists: the name is taken.
        """
        if path.schema is None or path.table is not None:
            raise InvalidValue(f"{path} is a {path.what}, not a schema", hint="Write SHARE.SCHEMA.")
        with self._database.writing() as connection:
            share = self._share_row(connection, path.share)
            if self._schema_row(connection, share.id, path.schema) is not None:
                raise AlreadyExists(f"The schema {path} already exists", hint="`odf share show` shows what is in it.")
            self._insert_schema(connection, share.id, path.schema)

    def add_table(self, path: SharePath, source: TableSource, comment: str = "") -> SharedTable:
        """Add a table, and its schema if that does not exist.

        Args:
            path: path of the table.
            source: the data behind it.
            comment: human-readable comment.

        Raises:
            InvalidValue: the path is not that of a table.
            SharedObjectNotFound: the share does not exist.
            AlreadyExists: the name is taken.
        """
        if path.schema is None or path.table is None:
            raise InvalidValue(f"{path} is a {path.what}, not a table", hint="Write SHARE.SCHEMA.TABLE.")
        row = {
            "id": str(uuid.uuid4()),
            "name": path.table,
            "folded": folded(path.table),
            "kind": source.kind.value,
            "location": source.location,
            "shown": source.shown.value,
            "at": source.at,
            "comment": comment,
        }
        with self._database.writing() as connection:
            share = self._share_row(connection, path.share)
            schema = self._schema_row(connection, share.id, path.schema)
            schema_id = self._insert_schema(connection, share.id, path.schema) if schema is None else schema.id
            if self._table_row(connection, path) is not None:
                raise AlreadyExists(
                    f"The table {path} already exists",
                    hint=f"First run `odf share remove {path}`, or take another name.",
                )
            connection.execute(sa.insert(SHARED_TABLES).values(schema_id=schema_id, **row))
            return _table(self._table_row(connection, path))

    def change_share(self, name: str, comment: str) -> None:
        """Replace the comment of a share.

        Raises:
            SharedObjectNotFound: the share does not exist.
        """
        with self._database.writing() as connection:
            share, _, _ = self.ids(connection, SharePath(name))
            connection.execute(sa.update(SHARES).where(SHARES.c.id == share).values(comment=comment))

    def change_table(self, path: SharePath, source: TableSource, comment: str) -> None:
        """Replace the source and comment of a table, which keeps its id and grants.

        Args:
            path: path of the table.
            source: the new data behind it.
            comment: human-readable comment.

        Raises:
            SharedObjectNotFound: the table does not exist.
        """
        row = {"kind": source.kind.value, "location": source.location, "shown": source.shown.value, "at": source.at}
        with self._database.writing() as connection:
            _, _, table = self.ids(connection, path)
            connection.execute(
                sa.update(SHARED_TABLES).where(SHARED_TABLES.c.id == table).values(**row, comment=comment)
            )

    def remove(self, path: SharePath) -> None:
        """Remove a share, schema or table, with its content and the grants on it. The data itself is not deleted.

        Raises:
            SharedObjectNotFound: the path does not exist.
        """
        with self._database.writing() as connection:
            share, schema, table = self.ids(connection, path)
            if table is not None:
                connection.execute(sa.delete(SHARED_TABLES).where(SHARED_TABLES.c.id == table))
            elif schema is not None:
                connection.execute(sa.delete(SCHEMAS).where(SCHEMAS.c.id == schema))
            else:
                connection.execute(sa.delete(SHARES).where(SHARES.c.id == share))

    # --- Queries ---

    def shares(self) -> list[Share]:
        """Return all shares, by name."""
        with self._database.reading() as connection:
            rows = connection.execute(sa.select(SHARES).order_by(SHARES.c.folded))
            return [Share(row.id, row.name, row.comment) for row in rows]

    def share(self, name: str) -> Share:
        """Return the share with a name.

        Raises:
            SharedObjectNotFound: the share does not exist; the message suggests a similar name.
        """
        with self._database.reading() as connection:
            row = self._share_row(connection, name)
            return Share(row.id, row.name, row.comment)

    def find_share(self, name: str) -> Share | None:
        """Return the share with a name, None if it does not exist; without the slow search for similar names."""
        with self._database.reading() as connection:
            row = connection.execute(sa.select(SHARES).where(SHARES.c.folded == folded(name))).first()
            return None if row is None else Share(row.id, row.name, row.comment)

    def find_table(self, path: SharePath) -> SharedTable | None:
        """Return the table at a path, None if it does not exist; like `find_share`."""
        with self._database.reading() as connection:
            row = self._table_row(connection, path)
            return None if row is None else _table(row)

    def schemas(self, share: str) -> list[str]:
        """Return the names of a share's schemas, sorted. Raises as `share`."""
        with self._database.reading() as connection:
            found = self._share_row(connection, share)
            query = sa.select(SCHEMAS.c.name).where(SCHEMAS.c.share_id == found.id).order_by(SCHEMAS.c.folded)
            return list(connection.scalars(query))

    def tables(
        self,
        path: SharePath | None = None,
        *,
        after: tuple[str, str] = ("", ""),
        offset: int = 0,
        limit: int | None = None,
        within: Sequence[SharePath] | None = None,
    ) -> list[SharedTable]:
        """Return tables, sorted by schema and name.

        Args:
            path: only tables in this share or schema; all by default, sorted by share first.
            after: case-folded names of schema and table after which the result starts.
            offset: number of tables to skip.
            limit: maximum number of tables.
            within: only tables in or equal to one of these shares, schemas and tables; by default all.

        Raises:
            SharedObjectNotFound: the share or schema does not exist.
        """
        query = _TABLES.order_by(SHARES.c.folded, SCHEMAS.c.folded, SHARED_TABLES.c.folded)
        query = query.limit(limit).offset(offset)
        with self._database.reading() as connection:
            query = query.where(*self._inside(connection, path))
            if after != ("", ""):
                query = query.where(sa.tuple_(SCHEMAS.c.folded, SHARED_TABLES.c.folded) > sa.tuple_(*after))
            if within is not None:
                query = query.where(sa.or_(sa.false(), *map(_is_within, within)))
            return [_table(row) for row in connection.execute(query)]

    def num_tables(self, path: SharePath | None = None) -> int:
        """Return the number of tables in a share or schema, or in all shares. Raises as `tables`."""
        query = sa.select(sa.func.count()).select_from(SHARED_TABLES).join(SCHEMAS)
        with self._database.reading() as connection:
            return int(connection.scalar(query.where(*self._inside(connection, path))) or 0)

    def num_tables_by_share(self) -> dict[str, int]:
        """Return the number of tables of each share, by its id; shares without tables are missing."""
        query = sa.select(SCHEMAS.c.share_id, sa.func.count()).join(SHARED_TABLES).group_by(SCHEMAS.c.share_id)
        with self._database.reading() as connection:
            return {row[0]: row[1] for row in connection.execute(query)}

    def num_tables_by_schema(self, share: str) -> dict[str, int]:
        """Return the number of tables of each schema of a share, by name, including 0. Raises as `share`."""
        query = sa.select(SCHEMAS.c.name, sa.func.count(SHARED_TABLES.c.id)).join(SHARED_TABLES, isouter=True)
        with self._database.reading() as connection:
            own = query.where(SCHEMAS.c.share_id == self._share_row(connection, share).id)
            return {row[0]: row[1] for row in connection.execute(own.group_by(SCHEMAS.c.name))}

    def changelogs(self, within: Sequence[SharePath] | None = None) -> list[SharedTable]:
        """Return tables that are changelogs of datasets.

        Args:
            within: only tables in or equal to one of these shares, schemas and tables; by default all.
        """
        query = _TABLES.where(
            SHARED_TABLES.c.kind == SourceKind.DATASET.value, SHARED_TABLES.c.shown == SharedView.CHANGELOG.value
        )
        if within is not None:
            query = query.where(sa.or_(sa.false(), *map(_is_within, within)))
        with self._database.reading() as connection:
            return [_table(row) for row in connection.execute(query)]

    def tables_of(self, dataset_id: str) -> list[SharedTable]:
        """Return all tables that show a dataset, by path."""
        order = (SHARES.c.folded, SCHEMAS.c.folded, SHARED_TABLES.c.folded)
        its = (SHARED_TABLES.c.kind == SourceKind.DATASET.value, SHARED_TABLES.c.location == dataset_id)
        with self._database.reading() as connection:
            return [_table(row) for row in connection.execute(_TABLES.where(*its).order_by(*order))]

    def table(self, path: SharePath) -> SharedTable:
        """Return the table at a path.

        Raises:
            SharedObjectNotFound: the path does not exist; the message suggests a similar name.
        """
        with self._database.reading() as connection:
            self.ids(connection, path)
            return _table(self._table_row(connection, path))

    def sources(self, path: SharePath) -> dict[SharePath, TableSource]:
        """Return the source of a table, or the sources of all tables in a share or schema.

        Raises:
            SharedObjectNotFound: the path does not exist; the message suggests a similar name.
        """
        found = self.tables(path) if path.table is None else [self.table(path)]
        return {table.path: table.source for table in found}

    def ids(self, connection: sa.Connection, path: SharePath) -> tuple[str, int | None, str | None]:
        """Return the ids of share, schema and table; None for levels below the path.

        Raises:
            SharedObjectNotFound: the path does not exist; the message suggests a similar name.
        """
        share = self._share_row(connection, path.share)
        if path.schema is None:
            return share.id, None, None
        schema = self._schema_row(connection, share.id, path.schema)
        if schema is None:
            known = list(connection.scalars(sa.select(SCHEMAS.c.name).where(SCHEMAS.c.share_id == share.id)))
            raise _not_found("schema", path.schema, known, share.name)
        if path.table is None:
            return share.id, schema.id, None
        table = self._table_row(connection, path)
        if table is None:
            known = list(
                connection.scalars(sa.select(SHARED_TABLES.c.name).where(SHARED_TABLES.c.schema_id == schema.id))
            )
            raise _not_found("table", path.table, known, share.name)
        return share.id, schema.id, table.id

    # --- Within a transaction ---

    def _inside(self, connection: sa.Connection, path: SharePath | None) -> list[sa.ColumnElement[bool]]:
        """Return SQL conditions for tables in a share or schema; none for all tables."""
        if path is None:
            return []
        share, schema, _ = self.ids(connection, path)
        return [SCHEMAS.c.share_id == share, *([] if schema is None else [SCHEMAS.c.id == schema])]

    @staticmethod
    def _share_row(connection: sa.Connection, name: str) -> Any:
        row = connection.execute(sa.select(SHARES).where(SHARES.c.folded == folded(name))).first()
        if row is None:
            known = list(connection.scalars(sa.select(SHARES.c.name)))
            raise SharedObjectNotFound(
                f"There is no share {name!r}", hint=did_you_mean(name, known, otherwise="`odf share list` shows them.")
            )
        return row

    @staticmethod
    def _schema_row(connection: sa.Connection, share_id: str, name: str) -> Any:
        query = sa.select(SCHEMAS).where(SCHEMAS.c.share_id == share_id, SCHEMAS.c.folded == folded(name))
        return connection.execute(query).first()

    @staticmethod
    def _table_row(connection: sa.Connection, path: SharePath) -> Any:
        query = _TABLES.where(
            SHARES.c.folded == folded(path.share),
            SCHEMAS.c.folded == folded(path.schema or ""),
            SHARED_TABLES.c.folded == folded(path.table or ""),
        )
        return connection.execute(query).first()

    @staticmethod
    def _insert_schema(connection: sa.Connection, share_id: str, name: str) -> int:
        row = {"share_id": share_id, "name": name, "folded": folded(name)}
        key = connection.execute(sa.insert(SCHEMAS).values(row)).inserted_primary_key
        assert key is not None  # noqa: S101  there is one for one row
        return int(key[0])


def _is_within(path: SharePath) -> sa.ColumnElement[bool]:
    parts = ((SHARES, path.share), (SCHEMAS, path.schema), (SHARED_TABLES, path.table))
    return sa.and_(*(table.c.folded == folded(name) for table, name in parts if name is not None))


def _table(row: Any) -> SharedTable:
    source = TableSource(SourceKind(row.kind), row.location, SharedView(row.shown), row.at)
    return SharedTable(row.id, row.share_id, SharePath(row.share_name, row.schema_name, row.name), source, row.comment)


def _not_found(what: str, name: str, known: list[str], share: str) -> SharedObjectNotFound:
    return SharedObjectNotFound(
        f"The share {share} has no {what} {name!r}",
        hint=did_you_mean(name, known, otherwise=f"`odf share show {share}` shows what is in it."),
    )
