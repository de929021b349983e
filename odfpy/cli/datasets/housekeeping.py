"""`odf gc`, `compact`, `reset`, `delete`, `rename`: housekeeping. Irreversible commands ask first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import (
    All,
    Form,
    Name,
    Names,
    Wait,
    Yes,
    command,
    complete_repositories,
    group,
    session_of,
    whole_number,
)
from odfpy.cli.screen.output import Format, Output, error_tree
from odfpy.data.amounts import count_of, format_size
from odfpy.data.duration import Duration
from odfpy.errors import OdfError, UsageError

if TYPE_CHECKING:
    from odfpy.cli.session import Session
    from odfpy.coordinator.maintenance.compact import CompactOptions, CompactResult
    from odfpy.coordinator.maintenance.gc import GcReport
    from odfpy.coordinator.maintenance.reset import ResetResult
    from odfpy.coordinator.storage.rewriting import Downstream

commands = group("Housekeeping.")

DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.")]
_CHECKPOINTS = "Remove superseded checkpoints? Copies that lack them can then no longer be pulled from here."
_AGAIN = "`odf pull --all --reset-derivatives-on-diverged-input` recomputes them"


def _agreed(session: Session, consequences: list[str], question: str, yes: bool) -> bool:
    """Show the consequences and return whether the user confirms."""
    if not yes:
        for line in consequences:
            session.output.info(line)
    return session.confirm(question, yes=yes)


# --- gc --------------------------------------------------------------------------------------------------------------


@command(
    commands,
    "odf gc",
    "odf gc --dry-run",
    "odf gc big-trades --checkpoints --yes",
    "odf gc --repo mirror --older-than 30d --dry-run",
)
def gc(
    context: typer.Context,
    names: Names = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Also delete checkpoints that later ones have superseded.")
    ] = False,
    caches: Annotated[
        bool, typer.Option("--caches", help="Also delete caches in use; they are rebuilt when needed.")
    ] = False,
    repo: Annotated[
        str | None,
        typer.Option(
            help="Clean up this repository, a folder or bucket; name, path or URL.",
            metavar="REPOSITORY",
            autocompletion=complete_repositories,
        ),
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option(help="With --repo: only objects that are older than this; 2w by default.", metavar="DURATION"),
    ] = None,
    form: Form = None,
) -> int:
    """Delete unreferenced files: old histories, temporary files, caches of deleted datasets."""
    session = session_of(context)
    output = session.output_as(form)
    if repo is not None and (checkpoints or caches):
        raise UsageError("--repo cannot be combined with --checkpoints or --caches", hint="Omit these options.")
    if repo is None and older_than is not None:
        raise UsageError(
            "--older-than is for repositories", hint="Select one with --repo. In the workspace, locks are used instead."
        )
    if checkpoints and not dry_run and not session.confirm(_CHECKPOINTS, yes=yes):
        output.error("nothing removed")
        return 1
    maintenance, progress = session.workspace.maintenance, session.progress
    if repo is not None:
        age = Duration.parse(older_than) if older_than is not None else None
        reports = maintenance.gc_repository(repo, names or (), older_than=age, dry_run=dry_run, progress=progress)
    else:
        from odfpy.archive.retention.releasing import released_objects

        reports = maintenance.gc(
            names or (),
            checkpoints=checkpoints,
            caches=caches,
            dry_run=dry_run,
            may_remove=released_objects,
            progress=progress,
        )
    return _print_all_garbage(session, output, reports, dry_run=dry_run)


def _print_all_garbage(session: Session, output: Output, reports: Iterable[GcReport], *, dry_run: bool) -> int:
    trees = []
    codes = {0}
    size = 0
    for report in reports:
        session.progress.clear()
        size += report.size
        if report.error is not None:
            codes.add(1)
            where = "" if report.name is None else f"{report.name}: "
            output.error(f"{where}{report.error.message}", report.error.hint, report.error.code)
        elif output.for_people and report.found:
            _print_garbage(report, output)
        if output.form is Format.NDJSON:
            output.tree(_garbage_tree(report))
        trees.append(_garbage_tree(report))
    session.progress.clear()
    if output.for_people:
        nothing = "Nothing removed" if max(codes) else "Nothing to remove"
        output.info(f"{format_size(size)} {'would be freed' if dry_run else 'freed'}" if size else nothing)
    elif output.form is not Format.NDJSON:
        output.tree(trees)
    return max(codes)


def _print_garbage(report: GcReport, output: Output) -> None:
    kinds = ", ".join(f"{count} {why.value}" for why, count in report.counts.items())
    output.text(f"{report.name or 'the workspace'}: {format_size(report.size)} ({kinds})")
    for item in report.found if output.verbosity.value > 0 else ():
        output.text(f"  {item.path}  {format_size(item.size)}, {item.why.value}")


def _garbage_tree(report: GcReport) -> dict[str, Any]:
    return {
        "dataset": report.name,
        "bytes": report.size,
        "files": [{"path": str(item.path), "bytes": item.size, "why": item.why.name.lower()} for item in report.found],
        "seconds": round(report.seconds, 3),
        **error_tree(report.error),
    }


# --- compact ---------------------------------------------------------------------------------------------------------


@command(
    commands,
    "odf compact com.example.rates",
    "odf compact com.example.rates --dry-run",
    "odf compact com.example.daily --keep-metadata-only --yes",
)
def compact(
    context: typer.Context,
    names: Names = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    max_slice_records: Annotated[
        str | None, typer.Option(help="Maximum number of rows per data file; 1048576 by default.", metavar="N")
    ] = None,
    max_slice_size: Annotated[
        str | None, typer.Option(help="Maximum size of a data file in bytes; 300000000 by default.", metavar="BYTES")
    ] = None,
    keep_metadata_only: Annotated[
        bool, typer.Option("--keep-metadata-only", help="Drop all rows; a pull recomputes derivatives.")
    ] = False,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Merge small data files into fewer, larger ones. The rows stay, the history changes."""
    if not names:
        raise UsageError("Nothing to compact", hint="Name datasets.")
    session = session_of(context)
    session.wait_for_locks(wait)
    output = session.output_as(form)
    workspace = session.workspace
    options = _compact_options(max_slice_records, max_slice_size, keep_metadata_only)
    plans = [workspace.maintenance.plan_compact(str(handle.id), options) for handle in workspace.datasets.match(names)]
    results = plans
    if not dry_run and any(plan.changes for plan in plans):
        if not _agreed(session, _compact_lines(plans, "becomes"), f"Compact {_names(plans)}, with a new history?", yes):
            output.error("not compacted")
            return 1
        results = []
        try:
            for plan in plans:
                results.append(workspace.maintenance.compact(str(plan.handle.id), options, progress=session.progress))
        except OdfError:  # report finished work anyway
            session.progress.clear()
            _print_compacted(results, output, dry_run)
            raise
        session.progress.clear()
    _print_compacted(results, output, dry_run)
    return 0


