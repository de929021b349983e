"""`odf archive report`: the pushed files, the pushers, and the outcomes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from odfpy.cli.grammar import Form, moment_option, session_of, whole_number
from odfpy.errors import OdfError, UsageError

if TYPE_CHECKING:
    from odfpy.archive.archive import Archive
    from odfpy.archive.pushing import NewFile, Pushed
    from odfpy.archive.reports import Pusher
    from odfpy.cli.screen.output import Columns
    from odfpy.cli.session import Session


def report(
    context: typer.Context,
    status: Annotated[
        str | None, typer.Option(help="Only runs with this status: success, warning or error.", metavar="STATUS")
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="Only since a time, or within a duration: 2d.", metavar="TIME")
    ] = None,
    num: Annotated[str, typer.Option("-n", help="Maximum number of entries.", metavar="N")] = "20",
    form: Form = None,
) -> None:
    """Show the pushes to archives of this workspace, the newest first."""
    from odfpy.archive.reports import ReportStatus, reports
    from odfpy.archive.times import iso
    from odfpy.errors import member_named

    session = session_of(context)
    output = session.output_as(form)
    wanted = None if status is None else member_named(ReportStatus, "status", status, error=UsageError)
    count = whole_number(num, "-n", at_least=1) or 1
    found = list(reports(session.workspace, num=count, status=wanted, since=None if since is None else _time(since)))
    if not found and output.for_people:
        output.info("No reports.")
        return
    columns: Columns = {
        "Start": lambda row: iso(row["start"]),
        "Status": "status",
        "Archive": "archive",
        "By": "by",
        "Files": "files",
        "Known": "known",
        "Refused": "refused",
        "Bytes": "bytes",
        "Seconds": "duration",
        "Message": lambda row: (row["message"] or "").partition("\n")[0][:80],
    }
    output.records(found, columns)


def _time(text: str) -> int:
    """Parse a time, or a duration before now. Return milliseconds since the epoch."""
    from odfpy.archive.times import FIRST, parse_time
    from odfpy.data.timestamp import Timestamp

    moment = moment_option(text, lambda time: Timestamp.from_millis(parse_time(time)))
    return FIRST if moment is None else moment.millis


def reporter(session: Session, archive: Archive, by: Pusher) -> Callable[..., None]:
    """Return a function that records pushes to a local archive. Servers record the pushes they receive themselves.

    Args:
        session: the session of the command.
        archive: the archive pushed to.
        by: the pusher.

    Returns:
        A function with the parameters `start`, `duration`, `results` and `error`; see `PushReport`.
    """
    from odfpy.archive.local import LocalArchive
    from odfpy.archive.reports import PushReport, record_report

    def record(*, start: int, duration: float, results: Sequence[Pushed] = (), error: OdfError | None = None) -> None:
        if not isinstance(archive, LocalArchive):
            return
        report = PushReport(archive=archive.name, by=by, start=start, duration=duration, results=results, error=error)
        try:
            record_report(session.workspace, report)
        except OdfError as failure:  # the files are archived even if their report is not
            session.output.warn(f"the report of the push was not recorded: {failure.message}")

    return record


def push_and_report(session: Session, archive: Archive, files: Sequence[NewFile]) -> list[Pushed]:
    """Push files for a command and record the push.

    Args:
        session: the session of the command.
        archive: the target archive.
        files: the files to push.

    Raises:
        OdfError: the archive cannot be written; the failure is recorded, too.
    """
    from odfpy.archive.reports import Pusher
    from odfpy.data.timestamp import Timestamp

    record = reporter(session, archive, Pusher.COMMAND)
    start, begun = Timestamp.now().millis, time.monotonic()
    try:
        results = archive.push_all(files)
    except OdfError as error:
        record(start=start, duration=time.monotonic() - begun, error=error)
        raise
    record(start=start, duration=time.monotonic() - begun, results=results)
    return results
