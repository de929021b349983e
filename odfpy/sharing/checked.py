"""Tables and grants, tried before they are kept: what cannot be shown is found out by whoever shares it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from odfpy.errors import UsageError, did_you_mean
from odfpy.sharing.conditions import check_condition
from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.tables.contract import ReadableTable
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.remote import is_remote


def shared_files(kind: SourceKind, location: str) -> TableSource:
    """A table of files as the source of a shared table, once all of it can be shared.

    Args:
        kind: what it is.
        location: path or URL of a folder or metadata file; or `catalog:namespace.table`.

    Raises:
        CannotShare: it is not there, or something of it cannot be shared.
        SchemaError: a column has a type that cannot be shared.
    """
    if is_remote(location):
        location = location.rstrip("/")
    elif kind is not SourceKind.ICEBERG or Path(location).exists():
        location = str(Path(location).absolute())  # links stay: whoever sets one chooses anew what it leads to
    table = open_files(kind, location)
    latest = table.latest
    shared_schema(table.schema(latest))
    for _ in table.files(latest):
        pass
    return TableSource(kind, location)


def check_columns(table: ReadableTable, columns: Sequence[str] | None, rows: str | None) -> None:
    """Check that a table has the columns that a grant names; one without data yet may get any.

    Args:
        table: the table.
        columns: those that the grant is for.
        rows: its condition.

    Raises:
        UsageError: a column is not there, with a suggestion.
        InvalidCondition: the condition names one that is not there.
    """
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
