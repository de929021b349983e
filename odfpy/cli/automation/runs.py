"""`odf runs`: the history of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import typer

from odfpy.cli.grammar import Form, command, complete_names, group, moment_option, session_of, whole_number

commands = group("Runs of the scheduler.")


@command(
    commands,
    "odf runs",
    "odf runs com.example.rates --failed --since 2d",
    "odf runs -n 100 -o json",
)
def runs(
    context: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(help="Only runs for this dataset.", metavar="NAME", autocompletion=complete_names),
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="Only runs that failed or were interrupted.")] = False,
    since: Annotated[
        str | None, typer.Option(help="Only runs that ended since a time, or within a duration: 2d.", metavar="TIME")
    ] = None,
    num: Annotated[str, typer.Option("-n", help="Maximum number of entries.", metavar="N")] = "20",
    form: Form = None,
) -> None:
    """Show past and current runs of the scheduler, newest first."""
    from odfpy.automation.history import RunFilter, check_dataset_known, last_runs
    from odfpy.data.timestamp import Timestamp

    session = session_of(context)
    output = session.output_as(form)
    count = whole_number(num, "-n", at_least=1) or 1
    start = None if since is None else moment_option(since, Timestamp.parse)
    chosen = RunFilter.of(session.workspace, name, only_failed=failed, since=start)
    found = last_runs(session.workspace, chosen, num=count)
    if not found and chosen.name is not None:
        check_dataset_known(session.workspace, chosen.name)  # a typo must not look like a deleted dataset without runs
    if not found and output.for_people:
        output.info("No runs.")
        return
    columns = {"Name": "dataset", "Job": "job", "Outcome": "outcome", "Rows": "rows", "Seconds": "seconds"}
    output.records(found, {"At": _at, **columns, "Why": "reason", "Try": "attempt", "Error": _error})


def _at(row: Mapping[str, Any]) -> str:
    return f"{row['at'][:19]}Z"


def _error(row: Mapping[str, Any]) -> str | None:
    if not row["error_message"]:
        return None
    code = f"{row['error_code']}: " if row["error_code"] else ""
    return code + " ".join(row["error_message"].split())[:100]
