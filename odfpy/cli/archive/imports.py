"""`odf archive import`: import a bucket in datalake's layout, or a tree of folders."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.archive.options import ArchiveName, archive_of, required
from odfpy.cli.archive.reports import reporter
from odfpy.cli.grammar import Form, Wait, session_of, whole_number
from odfpy.errors import UsageError, WorkspaceNotFound

if TYPE_CHECKING:
    from odfpy.archive.archive import Archive
    from odfpy.archive.imports.outcome import Imported, ImportLimits, PushedBatch
    from odfpy.cli.screen.output import Output
    from odfpy.cli.session import Session

_PATTERN = "; also EXTRACT~FORMAT, from the absolute path."


def import_(
    context: typer.Context,
    source: Annotated[
        str, typer.Argument(help="A bucket (s3://, gs://, az://) of datalake, or a folder.", metavar="SOURCE")
    ],
    records: Annotated[
        str | None,
        typer.Option(help="Export of datalake's index, JSON lines; only its objects are imported.", metavar="FILE"),
    ] = None,
    what: Annotated[str | None, typer.Option(help=f"For folders: type of the files{_PATTERN}", metavar="WHAT")] = None,
    where: Annotated[
        str | None, typer.Option(help=f"For folders: origin of the files{_PATTERN}", metavar="WHERE")
    ] = None,
    start: Annotated[
        str | None,
        typer.Option(help=f"For folders: time of the first event; a time, or mtime{_PATTERN}", metavar="TIME"),
    ] = None,
    end: Annotated[
        str | None, typer.Option(help="For folders: time of the last event; a time, mtime or pattern.", metavar="TIME")
    ] = None,
    work_id: Annotated[
        str | None, typer.Option(help=f"For folders: the job that the files belong to{_PATTERN}", metavar="ID")
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Only show what would be imported. Files of a folder are not read, so existing ones are listed, too.",
        ),
    ] = False,
    batch_files: Annotated[str, typer.Option(help="Maximum number of files per commit.", metavar="N")] = "10000",
    archive: ArchiveName = None,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Import files from a bucket in the layout of datalake, or from folders whose paths describe the files."""
    from odfpy.archive.imports.outcome import ImportLimits
    from odfpy.archive.reports import Pusher

    session = session_of(context)
    output = session.output_as(form)
    opened = archive_of(session, archive)
    if archive is None or "://" not in archive:
        session.wait_for_locks(wait)
    limits = ImportLimits(files=whole_number(batch_files, "--batch-files", at_least=1) or 1, dry_run=dry_run)
    report = reporter(session, opened, Pusher.IMPORT)

    def on_push(batch: PushedBatch) -> None:
        report(start=batch.start, duration=batch.duration, results=batch.results)

    rules = {"what": what, "where": where, "start": start, "end": end, "work_id": work_id}
    is_tree = any(value is not None for value in rules.values())
    if is_tree and (records is not None or "://" in source):
        raise UsageError(
            "--what, --where, --start, --end and --work-id are for folders, whose files have no metadata",
            hint="Objects of datalake have their own metadata, or that of --records.",
        )
    if not is_tree and records is None and "://" not in source:
        raise UsageError(
            f"{source} is a folder, whose files have no metadata",
            hint="Pass --what, --where and --start for all files, or --records for a copy of a bucket.",
        )
    with _scratch(session) as scratch:
        found = (
            _tree(opened, source, rules, limits, on_push)
            if is_tree
            else _layout(opened, source, records, scratch, limits, on_push)
        )
        return _print(found, output, dry_run=dry_run)


def _tree(archive: Archive, source: str, given: dict[str, str | None], limits: ImportLimits, on_push: Any) -> Any:
    from odfpy.archive.imports.tree import TreeRules, import_tree

    rules = TreeRules(
        what=required(given["what"], "--what"),
        where=required(given["where"], "--where"),
        start=required(given["start"], "--start", "Give a time, a pattern, or mtime for when a file was modified."),
        end=given["end"],
        work_id=given["work_id"],
    )
    return import_tree(archive, Path(source), rules, limits=limits, on_push=on_push)


def _layout(
    archive: Archive, source: str, records: str | None, scratch: Path, limits: ImportLimits, on_push: Any
) -> Iterator[Imported]:
    from odfpy.archive.imports.layout import import_layout
    from odfpy.archive.imports.objects import BucketObjects, FolderObjects

    objects = BucketObjects(source) if "://" in source else FolderObjects(Path(source))
    export = None if records is None else Path(records)
    return import_layout(archive, objects, scratch, records=export, limits=limits, on_push=on_push)


@contextmanager
def _scratch(session: Session) -> Iterator[Path]:
    """Create a temporary folder for copies, in the workspace if there is one: its disk has to hold the files anyway."""
    try:
        storage = session.workspace.storage
    except WorkspaceNotFound:
        with tempfile.TemporaryDirectory(prefix="odf-import-") as folder:
            yield Path(folder)
    else:
        with storage.scratch() as folder:
            yield folder


def _print(found: Iterator[Imported], output: Output, *, dry_run: bool) -> int:
    """Print the outcome of each file and return the exit code."""
    from odfpy.archive.imports.outcome import ImportOutcome
    from odfpy.cli.screen.output import error_tree
    from odfpy.data.amounts import format_size

    counts: Counter[ImportOutcome] = Counter()
    size = 0
    others: list[dict[str, Any]] = []
    for one in found:
        counts[one.outcome] += 1
        if one.error is None:
            size += (one.size or 0) if one.outcome is ImportOutcome.IMPORTED else 0
            output.detail(f"{one.outcome.value}: {one.name}" + (f" as {one.url}" if one.url else ""))
        elif output.for_people:
            output.text(f"{one.outcome.value}: {one.error.message}")
        else:
            others.append({"name": one.name, "outcome": one.outcome.value, **error_tree(one.error)})
    numbers = {outcome.value: counts[outcome] for outcome in ImportOutcome}
    if output.for_people:
        counts_text = ", ".join(f"{number} {name}" for name, number in numbers.items())
        output.text(f"{'Would be: ' if dry_run else ''}{counts_text} ({format_size(size)} new)")
    else:
        output.tree({**numbers, "bytes": size, "dryRun": dry_run, "files": others})
    return 1 if counts[ImportOutcome.REFUSED] else 0