def _print_compacted(results: list[CompactResult], output: Output, dry_run: bool) -> None:
    if not output.for_people:
        output.tree([_compact_tree(result) for result in results])
        return
    for line in _compact_lines(results, "would become" if dry_run else "is now"):
        output.info(line)
    if any(result.changes for result in results) and not dry_run:
        output.info("`odf gc` removes the old data files.")


def _compact_options(records: str | None, size: str | None, keep_metadata_only: bool) -> CompactOptions:
    from odfpy.coordinator.maintenance.compact import CompactOptions

    default = CompactOptions()
    return CompactOptions(
        whole_number(records, "--max-slice-records", at_least=1) or default.max_records,
        whole_number(size, "--max-slice-size", at_least=1) or default.max_bytes,
        keep_metadata_only,
    )


def _compact_lines(results: list[CompactResult], verb: str) -> list[str]:
    lines = []
    for result in results:
        if not result.changes:
            lines.append(f"{result.handle}: nothing to compact")
            continue
        before, after = (
            f"{count_of(slices, 'data file')} in {count_of(blocks, 'block')}"
            for slices, blocks in zip(result.slices, result.blocks, strict=True)
        )
        lines.append(f"{result.handle}: what was {before} {verb} {after}")
        lines += _consequences(result.downstream, result.notes)
    return lines


def _names(plans: list[CompactResult]) -> str:
    return ", ".join(str(plan.handle) for plan in plans if plan.changes)


def _consequences(downstream: Downstream, notes: tuple[str, ...]) -> list[str]:
    lines = [f"  note: {note}" for note in notes]
    if downstream.all:
        lines.append(f"  derived from the old history: {', '.join(map(str, downstream.all))}; {_AGAIN}")
    return lines


