"""`odf merge`: accept or drop the staged data of a branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.chain.references import ReferenceKind
from odfpy.cli.datasets.branch import complete_branches
from odfpy.cli.grammar import Form, Name, Wait, command, group, session_of
from odfpy.data.amounts import count_of
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.branches.merge import MergeResult

commands = group("Staged events.")

Branch = Annotated[str, typer.Argument(help="The branch.", metavar="BRANCH", autocompletion=complete_branches)]


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
        bool, typer.Option("--ff-only", help="Refuse if the head has moved since the branch began.")
    ] = False,
    drop: Annotated[bool, typer.Option("--drop", help="Delete the branch instead of accepting it.")] = False,
    wait: Wait = None,
    form: Form = None,
) -> None:
    """Merge a branch, or drop it, and delete the branch."""
    session = session_of(context)
    session.wait_for_locks(wait)
    output = session.output_as(form)
    if drop:
        if ff_only:
            raise UsageError("--drop cannot be combined with --ff-only", hint="Omit one of them.")
        block = session.workspace.branches.delete(name, ReferenceKind.BRANCH, branch)
        output.info(f"Dropped {branch}, which was at {block}")
        return
    result = session.workspace.branches.merge(name, branch, fast_forward_only=ff_only)
    if not output.for_people:
        output.tree(_merge_tree(result))
        return
    again = ", rebased on the head" if result.applied_again else ""
    what = f"{count_of(result.num_records, 'record')} in {count_of(result.num_blocks, 'block')}{again}"
    output.info(f"{result.handle}: {what if result.num_blocks else 'no blocks that the head lacked'}")
    for note in result.notes:
        output.info(f"  note: {note}")


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
