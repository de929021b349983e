"""Validation of tables and grants before they are stored, so that errors are reported to the person who shares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from odfpy.errors import OdfError, UsageError, did_you_mean
from odfpy.sharing.conditions import check_condition, columns_of
from odfpy.sharing.errors import InvalidCondition
from odfpy.sharing.files.schema import shared_schema
from odfpy.sharing.model import SourceKind, TableSource
from odfpy.sharing.names import SharePath
from odfpy.sharing.tables.contract import ReadableTable
from odfpy.sharing.tables.opener import open_files
from odfpy.sharing.tables.remote import is_remote


def shared_files(kind: SourceKind, location: str) -> TableSource:
    """Return the source of a shared table of files, after checking that all of it can be shared.

    Args:
        kind: kind of the table.
        location: path or URL of a folder or metadata file; or `catalog:namespace.table`.

    Raises:
        CannotShare: the table does not exist, or a part of it cannot be shared.
        SchemaError: a column has a type that cannot be shared.
    """
    if is_remote(location):
        location = location.rstrip("/")
    elif kind is not SourceKind.ICEBERG or Path(location).exists():
        location = str(Path(location).absolute())  # symbolic links are kept: their owner may redirect them deliberately
    table = open_files(kind, location)
    latest = table.latest
    shared_schema(table.schema(latest))
    for _ in table.files(latest):
        pass
    return TableSource(kind, location)


def check_columns(table: ReadableTable, columns: Sequence[str] | None, rows: str | None) -> None:
    """Check that a table has the columns that a grant names; for a table without data, any columns are accepted.

    Args:
        table: the table.
        columns: columns of the grant.
        rows: row condition of the grant.

    Raises:
        UsageError: a column does not exist; the message suggests a similar name.
        InvalidCondition: the condition names a column that does not exist.
    """
    names = table.schema(table.latest).names
    if not names:
        return
    known = {name.lower() for name in names}
    for name in columns or ():
        if name.lower() not in known:
            hint = did_you_mean(name, names, otherwise=f"It has {', '.join(names)}.")
            raise UsageError(f"The table has no column {name!r}", hint=hint)
    if rows is not None:
        check_condition(rows, names)


def check_grant(
    path: SharePath,
    tables: Mapping[SharePath, TableSource],
    open_table: Callable[[TableSource], ReadableTable],
    columns: Sequence[str] | None,
    rows: str | None,
) -> list[SharePath]:
    """Check that the columns that a grant names exist: in its table, or in tables of its share or schema.

    Args:
        path: path of the grant.
        tables: that table, or those in the share or schema.
        open_table: opens a table.
        columns: columns of the grant.
        rows: row condition of the grant.

    Returns:
        The tables of a share or schema in which the grant shows nothing, since they lack columns that it names.

    Raises:
        UsageError: no table has a column; the message suggests a similar name.
        InvalidCondition: no table has all columns that the condition names.
        CannotShare: the one table no longer exists.
    """
    if columns is None and rows is None:
        return []
    if path.table is not None:
        for source in tables.values():
            check_columns(open_table(source), columns, rows)
        return []
    names_by_table = _columns_of_tables(tables, open_table)
    unfit = _without(names_by_table, columns, rows)
    if not names_by_table or not all(names_by_table.values()):  # for a table without data, any columns are accepted
        return unfit
    every = list(dict.fromkeys(name for names in names_by_table.values() for name in names))
    known = {name.lower() for name in every}
    for name in columns or ():
        if name.lower() not in known:
            hint = did_you_mean(name, every, otherwise=f"The columns are {', '.join(every)}.")
            raise UsageError(f"No table of {path} has a column {name!r}", hint=hint)
    if rows is not None and len(_without(names_by_table, None, rows)) == len(names_by_table):
        missing = [name for name in columns_of(rows) if name.lower() not in known]
        hint = f"The columns are {', '.join(every)}."
        if missing:
            hint = did_you_mean(min(missing), every, otherwise=hint)
        raise InvalidCondition(f"No table of {path} has all columns that the condition names: {rows}", hint=hint)
    return unfit


def _columns_of_tables(
    tables: Mapping[SharePath, TableSource], open_table: Callable[[TableSource], ReadableTable]
) -> dict[SharePath, list[str]]:
    """Return the columns of each table that can be read; none for a table without data."""
    found = {}
    for path, source in tables.items():
        try:
            table = open_table(source)
            found[path] = list(table.schema(table.latest).names)
        except OdfError:
            continue  # callers cannot read its rows, either
    return found


def _without(
    names_by_table: Mapping[SharePath, Sequence[str]], columns: Sequence[str] | None, rows: str | None
) -> list[SharePath]:
    """Return the tables with data in which a grant shows nothing."""
    named = {name.lower() for name in columns_of(rows)} if rows is not None else set()
    shown = None if columns is None else {name.lower() for name in columns}
    found = []
    for path, names in names_by_table.items():
        known = {name.lower() for name in names}
        if known and (not named <= known or (shown is not None and not shown & known)):
            found.append(path)
    return found
