"""Helpers shared by the sharing commands."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from odfpy.cli.grammar import session_of
from odfpy.errors import NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odfpy.sharing.names import SharePath
    from odfpy.sharing.sharing import Sharing


def sharing_of(context: typer.Context) -> Sharing:
    """Return the shares of a command's workspace.

    Raises:
        SharingDatabaseError: the database of shares cannot be used.
    """
    from odfpy.settings.sections import SharingSection
    from odfpy.sharing.sharing import Sharing

    workspace = session_of(context).workspace
    return Sharing.of_workspace(workspace.storage.odf, workspace.config.section(SharingSection).database)


def read_file(name: str) -> bytes:
    """Return the content of a file, or of standard input for `-`.

    Raises:
        NotFound: the file cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise NotFound(f"Cannot read {name}: {error.strerror}") from error


def empty_tables_warning(tables: Sequence[SharePath]) -> str:
    """Return a warning about tables without rows for a grant, because they lack columns that it names."""
    return f"The grant shows nothing of {', '.join(map(str, tables))}: it lacks columns that the grant names"


def attributes_of(given: list[str] | None) -> dict[str, str] | None:
    """Parse the `--attribute NAME=VALUE` options; return None if there are none.

    Raises:
        UsageError: an option has another form.
    """
    if given is None:
        return None
    found = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise UsageError(f"Not an attribute: {text!r}", hint="Write --attribute NAME=VALUE, such as country=DE.")
        found[name] = value
    return found
