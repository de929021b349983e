"""Opening the database, and migrating it to the newest version."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from odfpy.errors import OdfError
from odfpy.extras import needs_extra
from odfpy.files import make_folder
from odfpy.http.url import without_user

with needs_extra("serve", "Shares, users and grants", OdfError):
    import sqlalchemy as sa

NEWEST: Final = "0004"
"""The newest migration; a test compares it with the folder `migrations`."""

_LOCK_NUMBER: Final = 0x6F6466  # "odf": advisory locks of PostgreSQL are numbers
_PATIENCE: Final = 30.0


class SharingDatabaseError(OdfError, code="E763"):
    """The database of shares, users and grants cannot be used."""


class ConcurrentChange(OdfError, code="E766"):
    """Shares, users or grants were changed by another process at the same time."""


class Database:
    """The database of sharing, migrated to the newest version; thread-safe, and used by several processes."""

    def __init__(self, url: str) -> None:
        """Open the database; create or migrate it if needed.

        Args:
            url: SQLAlchemy URL, such as `sqlite:////srv/odf/sharing.db` or `postgresql+psycopg://host/name`.

        Raises:
            SharingDatabaseError: the database cannot be reached, or is newer than this release.
        """
        self._shown = without_user(url)
        try:
            self._engine = _engine(url)
        except (sa.exc.ArgumentError, sa.exc.NoSuchModuleError, ModuleNotFoundError) as error:
            raise SharingDatabaseError(
                f"Cannot open the database {self._shown}: {error}",
                hint="`sharing.database` is a URL such as postgresql+psycopg://HOST/NAME; that one needs `pip install"
                " 'opendatafabric[postgres]'`.",
            ) from error
        with self._failures():
            self._bring_up()

    @classmethod
    def in_workspace(cls, odf: Path, url: str | None = None) -> Database:
        """Open the database of a workspace.

        Args:
            odf: the folder `.odf` of the workspace.
            url: the configured URL; by default the database is a file in the folder, which only its owner can read.

        Raises:
            SharingDatabaseError: the database cannot be used.
        """
        if url is not None:
            return cls(url)
        path = odf / "sharing.db"
        if not path.exists():
            make_folder(odf)
            path.touch(mode=0o600)
        return cls(f"sqlite:///{path}")

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Provide a connection for reading.

        Raises:
            SharingDatabaseError: the database is unreachable or damaged.
        """
        with self._failures(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Provide a transaction, which is committed at the end of the block.

        Raises:
            SharingDatabaseError: the database is unreachable, damaged, or read-only.
            ConcurrentChange: the changes conflict with those of another transaction.
        """
        with self._failures(), self._engine.connect() as connection:
            # IMMEDIATE: otherwise two transactions that have read and now want to write would deadlock.
            connection.execution_options(sqlite_begin="BEGIN IMMEDIATE")
            with connection.begin():
                yield connection

    def close(self) -> None:
        """Close all connections."""
        self._engine.dispose()

    @property
    def _is_sqlite(self) -> bool:
        return self._engine.dialect.name == "sqlite"

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except sa.exc.IntegrityError as error:
            raise ConcurrentChange(
                "Shares, users or grants were changed at the same time; this command changed nothing",
                hint="Check the current state, and try again.",
            ) from error
        except sa.exc.SQLAlchemyError as error:
            reason = getattr(error, "orig", None) or error
            raise SharingDatabaseError(
                f"Cannot use the database {self._shown}: {str(reason).splitlines()[0]}",
                hint="It has shares, users and grants: `odf config get sharing.database` shows where it is.",
            ) from error

    # --- Migration ---

    def _bring_up(self) -> None:
        if self._form() == NEWEST:
            return
        with self._alone() as connection:
            found = self._form()
            if found == NEWEST:  # another process has migrated it in the meantime
                return
            if found is not None and found > NEWEST:
                raise SharingDatabaseError(
                    f"The database {self._shown} is of a newer release: its form is {found}, this one knows {NEWEST}",
                    hint="Update odfpy.",
                )
            self._migrate(connection)

    def _form(self) -> str | None:
        with self._engine.connect() as connection:
            if not sa.inspect(connection).has_table("alembic_version"):
                return None
            found = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
            return None if found is None else str(found)

    @contextmanager
    def _alone(self) -> Iterator[sa.Connection]:
        """Provide a connection that excludes concurrent migrations."""
        if self._is_sqlite:
            path = Path(str(self._engine.url.database)).with_suffix(".lock")
            with path.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                with self._engine.connect() as connection:
                    yield connection
                    connection.commit()
            return
        with self._engine.begin() as connection:
            connection.execute(sa.text("SELECT pg_advisory_xact_lock(:number)"), {"number": _LOCK_NUMBER})
            yield connection

    @staticmethod
    def _migrate(connection: sa.Connection) -> None:
        """Run the missing migrations, without Alembic's `env.py`, which is a script and cannot be imported."""
        from alembic.config import Config
        from alembic.runtime.environment import EnvironmentContext
        from alembic.script import ScriptDirectory

        configuration = Config()
        configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
        scripts = ScriptDirectory.from_config(configuration)
        steps = lambda revision, _context: scripts._upgrade_revs("head", revision)  # noqa: SLF001, E731
        with EnvironmentContext(configuration, scripts, fn=steps) as environment:
            environment.configure(connection=connection, render_as_batch=True)
            with environment.begin_transaction():
                environment.run_migrations()


def _engine(url: str) -> sa.Engine:
    found = sa.make_url(url)
    if found.get_backend_name() != "sqlite":
        return sa.create_engine(found, pool_pre_ping=True)
    engine = sa.create_engine(found, connect_args={"timeout": _PATIENCE})
    sa.event.listen(engine, "connect", _set_up_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    return engine


def _set_up_sqlite(connection: Any, _record: object) -> None:
    connection.isolation_level = None  # otherwise the driver begins and commits transactions implicitly
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    # The journal mode is stored in the file. Changing it needs exclusive access; if that fails, the next opener
    # retries.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
