"""`odf tag` and `odf branch`: names for blocks, and staging areas for review."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odfpy.chain.references import ReferenceKind
from odfpy.cli.grammar import Form, Name, command, group, session_of
from odfpy.cli.screen.output import error_tree
from odfpy.errors import UsageError

if TYPE_CHECKING:
    from odfpy.coordinator.storage.references import Reference

commands = group("Branches and tags.")

Block = Annotated[
    str | None,
    typer.Argument(help="A number, hash, tag or branch; by default the last block.", metavar="BLOCK"),
]
Delete = Annotated[bool, typer.Option("--delete", "-d", help="Delete it; its objects stay until `odf gc`.")]


def _complete(ctx: typer.Context, kind: ReferenceKind) -> list[str]:
    try:
        found = session_of(ctx).workspace.branches.all(ctx.params["name"], kind)
    except Exception:  # noqa: BLE001 - the shell expects names or nothing
        return []
    return [item.name.name for item in found]


def complete_tags(ctx: typer.Context) -> list[str]:
    """Return tags of the dataset named earlier on the command line, for completion."""
    return _complete(ctx, ReferenceKind.TAG)


def complete_branches(ctx: typer.Context) -> list[str]:
    """Return branches of the dataset named earlier on the command line, for completion."""
    return _complete(ctx, ReferenceKind.BRANCH)


def complete_moments(ctx: typer.Context) -> list[str]:
    """Return the named blocks of the dataset named earlier on the command line, for completion."""
    return ["head", *complete_tags(ctx), *complete_branches(ctx)]


@command(
    commands,
    "odf tag com.example.rates",
    "odf tag com.example.rates v1",
    "odf tag com.example.rates before-the-flood 12",
    "odf tag com.example.rates v1 --delete",
)
def tag(
    context: typer.Context,
    name: Name,
    tag: Annotated[str | None, typer.Argument(help="The tag.", metavar="TAG", autocompletion=complete_tags)] = None,
    block: Block = None,
    delete: Delete = False,
    form: Form = None,
) -> int:
    """List the tags of a dataset, or tag a block, so that NAME@TAG refers to it."""
    return _references(context, ReferenceKind.TAG, name, tag, block, delete=delete, form=form)


@command(
    commands,
    "odf branch com.example.rates",
    "odf branch com.example.rates staging",
    "odf branch com.example.rates staging --delete",
)
def branch(
    context: typer.Context,
    name: Name,
    branch: Annotated[
        str | None, typer.Argument(help="The branch.", metavar="BRANCH", autocompletion=complete_branches)
    ] = None,
    block: Block = None,
    delete: Delete = False,
    form: Form = None,
) -> int:
    """List the branches of a dataset, or create one; `odf ingest --branch` creates one, too."""
    return _references(context, ReferenceKind.BRANCH, name, branch, block, delete=delete, form=form)


def _references(
    context: typer.Context,
    kind: ReferenceKind,
    name: str,
    wanted: str | None,
    block: str | None,
    *,
    delete: bool,
    form: str | None,
) -> int:
    session = session_of(context)
    output = session.output_as(form)
    if delete:
        if wanted is None or block is not None:
            raise UsageError(
                f"--delete takes exactly one {kind.value}", hint=f"odf {kind.value} NAME {kind.value.upper()} -d"
            )
        block_hash = session.workspace.branches.delete(name, kind, wanted)
        output.info(f"Deleted {kind.value} {wanted}, which was at {block_hash}")
        return 0
    if wanted is not None:
        made = session.workspace.branches.create(name, kind, wanted, block)
        output.info(f"{made.name} is at block {_number(made)} ({made.target})")
        return 0
    found = session.workspace.branches.all(name, kind)
    if not found and output.for_people:
        output.info(f"No {kind.value}{'es' if kind is ReferenceKind.BRANCH else 's'}")
        return 0
    columns = {"Name": "name", "Block": "sequenceNumber", "Time": "systemTime", "Hash": "blockHash"}
    output.records([_tree(item) for item in found], columns)
    problems = [item.problem for item in found if item.problem is not None]
    for problem in problems:
        output.error(problem.message, problem.hint, problem.code)
    return 1 if problems else 0


def _tree(item: Reference) -> dict[str, Any]:
    return {
        "name": item.name.name,
        "sequenceNumber": item.block.block.sequence_number if item.block else None,
        "systemTime": str(item.block.block.system_time) if item.block else None,
        "blockHash": str(item.target) if item.target else None,
        **({} if item.problem is None else error_tree(item.problem)),
    }


def _number(item: Reference) -> int | str:
    return item.block.block.sequence_number if item.block else "?"
