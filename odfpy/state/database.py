"""The in-process database (duckdb) for merges and lookups of the local lane."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from odfpy.errors import IngestError

if TYPE_CHECKING:
    import duckdb

_SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    # Nothing is ever fetched from the network, and no local variable of Python is used as a table.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
    "python_enable_replacements": False,
    "preserve_insertion_order": False,
}
_MENDED = 2
_INTERRUPTED = ("Query interrupted", "KeyboardInterrupt")


@contextmanager
def database(
    *,
    threads: int | None = None,
    memory: str | None = None,
    scratch: Path | None = None,
    diagnose: Callable[[], None] | None = None,
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open an empty database in memory; its errors are translated to ours.

    Args:
        threads: the maximum number of threads, by default one per processor. Results do not depend on it.
        memory: the maximum memory, for example `1GB`; by default most of the machine's.
        scratch: folder for data that does not fit into memory; it is removed in the end.
        diagnose: called after a failure; it may find the cause and raise a better error.

    Raises:
        IngestError: the database failed, for lack of memory or disk for example.
        KeyboardInterrupt: the user has interrupted it.
    """
    import duckdb  # not needed without lookups

    settings = _settings()
    if threads is not None:
        settings["threads"] = threads
    if memory is not None:
        settings["memory_limit"] = memory
    if scratch is not None:
        settings["temp_directory"] = str(scratch)
    with _our_errors(diagnose), duckdb.connect(config=settings) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@contextmanager
def shared_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a cursor on a database that this process keeps open; for queries that create nothing in it.

    Raises:
        IngestError, KeyboardInterrupt: as for `database`.
    """
    with _our_errors(), _instance(os.getpid()).cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@cache
def _instance(process: int) -> duckdb.DuckDBPyConnection:
    """Return one database per process, since its threads do not survive a fork."""
    import duckdb

    del process
    return duckdb.connect(config=_settings())


def _settings() -> dict[str, str | bool | int | float | list[str]]:
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) >= _MENDED:
        return dict(_SETTINGS)
    # duckdb 1 skips rows of a join whose key is not between the least and the greatest key of the other side, and
    # distinguishes -0.0 from 0.0 there. Equal keys would not meet.
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
    # Damaged files can lead to names that Python cannot decode, which the bindings report in another way.
    except (duckdb.Error, RuntimeError, UnicodeError) as error:
        # The message quotes values that do not fit their type, and these may contain any text.
        if not isinstance(error, duckdb.DataError) and any(word in str(error) for word in _INTERRUPTED):
            raise KeyboardInterrupt from error  # the bindings have caught the signal
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
