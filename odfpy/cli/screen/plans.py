"""Plans of `odf pull --dry-run`. They are printed to standard output, since they are the requested result."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from odfpy.cli.screen.output import Format, Output, error_tree
from odfpy.cli.screen.progress import ProgressLine
from odfpy.cli.screen.results import print_warnings, warning_trees
from odfpy.cli.screen.terminal import paint
from odfpy.data.amounts import count_of, format_size

if TYPE_CHECKING:
    from odfpy.coordinator.dry_run import PlannedInput, PullPlan

_SHOWN = 10
"""Maximum number of inputs per dataset shown without --verbose."""


def print_plans(plans: Iterable[PullPlan], output: Output, progress: ProgressLine) -> int:
    """Print each plan when it is ready. Return the exit code: 1 if something would fail.

    Args:
        plans: the expected outcomes, in order of discovery.
        output: the output of the command.
        progress: the progress line.
    """
    done = []
    fails = False
    for plan in plans:
        progress.clear()
        fails = fails or plan.expectation.name == "FAILED"
        if output.form is Format.NDJSON:
            output.tree(_tree(plan))
        elif output.for_people:
            _print(plan, output)
        done.append(plan)
    progress.clear()
    if not output.for_people and output.form is not Format.NDJSON:
        output.tree([_tree(plan) for plan in done])
    return 1 if fails else 0


def _print(plan: PullPlan, output: Output) -> None:
    colours = {"NEW": "green", "UP_TO_DATE": "dim", "UNKNOWN": "yellow", "FAILED": "red"}
    verdict = paint(plan.expectation.value, colours[plan.expectation.name], sys.stdout)
    output.text(f"{plan.name}: {verdict}{_sum(plan.inputs)}")
    shown = plan.inputs if output.verbosity.value > 0 else plan.inputs[:_SHOWN]
    for item in shown:
        output.text(f"  {item.name}{_measures(item)}")
    if len(shown) < len(plan.inputs):
        output.text(f"  and {len(plan.inputs) - len(shown)} more; -v shows all")
    print_warnings(plan.warnings, output.text, output.text if output.verbosity.value > 0 else lambda _: None)
    for note in plan.notes:
        output.text(f"  note: {note}")
    if plan.error is not None:
        sys.stdout.flush()
        output.error(plan.error.message, plan.error.hint, plan.error.code)


def _sum(inputs: tuple[PlannedInput, ...]) -> str:
    if len(inputs) < 2:
        return ""
    sizes = [item.size for item in inputs]
    total = f", {format_size(sum(size for size in sizes if size is not None))}" if None not in sizes else ""
    return f" from {len(inputs)} inputs{total}"


def _measures(item: PlannedInput) -> str:
    parts = []
    if item.size is not None:
        parts.append(format_size(item.size))
    if item.num_records is not None:
        parts.append(count_of(item.num_records, "new record"))
    if item.kept:
        some = "" if item.kept == item.size else f"{format_size(item.kept)} "
        parts.append(f"{some}already downloaded")
    return f"  {', '.join(parts)}" if parts else ""


def _tree(plan: PullPlan) -> dict[str, Any]:
    return {
        "name": plan.name,
        "expectation": plan.expectation.name.lower().replace("_", "-"),
        "inputs": [
            {"name": item.name, "bytes": item.size, "records": item.num_records, "keptBytes": item.kept}
            for item in plan.inputs
        ],
        "warnings": warning_trees(plan.warnings),
        "notes": list(plan.notes),
        "seconds": round(plan.seconds, 3),
        **error_tree(plan.error),
    }
