"""`odf archive enqueue`, `uploader` and `queue`: queue files in a folder until they are in the archive."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.archive.files_to_push import files_to_push
from odfpy.cli.archive.options import (
    ArchiveName,
    End,
    RecordedPath,
    Start,
    What,
    Where,
    WorkId,
    archive_of,
)
from odfpy.cli.archive.reports import reporter
from odfpy.cli.grammar import Form, session_of, whole_number
from odfpy.cli.interruptions import INTERRUPTED
from odfpy.errors import OdfError, UsageError, WorkspaceNotFound
from odfpy.stopping import stopped_by_signals

_MAX_WORKERS = 256

if TYPE_CHECKING:
    from odfpy.archive.archive import Archive
    from odfpy.archive.pushing import Pushed
    from odfpy.archive.queue.folder import QueueFolder
    from odfpy.archive.queue.uploader import Ingest, UploadLimits, UploadSummary
    from odfpy.cli.screen.output import Output
    from odfpy.cli.session import Session
    from odfpy.coordinator.storage.config import Config

QueuePath = Annotated[
    str | None,
    typer.Option("--queue", help="Folder of the queue; by default the setting archive.queue.", metavar="FOLDER"),
]


def enqueue(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(help="Files.", metavar="FILE")],
    what: What = None,
    where: Where = None,
    start: Start = None,
    end: End = None,
    work_id: WorkId = None,
    compress: Annotated[bool, typer.Option("--compress/--no-compress", help="Compress the content with gzip.")] = False,
    path: RecordedPath = None,
    queue: QueuePath = None,
) -> int:
    """Copy files into the queue, from which `odf archive uploader` pushes them to an archive."""
    from odfpy.archive.queue.enqueue import enqueue as put

    session = session_of(context)
    said = {"what": what, "where": where, "start": start, "end": end, "work_id": work_id, "path": path}
    new = files_to_push(session, names, **said)
    folder, config = _queue(session, queue)
    algorithm = _algorithm(config)
    failed = 0
    for one in new:
        try:
            enqueued = put(folder, one, compress=compress, algorithm=algorithm)
        except OdfError as error:  # the remaining files may be valid
            session.output.error(error.message, error.hint, error.code)
            failed = max(failed, error.exit_code)
        else:
            session.output.text(f"Enqueued {one.file} as {enqueued.metadata.id}")
    return failed


def uploader(
    context: typer.Context,
    workers: Annotated[str, typer.Option(help="Number of batches pushed at the same time.", metavar="N")] = "1",
    timeout: Annotated[
        str | None, typer.Option(help="Exit after this many seconds without work.", metavar="SECONDS")
    ] = None,
    batch_files: Annotated[str, typer.Option(help="Maximum number of files per commit.", metavar="N")] = "10000",
    batch_bytes: Annotated[
        str, typer.Option(help="Size of a commit in bytes above which no more files are added.", metavar="N")
    ] = "1073741824",
    batch_seconds: Annotated[
        str, typer.Option(help="How many seconds a file waits for others of its commit.", metavar="SECONDS")
    ] = "1",
    queue: QueuePath = None,
    archive: ArchiveName = None,
    form: Form = None,
) -> int:
    """Push the files of the queue to an archive, until Ctrl-C or SIGTERM, then complete current pushes."""
    from odfpy.archive.queue.uploader import Uploader, UploadLimits
    from odfpy.archive.reports import Pusher

    session = session_of(context)
    output = session.output_as(form)
    limits = UploadLimits(
        workers=whole_number(workers, "--workers", at_least=1, at_most=_MAX_WORKERS) or 1,
        files=whole_number(batch_files, "--batch-files", at_least=1) or 1,
        size=whole_number(batch_bytes, "--batch-bytes", at_least=1) or 1,
        gather=_seconds(batch_seconds, "--batch-seconds"),
        timeout=None if timeout is None else _seconds(timeout, "--timeout"),
    )
    folder, _ = _queue(session, queue)
    target = archive_of(session, archive)
    record = reporter(session, target, Pusher.UPLOADER)

    def on_ingest(ingest: Ingest) -> None:
        record(start=ingest.start, duration=ingest.duration, results=ingest.results, error=ingest.error)
        if ingest.error is not None:
            output.warn(f"{ingest.error.message}; again in {ingest.again:.1f} s")
        for result in ingest.results:
            _print_pushed(result, output)
        output.flush()

    def on_refused(bundle: Path, error: OdfError) -> None:
        output.error(f"{bundle.name} was refused, and is in {bundle.parent}: {error.message}", error.hint, error.code)

    working = Uploader(folder, _opener(session, archive, limits), limits, on_ingest=on_ingest, on_refused=on_refused)
    with _heard(working.stop) as signals:
        output.info(f"Uploading {folder.path} to {target.name}; Ctrl-C stops it.")
        summary = working.run()
    return _ended(summary, signals, output)


def _opener(session: Session, name: str | None, limits: UploadLimits) -> Callable[[], Archive]:
    """Return a function that opens the archive; each worker calls it."""
    from odfpy.archive.opening import is_url, open_by_name

    if name is not None and is_url(name):
        return lambda: open_by_name(name, ".")
    root = session.workspace.root
    patience = limits.longest

    def open_archive() -> Archive:
        from odfpy.coordinator.workspace import Workspace

        workspace = Workspace.open(root)
        workspace.storage.lock_patience = patience  # other processes may push, too
        return open_by_name(name, workspace)

    return open_archive


def _print_pushed(result: Pushed, output: Output) -> None:
    record = result.record
    if record is None:  # reported when it is moved to the poison folder
        return
    if output.for_people:
        output.text(
            f"{'Pushed' if result.outcome.value == 'pushed' else 'Already there:'} {record.path} to {result.url}"
        )
    else:
        from odfpy.escaping import escape_controls_in_json

        tree = {"outcome": result.outcome.value, "url": result.url, "record": record.to_dict()}
        output.text(escape_controls_in_json(json.dumps(tree, ensure_ascii=False)))


def _ended(summary: UploadSummary, signals: list[int], output: Output) -> int:
    """Print a summary and return the exit code."""
    from odfpy.data.amounts import count_of

    output.info(
        f"{count_of(summary.pushed, 'file')} pushed, {summary.known} already archived, {summary.refused} refused"
    )
    if signal.SIGINT in signals:
        return INTERRUPTED
    if summary.trouble is not None and not signals:
        output.error(summary.trouble.message, summary.trouble.hint, summary.trouble.code)
        return summary.trouble.exit_code
    return 0


@contextmanager
def _heard(stop: Callable[[], None]) -> Iterator[list[int]]:
    """Stop the uploader on SIGTERM or Ctrl-C. A second signal terminates the process, which is safe.

    Yields:
        The list of signals received so far.
    """
    heard: list[int] = []

    def hear(number: int) -> None:
        if heard:
            os._exit(128 + number)
        heard.append(number)
        stop()

    with stopped_by_signals(hear):
        yield heard


def show_queue(context: typer.Context, queue: QueuePath = None, form: Form = None) -> None:
    """Show the files that wait in the queue, and those that were refused, with the reasons."""
    session = session_of(context)
    output = session.output_as(form)
    folder, _ = _queue(session, queue)
    used, refused = folder.usage(), list(folder.refused())
    if not output.for_people:
        output.tree({"folder": str(folder.path), "files": used.files, "bytes": used.size, "refused": refused})
        return
    from odfpy.data.amounts import count_of, format_size

    waiting = f"{count_of(used.files, 'file')} {'waits' if used.files == 1 else 'wait'}"
    output.text(f"{folder.path}: {waiting} ({format_size(used.size)}), {len(refused)} refused")
    for one in refused:
        output.text(f"refused: {one['name']}: {one['error']}")


# --- Queue folder ----------------------------------------------------------------------------------------------------


def _queue(session: Session, named: str | None) -> tuple[QueueFolder, Config]:
    """Return the queue of a command and the effective settings. With an explicit queue, no workspace is needed."""
    from odfpy.archive.queue.folder import QueueFolder
    from odfpy.archive.queue.usage import QueueLimits
    from odfpy.coordinator.storage.config import Config
    from odfpy.settings.sections import ArchiveSection

    root: Path | None = None
    try:
        config, root = session.workspace.config, session.workspace.root
    except WorkspaceNotFound:
        config = Config.load(Path.cwd())
        if named is None and config.section(ArchiveSection).queue is None:
            raise
    section = config.section(ArchiveSection)
    if named is not None:
        path = Path(named)
    elif section.queue is not None:
        path = (root or Path()) / Path(section.queue).expanduser()
    else:
        path = session.workspace.storage.odf / "archive" / "queue"
    limits = QueueLimits(files=section.queue_files, size=section.queue_bytes, free=section.queue_free)
    return QueueFolder(path, limits), config


def _algorithm(config: Config) -> Any:
    """Return the hash algorithm that names objects in the archive."""
    from odfpy.data.multihash import ALGORITHMS
    from odfpy.settings.sections import ArchiveSection

    wanted = config.section(ArchiveSection).hash
    return next(algorithm for algorithm in ALGORITHMS.values() if algorithm.name == wanted)


def _seconds(text: str, option: str) -> float:
    """Parse the value of an option in seconds.

    Raises:
        UsageError: the value is not a number, or is negative.
    """
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 <= found < 1e9:
        raise UsageError(f"{option} must be a number of seconds, not {text!r}")
    return found
