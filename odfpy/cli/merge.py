"""`odf diff` and `odf merge`: what is staged on a branch, and taking it over or not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.chain.references import ReferenceKind
from odfpy.cli.branch import complete_branches
from odfpy.cli.grammar import Form, Name, command, group, session_of, whole_number
from odfpy.cli.results import plural
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.branches import BranchDiff, MergeResult

commands = group("Staged events.")

Branch = Annotated[str, typer.Argument(help="The branch.", metavar="BRANCH", autocompletion=complete_branches)]


@command(
    commands,
    "odf diff com.example.rates staging",
    "odf diff com.example.rates staging --rows 100",
    "odf diff com.example.rates staging -o json",
)
def diff(
    context: typer.Context,
    name: Name,
    branch: Branch,
    rows: Annotated[str, typer.Option("--rows", "-n", help="How many of its rows to show.", metavar="N")] = "10",
    form: Form = None,
) -> None:
    """Show what a branch would add to a dataset: blocks, rows, and what these do by key."""
    session = session_of(context)
    output = session.output_as(form)
    limit = whole_number(rows, "--rows") or 0
    found = session.workspace.diff(name, branch)
    if not output.for_people:
        output.tree(_diff_tree(found))
        return
    for line in _lines(found):
        output.text(line)
    if found.num_records and limit:
        output.text()
        output.arrow(session.workspace.staged_rows(found, limit))
        if found.num_records > limit:
            output.say(f"{plural(found.num_records - limit, 'more row')}; --rows shows more")


def _lines(found: BranchDiff) -> list[str]:
    lines = [f"{found.handle}: {found.branch} parted from the head at block {found.base_number}"]
    if not found.blocks:
        return [*lines, "It has nothing that the head lacks"]
    if found.head_blocks:
        lines.append(f"The head has gone on by {plural(len(found.head_blocks), 'block')}")
    lines.append(f"It would add {plural(found.num_records, 'record')} in {plural(len(found.blocks), 'block')}:")
    lines += [
        f"  block {one.block.sequence_number} {one.hash} {type(one.block.event).__name__}" for one in found.blocks
    ]
    if found.keys is not None:
        lines.append(f"By key: {found.keys.new} new, {found.keys.changed} changed, {found.keys.gone} gone")
    return lines


def _diff_tree(found: BranchDiff) -> dict[str, Any]:
    keys = found.keys
    return {
        "dataset": str(found.handle),
        "branch": found.branch,
        "head": str(found.head),
        "tip": str(found.tip),
        "base": str(found.base),
        "baseNumber": found.base_number,
        "blocks": [
            {
                "blockHash": str(one.hash),
                "sequenceNumber": one.block.sequence_number,
                "event": type(one.block.event).__name__,
            }
            for one in found.blocks
        ],
        "headBlocks": len(found.head_blocks),
        "records": found.num_records,
        "keys": None if keys is None else {"new": keys.new, "changed": keys.changed, "gone": keys.gone},
    }


@command(
    commands,
    "odf merge com.example.rates staging",
    "odf merge com.example.rates staging --ff-only",
    "odf merge com.example.rates staging --drop",
)
def merge(
    context: typer.Context,
    name: Name,
    branch: Branch,
    ff_only: Annotated[
        bool, typer.Option("--ff-only", help="Refuse where the head has moved on since the branch began.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Do not accept it: delete the branch.")] = False,
    form: Form = None,
) -> None:
    """Accept what is staged on a branch, or drop it; the branch is deleted then."""
    session = session_of(context)
    output = session.output_as(form)
    if drop:
        if ff_only:
            raise UsageError("Either --drop or --ff-only", hint="--drop accepts nothing.")
        block = session.workspace.delete_reference(name, ReferenceKind.BRANCH, branch)
        output.say(f"Dropped {branch}, which was at {block}")
        return
    result = session.workspace.merge(name, branch, fast_forward_only=ff_only)
    if not output.for_people:
        output.tree(_merge_tree(result))
        return
    again = ", applied again on top of the head" if result.applied_again else ""
    what = f"{plural(result.num_records, 'record')} in {plural(result.num_blocks, 'block')}{again}"
    output.say(f"{result.handle}: {what if result.num_blocks else 'nothing that the head lacked'}")
    for note in result.notes:
        output.say(f"  note: {note}")


def _merge_tree(result: MergeResult) -> dict[str, Any]:
    return {
        "dataset": str(result.handle),
        "branch": result.branch,
        "oldHead": str(result.old_head),
        "newHead": str(result.new_head),
        "blocks": result.num_blocks,
        "records": result.num_records,
        "appliedAgain": result.applied_again,
        "notes": list(result.notes),
    }
