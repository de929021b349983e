"""`odf run`: the scheduler, in the foreground."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.cli.grammar import Form, command, group, session_of, whole_number
from odfpy.stopping import stopped_by_signals

if TYPE_CHECKING:
    from odfpy.automation.listener import Listener
    from odfpy.automation.notifications.notice import NoticeKind
    from odfpy.cli.screen.output import Output

commands = group("The scheduler.")


@command(commands, "odf run", "odf run --once", "odf run -o json --grace 60")
def run(
    context: typer.Context,
    once: Annotated[
        bool, typer.Option("--once", help="Run what is due now, and exit; exit code 1 if a run fails.")
    ] = False,
    grace: Annotated[
        str,
        typer.Option(
            help="How many seconds current runs may take to finish when the scheduler stops.", metavar="SECONDS"
        ),
    ] = "30",
    form: Form = None,
) -> int:
    """Run the scheduler, until Ctrl-C or SIGTERM, then wait for current runs; a second signal stops them."""
    from odfpy.automation.background import BackgroundScheduler
    from odfpy.automation.lock import has_schedules
    from odfpy.cli.automation.lines import has_failed

    session = session_of(context)
    output = session.output_as(form)
    seconds = whole_number(grace, "--grace") or 0
    listener = listener_of(output)
    failures: dict[tuple[str, str], bool] = {}

    def hear_run(row: Mapping[str, Any]) -> None:
        failures[row["dataset_id"], row["job"]] = has_failed(row)  # the last run counts: interrupted runs are repeated
        listener.on_run(row)

    heard = replace(listener, on_run=hear_run)
    scheduler = BackgroundScheduler(session.workspace, heard, grace=seconds, once=once)
    with stopped_by_signals(lambda _: scheduler.stop()):
        scheduler.start()
        if not once:
            if not has_schedules(session.workspace.storage):
                output.info(
                    "note: no dataset has a schedule; `odf schedule set NAME --every 1h` sets one, and "
                    "`odf pull --all` brings all datasets up to date now"
                )
            output.info("The scheduler is running; Ctrl-C stops it.")
        scheduler.join()
    if once and scheduler.has_worked and not failures:
        output.info("Nothing is due; `odf schedule next` shows the next runs.")
    return 1 if once and any(failures.values()) else 0


def listener_of(output: Output) -> Listener:
    """Return a listener that prints a line for each run, for people or as JSON.

    Args:
        output: the output of the command.
    """
    from odfpy.automation.listener import Listener
    from odfpy.cli.automation.lines import line_of
    from odfpy.escaping import escape_controls_in_json

    def print_run(row: Mapping[str, Any]) -> None:
        if row["outcome"] == "running":
            return
        output.text(line_of(row) if output.for_people else escape_controls_in_json(json.dumps(row, ensure_ascii=False)))
        output.flush()

    def print_notice(kind: NoticeKind, _name: str, text: str, row: Mapping[str, Any] | None) -> None:
        if row is None:  # otherwise reported in the line of the run
            output.info(f"{kind.value}: {text}")

    return Listener(on_run=print_run, on_notice=print_notice, on_remark=output.info)