def _compact_tree(result: CompactResult) -> dict[str, Any]:
    return {
        "dataset": str(result.handle),
        "id": str(result.handle.id),
        "oldHead": str(result.old_head),
        "newHead": str(result.new_head) if result.new_head else None,
        "blocks": {"before": result.blocks[0], "after": result.blocks[1]},
        "slices": {"before": result.slices[0], "after": result.slices[1]},
        "toBeMadeAgain": list(map(str, result.downstream.all)),
        "notes": list(result.notes),
        "seconds": round(result.seconds, 3),
    }


# --- reset -----------------------------------------------------------------------------------------------------------


@command(commands, "odf reset com.example.rates 17", "odf reset com.example.rates f16205fc1...", "odf reset rates v1")
def reset(
    context: typer.Context,
    name: Name,
    block: Annotated[
        str, typer.Argument(help="Hash or number of a block, or the name of a tag or branch.", metavar="BLOCK")
    ],
    yes: Yes = False,
    wait: Wait = None,
    form: Form = None,
) -> int:
    """Reset a dataset to a block, dropping all later blocks."""
    session = session_of(context)
    session.wait_for_locks(wait)
    output = session.output_as(form)
    workspace = session.workspace
    result = workspace.maintenance.plan_reset(name, block)
    if result.changes:
        if not _agreed(session, _reset_lines(result, "loses"), f"Reset {result.handle}?", yes):
            output.error("not reset")
            return 1
        result = workspace.maintenance.reset(str(result.handle.id), str(result.new_head))
    if output.for_people:
        for line in _reset_lines(result, "has lost"):
            output.info(line)
    else:
        output.tree(_reset_tree(result))
    return 0


def _reset_lines(result: ResetResult, verb: str) -> list[str]:
    where = f"block {result.sequence_number} ({result.new_head})"
    if not result.changes:
        return [f"{result.handle} is already at {where}"]
    lost = f"{verb} {count_of(result.num_blocks, 'block')} with {count_of(result.num_records, 'record')}, back to"
    line = (
        f"{result.handle} {lost if result.num_blocks else 'moved forward to'} {where}; the head was {result.old_head}"
    )
    return [line, *_consequences(result.downstream, result.notes)]


def _reset_tree(result: ResetResult) -> dict[str, Any]:
    return {
        "dataset": str(result.handle),
        "id": str(result.handle.id),
        "oldHead": str(result.old_head),
        "newHead": str(result.new_head),
        "sequenceNumber": result.sequence_number,
        "blocks": result.num_blocks,
        "records": result.num_records,
        "toBeMadeAgain": list(map(str, result.downstream.all)),
        "notes": list(result.notes),
    }


# --- delete and rename -----------------------------------------------------------------------------------------------


@command(
    commands, "odf delete com.example.rates", "odf delete com.example.rates -r", "odf delete 'com.example.%' --yes"
)
def delete(
    context: typer.Context,
    names: Names = None,
    all_: All = False,
    recursive: Annotated[
        bool, typer.Option("--recursive", "-r", help="Also delete all datasets derived from them.")
    ] = False,
    yes: Yes = False,
    force: Annotated[
        bool, typer.Option("--force", help="Delete them even if other datasets are derived from them.")
    ] = False,
    wait: Wait = None,
) -> int:
    """Delete datasets, with their data."""
    if not names and not all_:
        raise UsageError("Nothing to delete", hint="Name datasets, or use --all.")
    if names and all_:
        raise UsageError(f"--all cannot be combined with names: {', '.join(names)}", hint="Omit the names, or --all.")
    session = session_of(context)
    session.wait_for_locks(wait)
    workspace = session.workspace
    doomed = workspace.datasets.plan_delete(names or (), all=all_, recursive=recursive, force=force)
    if not doomed:
        session.output.info("No datasets")
        return 0
    if not session.confirm(f"Delete {', '.join(map(str, doomed))}, with all data?", yes=yes):
        session.output.error("not deleted")
        return 1
    for handle in workspace.datasets.delete([str(handle.id) for handle in doomed], force=force):
        session.output.info(f"Deleted {handle}")
    return 0


@command(commands, "odf rename com.example.rates com.example.fx-rates")
def rename(
    context: typer.Context,
    name: Name,
    new_name: Annotated[str, typer.Argument(help="The new name.", metavar="NEW-NAME")],
    wait: Wait = None,
) -> None:
    """Give a dataset another name; its id and derived datasets stay."""
    session = session_of(context)
    session.wait_for_locks(wait)
    workspace = session.workspace
    old = name if workspace.storage.has_no_name(name) else workspace.datasets.handle(name)
    session.output.info(f"{old} is now {workspace.datasets.rename(name, new_name)}")
