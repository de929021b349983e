"""Steps that the commands of sharing have in common."""

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
    """The shares of the workspace that a command is for.

    Raises:
        SharingDatabaseError: their database cannot be used.
    """
    from odfpy.settings.sections import SharingSection
    from odfpy.sharing.sharing import Sharing

    workspace = session_of(context).workspace
    return Sharing.of_workspace(workspace.storage.odf, workspace.config.section(SharingSection).database)


def read_file(name: str) -> bytes:
    """The contents of a file, or of standard input for `-`.

    Raises:
        NotFound: it cannot be read.
    """
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise NotFound(f"Cannot read {name}: {error.strerror}") from error


def shows_nothing(tables: Sequence[SharePath]) -> str:
    """A warning of tables in which a grant shows nothing, since they lack columns that it names."""
    return f"The grant shows nothing of {', '.join(map(str, tables))}: it lacks columns that the grant names"


def attributes_of(given: list[str] | None) -> dict[str, str] | None:
    """The attributes that options `--attribute NAME=VALUE` name, None where there are none.

    Raises:
        UsageError: one is not written like that.
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
