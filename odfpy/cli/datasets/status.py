"""`odf status`: datasets that need attention."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, Names, command, group, session_of
from odfpy.data.amounts import count_of

if TYPE_CHECKING:
    from odfpy.coordinator.status import DatasetStatus, StatusRemark
    from odfpy.coordinator.workspace import Workspace

commands = group("Status.")


@command(commands, "odf status", "odf status --remote", "odf status com.example.% -o json")
def status(
    context: typer.Context,
    names: Names = None,
    remote: Annotated[
        bool, typer.Option("--remote", help="Also check the repositories that datasets are pulled from and pushed to.")
    ] = False,
    form: Form = None,
) -> int:
    """List datasets that need attention: damaged, failed, late, diverged, behind, stale, unpushed or unsigned."""
    from odfpy.automation.lock import nothing_runs

    session = session_of(context)
    output = session.output_as(form)
    found = list(session.workspace.updates.status(names or (), remote=remote, progress=session.progress))
    found = list(_with_failing_jobs(session.workspace, found))
    session.progress.clear()
    remarks = [(one.name, remark) for one in found for remark in one.remarks]
    if remarks or not output.for_people:
        columns = {"Name": "name", "Status": "status", "What": "what", "To do": "command"}
        output.records([_tree(name, remark) for name, remark in remarks], columns)
    if output.for_people:
        fine = sum(not one.remarks for one in found)
        output.info(f"{count_of(len(found), 'dataset')}, {fine} with nothing to do")
    if nothing_runs(session.workspace.storage):
        output.warn("there are schedules, but no scheduler is running: start `odf run`, or `odf serve --run`")
    return 1 if any(not remark.condition.is_a_choice for _, remark in remarks) else 0


def _with_failing_jobs(workspace: Workspace, statuses: Iterable[DatasetStatus]) -> Iterator[DatasetStatus]:
    """Yield the statuses, including failures of scheduled jobs other than pulls."""
    from odfpy.automation.failing_jobs import failing_jobs
    from odfpy.coordinator.status import Condition, StatusRemark

    failing = failing_jobs(workspace)
    names = {
        str(dataset.handle): rows
        for dataset in (workspace.storage.datasets() if failing else ())
        if (rows := failing.get(str(dataset.handle.id)))
    }
    for status in statuses:
        remarks = tuple(
            StatusRemark(Condition.FAILED, _why(row), f"odf schedule run {status.name} --job {row['job']}")
            for row in names.get(status.name, ())
        )
        yield replace(status, remarks=(*remarks, *status.remarks))


def _why(row: Mapping[str, Any]) -> str:
    when = row["at"][:16].replace("T", " ")
    return f"the last {row['job']}: {row['error_message']} ({row['error_code'] or row['outcome']}, {when})"


def _tree(name: str, remark: StatusRemark) -> dict[str, Any]:
    return {
        "name": name,
        "status": remark.condition.value,
        "what": remark.message,
        "command": remark.command,
    }
