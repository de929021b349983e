"""`odf archive`: archives of files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.archive import files, imports, queue, reports, retention, translate
from odfpy.cli.archive.files_to_push import files_to_push
from odfpy.cli.archive.options import (
    ArchiveName,
    End,
    ListFormat,
    RecordedPath,
    Start,
    What,
    Where,
    WorkId,
    archive_of,
    printer,
)
from odfpy.cli.grammar import Form, Wait, command, group, session_of, whole_number
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.archive import Pushed
    from odfpy.cli.screen.output import Output

app = group("Archives of files: stored unchanged, with search by type, origin and time.")
command(
    app,
    "odf archive fetch odf://logs/6309e115c2914d0f8622973422626954 --to downloads",
    "odf archive fetch 6309e115c2914d0f8622973422626954 --filename-template '{where}-{name}'",
    "odf archive fetch --sql \"select id from logs where work_id = 'etl-14321359'\"",
)(files.fetch)
command(app, "odf archive cat odf://logs/6309e115c2914d0f8622973422626954")(files.cat)
command(app, "odf archive show odf://logs/6309e115c2914d0f8622973422626954 -o json")(files.show)
command(app, "odf archive correct odf://logs/6309e115c2914d0f8622973422626954 --where web2 --why 'wrong host'")(
    files.correct
)
command(app, "odf archive withdraw odf://logs/6309e115c2914d0f8622973422626954 --why 'has passwords in it'")(
    files.withdraw
)
command(app, "odf archive expire --dry-run", "odf archive expire")(retention.expire)
command(
    app,
    "odf archive enqueue /var/log/nginx.log --what nginx --where web1 --start 2024-03-01",
    "odf archive enqueue *.log --what syslog --where web1 --start mtime --compress",
)(queue.enqueue)
command(app, "odf archive uploader", "odf archive uploader --workers 4 --timeout 60 --archive http://HOST/logs")(
    queue.uploader
)
command(app, "odf archive queue", "odf archive queue -o json", name="queue")(queue.show_queue)
command(
    app,
    "odf archive import s3://datalake --dry-run",
    "odf archive import s3://datalake --records export.json.gz",
    "odf archive import /var/log --what '.*/(?P<name>[a-z]+)\\.log$~{name}' --where web1 --start mtime",
    name="import",
)(imports.import_)
command(app, "odf archive translate '.*/job-(?P<id>[0-9]+)\\.log$~job{id}' /var/log/jobs/job-1234.log")(
    translate.translate
)
command(app, "odf archive report", "odf archive report --status error --since 2d -o json")(reports.report)
app.add_typer(retention.hold, name="hold", epilog="odf archive hold list")
app.add_typer(retention.retention, name="retention", epilog="odf archive retention list")


@command(app, "odf archive init logs")
def init(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name of the dataset of the archive.", metavar="NAME")],
) -> None:
    """Create an archive in this workspace."""
    from odfpy.archive.local import init_archive

    session = session_of(context)
    archive = init_archive(session.workspace, name)
    session.output.info(f"Created the archive {archive.name}")


@command(
    app,
    "odf archive push /var/log/nginx.log --what nginx --where web1 --start 2024-03-01 --end 2024-03-02",
    "odf archive push *.log --what '.*/(?P<name>[a-z]+)\\.log$~{name}' --where web1 --start mtime",
    "odf archive push reports/ --recursive --what report --where office --start mtime --archive documents",
)
def push(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="Files.", metavar="FILE")],
    what: What = None,
    where: Where = None,
    start: Start = None,
    end: End = None,
    work_id: WorkId = None,
    archive: ArchiveName = None,
    recursive: Annotated[
        bool,
        typer.Option(
            "--recursive", "-r", help="Archive all files below the given folders; symbolic links are skipped."
        ),
    ] = False,
    path: RecordedPath = None,
    hash_: Annotated[
        str | None, typer.Option("--hash", help="Expected BLAKE2b hash of 16 bytes.", metavar="HEX")
    ] = None,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Archive files, all of them in one commit."""
    session = session_of(context)
    output = session.output_as(form)
    opened = archive_of(session, archive)
    if archive is None or "://" not in archive:
        session.wait_for_locks(wait)
    said = {"what": what, "where": where, "start": start, "end": end, "work_id": work_id, "path": path, "hash": hash_}
    results = reports.push_and_report(
        session, opened, files_to_push(session, _files(names, recursive=recursive), **said)
    )
    session.progress.clear()
    return print_pushed(results, output)


