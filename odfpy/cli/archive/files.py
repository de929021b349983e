"""`odf archive fetch`, `cat`, `show`, `correct` and `withdraw`: read files of an archive, and change their records."""

from __future__ import annotations

import sys
from itertools import chain
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.archive.options import (
    ArchiveName,
    Who,
    Why,
    acting_user,
    archive_of,
    lines_or,
    local,
    record_at,
)
from odfpy.cli.grammar import Form, session_of
from odfpy.data.amounts import count_of
from odfpy.errors import OdfError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odfpy.archive import Archive
    from odfpy.archive.local import LocalArchive
    from odfpy.cli.session import Session

Urls = Annotated[
    list[str] | None,
    typer.Argument(help="URLs or ids of files; by default, lines of standard input.", metavar="URL"),
]


def fetch(
    context: typer.Context,
    urls: Urls = None,
    filename_template: Annotated[
        str | None,
        typer.Option(help="Name of the file, such as '{what}/{where}-{start_iso}-{name}'.", metavar="TEMPLATE"),
    ] = None,
    to: Annotated[str, typer.Option("--to", help="Folder to write the files to.", metavar="FOLDER")] = ".",
    sql: Annotated[
        str | None, typer.Option("--sql", help="Fetch the files in the column id of this query.", metavar="SQL")
    ] = None,
    archive: ArchiveName = None,
) -> int:
    """Download files of an archive into a folder, and check their hashes."""
    session = session_of(context)
    if sql is not None and urls:
        raise UsageError("URLs cannot be combined with --sql")
    opened, wanted = _opened(session, archive, _ids(session, sql) if sql is not None else lines_or(urls))
    failed = 0
    for url in wanted:
        try:
            session.output.text(str(opened.fetch(url, folder=to, template=filename_template)))
        except OdfError as error:  # the remaining files may exist
            session.output.error(error.message, error.hint, error.code)
            failed = max(failed, error.exit_code)
    return failed


def _opened(session: Session, name: str | None, urls: Iterator[str]) -> tuple[Archive, Iterator[str]]:
    """Return the archive of a command, and the addresses of the files in it.

    If no archive is named, it is the archive of the first address.

    Args:
        session: the session of the command.
        name: value of `--archive`, None if it is missing.
        urls: the addresses; they may come from a pipe.
    """
    from odfpy.archive.addresses import archive_of_address

    if name is None and (first := next(urls, None)) is not None:
        name, urls = archive_of_address(first), chain([first], urls)
    return archive_of(session, name), urls


def _ids(session: Session, sql: str) -> Iterator[str]:
    found = session.workspace.sql(sql, engine="datafusion")
    if "id" not in found.column_names:
        columns = ", ".join(found.column_names)
        raise UsageError(f"The query has no column id, only {columns}", hint="SELECT id FROM ... WHERE ...")
    yield from dict.fromkeys(str(one) for one in found.column("id").to_pylist() if one is not None)


def cat(context: typer.Context, urls: Urls = None, archive: ArchiveName = None) -> None:
    """Print the content of files of an archive."""
    session = session_of(context)
    opened, wanted = _opened(session, archive, lines_or(urls))
    for url in wanted:
        with opened.open(record_at(opened, url)) as stream:
            while chunk := stream.read(1 << 20):
                sys.stdout.buffer.write(chunk)
    sys.stdout.buffer.flush()


def show(context: typer.Context, urls: Urls = None, archive: ArchiveName = None, form: Form = None) -> None:
    """Show all metadata of files."""
    session = session_of(context)
    output = session.output_as(form)
    opened, wanted = _opened(session, archive, lines_or(urls))
    output.tree([record_at(opened, url).to_dict() for url in wanted])


def correct(
    context: typer.Context,
    urls: Urls = None,
    why: Why = "",
    what: Annotated[str | None, typer.Option(help="Type of the file, such as syslog.", metavar="WHAT")] = None,
    where: Annotated[str | None, typer.Option(help="Origin of the file, such as web1.", metavar="WHERE")] = None,
    start: Annotated[str | None, typer.Option(help="Time of the first event in it.", metavar="TIME")] = None,
    end: Annotated[str | None, typer.Option(help="Time of the last event in it.", metavar="TIME")] = None,
    work_id: Annotated[str | None, typer.Option(help="The job that it belongs to.", metavar="ID")] = None,
    path: Annotated[str | None, typer.Option(help="Path of the file.", metavar="PATH")] = None,
    who: Who = None,
    archive: ArchiveName = None,
) -> None:
    """Correct the metadata of files; the old values stay in the history."""
    from odfpy.archive.times import parse_time

    session = session_of(context)
    times = {"start": start, "end": end}
    given = {"what": what, "where": where, "work_id": work_id, "path": path}
    values = {name: value for name, value in given.items() if value is not None}
    values |= {name: parse_time(value) for name, value in times.items() if value is not None}  # type: ignore[misc]
    if not values:
        raise UsageError(
            "Nothing to correct", hint="Give at least one of --what, --where, --start, --end, --work-id, --path."
        )
    opened, ids = _local_ids(session, archive, urls)
    changed = opened.change(ids, who=acting_user(who), why=why, **values)
    session.output.info(f"Corrected {len(changed)} of {count_of(len(ids), 'file')}")


def withdraw(
    context: typer.Context, urls: Urls = None, why: Why = "", who: Who = None, archive: ArchiveName = None
) -> None:
    """Withdraw files: searches no longer find them, and `odf gc` may remove their bytes unless a rule keeps them."""
    session = session_of(context)
    opened, ids = _local_ids(session, archive, urls)
    changed = opened.withdraw(ids, who=acting_user(who), why=why)
    session.output.info(f"Withdrew {len(changed)} of {count_of(len(ids), 'file')}")


def _local_ids(session: Session, name: str | None, urls: list[str] | None) -> tuple[LocalArchive, list[str]]:
    opened, wanted = _opened(session, name, lines_or(urls))
    archive = local(opened)
    return archive, [record_at(archive, url).id for url in wanted]
