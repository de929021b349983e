"""The in-process database (duckdb) for merges and lookups of the local lane."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from odfpy.errors import IngestError

if TYPE_CHECKING:
    import duckdb
    from typing_extensions import Self

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    # The database never accesses the network, and never reads local variables of Python as tables.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "preserve_insertion_order": False,
}
_REMOVALS: Final = """
    SELECT format('DROP VIEW "{}"', replace(view_name, '"', '""')) FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT format('DROP TABLE "{}"', replace(table_name, '"', '""')) FROM duckdb_tables()
"""
_MENDED = 2
_INTERRUPTED = ("Query interrupted", "KeyboardInterrupt")


class SharedDatabase:
    """An in-memory database for the steps of one job.

    Opening one takes as long as a small merge. So the process caches an empty database of a finished job for the next.
    """

    def __init__(self, *, threads: int | None = None, memory: str | None = None, scratch: Path | None = None) -> None:
        """
        Args:
            threads: the maximum number of threads, by default one per processor. Results do not depend on it.
            memory: the maximum memory, for example `1GB`; by default most of the machine's.
            scratch: folder for data that does not fit into memory; it is removed in the end.
        """
        folder = None if scratch is None else str(scratch)
        given = {"threads": threads, "memory_limit": memory, "temp_directory": folder}
        self._settings = {name: value for name, value in given.items() if value is not None}
        self._key = (threads, memory)
        self._instance: duckdb.DuckDBPyConnection | None = None
        self._has_failed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the database if it was opened, or cache it for the next job."""
        instance, self._instance = self._instance, None
        if instance is not None and (self._has_failed or not _keep(instance, self._key)):
            instance.close()

    @contextmanager
    def session(self, diagnose: Callable[[], None] | None = None) -> Iterator[duckdb.DuckDBPyConnection]:
        """Provide a connection for one step; errors in the block are converted to ours.

        Args:
            diagnose: called after a failure; it may raise a more specific error.

        Raises:
            IngestError: the database failed, for example for lack of memory or disk space.
            KeyboardInterrupt: the user has interrupted the step.
        """
        import duckdb  # not needed for ingests without lookups

        with _our_errors(diagnose):
            if self._instance is None:
                kept = _kept(self._key, self._settings.get("temp_directory"))
                self._instance = kept or duckdb.connect(config={**_settings(), **self._settings})
            try:
                with self._instance.cursor() as connection:
                    connection.execute("SET TimeZone = 'UTC'")
                    yield connection
            except BaseException:
                self._has_failed = True
                raise


_Key: TypeAlias = "tuple[int | None, str | None]"
_KEPT: Final[dict[tuple[int, _Key], duckdb.DuckDBPyConnection]] = {}
"""Cached empty databases, by process and settings: after a fork, databases of the parent have no threads."""


def _kept(key: _Key, scratch: object) -> duckdb.DuckDBPyConnection | None:
    """Take the cached database for the given settings; return None if there is none."""
    found = _KEPT.pop((os.getpid(), key), None)
    if found is not None and scratch is not None:
        found.execute("SET temp_directory = $folder", {"folder": scratch})
    return found


def _keep(instance: duckdb.DuckDBPyConnection, key: _Key) -> bool:
    """Remove the content of a database and cache it for the next job; return whether it is cached."""
    import duckdb

    try:
        with instance.cursor() as connection:
            connection.execute("RESET temp_directory")  # fails if there are temporary files, which only closing removes
            for (removal,) in connection.execute(_REMOVALS).fetchall():
                connection.execute(removal)
    except duckdb.Error:
        return False
    return _KEPT.setdefault((os.getpid(), key), instance) is instance


@contextmanager
def database(
    *,
    threads: int | None = None,
    memory: str | None = None,
    scratch: Path | None = None,
    diagnose: Callable[[], None] | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open a `SharedDatabase` for a single step.

    Args:
        threads: the maximum number of threads.
        memory: the maximum memory.
        scratch: folder for data that does not fit into memory.
        diagnose: called after a failure.

    Raises:
        IngestError, KeyboardInterrupt: as for `SharedDatabase.session`.
    """
    with SharedDatabase(threads=threads, memory=memory, scratch=scratch) as own, own.session(diagnose) as connection:
        yield connection


def _settings() -> dict[str, str | bool | int | float | list[str]]:
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) >= _MENDED:
        return dict(_SETTINGS)
    # duckdb 1 skips rows of a join whose key is outside of the range of keys of the other side, and there distinguishes
    # -0.0 from 0.0, so that equal keys would not match.
    return {**_SETTINGS, "disabled_optimizers": "join_filter_pushdown"}


@contextmanager
def _our_errors(diagnose: Callable[[], None] | None = None) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise IngestError(
            f"Not enough memory: {_first_line(error)}", hint="Ingest smaller files, or free memory or disk space."
        ) from error
    # Damaged files can contain names that Python cannot decode, which the bindings report as other errors.
    except (duckdb.Error, RuntimeError, UnicodeError) as error:
        # The message quotes values that do not fit their type, which may contain any text.
        if not isinstance(error, duckdb.DataError) and any(word in str(error) for word in _INTERRUPTED):
            raise KeyboardInterrupt from error  # the bindings have handled the signal
        if diagnose is not None:
            diagnose()
        raise IngestError(f"The merge failed: {_first_line(error)}") from error


def quoted(name: str) -> str:
    """Return a quoted SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """Return a SQL string literal."""
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
