"""Steps that the commands of sharing have in common."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from odfpy.cli.grammar import session_of
from odfpy.errors import NotFound, UsageError, did_you_mean

if TYPE_CHECKING:
    from odfpy.coordinator.workspace import Workspace
    from odfpy.sharing.model import TableSource
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


def check_columns(workspace: Workspace, source: TableSource, columns: Sequence[str] | None, rows: str | None) -> None:
    """Check that a table has the columns that a grant names; one without data yet may get any.

    Args:
        workspace: where the table is.
        source: the table.
        columns: those that the grant is for.
        rows: its condition.

    Raises:
        UsageError: a column is not there, with a suggestion.
        InvalidCondition: the condition names one that is not there.
    """
    from odfpy.sharing.conditions import check_condition
    from odfpy.sharing.tables.opener import TableOpener

    table = TableOpener([workspace.storage], [workspace.queries.service]).open(source)
    there = table.schema(table.latest).names
    if not there:
        return
    known = {name.lower() for name in there}
    for name in columns or ():
        if name.lower() not in known:
            hint = did_you_mean(name, there, otherwise=f"It has {', '.join(there)}.")
            raise UsageError(f"The table has no column {name!r}", hint=hint)
    if rows is not None:
        check_condition(rows, there)
