"""Opening the database, and bringing it to the newest form."""

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
    """Shares, users or grants were changed by somebody else at the same time."""


class Database:
    """A database of sharing, in the newest form. Used by several threads and processes at once."""

    def __init__(self, url: str) -> None:
        """Open it, and make it or bring it to the newest form where that is needed.

        Args:
            url: of SQLAlchemy, such as `sqlite:////srv/odf/sharing.db` or `postgresql+psycopg://host/name`.

        Raises:
            SharingDatabaseError: it cannot be reached, or is newer than this release.
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
        """The database of a workspace.

        Args:
            odf: its folder `.odf`.
            url: from its settings; by default it is a file in the folder, which only its owner can read.

        Raises:
            SharingDatabaseError: it cannot be used.
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
        """A connection to look things up.

        Raises:
            SharingDatabaseError: the database is not there, or damaged.
        """
        with self._failures(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """A transaction; all of it or nothing.

        Raises:
            SharingDatabaseError: the database is not there, damaged, or cannot be written.
            ConcurrentChange: what is written does not go together with what others have written meanwhile.
        """
        with self._failures(), self._engine.connect() as connection:
            # IMMEDIATE, or two that have read and now want to write would wait for each other.
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
                "Somebody else has changed shares, users or grants at the same time; nothing was changed here",
                hint="Look at what is there now, and try again.",
            ) from error
        except sa.exc.SQLAlchemyError as error:
            reason = getattr(error, "orig", None) or error
            raise SharingDatabaseError(
                f"Cannot use the database {self._shown}: {str(reason).splitlines()[0]}",
                hint="It has shares, users and grants: `odf config get sharing.database` shows where it is.",
            ) from error

    # --- Form ---

    def _bring_up(self) -> None:
        if self._form() == NEWEST:
            return
        with self._alone() as connection:
            found = self._form()
            if found == NEWEST:  # somebody else has done it meanwhile
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
        """A connection that nobody else brings the database up with."""
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
        """Run the migrations that are missing. Alembic's `env.py` would do it as a script, which nobody can import."""
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
    connection.isolation_level = None  # or the driver begins and ends transactions where it likes
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = FULL")
    # The file keeps the mode. To change it, nobody else may be at the file; whoever opens it next tries again.
    with suppress(sqlite3.OperationalError):
        connection.execute("PRAGMA journal_mode = WAL")


def _begin_sqlite(connection: sa.Connection) -> None:
    connection.exec_driver_sql(connection.get_execution_options().get("sqlite_begin", "BEGIN"))