def _files(names: list[str], *, recursive: bool) -> list[Path]:
    from odfpy.archive.files import files_in

    found: list[Path] = []
    for name in names:
        path = Path(name)
        found += files_in(path) if recursive and path.is_dir() else [path]
    if not found:
        raise UsageError(f"{names[0]}: it contains no files")
    return found


def print_pushed(results: list[Pushed], output: Output) -> int:
    """Print the outcome of each file and return the exit code."""
    from odfpy.archive import PushOutcome

    refused = [result for result in results if result.outcome is PushOutcome.REFUSED]
    if not output.for_people:
        output.tree([_tree(result) for result in results])
    else:
        for result in results:
            if result.outcome is PushOutcome.PUSHED:
                output.text(f"Pushed {result.file} to {result.url}")
            elif result.outcome is PushOutcome.KNOWN:
                output.text(f"Already archived: {result.file} is {result.url}")
    for result in refused:
        if result.error is not None:
            output.error(result.error.message, result.error.hint, result.error.code)
    if refused and len(results) > 1:
        from odfpy.data.amounts import count_of

        there = len(results) - len(refused)
        verb = "is" if there == 1 else "are"
        output.info(f"{there} of {count_of(len(results), 'file')} {verb} in the archive, {len(refused)} refused")
    return max((result.error.exit_code for result in refused if result.error), default=0)


def _tree(result: Pushed) -> dict[str, Any]:
    tree: dict[str, Any] = {"file": str(result.file), "outcome": result.outcome.value}
    if result.record is not None:
        tree |= {"url": result.url, "record": result.record.to_dict()}
    if result.error is not None:
        tree |= {"error": result.error.message, "code": result.error.code}
    return tree


# --- Search ----------------------------------------------------------------------------------------------------------


@command(
    app,
    "odf archive list syslog,nginx --where web1 --start 2024-03-01 --end now",
    "odf archive list etl --work-id etl-14321359 --format human",
    name="list",
)
def list_(
    context: typer.Context,
    what: Annotated[
        list[str], typer.Argument(help="Type of the files; repeatable, or comma-separated.", metavar="WHAT")
    ],
    where: Annotated[
        list[str] | None,
        typer.Option(help="Only files from this origin; repeatable, or comma-separated.", metavar="WHERE"),
    ] = None,
    start: Annotated[str | None, typer.Option(help="Only files from this time on.", metavar="TIME")] = None,
    end: Annotated[str | None, typer.Option(help="Only files up to this time; by default now.", metavar="TIME")] = None,
    work_id: Annotated[str | None, typer.Option(help="Only files of this job.", metavar="ID")] = None,
    form: ListFormat = "url",
    archive: ArchiveName = None,
) -> None:
    """List files of a time range, or of a job."""
    session = session_of(context)
    opened = archive_of(session, archive)
    show = printer(form, opened)
    if start is not None and end is None:
        end = "now"
    for record in opened.list(what, where=where or (), start=start, end=end, work_id=work_id):
        session.output.text(show(record))


@command(app, "odf archive latest nginx web1", "odf archive latest nginx web1 --lookback 60 --format json")
def latest(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="Type of the file, such as syslog.", metavar="WHAT")],
    where: Annotated[str, typer.Argument(help="Origin of the file, such as web1.", metavar="WHERE")],
    lookback: Annotated[
        str | None, typer.Option(help="How many days to look back; by default 14.", metavar="DAYS")
    ] = None,
    form: ListFormat = "url",
    archive: ArchiveName = None,
) -> None:
    """Find the file with the latest start time for a WHAT and WHERE."""
    from odfpy.archive.question import LOOKBACK_DAYS

    session = session_of(context)
    opened = archive_of(session, archive)
    show = printer(form, opened)
    days = whole_number(lookback, "--lookback")
    session.output.text(show(opened.latest(what, where, lookback=LOOKBACK_DAYS if days is None else days)))
