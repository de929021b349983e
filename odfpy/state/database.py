"""The in-process database in which merges and lookups of the local lane run."""

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
    # Nothing is ever fetched from the network, and no local variable of Python is taken for a table.
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
    """An empty database in memory; what goes wrong in it becomes one of our errors.

    Args:
        threads: how many it may use, by default one for each processor. Results do not depend on it.
        memory: how much it may take, for example `1GB`; by default most of what there is.
        scratch: folder for what does not fit into memory, which is removed in the end.
        diagnose: called when something has failed; it may find the cause and raise a better error.

    Raises:
        IngestError: it could not do its work, for want of memory or disk for example.
        KeyboardInterrupt: the person has interrupted it.
    """
    import duckdb  # what looks nothing up does without

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
def kept_database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that this process keeps, which is there at once; for queries that make nothing in it.

    Raises:
        IngestError, KeyboardInterrupt: as for `database`.
    """
    with _our_errors(), _instance(os.getpid()).cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        yield connection


@cache
def _instance(process: int) -> duckdb.DuckDBPyConnection:
    """One for each process, since the threads of a database do not come along when a process forks."""
    import duckdb

    del process
    return duckdb.connect(config=_settings())


def _settings() -> dict[str, str | bool | int | float | list[str]]:
    import duckdb

    if int(duckdb.__version__.partition(".")[0]) >= _MENDED:
        return dict(_SETTINGS)
    # duckdb 1 passes over rows of a join whose key is not between the least and the greatest key of the other side, and
    # takes -0.0 for another one than 0.0 there. Keys that are equal would not meet.
    return {**_SETTINGS, "disabled_optimizers": "join_filter_pushdown"}


@contextmanager
def _our_errors(diagnose: Callable[[], None] | None = None) -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.OutOfMemoryException as error:
        raise IngestError(
            f"Not enough memory: {_first_line(error)}", hint="Ingest less at once, or free memory or disk space."
        ) from error
    # Damaged files can make names that Python cannot decode, which the bindings report in their own way.
    except (duckdb.Error, RuntimeError, UnicodeError) as error:
        # A value that does not fit its type is quoted in the message, and may say anything.
        if not isinstance(error, duckdb.DataError) and any(word in str(error) for word in _INTERRUPTED):
            raise KeyboardInterrupt from error  # the bindings have taken the signal, and tell of it in their own way
        if diagnose is not None:
            diagnose()
        raise IngestError(f"The merge failed: {_first_line(error)}") from error


def quoted(name: str) -> str:
    """A name as SQL."""
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
